"""What the words of an evidence row mean: one rule for each habit of a source, and the one reader of them.

A source may leave something to its name or its notes that the planner needs: its stack, whether its samples are
packed, the release behind a log. Each such thing is a question below; its rules are data, in `catalogs/evidence`, and
the first that holds answers. A measured column is no column of a rule: no measurement can decide a prediction.

Patterns ignore case. None repeats without a bound, so that reading a cell takes time in proportion to its length.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import AfterValidator, Field, field_validator

from planner.catalog.sourced import AsOf, Kind, Sourced
from planner.errors import InputError, MissingFact, did_you_mean
from planner.yaml_io import Frozen

Flag = Literal[
    "adapters", "attention_copies", "balanced", "blocks", "capped", "copy_engines", "counts_rollouts",
    "drops_groups", "eager_rollouts", "engine_log_probs", "experiment", "experts_in_turn", "fills_gpus",
    "first_writes", "fixed_answers", "frees_gradients", "fuses_operations", "gen_waits", "keeps_entropy",
    "keeps_half", "keeps_quantized_inputs", "keeps_scores", "launched", "layers_apart", "liger", "loads_whole",
    "narrow_adapters", "no_autocast", "optimizer_in_backward", "own_head", "padding_free", "prompts_wait",
    "recurrent", "reserves_answers", "returns_states", "run_interleaves", "sends_each_expert", "several_batches",
    "slow_experts", "swaps", "synchronous", "trains_tables", "true_length", "tuned", "tuned_engine", "warming",
    "waves", "whole_experts"]
Word = Literal[
    "base", "cache", "card", "catalog_model", "critic", "engine", "engine_generation", "fabric", "fsdp2_stack",
    "held_in", "loss", "memory_engine", "node", "page", "peak_kind", "positions", "preference", "preset_recompute",
    "ran_version", "refused", "regime", "rollout_release", "run_attention", "run_framework", "run_recompute",
    "scaled_precision", "scenario", "stack", "targets", "usual_cache", "usual_engine", "usual_gpu", "usual_log_version",
    "usual_precision", "usual_recompute", "usual_version", "usual_weights", "version", "weights"]
Number = Literal[
    "adapter_dropout", "answer_cv", "answer_length", "attended", "attention_ranks", "attention_rate",
    "context_ranks", "dies", "draft_layers", "drafts", "dtype_moments", "epoch_steps", "half_share", "host_threads",
    "issue", "length_share", "live_mlp", "lora_rank", "loss_bytes", "micro_batch_answers", "micro_batches",
    "moments", "offload", "offload_activations", "offload_parameters", "parallel_norms", "pipeline_micro_batch",
    "predictions", "prompts", "recompute_layers", "rollout_fraction", "rollout_tp", "rounding", "run_batch",
    "run_length", "sample_tokens", "scheduled", "shard_group", "standing_buffers", "step_answers", "table_bytes",
    "trainer_gpus", "unsaved_products", "usual_length", "usual_vpp", "usual_zero", "vpp", "zero"]
Usual = Literal[
    "accepted_drafts", "cache_spread", "loose_cache_spread", "machine_gpus", "mean_sample", "longest_sample",
    "long_data", "sample_spread", "uneven_answers", "usual_days", "usual_head", "usual_heads", "usual_mfu",
    "usual_pixels", "usual_rank", "usual_vocabulary", "usual_width", "weights_spread"]
"""Numbers that are asked of every row alike, so that a catalog must have them."""
Several = Literal[
    "adapted", "recompute_flags", "workers"]
Question = Literal[Flag, Word, Number, Usual, Several]
COLUMNS = frozenset({
    "source", "source_detail", "notes", "year", "framework", "method", "model", "gpu", "gpus", "scaleout", "sharding",
    "precision", "optimizer", "offload", "moments_dtype", "base_quantization", "loss_kernel", "lora_rank",
    "lora_targets", "hidden", "vocab", "experts", "mla", "engine", "engine_version", "weight_precision", "kv_precision",
    "disaggregated", "concurrency", "isl", "osl", "offload_activations", "run_class", "kind", "params_b", "packed",
    "attention_impl", "task", "micro_batch", "algorithm", "placement", "policy_lag", "max_len", "train_engine", "tp"})
"""Columns that say what was run, and that a rule may read."""
KNOWN = frozenset({"stack", "format", "architecture", "version", "nic_gbit"})
"""What is known of a row by the time it is asked, beside its columns."""
LONGEST_PATTERN, MOST_WAYS = 400, 10**6
"""Characters of a pattern, and ways in which its repeats can share out a text."""
_LITERAL = re.compile(r"\\.|\[\^?\]?(?:\\.|[^]\\])*\]|\(\?")
_UNBOUNDED = re.compile(r"[*+]|\{\d*,\}|\)\{")
_REPEAT = re.compile(r"\{(\d*),(\d+)\}")
_NUMBER = re.compile(r"\d{1,20}(\.\d{1,20})?")
_COMPARED = re.compile(r"(<=|>=) ?(\d{1,9})")


def bounded(text: str) -> str:
    """Return a pattern that compiles and takes linear time. Raises ValueError."""
    if len(text) > LONGEST_PATTERN:
        raise ValueError(f"a pattern has at most {LONGEST_PATTERN} characters")
    plain = _LITERAL.sub("", text)
    ways = math.prod(int(most) - int(least or 0) + 1 for least, most in _REPEAT.findall(plain))
    if _UNBOUNDED.search(plain) or ways > MOST_WAYS:
        raise ValueError(f"{text!r} repeats without a bound: write {{0,9}} for *, {{1,9}} for +, and repeat no group")
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"{text!r} is no pattern: {error}") from None
    return text


Pattern = Annotated[str, AfterValidator(bounded)]
Test = Callable[[str | None], tuple[str | None, ...] | None]


Whole: TypeAlias = Annotated[int, Field(ge=0, le=10**12)]
Figure: TypeAlias = Annotated[float, Field(ge=-1e12, le=1e12)]


class QuirkRule(Frozen):
    """One habit of a source: when all conditions hold, the answer is `value`."""

    when: dict[str, Pattern | Whole | None] = Field(default_factory=dict)
    """Columns and what is found in each: a pattern, a bound (`<= 2022`), a whole number, or null where nothing is
    stated. `a or b` is the first of two that is stated, `a and b` both, one after the other."""
    value: str | Figure | None = None
    """Without one, what the groups of the patterns catch; `yes` where there is no group. `no` answers a flag."""
    source: str = Field(min_length=3)
    as_of: AsOf | None = None
    kind: Kind

    @field_validator("when")
    @classmethod
    def _columns(cls, when: dict[str, str | int | None]) -> dict[str, str | int | None]:
        for column in (name for key in when for name in _names(key)):
            if column not in COLUMNS | KNOWN:
                raise ValueError(f"no column {column!r} that a rule may read{did_you_mean(column, COLUMNS | KNOWN)}")
        return when


class Quirks(Sourced):
    """A file of rules. Those of later folders come first, so that yours answer before the shipped ones."""

    quirks: dict[str, Annotated[tuple[QuirkRule, ...], Field(min_length=1)]]
    """Rules by question; the first that holds answers."""

    @field_validator("quirks")
    @classmethod
    def _answers(cls, quirks: dict[str, tuple[QuirkRule, ...]]) -> dict[str, tuple[QuirkRule, ...]]:
        for question, rules in quirks.items():
            if question not in get_args(Question):
                raise ValueError(f"no question {question!r}{did_you_mean(question, get_args(Question))}")
            wrong = next((r.value for r in rules
                          if question in get_args(Number) + get_args(Usual) and isinstance(r.value, str)), None)
            if wrong is not None:
                raise ValueError(f"{question} is answered by a number, got {wrong!r}")
        return quirks


class Sources:
    """All rules of a catalog, ready to be asked of rows."""

    def __init__(self, files: Iterable[Quirks]) -> None:
        """Compile the rules; files that come first answer first."""
        rules: dict[str, list[QuirkRule]] = {question: [] for question in get_args(Question)}
        for file in files:
            for question, own in file.quirks.items():
                rules[question] += own
        self._asked = {question: _RowRules(own) for question, own in rules.items()}

    def flag(self, question: Flag, row: object, **known: str) -> bool:
        """Say whether something holds of a row."""
        return self._first(question, row, known) not in ((), ("no",))

    def word(self, question: Word, row: object, **known: str) -> str | None:
        """Return the answer to a question; none where no rule holds, or one that answers nothing."""
        return next(iter(self._first(question, row, known)), None) or None

    def number(self, question: Number, row: object, **known: str) -> float | None:
        """Return the answer as a number, none where no rule holds. Raises InputError where a row says none."""
        answer = self.word(question, row, **known)  # type: ignore[arg-type]
        try:
            return None if answer is None else float(answer)
        except ValueError:
            raise InputError(f"{question}: expected a number, got {answer!r}") from None

    def usual(self, question: Usual, row: object = None) -> float:
        """Return a number that holds of every row, or of this one. Raises MissingFact where the catalog has none."""
        answer = self.word(question, row)  # type: ignore[arg-type]
        if answer is None:
            raise MissingFact("evidence", question)
        return float(answer)

    def whole(self, question: Number, row: object, **known: str) -> int | None:
        """Return the answer as a whole number, none where no rule holds."""
        number = self.number(question, row, **known)
        return None if number is None else int(number)

    def several(self, question: Several, row: object, **known: str) -> tuple[str, ...]:
        """Return all answers: of every rule that holds, of every group of its patterns."""
        asked = self._asked[question]
        return tuple(answer for answers in asked.answers(*asked.cells(row, known)) for answer in answers)

    def _first(self, question: str, row: object, known: Mapping[str, str]) -> tuple[str, ...]:
        asked = self._asked[question]
        return asked.first(*asked.cells(row, known))


class _RowRules:
    """The rules of one question; rows of a source say the same again and again, so first answers are kept."""

    def __init__(self, rules: Iterable[QuirkRule]) -> None:
        self.rules = [([(_names(key), " or " in key, _test(wanted)) for key, wanted in rule.when.items()],
                       () if rule.value is None else (str(rule.value),)) for rule in rules]
        self.columns = sorted({name for tests, _ in self.rules for names, _, _ in tests for name in names})
        self.first = lru_cache(maxsize=8192)(lambda *cells: next(self.answers(*cells), ()))

    def cells(self, row: object, known: Mapping[str, str]) -> list[object]:
        """Return what a row has in each column that the rules read."""
        return [known[c] if c in known else getattr(row, c, None) for c in self.columns]

    def answers(self, *cells: object) -> Iterator[tuple[str, ...]]:
        """Yield the answer of every rule that holds: its value, else what its groups catch, else yes."""
        texts = {column: _text(cell) for column, cell in zip(self.columns, cells, strict=True)}
        for tests, value in self.rules:
            caught: list[str] = []
            for names, either, test in tests:
                stated = [text for name in names if (text := texts[name]) is not None]
                groups = test((stated[0] if either else " ".join(stated)) if stated else None)
                if groups is None:
                    break
                caught += filter(None, groups)
            else:
                yield value or tuple(caught) or ("yes",)


def _names(key: str) -> list[str]:
    return re.split(" or | and ", key)


def _text(cell: object) -> str | None:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return None if cell is None else str(cell)


def _test(wanted: str | int | None) -> Test:
    """Return what tries the text of a cell: what the groups catch where the condition holds, else none."""
    if not isinstance(wanted, str):
        return lambda text: () if text == (None if wanted is None else str(wanted)) else None
    bound = _COMPARED.fullmatch(wanted)
    if bound:
        sign, limit = (1 if bound[1] == ">=" else -1), int(bound[2])
        return lambda text: () if _NUMBER.fullmatch(text or "") and sign * float(text or 0) >= sign * limit else None
    search = re.compile(wanted, re.IGNORECASE).search
    return lambda text: match.groups() if text is not None and (match := search(text)) else None

"""How long prompts and answers of a run were: as its row states, as its source has them, or as such runs usually do."""

from __future__ import annotations

import re
from dataclasses import dataclass

from planner.catalog.load import Catalog
from planner.evidence.rl_rows import RlRun
from planner.evidence.skipping import SkippedError

_PART = re.compile(r"(\d{1,7}) ?(k?)\b", re.IGNORECASE | re.ASCII)
_THOUSAND = 1024
_BEYOND = 3.0
"""Times the mean answer that the longest is taken to be."""


@dataclass(frozen=True, slots=True)
class RunLengths:
    """Tokens of a mean prompt and answer, and of the longest of both together."""

    prompt: float
    answer: float
    longest: int
    guessed: bool
    """Whether the answer is taken to be as long as such answers usually are."""


def _tokens(text: str) -> int | None:
    found = _PART.search(text)
    return None if found is None else int(found[1]) * (_THOUSAND if found[2] else 1)


def _most(text: str | None) -> tuple[int | None, int | None]:
    """Return the most tokens of an answer, and of prompt and answer together, of which a cell states one or both."""
    first, plus, second = (text or "").partition("+")
    if plus:
        answer, prompt = _tokens(second), _tokens(first)
        return answer, None if answer is None or prompt is None else prompt + answer
    if "response" in first:
        return _tokens(first), None
    return None, _tokens(first)


def answers_of(run: RlRun, catalog: Catalog) -> int | None:
    """Return the answers of a step: as the row states them, or its source."""
    return run.samples_per_step or catalog.sources.whole("step_answers", run)


def lengths(run: RlRun, catalog: Catalog, assumed: list[str]) -> RunLengths:
    """Return the lengths of a run; what its row does not state is added to `assumed`. Raises SkippedError."""
    runs = catalog.posttraining_runs
    prompt, answer, both = run.prompt_len_mean, run.response_len_mean, run.seq_len_mean
    most, total = _most(run.max_len)
    if most is None and total is None and answer is None and both is None:
        raise SkippedError("lengths of answers are not told")
    samples = answers_of(run, catalog)
    if prompt is None and answer is not None and samples is not None and run.tokens_per_step is not None:
        # what is left of a step's tokens, at least one for each answer
        prompt = max(1.0, run.tokens_per_step / samples - answer)
    if prompt is None:
        prompt = float(runs.prompt)
        assumed.append(f"prompt_len_mean={prompt:g}")
    guessed = answer is None and both is None
    if both is not None and answer is None:
        prompt = min(prompt, both / 2)
        answer = both - prompt
    elif answer is None:
        longest = most if most is not None else max(2.0, (total or 0) - prompt)
        answer = min(catalog.sources.number("answer_length", run) or runs.answer * longest, float(longest))
        assumed.append(f"response_len_mean={answer:.0f}")
    if most is None and total is None and catalog.sources.flag("fixed_answers", run):
        most = round(answer)
    if most is not None:
        total = min(total or round(prompt) + most, round(prompt) + most)
    elif total is None:
        total = round(prompt + max(runs.output, _BEYOND * answer))
        assumed.append(f"max_len={total}")
    if run.response_len_max is not None:
        total = min(total, round(prompt + run.response_len_max))
    return RunLengths(prompt, answer, max(total, round(prompt + answer) + 1), guessed)

"""Runs of reinforcement learning as rows state them, and what each is predicted to take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, get_args

from planner.catalog.architecture import Model
from planner.catalog.load import Catalog
from planner.catalog.posttraining import ModelKind, RlFramework, TrainerKind
from planner.evidence.rl_lengths import RunLengths, answers_of, lengths
from planner.evidence.rl_rows import RlRun
from planner.evidence.shape import model_of
from planner.evidence.skipping import SkippedError
from planner.evidence.software import attending
from planner.jobs.posttraining.assignment import verdict
from planner.jobs.posttraining.held import Held
from planner.jobs.posttraining.job import NODES
from planner.jobs.posttraining.options import apart, ways_on
from planner.jobs.posttraining.question import RlQuestion
from planner.jobs.posttraining.way import RlWay
from planner.layouts.axes import RECOMPUTE
from planner.layouts.candidate import Candidate
from planner.money.rent import usual_candidate
from planner.physics.posttraining.passes import Packed, Trained, trainer_of
from planner.physics.posttraining.step import written
from planner.scenario.hardware_names import node_named
from planner.scenario.lengths import Length
from planner.scenario.posttraining import PostTraining, Reward, RlMethod

CONFIDENCE = 0.95
"""Of the verdict on the fewest GPUs."""
MOST_GPUS = 1024
USUAL_RANK = 16


@dataclass(frozen=True, slots=True)
class RlPrediction:
    """A run as a question, the way that it took, and what had to be assumed."""

    way: RlWay
    kind: ModelKind
    assumed: tuple[str, ...]
    guessed: bool
    """Whether answers are taken to be as long as such answers usually are."""


def is_learned(run: RlRun) -> bool:
    """Say whether a trainer learns from rewards, and not from examples."""
    return not (run.algorithm or "").lower().startswith("sft")


def _kind_of(model: Model) -> ModelKind:
    return "mixture" if model.mixes_experts else "dense"


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """One micro-batch of one sequence a model copy: its part of a step, and what had to be assumed."""

    trained: Trained
    kind: ModelKind
    seconds: float
    assumed: tuple[str, ...]


def micro_batch(run: RlRun, catalog: Catalog, framework: str) -> MicroBatch:
    """Return one micro-batch of one sequence a model copy. Raises SkippedError."""
    assumed = list[str]()
    model, each = model_of(_named(run, catalog), catalog, assumed), catalog.posttraining_law.frameworks[framework]
    if run.seq_len_mean is None or run.gpus is None:
        raise SkippedError("the micro-batch is not stated")
    candidate, cp, tp = _candidate(run, catalog), run.train_cp or 1, run.train_tp or 1
    copies = max(1, run.gpus // (cp * tp))
    length, times = run.seq_len_mean, round(catalog.sources.number("micro_batches", run) or 1)
    stack = attending(catalog.stack(each.trainers[_kind(run, each.trainers)]),
                      catalog.sources.number("attention_rate", run), candidate.gpu)
    trainer = trainer_of(catalog, model, candidate, stack,
                         Packed(times * copies, length, length, length, 1), method=_method(run), rank=_rank(run),
                         confidence=CONFIDENCE, loss=each.loss if is_learned(run) else "plain",
                         frozen=each.frozen)
    row: dict[str, float] = {"dp": copies, "tp": tp, "cp": cp, "ep": run.train_ep or 1, "pp": run.train_pp or 1,
                             "zero": 3 if copies * cp > 1 else 0, "recompute": RECOMPUTE.index("full"),
                             "offload_activations": catalog.sources.number("offload_activations", run) or 0.0}
    trained = trainer.one(row)
    seconds = catalog.posttraining_law.update * trained.update_seconds
    if is_learned(run):
        writes = each.model_copy(update={"written": "first"}) if catalog.sources.flag("first_writes", run) else each
        seconds += written(catalog.posttraining_law, writes, trained, run.gpus)
    return MicroBatch(trained, _kind_of(model), seconds / times, tuple(assumed))


def _kind(run: RlRun, trainers: Mapping[TrainerKind, str]) -> TrainerKind:
    """Return which of a framework's trainers a row names; the first where it names none. Raises SkippedError."""
    said = (run.train_engine or "").lower()
    found: TrainerKind | None = next((kind for kind in trainers if kind in said), None)
    if found is None and said:
        raise SkippedError(f"trainer {run.train_engine} is not modeled")
    return next(iter(trainers)) if found is None else found


def _method(run: RlRun) -> Literal["lora", "full"]:
    return "lora" if (run.method or "full").startswith("lora") else "full"


def _rank(run: RlRun) -> int:
    words = (run.method or "").replace(",", " ").split()
    return next((int(word) for word in words if word.isdecimal()), USUAL_RANK)


def _candidate(run: RlRun, catalog: Catalog) -> Candidate:
    assert run.gpu is not None
    return usual_candidate(catalog.node(node_named(run.gpu, catalog, run.gpus)[0]), catalog)


def predicted(run: RlRun, catalog: Catalog, framework: str, *, leanest: bool = False) -> RlPrediction:
    """Return the way that a run took, or where `leanest` any that fits. Raises SkippedError."""
    assumed = list[str]()
    model = model_of(_named(run, catalog), catalog, assumed)
    said = lengths(run, catalog, assumed)
    each, samples = _answers(run, catalog, said, assumed)
    if run.gpus is None:
        raise SkippedError("the number of GPUs is not told")
    known, algorithm = catalog.posttraining_law.frameworks[framework], (run.algorithm or "grpo").lower()
    critic = catalog.sources.word("critic", run)
    spread = catalog.sources.number("answer_cv", run) or catalog.posttraining_runs.spread
    method = _kind_of_update(algorithm)
    work = PostTraining.model_construct(
        model=model.name, method=method, tuning=_method(run), lora_rank=_rank(run) if _method(run) == "lora" else None,
        prompts=max(1, round(samples / each)), samples_per_prompt=each, input=Length("mean", said.prompt, 0.0),
        output=Length("mean", said.answer, spread), max_model_len=said.longest,
        reward=Reward("model" if critic else "rule"), reward_model=critic, critic=critic,
        reference="initial" if known.reference and not algorithm.startswith("dapo") else "none",
        policy_lag=_lag(run), placement="any", rollouts_on=(), stack=(framework,), engine=None, steps=None)
    return RlPrediction(_run(run, work, catalog, leanest=leanest), _kind_of(model), tuple(assumed), said.guessed)


def _kind_of_update(algorithm: str) -> RlMethod:
    methods: tuple[RlMethod, ...] = get_args(RlMethod)
    return next((name for name in methods if name == algorithm.split(" ", maxsplit=1)[0]), "grpo")


def _answers(run: RlRun, catalog: Catalog, said: RunLengths, assumed: list[str]) -> tuple[int, int]:
    """Return the answers to a prompt and of a step. Raises SkippedError."""
    runs, samples = catalog.posttraining_runs, answers_of(run, catalog)
    if samples is None and run.tokens_per_step is not None:
        samples = max(1, round(run.tokens_per_step / (said.prompt + said.answer)))
    samples = samples or run.train_batch
    if samples is None:
        raise SkippedError("answers of a step are not told")
    if run.samples_per_step is None:
        assumed.append(f"samples_per_step={samples}")
    prompts = run.prompts_per_step or max(1, round(samples / runs.samples))
    alone = _kind_of_update((run.algorithm or "grpo").lower()) in ("ppo", "reinforce")
    return max(1 if alone else 2, round(samples / prompts)), samples


def _framework(run: RlRun, catalog: Catalog, name: str, tokens: float) -> RlFramework:
    """Return a framework as a run has it; tokens: of a mean sequence."""
    said, known = catalog.sources, catalog.posttraining_law.frameworks[name]
    fraction = said.number("rollout_fraction", run)
    answers = said.number("micro_batch_answers", run)
    return known.model_copy(update={
        "loss": "plain" if said.flag("keeps_entropy", run) else known.loss,
        "packed": known.packed if answers is None else math.ceil(answers * tokens),
        "release": said.word("rollout_release", run) or known.release, "swaps": known.swaps or said.flag("swaps", run),
        "recomputes": known.recomputes and not said.flag("engine_log_probs", run),
        "eager": known.eager or said.flag("eager_rollouts", run), "memory_fraction": fraction or known.memory_fraction})


def _named(run: RlRun, catalog: Catalog) -> RlRun:
    """Return a run with the model as the catalog calls it; its size says nothing that the name does not."""
    return run.model_copy(update={"model": catalog.sources.word("catalog_model", run) or run.model, "params_b": None})


def _lag(run: RlRun) -> int:
    said = run.policy_lag or "0"
    return int(said) if said.isdecimal() else 2 if said.split(" ")[-1] != "0" else 0


def _run(run: RlRun, work: PostTraining, catalog: Catalog, *, leanest: bool) -> RlWay:
    tokens = math.ceil(work.input.mean + work.output.mean)
    known = _framework(run, catalog, work.stack[0], tokens)
    if not known.together or catalog.sources.number("micro_batch_answers", run):
        return _run_as(run, work, catalog, known, leanest=leanest)
    assert run.gpus is not None
    most = int(math.log2(max(1, work.answers // run.gpus)))
    for power in range(most, 0, -1):
        # the largest micro-batch that fits
        large = known.model_copy(update={"packed": tokens << power})
        with suppress(SkippedError):
            way = _run_as(run, work, catalog, large, leanest=leanest)
            if way.peak <= way.usable:
                return way
    return _run_as(run, work, catalog, known.model_copy(update={"packed": tokens}), leanest=leanest)


def _run_as(run: RlRun, work: PostTraining, catalog: Catalog, known: RlFramework, *, leanest: bool) -> RlWay:
    assert run.gpus is not None
    candidate = _candidate(run, catalog)
    question = RlQuestion(work, catalog, (candidate,), 0, work.stack[0], _kind(run, known.trainers), CONFIDENCE, known)
    rollout_tp = run.rollout_tp or catalog.sources.whole("rollout_tp", run)
    alone = {"rollout_pp": "1", "rollout_ep": "1", "rollout_dp": "1"} if rollout_tp else {}
    apart_ = (run.placement or "").startswith("disaggregated")
    swap = {} if apart_ else {"swap": "1" if known.swaps else "0"}
    if run.swapped is not None and not apart_:
        swap = {"swap": run.swapped}
    usual = {} if leanest else {"recompute": run.train_recompute or catalog.sources.word(
        "preset_recompute", run) or "full", **swap}
    held = {**alone, **usual, **{axis: str(value) for axis, value in (
        ("tp", run.train_tp), ("pp", run.train_pp), ("cp", run.train_cp), ("ep", run.train_ep),
        ("rollout_tp", rollout_tp), ("rollout_pp", run.rollout_pp),
        ("offload_optimizer", run.offload or ("0" if catalog.sources.flag("returns_states", run) else None)))
        if value is not None}}
    if apart_:
        trainer = run.trainer_gpus or catalog.sources.whole("trainer_gpus", run)
        trainer = trainer or run.gpus - (run.rollout_gpus or run.gpus // 2)
        ways = list(apart(question, trainer, run.rollout_gpus or run.gpus - trainer, 0, Held(held)))
    else:
        ways = list(ways_on(question, run.gpus, held, lean=leanest))
    if not ways:
        raise SkippedError("no layout of it is legal")
    return min(ways, key=lambda way: (max(0.0, way.lacking), way.rank))


def fewest(run: RlRun, catalog: Catalog, framework: str) -> int | None:
    """Return the fewest GPUs, of those that are usual, on which a run fits by any means, as often as not.

    None up to MOST_GPUS. What ran was tried, and has no margin.
    """
    size = _candidate(run.model_copy(update={"gpus": MOST_GPUS}), catalog).node.gpus
    parts = [1 << power for power in range(size.bit_length()) if 1 << power < size]
    for gpus in (*parts, *(size * nodes for nodes in sorted(NODES) if size * nodes <= MOST_GPUS)):
        try:
            made = predicted(run.model_copy(update={"gpus": gpus}), catalog, framework, leanest=True)
        except SkippedError:
            continue
        if verdict(made.way) != "does not fit":
            return gpus
    return None

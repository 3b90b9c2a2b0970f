"""Runs of reinforcement learning as rows state them, and what each is predicted to take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from planner.catalog.load import Catalog
from planner.catalog.posttraining import ModelKind, RlFramework, TrainerKind
from planner.evidence.rows import Count, Degree, Positive, StatedRun, Text
from planner.evidence.shape import model_of
from planner.evidence.skipping import SkippedError
from planner.jobs.posttraining.held import Held
from planner.jobs.posttraining.options import apart, ways_on
from planner.jobs.posttraining.question import RlQuestion
from planner.jobs.posttraining.way import RlWay
from planner.layouts.axes import RECOMPUTE
from planner.layouts.candidate import Candidate
from planner.money.rent import usual_candidate
from planner.physics.posttraining.passes import Packed, Trained, trainer_of
from planner.physics.posttraining.step import written
from planner.scenario.lengths import Length
from planner.scenario.pool import node_named
from planner.scenario.posttraining import PostTraining, Reward, RlMethod

CONFIDENCE = 0.95
"""Of the verdict on the fewest GPUs."""
MOST_GPUS = 1024
USUAL_RANK = 16


class RlRun(StatedRun):
    """What a row says was run.

    Words: kind (rl_step, rl_epoch, trainer_microbatch, weight_sync, ...), framework, algorithm, placement, policy_lag,
    max_len in tokens (of prompt + answer, or of both together), train_engine, method (full, or lora with its rank).
    Counts: trainer_gpus, rollout_gpus, prompts_per_step, samples_per_step, steps, and degrees of trainer and rollouts.
    Tokens: prompt_len_mean, response_len_mean, seq_len_mean, tokens_per_step.
    """

    kind: Text = None
    framework: Text = None
    algorithm: Text = None
    placement: Text = None
    trainer_gpus: Degree = None
    rollout_gpus: Degree = None
    policy_lag: Text = None
    prompts_per_step: Count = None
    samples_per_step: Count = None
    prompt_len_mean: Positive = None
    response_len_mean: Positive = None
    seq_len_mean: Positive = None
    tokens_per_step: Positive = None
    max_len: Text = None
    rollout_tp: Degree = None
    rollout_pp: Degree = None
    train_engine: Text = None
    train_tp: Degree = None
    train_cp: Degree = None
    train_ep: Degree = None
    train_pp: Degree = None
    method: Text = None
    steps: Count = None


@dataclass(frozen=True, slots=True)
class RlPrediction:
    """A run as a question, the way that it took, and what had to be assumed."""

    way: RlWay
    framework: str
    assumed: tuple[str, ...]


def is_learned(run: RlRun) -> bool:
    """Say whether a trainer learns from rewards, and not from examples."""
    return not (run.algorithm or "").lower().startswith("sft")


def kind_of(run: RlRun, catalog: Catalog) -> ModelKind:
    """Return which kind of model a row trains. Raises SkippedError."""
    return "mixture" if model_of(_named(run, catalog), catalog, []).mixes_experts else "dense"


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """One micro-batch of one sequence a model copy: its part of a step, and what had to be assumed."""

    trained: Trained
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
    stack, slower = catalog.stack(each.trainers[_kind(run, each.trainers)]), catalog.sources.number("attention_rate", run)
    if slower is not None:
        stack = stack.model_copy(update={"attention_kernel": {
            name: slower * rate for name, rate in stack.attention_kernel.items()}})
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
        seconds += written(each, trained)
    return MicroBatch(trained, seconds / times, tuple(assumed))


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


def lengths(run: RlRun, catalog: Catalog, assumed: list[str]) -> tuple[float, float, int]:
    """Return mean prompt and answer, and the longest of both together. Raises SkippedError."""
    runs = catalog.posttraining_runs
    prompt, answer, both = run.prompt_len_mean, run.response_len_mean, run.seq_len_mean
    if answer is None and both is None:
        raise SkippedError("lengths of answers are not told")
    if prompt is None:
        prompt = float(runs.prompt)
        assumed.append(f"prompt_len_mean={prompt:g}")
    if answer is None:
        assert both is not None
        prompt = min(prompt, both / 2)
        answer = both - prompt
    first, plus, second = (run.max_len or "").partition("+")
    if plus and first.isdecimal() and second.isdecimal():
        longest = int(first) + int(second)
        longest = min(longest, round(prompt) + int(second))
    elif first.isdecimal() and not plus:
        longest = int(first)
    else:
        longest = round(prompt + 3 * answer)
        assumed.append(f"max_len={longest}")
    return prompt, answer, max(longest, round(prompt + answer) + 1)


def predicted(run: RlRun, catalog: Catalog, framework: str) -> RlPrediction:
    """Return the way that a run took. Raises SkippedError."""
    assumed, runs = list[str](), catalog.posttraining_runs
    model = model_of(_named(run, catalog), catalog, assumed)
    prompt, answer, longest = lengths(run, catalog, assumed)
    samples = run.samples_per_step
    if samples is None and run.tokens_per_step is not None:
        samples = max(1, round(run.tokens_per_step / (prompt + answer)))
        assumed.append(f"samples_per_step={samples}")
    if samples is None or run.gpus is None:
        raise SkippedError("answers of a step are not told")
    prompts = run.prompts_per_step or max(1, round(samples / runs.samples))
    said = (run.algorithm or "grpo").lower().split(" ")[0]
    methods: tuple[RlMethod, ...] = get_args(RlMethod)
    method: RlMethod = next((name for name in methods if name == said), "grpo")
    each = max(1 if method in ("ppo", "reinforce") else 2, round(samples / prompts))
    work = PostTraining.model_construct(
        model=model.name, method=method, tuning=_method(run), lora_rank=_rank(run) if _method(run) == "lora" else None,
        prompts=max(1, round(samples / each)), samples_per_prompt=each, input=Length("mean", prompt, 0.0),
        output=Length("mean", answer, runs.spread), max_model_len=longest, reward=Reward("rule"), reward_model=None,
        critic=None, reference="initial" if catalog.posttraining_law.frameworks[framework].reference else "none",
        policy_lag=_lag(run), placement="any", rollouts_on=(), stack=(framework,), engine=None, steps=None)
    way = _run(run, work, catalog)
    return RlPrediction(way, framework, tuple(assumed))


def _framework(run: RlRun, catalog: Catalog, name: str) -> RlFramework:
    """Return a framework as a run has it."""
    said, known = catalog.sources, catalog.posttraining_law.frameworks[name]
    fraction = said.number("rollout_fraction", run)
    return known.model_copy(update={
        "swaps": known.swaps or said.flag("swaps", run),
        "eager": known.eager or said.flag("eager_rollouts", run), "memory_fraction": fraction or known.memory_fraction})


def _named(run: RlRun, catalog: Catalog) -> RlRun:
    """Return a run with the model as the catalog calls it; its size says nothing that the name does not."""
    return run.model_copy(update={"model": catalog.sources.word("catalog_model", run) or run.model, "params_b": None})


def _lag(run: RlRun) -> int:
    said = run.policy_lag or "0"
    return int(said) if said.isdecimal() else 2 if said.split(" ")[-1] != "0" else 0


def _run(run: RlRun, work: PostTraining, catalog: Catalog) -> RlWay:
    assert run.gpus is not None
    candidate = _candidate(run, catalog)
    trainers = catalog.posttraining_law.frameworks[work.stack[0]].trainers
    question = RlQuestion(work, catalog, (candidate,), 0, work.stack[0], _kind(run, trainers), CONFIDENCE,
                          _framework(run, catalog, work.stack[0]))
    known = question.framework
    alone = {"rollout_pp": "1", "rollout_ep": "1", "rollout_dp": "1"} if run.rollout_tp else {}
    apart_ = (run.placement or "").startswith("disaggregated")
    swap = {} if apart_ else {"swap": "1" if known.swaps else "0"}
    held = {"recompute": "full", **alone, **swap, **{axis: str(value) for axis, value in (
        ("tp", run.train_tp), ("pp", run.train_pp), ("cp", run.train_cp), ("ep", run.train_ep),
        ("rollout_tp", run.rollout_tp), ("rollout_pp", run.rollout_pp)) if value is not None}}
    if apart_:
        trainer = run.trainer_gpus or run.gpus - (run.rollout_gpus or run.gpus // 2)
        ways = list(apart(question, trainer, run.rollout_gpus or run.gpus - trainer, 0, Held(held)))
    else:
        ways = list(ways_on(question, run.gpus, held))
    if not ways:
        raise SkippedError("no layout of it is legal")
    return min(ways, key=lambda way: (max(0.0, way.lacking), way.rank))


def fewest(run: RlRun, catalog: Catalog, framework: str) -> int | None:
    """Return the fewest GPUs, of powers of two, on which a run fits; none up to MOST_GPUS."""
    for gpus in (1 << power for power in range(MOST_GPUS.bit_length())):
        try:
            made = predicted(run.model_copy(update={"gpus": gpus}), catalog, framework)
        except SkippedError:
            continue
        if made.way.lacking <= 0:
            return gpus
    return None


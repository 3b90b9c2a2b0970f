"""Rows of reinforcement learning: steps and their phases, trainers' micro-batches, copies of weights, fewest GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, hypot, log
from typing import TypeAlias

from planner.answer.validation import Entry
from planner.catalog.load import Catalog
from planner.catalog.posttraining import FrameworkResidue, ModelKind, PostTrainingLaw
from planner.evidence.rl_lengths import lengths
from planner.evidence.rl_rows import RlRun
from planner.evidence.rl_runs import MOST_GPUS, RlPrediction, fewest, micro_batch, predicted
from planner.evidence.rows import Amount, EvidenceRow, Measured, Positive
from planner.evidence.skipping import SkippedError
from planner.jobs.posttraining.way import RlWay
from planner.physics.posttraining.step import WAITING
from planner.units import GIB, HOUR

MICRO_BATCH = "trainer_microbatch"
STEPS = ("rl_step", "rl_epoch")
Compared: TypeAlias = tuple[str, float | None, float, FrameworkResidue]
"""A quantity, what was measured of it, what is predicted, and how far runs lie from that."""


class RlMeasured(Measured):
    """What a row measured: seconds of a step and its phases, hours of an epoch, GiB of the fullest GPU."""

    step_s: Positive = None
    gen_s: Positive = None
    actor_update_s: Positive = None
    total_hours: Positive = None
    peak_mem_gib: Amount = None


class RlRow(EvidenceRow):
    """One run of reinforcement learning."""

    run: RlRun
    measured: RlMeasured


def entries(row: RlRow, catalog: Catalog) -> Iterator[Entry]:
    """Yield the entries of a row. Raises SkippedError, or UnknownName for a GPU."""
    run, measured, law = row.run, row.measured, catalog.posttraining_law
    framework = law.framework((run.framework or "").lower())
    if framework is None:
        raise SkippedError(f"runs of {run.framework or 'no framework'} are not modeled")
    if run.gpu is None:
        raise SkippedError("the GPU is not told")
    if run.kind == MICRO_BATCH:
        one = micro_batch(run, catalog, framework)
        peak = one.trained.peak.memory.allocated / GIB
        yield from _numbers(row, one.assumed, law, framework, one.kind, [
            ("step_s", measured.step_s, one.seconds, law.step),
            ("peak_mem_gib", measured.peak_mem_gib, peak, law.memory)])
        return
    if run.kind == "weight_sync":
        raise SkippedError("copies of weights alone are not compared: their path is not told")
    if "min" in (run.kind or "") or (run.kind in STEPS and not any((
            measured.step_s, measured.total_hours, measured.actor_update_s))):
        yield from _fewest(row, catalog, framework)
        return
    if run.kind not in STEPS:
        raise SkippedError(f"{run.kind or 'a run of no kind'} is not compared")
    if catalog.sources.flag("drops_groups", run):
        raise SkippedError("groups whose answers are judged alike are drawn again, how often is not told")
    made = predicted(run, catalog, framework)
    own = {phase.name: float(phase.seconds) for phase in made.way.made.phases}
    waits = made.way.placed.lag and catalog.sources.flag("gen_waits", run)
    # frameworks count waking the engine and new weights as generation where both share GPUs
    draws = own["generation"] + (own["synchronization"] if made.way.placed.colocated else 0.0)
    step = measured.step_s
    steps = catalog.sources.number("epoch_steps", run) or run.steps
    if step is None and measured.total_hours is not None and steps is not None and run.kind == "rl_epoch":
        step = measured.total_hours * HOUR / steps
    wide = catalog.posttraining_runs.guessed if made.guessed else 1.0
    if waits and measured.gen_s:
        yield _wait(row, made, law, framework, wide)
    yield from _numbers(row, made.assumed, law, framework, made.kind, [
        ("step_s", step, made.way.step, law.step), ("gen_s", None if waits else measured.gen_s, draws, law.phases),
        ("actor_update_s", measured.actor_update_s, own["actor_update"], law.phases),
        ("peak_mem_gib", measured.peak_mem_gib, _peak(
            made.way, counts=catalog.sources.flag("counts_rollouts", run)), law.memory)],
        wide=wide)


def _peak(way: RlWay, *, counts: bool) -> float:
    """Return the GiB of the fullest GPU at the median, without the reserve of a confidence.

    counts: whether the counter counts the memory of rollouts while they sleep.
    """
    if counts:
        update = next(phase for phase in way.made.phases if phase.name == "actor_update")
        drawn = way.rollouts.drawn
        engine = drawn.weights + drawn.cache + drawn.work - update.gpu.get("engine", 0.0)
        return float(update.bytes + engine - way.policy.peak.memory.components["reserve"]) / GIB
    reserve = way.policy.peak.memory.components["reserve"] if way.made.fullest.name == "actor_update" else 0.0
    return (way.peak - reserve) / GIB


def _numbers(row: RlRow, assumed: tuple[str, ...], law: PostTrainingLaw, framework: str, kind: ModelKind,
             quantities: list[Compared], *, wide: float = 1.0) -> Iterator[Entry]:
    for quantity, value, made, residue in quantities:
        if value:
            spread = max(law.widened(residue, framework, kind), wide)
            low, high = _bounds(residue, spread)
            yield Entry(id=row.id, quantity=quantity, predicted=made, measured=value, error=made / value - 1,
                        interval90=(made * low, made * high), assumed=assumed)


def _bounds(residue: FrameworkResidue, spread: float) -> tuple[float, float]:
    """Return 5% and 95% quantile of measured over predicted."""
    return residue.at(0.05, spread), residue.at(0.95, spread)


def _wait(row: RlRow, made: RlPrediction, law: PostTrainingLaw, framework: str, wide: float) -> Entry:
    """Return the trainer's wait for answers: as far off as drawing and training, of which it is the difference, are."""
    waited = sum(float(made.way.made.exposed.get(name, 0.0)) for name in WAITING)
    own = {phase.name: float(phase.seconds) for phase in made.way.made.phases}
    drawn = sum(own.get(name, 0.0) for name in WAITING)
    worked = sum(spent for name, spent in own.items() if name not in (*WAITING, "synchronization"))
    spread = max(law.widened(law.phases, framework, made.kind), wide)
    # both are off, each in its own way
    off = hypot(*map(log, _bounds(law.phases, spread)))
    low, high = (max(0.0, drawn * exp(way * off) - worked) for way in (-1, 1))
    value = row.measured.gen_s
    assert value is not None
    return Entry(id=row.id, quantity="gen_s", predicted=waited, measured=value, error=waited / value - 1,
                 interval90=(min(low, waited), max(high, waited)), assumed=made.assumed)


def _fewest(row: RlRow, catalog: Catalog, framework: str) -> Iterator[Entry]:
    """Yield the fewest GPUs that hold a run, where it states that it ran and nothing else."""
    run, assumed, runs = row.run, list[str](), catalog.posttraining_runs
    if run.gpus is None:
        raise SkippedError("the number of GPUs is not told")
    said = lengths(run, catalog, assumed)
    stated = run.model_copy(update={
        "prompt_len_mean": said.prompt, "response_len_mean": said.answer, "max_len": str(said.longest),
        "samples_per_step": run.samples_per_step or runs.samples * runs.prompts, "train_tp": None, "train_pp": None,
        "train_cp": None, "train_ep": None, "rollout_tp": None, "rollout_pp": None, "placement": None})
    least = fewest(stated, catalog, framework)
    if least is None:
        raise SkippedError(f"nothing up to {MOST_GPUS:,} GPUs holds it")
    yield Entry(id=row.id, quantity="gpus", predicted=float(least), measured=float(run.gpus),
                error=least / run.gpus - 1, assumed=tuple(assumed))

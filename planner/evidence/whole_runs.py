"""GPU-hours of a whole published run: the fastest layout that keeps what its row states, and what runs add to steps.

Where the row leaves the layout open, that is searched, so that real ones are no faster; how much slower they are is
fitted (`framework_stated`, `framework_open` of calibration/whole-runs). Hours that the authors worked out from the
speed of steps (run_class step-derived) hold no failures and nothing added.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TypeVar

from planner.catalog.architecture import Model
from planner.catalog.load import Catalog
from planner.catalog.quirk import Sources
from planner.catalog.stack import Stack
from planner.catalog.whole_runs import Published
from planner.evidence.degrees import ZERO_STAGES
from planner.evidence.hardware import candidate_of
from planner.evidence.shape import model_of
from planner.evidence.skipping import SkippedError, refuse
from planner.evidence.software import stack_of
from planner.evidence.whole_rows import StatedWholeRun
from planner.jobs.job import Terms
from planner.jobs.market import Market
from planner.jobs.training.facts import facts_of
from planner.jobs.training.job import TrainingJob
from planner.layouts.axes import RECOMPUTE
from planner.layouts.candidate import Candidate
from planner.physics.kinds import shape_of
from planner.physics.training.question import computes, question_of
from planner.scenario.batch import WIDEST, Batch
from planner.scenario.limits import Limits
from planner.scenario.workload import Training
from planner.solver.search.found import StagedLayout
from planner.units import DAY, HOUR

CONFIDENCE = 0.5
"""Of memory: a team that runs a layout has seen it fit."""
WITHIN_95 = NormalDist().inv_cdf(0.95)
"""Standard deviations above which a twentieth of a normal distribution lies."""
MICRO_BATCHES = (1, 2, 3, 4, 6, 8)
"""Sequences that published runs work on at once."""
ROUNDED = 0.05
"""Share by which a batch of so many tokens may differ from one of whole sequences that the GPUs divide."""
BILLION = 1e9
_DERIVED = "step-derived"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WholePrediction:
    """What is computed of a whole run, in GPU-hours."""

    step_hours: float
    """Of its steps alone."""
    goodput: float
    added: float
    """Median factor by which runs exceed steps and modeled failures; 1 where the row's hours hold steps alone."""
    published: Published
    is_open: bool
    """Whether the row leaves the framework open."""
    stack: str
    assumed: tuple[str, ...]

    @property
    def computed(self) -> float:
        """Hours of the fastest layout with failures and what runs add."""
        return self.step_hours / self.goodput * self.added

    @property
    def hours(self) -> float:
        """Hours predicted."""
        return self.computed * self.published.factor

    @property
    def interval90(self) -> tuple[float, float]:
        """Hours that nine of ten such runs lie within."""
        low, high = (self.computed * self.published.quantile(z) for z in (-WITHIN_95, WITHIN_95))
        return low, high


def predict_whole(given: StatedWholeRun, catalog: Catalog) -> WholePrediction:
    """Return the hours of a whole run. Raises SkippedError with the reason where there is no prediction."""
    said, assumed = catalog.sources, list[str]()
    refuse(given, said)
    if given.tokens_b is None:
        raise SkippedError("tokens not stated")
    if given.gpu is None:
        raise SkippedError("GPU not stated")
    assumed += [f"recalled={what}" for what in (given.memory_inputs, given.arch_source == "memory" and "shape") if what]
    run = given.model_copy(update={"scaleout": given.interconnect, "sharding": _sharding(given),
                                   "attention_impl": said.word("run_attention", given)})
    model = model_of(run, catalog, assumed, by_size=True)
    is_open = said.word("stack", run) is None and run.framework is None
    if is_open:
        run = run.model_copy(update={"framework": said.word("run_framework", run)})
        assumed.append(f"framework={run.framework}")
    stack = stack_of(run, model, catalog, assumed)
    tokens = int(given.tokens_b * BILLION)
    gpus = run.gpus or _fill("gpus", _usual_gpus(run, model, tokens, catalog), assumed)
    # programs see two GPUs in a module that is counted as one
    dies = said.whole("dies", given) or 1
    gpus, on_node = gpus * dies, run.gpus_per_node and run.gpus_per_node * dies
    run = run.model_copy(update={"gpus": gpus, "gpus_per_node": on_node})
    candidate = candidate_of(run, stack, catalog, assumed, gpus=gpus)
    staged = _fastest(run, model, stack, candidate, gpus, tokens, catalog, assumed)
    steps = math.ceil(tokens / (int(staged.batch.rows.batch[staged.row]) * _length(run, model, said, [])))
    derived = given.run_class == _DERIVED
    whole = catalog.whole_runs
    return WholePrediction(
        steps * staged.step_seconds * gpus / dies / HOUR, 1.0 if derived else staged.goodput,
        1.0 if derived else whole.added.quantile(0.5), whole.framework_open if is_open else whole.framework_stated,
        is_open, stack.name, (*assumed, *_shown(staged)))


def _fastest(run: StatedWholeRun, model: Model, stack: Stack, candidate: Candidate, gpus: int, tokens: int,
             catalog: Catalog, assumed: list[str]) -> StagedLayout:
    """Return the fastest layout that keeps what a row states. Raises SkippedError where none does."""
    said = catalog.sources
    usual = "bf16" if "bf16" in candidate.gpu.peak else "fp16"
    precision = run.precision or _fill("precision", usual, assumed)
    length = _length(run, model, said, assumed)
    batch = max(1, round(_batch_tokens(run, model, said, assumed) / length))
    question = question_of(catalog, model, (candidate,), stack, sequence_length=length, global_batch=batch,
                           precisions=(precision,), method="pretrain", confidence=CONFIDENCE)
    if not computes(candidate, question.rates[0], precision):
        raise SkippedError(f"GPU {candidate.gpu.name} has no {precision} rate in the catalog")
    held = _held(run, stack, said, assumed)
    limits = Limits(gpus=gpus)
    asked = Training(model=run.model or "", method="pretrain", tokens=tokens, precision=(precision,))
    for tolerance in (ROUNDED, WIDEST):
        facts = facts_of(question, model, asked, Batch(batch, tolerance), limits)
        facts = replace(facts, space=replace(facts.space, only=held))
        job = TrainingJob("run", asked, catalog, Terms(Market((candidate,)), limits, "time"), CONFIDENCE, model, stack,
                          question, facts)
        layouts = job.columns(depth="each").frontier.found
        if layouts:
            return min(layouts, key=lambda staged: staged.key)
    raise SkippedError(f"no layout on {gpus} GPUs that keeps what the row states fits")


def _held(run: StatedWholeRun, stack: Stack, said: Sources, assumed: list[str]) -> dict[str, tuple[float, ...]]:
    """Return the axes that the row, or what was usual, holds at some values."""
    held: dict[str, tuple[float, ...]] = {"cp": (1,), "schedule": (0,), "offload": (0.0,), "offload_activations": (0,),
                                          "offload_parameters": (0,), "nvme": (0,), "micro_batch": MICRO_BATCHES}
    if not said.flag("run_interleaves", run):
        held["vpp"] = (1,)
    sharded = ZERO_STAGES.get(run.sharding or "")
    if run.tp or run.pp or (sharded or 0) > 1:
        # a stated degree without the others has none, and sharded weights none at all
        held |= {"tp": (run.tp or 1,), "pp": (run.pp or 1,)}
    if run.ep:
        held["ep"] = (run.ep,)
    most = stack.zero_with_pipeline if (run.pp or 1) > 1 else 3
    stages = tuple(stage for stage in ((2, 3) if sharded == 3 else (sharded or 0,))
                   if stage in stack.zero_stages and stage <= most)
    if sharded is not None and stages:
        held["zero"] = stages
    recompute = said.word("run_recompute", run)
    if recompute is not None:
        held["recompute"] = (RECOMPUTE.index(recompute),)
        assumed.append(f"recompute={recompute}")
    return held


def _sharding(run: StatedWholeRun) -> str | None:
    """Return the sharding that a row names, without what it says of it."""
    return re.split("[ /]", run.sharding, maxsplit=1)[0] if run.sharding else None


def _length(run: StatedWholeRun, model: Model, said: Sources, assumed: list[str]) -> int:
    usual = model.sequence_length if model.sequence_length > 1 else said.whole("run_length", run)
    length = run.seq_len or usual
    if length is None:
        raise SkippedError("sequence length not stated")
    return length if run.seq_len else _fill("seq_len", length, assumed)


def _batch_tokens(run: StatedWholeRun, model: Model, said: Sources, assumed: list[str]) -> float:
    if run.global_batch_tokens:
        return run.global_batch_tokens
    own = model.global_batch * model.sequence_length if model.global_batch > 1 else None
    usual = own or said.whole("run_batch", run)
    if usual is None:
        raise SkippedError("global batch not stated")
    return _fill("global_batch_tokens", usual, assumed)


def _usual_gpus(run: StatedWholeRun, model: Model, tokens: int, catalog: Catalog) -> int:
    """Return a power of two of GPUs on which a run of this many FLOPs takes as long as usual."""
    peak = catalog.gpu(run.gpu or "").peak
    rate = peak.get("bf16") or peak.get("fp16")
    if rate is None:
        raise SkippedError("GPU count not stated")
    flops = tokens * shape_of(model).model_flops_per_token(model.sequence_length, catalog.kernels.scan_chunk)
    usual = rate * catalog.sources.usual("usual_mfu") * catalog.sources.usual("usual_days") * DAY
    return int(2 ** max(3, round(math.log2(flops / usual))))


def _fill(name: str, value: T, assumed: list[str]) -> T:
    assumed.append(f"{name}={value}")
    return value


def _shown(staged: StagedLayout) -> Iterator[str]:
    """Yield the layout that was found, as what is assumed."""
    rows = staged.batch.rows
    for axis in ("tp", "pp", "vpp", "dp", "micro_batch", "zero"):
        yield f"{axis}={int(getattr(rows, axis)[staged.row])}"

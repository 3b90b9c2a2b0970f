"""From solver rows to the answer: assignments, alternatives with the reason each lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from planner.answer.assignment import (
    Assignment,
    Failures,
    ServingAssignment,
    TrainingAssignment,
    WholeRun,
)
from planner.answer.bought import bought_of
from planner.answer.breakdown import Median, Memory, MemoryComponents, Time, TimeComponents, evidence_of
from planner.answer.layout import ContextMethod, Layout, Offload, RecomputeLayers, Stage
from planner.catalog.architecture import Model
from planner.catalog.likeness import step_traits
from planner.catalog.residuals import Residual, Residuals
from planner.catalog.whole_runs import AddedShare
from planner.jobs.quanta import commitment_of, price_in_use
from planner.layouts.axes import SCHEDULES, lead_modes
from planner.layouts.offload import NOTHING, Offloaded, level_of
from planner.layouts.table import Layouts
from planner.money.rent import RentalOffer
from planner.physics.training.communication import swaps_heads
from planner.physics.training.evaluate import Evaluation, evaluate
from planner.physics.training.question import Question
from planner.physics.training.whole import run_quantile
from planner.solver.quantize import DURATION_QUANTUM
from planner.solver.search.found import StagedLayout
from planner.solver.search.job import JobTerms, Pricing
from planner.units import DAY


@dataclass(frozen=True, slots=True)
class Context:
    """What every assignment of one question shares."""

    name: str
    model: str
    method: str
    question: Question
    job: JobTerms
    offers: Sequence[RentalOffer]
    residuals: Residuals
    """Of step time."""
    shape: Model
    validated: bool = True
    """Whether speeds of the stack were measured."""
    added: AddedShare | None = None
    """What whole runs add to steps and failures."""
    said: Mapping[str, Any] = field(default_factory=dict)
    """What an assignment says besides."""

    def residual(self, candidate: int, precision: str, gpus: int) -> Residual:
        """Return how far runs like one lie from their predicted step time, as deadlines and mean costs count it."""
        past = int(Pricing(self.job, self.question.candidates).doublings(np.array([gpus]))[0])
        return step_residual(self.residuals, self.question, self.method, self.shape, candidate, precision, past)

    def offer(self, candidate: int) -> RentalOffer:
        """Return the cheapest offer of a candidate."""
        return next(o for o in self.offers if o.candidate == candidate)


def step_residual(law: Residuals, question: Question, method: str, model: Model, candidate: int,
                  precision: str, doublings: int = 0) -> Residual:
    """Return how far the step time of a candidate lies from what is predicted.

    doublings: of GPUs past the largest run of the evidence.
    """
    traits = step_traits(question.stack, method, model, question.candidates[candidate].gpu.architecture, precision)
    past = {"gpus": law.most(traits, "gpus") * 2.0**doublings} if doublings else {}
    return law.at(traits, {"tokens": float(question.sequence_length), **past}, media=bool(question.seen))


def evaluation_of(context: Context, staged: StagedLayout) -> Evaluation:
    """Return the full breakdown of a staged layout."""
    layers, counts = np.array(staged.staged.layers, np.int64), np.array(staged.staged.counts, np.int64)
    return evaluate(context.question, staged.batch.rows, staged.row, layers, counts, staged.batch.time,
                    staged.batch.memory)


def layout_of(question: Question, rows: Layouts, row: int, evaluation: Evaluation) -> Layout:
    """Return the layout as the answer shows it, with its stages."""
    r, outside = {name: int(value) for name, value in rows.row(row).items()}, level_of(rows, row)
    used = evaluation.counts.sum(axis=0) > 0
    label = "mixed" if used.sum() > 1 else ("none", "selective", "full")[int(np.argmax(used))]
    # the layers before a mixture of experts stay on the first stage
    layers, counts = evaluation.layers.copy(), evaluation.counts.copy()
    layers[0] += question.shape.lead_layers
    counts[0, lead_modes(rows.recompute[row])] += question.shape.lead_layers
    stages = tuple(
        Stage(layers=n, recompute_layers=RecomputeLayers(none=none, selective=selective, full=full),
              peak_bytes=int(peak), seconds=float(seconds))
        for n, (none, selective, full), peak, seconds in zip(
            layers.tolist(), counts.tolist(), evaluation.memory.stage_peaks, evaluation.step.stage_seconds,
            strict=True))
    return Layout(tp=r["tp"], pp=r["pp"], vpp=r["vpp"], cp=r["cp"], ep=r["ep"], dp=r["dp"], shard=int(rows.shard[row]),
                  zero=r["zero"], micro_batch=r["micro_batch"], micro_batches=r["micro_batches"], recompute=label,
                  precision=question.precisions[r["precision"]],
                  offload=offload_of(outside), stages=stages, schedule=SCHEDULES[r["schedule"]],
                  sequence_parallel=r["tp"] > 1 and question.stack.sequence_parallel and bool(r["sp"]),
                  no_sync=bool(r["no_sync"]), cp_method=_exchange(question, rows.take(np.array([row]))),
                  expert_tp=int(rows.expert_split[row]) if question.shape.experts else None)


def _exchange(question: Question, rows: Layouts) -> ContextMethod | None:
    """Return how the context-parallel GPUs of one row exchange; none where there is one."""
    if rows.cp[0] == 1:
        return None
    if bool(swaps_heads(question, rows)[0]):
        return "all-to-all"
    return "all-gather" if question.stack.context_gathered else "ring"


def offload_of(level: Offloaded) -> Offload:
    """Return what lies outside the GPU, and where its states and weights lie."""
    to: Literal["none", "host", "nvme"] = "nvme" if level.nvme else "host" if level != NOTHING else "none"
    return Offload(optimizer=level.offload, parameters=level.offload_parameters,
                   activations=level.offload_activations, to=to)


def memory_of(evaluation: Evaluation, residual: Residual) -> Memory:
    """Return the memory of the worst stage, whole bytes that add up."""
    parts = {name: round(value) for name, value in evaluation.memory.components.items()}
    held = residual.of_parts(evaluation.memory.shares)
    return Memory(fits=evaluation.memory.fits, usable_bytes=int(evaluation.memory.usable),
                  peak_bytes=sum(parts.values()), components=MemoryComponents(**parts),
                  host_bytes_per_node=round(evaluation.memory.host_per_node),
                  nvme_bytes_per_node=round(evaluation.memory.nvme_per_node),
                  host_usable_bytes=int(evaluation.memory.host_usable),
                  nvme_usable_bytes=int(evaluation.memory.nvme_usable),
                  median=Median(allocated=round(evaluation.memory.allocated),
                                reserved=round(evaluation.memory.reserved), device=round(evaluation.memory.device)),
                  interval90_bytes=(round(max(evaluation.memory.certain, evaluation.memory.device * held.q05)),
                                    round(evaluation.memory.device * held.q95)),
                  evidence=evidence_of(held))


def memory_like(question: Question, layout: Layout) -> Residual:
    """Return how far the memory of layouts like one lies from what is predicted."""
    return question.memory_residuals[int(layout.tp > 1 or layout.pp > 1)]


def time_of(evaluation: Evaluation, step_seconds: float, steps: int | None, residual: Residual) -> Time:
    """Return the time of a step; `step_seconds` is the staged value, whose rounding up goes to `other`."""
    parts = dict(evaluation.step.components)
    parts["other"] += step_seconds - evaluation.step.seconds
    slower = step_seconds / evaluation.step.seconds
    return Time(step_seconds=step_seconds, components=TimeComponents(**parts), steps=steps,
                tokens_per_second_per_gpu=evaluation.tokens_per_second_per_gpu / slower,
                model_tflops_per_gpu=evaluation.model_flops_per_gpu / slower / 1e12, mfu=evaluation.mfu / slower,
                interval90_seconds=(step_seconds * residual.q05, step_seconds * residual.q95),
                evidence=evidence_of(residual))


def assignment_of(context: Context, staged: StagedLayout) -> Assignment:
    """Return one staged layout with its cheapest offer as an assignment."""
    column = staged.column
    offer = context.offer(column.candidate) if context.offers else None
    evaluation = evaluation_of(context, staged)
    candidate = context.question.candidates[column.candidate]
    rows = staged.batch.rows.take(np.array([staged.row]))
    pricing = Pricing(context.job, context.question.candidates)
    steps = int(pricing.steps(rows)[0])
    days = column.duration_us * DURATION_QUANTUM / DAY
    estate = offer.estate if offer else None
    layout = layout_of(context.question, staged.batch.rows, staged.row, evaluation)
    residual = context.residual(column.candidate, layout.precision, column.gpus)
    placed: dict[str, Any] = {
        "workload": context.name, "model": context.model, "method": context.method,
        "node": candidate.node.name, "gpu": candidate.gpu.name, "nodes": column.nodes,
        "gpus": column.gpus, "idle_gpus": column.nodes * candidate.node.gpus - column.gpus if offer else 0,
        "spare_nodes": column.spare_nodes if offer else 0, "offer": offer.label if offer else None,
        "sourcing": offer.how if offer else None,
        "usd_per_node_hour": price_in_use(context.job.offers[column.candidate], column.rented_nodes, column.duration_us)
        if offer else None, "stack": context.question.stack.name,
        "layout": layout, "memory": memory_of(evaluation, memory_like(context.question, layout)),
        "time": time_of(evaluation, staged.step_seconds, steps if offer else None, residual),
        "goodput": staged.goodput if offer else None, "duration_days": days if offer else None,
        "cost_usd": context.job.offers[column.candidate].cents(column.rented_nodes, column.duration_us) / 100
        if offer else None,
        "mean_cost_usd": pricing.cost(column) / 100 if offer and column.mean_us else None,
        "energy_kwh": column.energy_wh / 1000 if offer else None,
        "purchase": bought_of(estate, column.rented_nodes, column.gpus, staged.goodput) if estate else None}
    if context.question.tuning.forward_only:
        return ServingAssignment(**placed)
    return TrainingAssignment(
        **placed, sequence_length=context.question.longest, global_batch=sequences(placed["layout"]),
        **context.said, failures=_failures(context, rows, column.spare_nodes) if offer else None,
        commitment=commitment_of(offer, column.duration_us) if offer else None,
        **(whole_of(days, residual, context.added) if offer else {}))


def whole_of(days: float, residual: Residual, added: AddedShare | None) -> dict[str, Any]:
    """Return what a run of computed `days` may take in the end, and what runs add of that."""
    low, high = (run_quantile(residual, added, share) for share in (0.05, 0.95))
    whole = added and WholeRun(factor=added.quantile(0.5), factor90=(added.quantile(0.05), added.quantile(0.95)),
                               rows=added.rows)
    return {"duration_interval90_days": (days * low, days * high), "whole_run": whole}


def sequences(layout: Layout) -> int:
    """Return the sequences of a step."""
    return layout.dp * layout.micro_batch * layout.micro_batches


def _failures(context: Context, rows: Layouts, spares: int) -> Failures:
    """Return how often a run of one row with so many spares is interrupted, and how it is saved."""
    pricing = Pricing(context.job, context.question.candidates)
    between, interval, write = (float(interruption[0]) for interruption in pricing.interruptions(rows))
    missing = max(0, int(pricing.usual_spares(rows)[0]) - spares)
    return Failures(seconds_between=between, checkpoint_bytes=context.job.checkpoint_bytes,
                    checkpoint_interval_seconds=interval, checkpoint_write_seconds=write,
                    restart_seconds=context.job.reliability.restart,
                    missing_spares=missing, repair_share=pricing.waits(rows, spares),
                    repair_share_then=pricing.waits(rows, spares + missing) if missing else None)

"""Put the parts together: what staging needs to know of each layout, and where a staged layout's time goes."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from planner.layouts.table import Floats, Ints, Layouts, Mask
from planner.physics.communication import layer_traffic, rank_parameters, step_traffic
from planner.physics.compute import (
    LayerTimes,
    distinct,
    edge_times,
    kind_times,
    layer_times,
    machine,
    mean,
    recompute_seconds,
)
from planner.physics.question import Question
from planner.physics.schedule import pipeline_seconds


@dataclass(frozen=True, slots=True)
class TimeTerms:
    """Seconds, one row a layout: per layer and micro-batch, per micro-batch, and per step.

    `modes` has shape (rows, 3): what one layer's recompute adds under none, selective, full.
    """

    compute: Floats
    tensor: Floats
    context: Floats
    expert: Floats
    gather: Floats
    modes: Floats
    first: Floats
    last: Floats
    data: Floats
    pipeline: Floats
    optimizer: Floats
    offload: Floats
    overhead: Floats
    jitter: Floats

    @property
    def layer(self) -> Floats:
        """One layer, forward and backward, with its exposed traffic and no recompute."""
        return self.compute + self.tensor + self.context + self.expert + self.gather

    @property
    def step(self) -> Floats:
        """What a step costs besides its pipeline, before stragglers."""
        return self.data + self.pipeline + self.optimizer + self.offload + self.overhead

    def take(self, rows: Ints | Mask) -> TimeTerms:
        """Return the terms of the chosen rows."""
        return TimeTerms(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})


def time_terms(question: Question, rows: Layouts) -> TimeTerms:
    """Return the time terms of each row. What depends on few axes is computed once per combination."""
    first, inverse = distinct(rows.candidate, rows.precision, rows.tp, rows.cp, rows.micro_batch, rows.ep)
    few = rows.take(first)
    times = layer_times(question, few)
    traffic = layer_traffic(question, few, times, question.shape.kinds)
    selective, full = recompute_seconds(question, times)
    # a full recompute repeats the forward half of the token exchange too
    modes = np.stack([np.zeros_like(full), selective, full + traffic.tensor_forward + traffic.expert / 2], axis=1)
    embedding, head = edge_times(question, few)
    compute = (times.forward + times.backward)[inverse]
    tensor, context, expert = traffic.tensor[inverse], traffic.context[inverse], traffic.expert[inverse]
    layers = question.shape.layers / rows.pp
    step = step_traffic(question, rows, compute + tensor + context + expert, layers)
    nodes = rows.gpus / np.array([c.node.gpus for c in question.candidates])[rows.candidate]
    optimizer, offload = _optimizer(question, rows)
    return TimeTerms(
        compute=compute, tensor=tensor, context=context, expert=expert, gather=step.per_layer,
        modes=modes[inverse],
        first=(embedding + _lead(question, few))[inverse], last=head[inverse], data=step.per_step,
        pipeline=step.pipeline,
        optimizer=optimizer, offload=offload, overhead=np.full(len(rows), question.stack.step_overhead),
        jitter=question.stack.slowdown * (
            1 + question.kernels.jitter_per_doubling * np.log2(np.maximum(1.0, nodes))))


def offloaded(question: Question, rows: Layouts, terms: TimeTerms) -> TimeTerms:
    """Return `terms` at the offload shares of `rows`, which differ from those they were computed at in nothing else."""
    optimizer, offload = _optimizer(question, rows)
    return replace(terms, optimizer=optimizer, offload=offload)


def _lead(question: Question, rows: Layouts) -> Floats:
    """Return forward and backward seconds of the leading layers, with their traffic."""
    if not question.shape.lead:
        return np.zeros(len(rows))
    on = machine(question, rows.candidate, rows.precision)
    kinds = [(kind, float(count)) for kind, count in question.shape.lead]
    times: LayerTimes = mean([(kind_times(question, rows, on, kind), count) for kind, count in kinds])
    traffic = layer_traffic(question, rows, times, kinds)
    return times.forward + times.backward + traffic.tensor + traffic.context + traffic.expert


def _optimizer(question: Question, rows: Layouts) -> tuple[Floats, Floats]:
    """Return seconds of the optimizer step on the GPU, and of its offloaded share over PCIe and on the host."""
    rank = rank_parameters(question, rows, trained=True)
    def column(values: list[float]) -> Floats:
        return np.array(values, np.float64)[rows.candidate]

    memory = column([c.gpu.memory_bandwidth * r.memory
                     for c, r in zip(question.candidates, question.rates, strict=True)])
    host = column([c.node.cpu.memory_bandwidth / c.node.gpus for c in question.candidates])
    pcie = column([c.gpu.pcie_bandwidth for c in question.candidates])
    owned = np.where(rows.zero >= 1, rank.dense / rows.shard + rank.experts * rows.ep / rows.shard,
                     rank.dense + rank.experts)
    on_gpu = question.kernels.optimizer_bytes_per_parameter * owned * (1 - rows.offload) / memory
    per_parameter = (question.stack.reduce_bytes + 2.0) / pcie + question.kernels.host_adam_bytes_per_parameter / host
    return on_gpu, owned * rows.offload * per_parameter


def step_seconds(terms: TimeTerms, rows: Layouts, slowest: Floats, total: Floats) -> Floats:
    """Return the step time of each row from its slowest stage and the sum over its stages, per micro-batch."""
    steady, bubble = pipeline_seconds(slowest, total, rows.vpp, rows.micro_batches)
    return (steady + bubble + terms.step) * terms.jitter


@dataclass(frozen=True, slots=True)
class StepBreakdown:
    """Where one step's seconds go, exposed time only; `components` add up to `seconds`."""

    seconds: float
    components: dict[str, float]
    stage_seconds: Floats


def step_breakdown(terms: TimeTerms, rows: Layouts, row: int, layers: Ints, counts: Ints) -> StepBreakdown:
    """Return the breakdown of row `row` with `layers` (stages,) and `counts` (stages, 3) layers per mode."""
    n, m = layers.astype(np.float64), int(rows.micro_batches[row])
    extra = np.zeros(len(layers))
    extra[0] += terms.first[row]
    extra[-1] += terms.last[row]
    recompute = (counts * terms.modes[row]).sum(axis=1)
    stage = n * terms.layer[row] + recompute + extra
    slow = int(np.argmax(stage))
    _, bubble = pipeline_seconds(stage.max(), stage.sum(), rows.vpp[row], rows.micro_batches[row])
    parts = {
        "compute": m * (n[slow] * terms.compute[row] + extra[slow]),
        "recompute": m * recompute[slow],
        "tensor_parallel": m * n[slow] * terms.tensor[row],
        "pipeline_bubble": float(bubble),
        "pipeline_p2p": terms.pipeline[row],
        "context_parallel": m * n[slow] * terms.context[row],
        "expert_parallel": m * n[slow] * terms.expert[row],
        "data_parallel": m * n[slow] * terms.gather[row] + terms.data[row],
        "offload": terms.offload[row],
        "optimizer_step": terms.optimizer[row],
        "other": terms.overhead[row],
    }
    total = sum(parts.values())
    parts["other"] += total * (terms.jitter[row] - 1)
    return StepBreakdown(float(total * terms.jitter[row]), {k: float(v) for k, v in parts.items()}, stage)

"""Put the parts together: what staging needs to know of each layout, and where a staged layout's time goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from planner.layouts.axes import RECOMPUTE, lead_modes
from planner.layouts.memo import Memos
from planner.layouts.table import Floats, Ints, Layouts, Mask, distinct
from planner.physics.layers import LayerKind
from planner.physics.training import communication
from planner.physics.training.compute import LayerTimes, edge_times, kind_times, layer_times, mean, recompute_seconds
from planner.physics.training.machine import machine
from planner.physics.training.offload import OffloadTimes, offload_times
from planner.physics.training.parameters import owned_parameters, trained_share
from planner.physics.training.question import Question
from planner.physics.training.schedule import DUALPIPE, bubble_parts, pipeline_seconds, uneven_waits
from planner.physics.training.seen import encoder_seconds


@dataclass(frozen=True, slots=True)
class TimeTerms:
    """Seconds, one row a layout: per layer and micro-batch, per micro-batch, and per step.

    `modes` has shape (rows, 3): what one layer's recompute adds under none, selective, full. `swap` is the offload of
    one layer's weights, `swap_full` that of its checkpoint under full recompute.
    """

    compute: Floats
    tensor: Floats
    context: Floats
    expert: Floats
    gather: Floats
    modes: Floats
    swap: Floats
    swap_full: Floats
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
        return self.compute + self.tensor + self.context + self.expert + self.gather + self.swap

    @property
    def added(self) -> Floats:
        """What each recompute mode adds to a layer, shape (rows, 3), with the offload of its checkpoint."""
        added = self.modes.copy()
        added[:, RECOMPUTE.index("full")] += self.swap_full
        return added

    @property
    def step(self) -> Floats:
        """What a step costs besides its pipeline, before stragglers."""
        return self.data + self.pipeline + self.optimizer + self.offload + self.overhead

    def take(self, rows: Ints | Mask) -> TimeTerms:
        """Return the terms of the chosen rows."""
        return TimeTerms(**{name: getattr(self, name)[rows] for name in _TIMES})


@dataclass(frozen=True, slots=True)
class LayerTerms:
    """The time terms that nothing but hardware, precision, degrees and micro-batch decides; seconds, one row a layout.

    They bound a layout from below whatever its schedule and its sharding of states.
    """

    compute: Floats
    tensor: Floats
    context: Floats
    expert: Floats
    modes: Floats
    first: Floats
    last: Floats
    jitter: Floats

    @property
    def layer(self) -> Floats:
        """One layer, forward and backward, with the traffic inside it."""
        return self.compute + self.tensor + self.context + self.expert

    def take(self, rows: Ints | Mask) -> LayerTerms:
        """Return the terms of the chosen rows."""
        return LayerTerms(**{name: getattr(self, name)[rows] for name in _INNER})


_TIMES, _INNER = (tuple(f.name for f in fields(of)) for of in (TimeTerms, LayerTerms))


def layer_terms(question: Question, rows: Layouts) -> LayerTerms:
    """Return the layer terms of each row. What depends on few axes is computed once per combination, and remembered."""
    pinned = question.shape.lead or question.seen
    lead = lead_modes(rows.recompute) if pinned else np.zeros_like(rows.recompute)
    decisive = (question.alike[rows.candidate], rows.precision, rows.tp, rows.sp, rows.cp, rows.micro_batch, rows.ep,
                rows.expert_tp, lead)
    first, inverse = distinct(*decisive)
    memo = _LAYERS.of(question, "layer", _WHOLE + len(RECOMPUTE))
    known = memo.recall([column[first] for column in decisive],
                        lambda unknown: _few_terms(question, rows.take(first[unknown])))
    compute, tensor, context, expert, at_first, at_last = (known[inverse, at] for at in range(_WHOLE))
    # experts are reached behind the compute of another micro-batch, where there is one
    expert = expert - question.stack.overlap.expert_parallel * (rows.micro_batches > 1) * np.minimum(expert, compute)
    nodes = rows.gpus / question.hardware.gpus[rows.candidate]
    return LayerTerms(
        compute=compute, tensor=tensor, context=context, expert=expert, modes=known[inverse, _WHOLE:], first=at_first,
        last=at_last,
        jitter=question.stack.slowdown * (
            1 + question.kernels.jitter_per_doubling * np.log2(np.maximum(1.0, nodes))))


_LAYERS = Memos()
_WHOLE = len(_INNER) - len(("modes", "jitter"))
"""Terms of a layer that are one number a row, and of what few axes decide."""


def _few_terms(question: Question, few: Layouts) -> Floats:
    """Return of each row compute, tensor, context and all expert seconds of a layer, those that the ends of the
    pipeline add, and what each recompute mode does, shape (rows, _WHOLE + modes).
    """
    times = layer_times(question, few)
    share = trained_share(question)
    if share < 1:
        times = replace(times, backward=share * times.backward,
                        backward_attention_core=share * times.backward_attention_core)
    traffic = communication.layer_traffic(question, few, times, question.shape.kinds)
    selective, full = recompute_seconds(question, times)
    more, besides = question.sample.forwards, _besides(question, few, times, question.shape.kinds)
    tensor, context = traffic.tensor + more * traffic.tensor_forward, traffic.context * (1 + more / 3)
    # kernels wait for the host where it launches them more slowly than they run
    whole = question.kernels.launches_per_forward
    launch = question.launch / (whole if question.tuning.forward_only else 1)
    worked = times.forward + besides + times.backward + tensor + context
    waited = np.maximum(0.0, launch - worked)
    # a full recompute repeats the forward half of the token exchange too, and its launches
    again = full + traffic.tensor_forward + traffic.expert * (1 - question.stack.overlap.expert_parallel) / 2
    again = again + np.maximum(0.0, (whole + more + 1) / (whole + more) * launch - worked - again) - waited
    embedding, head = edge_times(question, few)
    compute, expert = times.forward + besides + times.backward + waited, traffic.expert * (1 + more / 2)
    head = head + question.prediction_layers * (compute + tensor + context + expert)
    first = embedding + _lead(question, few) + encoder_seconds(question, few)
    return np.stack([compute, tensor, context, expert, first, head, 0 * full, share * selective, share * again], axis=1)


def _besides(question: Question, rows: Layouts, times: LayerTimes, kinds: Sequence[tuple[LayerKind, float]]) -> Floats:
    """Return seconds of a layer's passes without backward: of the policy, and of a reference without its adapters."""
    sample, bare = question.sample, question.bare
    took: Floats = sample.policy_forwards * times.forward
    if not sample.reference_forwards:
        return took
    on = machine(bare, rows.candidate, rows.precision)
    alone = times if bare is question else mean([(kind_times(bare, rows, on, kind), share) for kind, share in kinds])
    return took + sample.reference_forwards * alone.forward


def with_swaps(terms: LayerTerms, swapped: OffloadTimes) -> LayerTerms:
    """Return the terms with what offload adds to a layer, and to its recompute."""
    modes = terms.modes.copy()
    modes[:, RECOMPUTE.index("full")] += swapped.full
    return replace(terms, compute=terms.compute + swapped.layer, modes=modes)


def time_terms(question: Question, rows: Layouts) -> TimeTerms:
    """Return the time terms of each row."""
    inner = layer_terms(question, rows)
    layers = question.shape.layers / rows.pp
    step = communication.step_traffic(question, rows, inner.layer, layers)
    swapped = offload_times(question, rows, inner.compute)
    waits = uneven_waits(question.shape.layers, rows.pp, rows.vpp, rows.micro_batches) * inner.layer
    return TimeTerms(
        **{name: getattr(inner, name) for name in _INNER}, gather=step.per_layer, swap=swapped.layer,
        swap_full=swapped.full, data=step.per_step, pipeline=step.pipeline + waits,
        optimizer=optimizer_seconds(question, rows), offload=swapped.step, overhead=step_overhead(question, rows))


def step_overhead(question: Question, rows: Layouts) -> Floats:
    """Return the seconds of each row's step that no layer, optimizer or collective takes."""
    return np.where(question.stack.ranks_wait & (rows.gpus == 1), 0.0, question.stack.step_overhead)


def faster_whole(question: Question, rows: Layouts) -> Mask:
    """Return where a layer, or the forward that full recompute repeats, takes less time without sequence parallelism.

    Elsewhere it cannot win: without, it never holds less memory, nor sends less between stages or to experts. Slower
    kernels hide more of what runs behind them, which is counted at its most.
    """
    overlap, can, kinds = question.stack.overlap, question.stack.offload, question.shape.kinds
    hide = (overlap.expert_parallel * bool(question.shape.experts)
            + 2 * overlap.shard_gather * bool(can.parameters or can.activations))

    def layer(of: Layouts) -> tuple[Floats, Floats, Floats]:
        times = layer_times(question, of)
        forward = communication.tensor_forward(question, of, kinds)
        context = communication.context_traffic(question, of, times, kinds)
        compute, tensor = times.forward + times.backward, 2 * forward
        waited = np.maximum(0.0, question.launch - compute - tensor - context)
        least = compute + tensor + waited - hide * (compute + waited)
        return compute + tensor, times.forward + forward, least

    whole, split = layer(rows.replace(sp=np.zeros_like(rows.sp))), layer(rows)
    faster: Mask = np.any([without < with_ for without, with_ in zip(whole, split, strict=True)], axis=0)
    return faster


def offloaded(question: Question, rows: Layouts, terms: TimeTerms) -> TimeTerms:
    """Return `terms` at the offload of `rows`, which differ from those they were computed at in nothing else."""
    swapped = offload_times(question, rows, terms.compute)
    return replace(terms, optimizer=optimizer_seconds(question, rows), offload=swapped.step, swap=swapped.layer,
                   swap_full=swapped.full)


def _lead(question: Question, rows: Layouts) -> Floats:
    """Return forward and backward seconds of the leading layers, with their traffic."""
    if not question.shape.lead:
        return np.zeros(len(rows))
    on = machine(question, rows.candidate, rows.precision)
    kinds = [(kind, float(count)) for kind, count in question.shape.lead]
    times: LayerTimes = mean([(kind_times(question, rows, on, kind), count) for kind, count in kinds])
    traffic = communication.layer_traffic(question, rows, times, kinds)
    selective, full = recompute_seconds(question, times)
    again = np.choose(lead_modes(rows.recompute), (np.zeros_like(full), selective, full + traffic.tensor_forward))
    more, besides = question.sample.forwards, _besides(question, rows, times, kinds)
    return (times.forward + besides + times.backward + again + traffic.tensor + more * traffic.tensor_forward
            + traffic.context * (1 + more / 3) + traffic.expert * (1 + more / 2))


def optimizer_seconds(question: Question, rows: Layouts) -> Floats:
    """Return seconds of the optimizer step on the GPU."""
    rank = communication.rank_parameters(question, rows, trained=True)
    memory = question.hardware.memory_bandwidth[rows.candidate]
    owned = owned_parameters(rows, rank.dense, rank.experts)
    took: Floats = question.kernels.optimizer_bytes_per_parameter * owned * (1 - rows.offload) / memory
    return took


def step_seconds(terms: TimeTerms, rows: Layouts, slowest: Floats, total: Floats) -> Floats:
    """Return the step time of each row from its slowest stage and the sum over its stages, per micro-batch."""
    parts = bubble_parts(rows.vpp, rows.schedule)
    steady, bubble = pipeline_seconds(slowest, total, parts, rows.micro_batches)
    return (steady + bubble + terms.step) * terms.jitter


def end_seconds(terms: TimeTerms, rows: Layouts, row: int) -> Floats:
    """Return what the ends of the pipeline add to each stage for one micro-batch, (stages,).

    DualPipe's first and last rank work on both ends, on half of the micro-batches each.
    """
    extra = np.zeros(int(rows.pp[row]))
    first, last = terms.first[row], terms.last[row]
    if rows.schedule[row] == DUALPIPE:
        first = last = (first + last) / 2
    extra[0] += first
    extra[-1] += last
    return extra


@dataclass(frozen=True, slots=True)
class StepBreakdown:
    """Where one step's seconds go, exposed time only; `components` add up to `seconds`."""

    seconds: float
    components: dict[str, float]
    stage_seconds: Floats


def step_breakdown(terms: TimeTerms, rows: Layouts, row: int, layers: Ints, counts: Ints) -> StepBreakdown:
    """Return the breakdown of row `row` with `layers` (stages,) and `counts` (stages, 3) layers per mode."""
    n, m = layers.astype(np.float64), int(rows.micro_batches[row])
    extra = end_seconds(terms, rows, row)
    recompute, checkpoints = (counts * terms.modes[row]).sum(axis=1), counts[:, -1] * terms.swap_full[row]
    stage = n * terms.layer[row] + recompute + checkpoints + extra
    slow = int(np.argmax(stage))
    parts = bubble_parts(rows.vpp[row], rows.schedule[row])
    _, bubble = pipeline_seconds(stage.max(), stage.sum(), parts, rows.micro_batches[row])
    spent = {
        "compute": m * (n[slow] * terms.compute[row] + extra[slow]),
        "recompute": m * recompute[slow],
        "tensor_parallel": m * n[slow] * terms.tensor[row],
        "pipeline_bubble": float(bubble),
        "pipeline_p2p": terms.pipeline[row],
        "context_parallel": m * n[slow] * terms.context[row],
        "expert_parallel": m * n[slow] * terms.expert[row],
        "data_parallel": m * n[slow] * terms.gather[row] + terms.data[row],
        "offload": m * (n[slow] * terms.swap[row] + checkpoints[slow]) + terms.offload[row],
        "optimizer_step": terms.optimizer[row],
        "other": terms.overhead[row],
    }
    # what no term explains is beside them where it takes time, and their own where it saves some
    total, jitter = sum(spent.values()), float(terms.jitter[row])
    spent["other"] += total * max(jitter - 1, 0.0)
    return StepBreakdown(float(total * jitter), {k: float(v) * min(jitter, 1.0) for k, v in spent.items()}, stage)

"""One layout with its stages settled, in full: where its bytes and seconds go and whether it fits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from planner.layouts.axes import RECOMPUTE
from planner.layouts.table import Floats, Ints, Layouts
from planner.physics.training.estimate import (
    StepBreakdown,
    TimeTerms,
    end_seconds,
    step_breakdown,
    step_seconds,
    time_terms,
)
from planner.physics.training.memory import MemoryTerms, memory_terms
from planner.physics.training.parameters import trained_share
from planner.physics.training.question import Question, splits_model
from planner.physics.training.schedule import DUALPIPE, in_flight_chunks, usual_layers
from planner.physics.training.seen import encoder_flops
from planner.physics.training.stages import stage_memory

Fits = Literal["fits", "tight", "does not fit"]


@dataclass(frozen=True, slots=True)
class MemoryBreakdown:
    """Device bytes of one GPU of the worst stage; `components` (with the reserve) add up to `peak`.

    allocated, reserved and device are the median predictions of what PyTorch and nvidia-smi print.
    """

    components: dict[str, float]
    stage_peaks: Floats
    allocated: float
    reserved: float
    device: float
    usable: float
    host_per_node: float
    host_usable: float
    nvme_per_node: float
    nvme_usable: float
    least: float
    """Device bytes that the asked confidence puts below."""

    @property
    def shares(self) -> dict[str, float]:
        """Shares of what is allocated by which the law of memory goes."""
        return {"logits": self.components["logits"] / self.allocated}

    @property
    def certain(self) -> float:
        """Bytes of weights and optimizer states, which no interval goes below."""
        return self.components["weights"] + self.components["master_weights"] + self.components["optimizer"]

    @property
    def peak(self) -> float:
        """Bytes at the asked confidence."""
        return sum(self.components.values())

    @property
    def fits(self) -> Fits:
        """The verdict: holds at the asked confidence, cannot hold at the same confidence, or in between."""
        if self.host_per_node > self.host_usable * (1 + 1e-9) or self.nvme_per_node > self.nvme_usable * (1 + 1e-9):
            return "does not fit"
        if self.peak <= self.usable * (1 + 1e-9):
            return "fits"
        return "tight" if self.least <= self.usable else "does not fit"


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One layout evaluated: layers and recompute counts per stage, step, memory, speed."""

    layers: Ints
    counts: Ints
    step: StepBreakdown
    memory: MemoryBreakdown
    tokens_per_second_per_gpu: float
    model_flops_per_gpu: float
    mfu: float


def evaluate(question: Question, rows: Layouts, row: int, layers: Ints, counts: Ints, time: TimeTerms | None = None,
             memory: MemoryTerms | None = None) -> Evaluation:
    """Return row `row` with `layers` (stages,) and `counts` (stages, 3) layers per recompute mode."""
    time = time or time_terms(question, rows)
    memory = memory or memory_terms(question, rows)
    step = step_breakdown(time, rows, row, layers, counts)
    tokens = int(rows.batch[row]) * question.sample.sequences * question.sequence_length
    speed = tokens / step.seconds / float(rows.gpus[row])
    flops = speed * _model_flops(question)
    flops += speed / question.sequence_length * encoder_flops(question)
    peak = question.peak_rate(int(rows.candidate[row]), question.precisions[int(rows.precision[row])])
    return Evaluation(layers, counts, step, _memory(question, rows, row, layers, counts, memory), speed, flops,
                      flops / peak)


def _model_flops(question: Question) -> float:
    """Return FLOPs of a token: forward, and backward twice as much for what trains.

    Of a frozen base backward has no products for gradients of weights, which are half of it; attention has no weights.
    """
    products, mixing = question.shape.forward_flops_per_token(
        question.sequence_length, question.kernels.scan_chunk, question.memory)
    back = 0.0 if question.tuning.forward_only else 2 * trained_share(question)
    passes = 1 + question.sample.forwards
    return products * (passes + (back if question.tuning.trains_base else back / 2)) + mixing * (passes + back)


def evaluate_fixed(question: Question, rows: Layouts, row: int, recompute_layers: int | Ints | None = None
                   ) -> Evaluation:
    """Return a layout whose recompute column is fixed, layers split as frameworks do by default.

    recompute_layers: layers of every stage under the row's mode, the rest keep everything; none means all. Or all of
    them by stage and mode, (stages, 3).
    """
    if isinstance(recompute_layers, np.ndarray):
        return evaluate(question, rows, row, recompute_layers.sum(axis=1), recompute_layers)
    shape = question.shape
    # torchtitan's pipeline splits all layers alike; Megatron's recipes for mixtures state their layouts
    lead = shape.lead_layers if question.stack.fully_sharded else 0
    layers = usual_layers(shape.layers, lead, int(rows.pp[row]), int(_order(rows, lead)[row]))
    counts = np.zeros((len(layers), len(RECOMPUTE)), np.int64)
    dropped = layers if recompute_layers is None else np.minimum(layers, recompute_layers)
    counts[:, int(rows.recompute[row])] += dropped
    counts[:, 0] += layers - dropped
    return evaluate(question, rows, row, layers, counts)


def _order(rows: Layouts, lead: int) -> Ints:
    """Return the schedule whose usual split each row has: of interleaved chunks that which cannot be moved."""
    return np.where((rows.vpp > 1) & (not lead), DUALPIPE, rows.schedule)


@dataclass(frozen=True, slots=True)
class FixedRows:
    """Rows whose recompute is fixed: seconds of a step, and bytes as `MemoryBreakdown` has them, one a row."""

    seconds: Floats
    components: dict[str, Floats]
    host_per_node: Floats

    def take(self, rows: Ints) -> FixedRows:
        """Return some rows."""
        return FixedRows(self.seconds[rows], {name: size[rows] for name, size in self.components.items()},
                         self.host_per_node[rows])


def evaluate_rows(question: Question, rows: Layouts) -> FixedRows:
    """Return what `evaluate_fixed` says of each row of a step and of memory, all at once.

    Raises MissingFact for a GPU that does not compute in a precision.
    """
    for candidate, precision in {*zip(rows.candidate.tolist(), rows.precision.tolist(), strict=True)}:
        question.peak_rate(candidate, question.precisions[precision])
    time, memory, shape = time_terms(question, rows), memory_terms(question, rows), question.shape
    lead = shape.lead_layers if question.stack.fully_sharded else 0
    seconds, host, parts = np.zeros(len(rows)), np.zeros(len(rows)), dict[str, Floats]()
    kinds, kind = np.unique(np.stack([rows.pp, _order(rows, lead)]), axis=1, return_inverse=True)
    for number, (stages, schedule) in enumerate(kinds.T):
        mine = np.flatnonzero(np.ravel(kind) == number)
        layers, few = usual_layers(shape.layers, lead, int(stages), int(schedule)), rows.take(mine)
        counts = layers[:, None] * (np.arange(len(RECOMPUTE)) == few.recompute[:, None])[:, None, :]
        ends = np.stack([end_seconds(time, rows, int(row)) for row in mine])
        added = time.added[mine, few.recompute]
        stage = layers * (time.layer[mine] + added)[:, None] + ends
        seconds[mine] = step_seconds(time.take(mine), few, stage.max(axis=1), stage.sum(axis=1))
        held = _fullest(question, rows, mine, layers, counts, memory)
        host[mine] = held.host_per_node
        for name, size in held.components.items():
            parts.setdefault(name, np.zeros(len(rows)))[mine] = size
    return FixedRows(seconds, parts, host)


@dataclass(frozen=True, slots=True)
class _Fullest:
    """Bytes of the worst stage of some rows, (rows,); of all stages, (rows, stages)."""

    components: dict[str, Floats]
    stage_peaks: Floats
    allocated: Floats
    device: Floats
    split: Ints
    host_per_node: Floats
    nvme_per_node: Floats


def _fullest(question: Question, rows: Layouts, chosen: Ints, layers: Ints, counts: Ints, terms: MemoryTerms
             ) -> _Fullest:
    """Return the memory of rows with the same stages; counts: (rows, stages, 3) layers per recompute mode."""
    stack, stages, at, few = question.stack, len(layers), chosen[:, None], rows.take(chosen)
    chunks = rows.vpp[at]
    flight = in_flight_chunks(stages, chunks, rows.micro_batches[at], np.arange(stages), rows.schedule[at])
    held = stage_memory(question, terms, at, layers, counts, flight, chunks)
    fixed = stack.context_bytes + terms.communicators[at]
    device = held.allocated * stack.allocator_ratio + fixed
    worst = np.argmax(device, axis=1)[:, None]

    def of(sizes: Floats) -> Floats:
        return np.take_along_axis(sizes, worst, axis=1)[:, 0]

    split = splits_model(few).astype(np.int64)
    margin = question.memory_margin(few)
    allocated, whole = of(held.allocated), of(device)
    parts = {
        "weights": of(held.weights), "gradients": of(held.gradients), "master_weights": of(held.master),
        "optimizer": of(held.moments), "reference": of(held.reference),
        "activations": of(held.activations), "logits": of(held.logits),
        "communication_buffers": of(held.gathered) + terms.communicators[chosen],
        "framework": stack.context_bytes + allocated * (stack.allocator_ratio - 1),
        "reserve": whole * (margin - 1),
    }
    node_gpus = np.minimum(question.hardware.gpus[few.candidate], few.gpus)
    on_node = np.clip(node_gpus // (few.tp * few.cp * few.dp), 1, stages)
    # the fullest stages that a node may hold
    mean = (np.cumsum(np.sort(layers)[::-1]) / np.arange(1, stages + 1))[on_node - 1]
    return _Fullest(parts, device * margin[:, None], allocated, whole, split, terms.host_per_layer[chosen] * mean,
                    terms.nvme_per_layer[chosen] * mean)


def _memory(question: Question, rows: Layouts, row: int, layers: Ints, counts: Ints,
            terms: MemoryTerms) -> MemoryBreakdown:
    held = _fullest(question, rows, np.array([row]), layers, counts[None], terms)
    allocated, device, split = float(held.allocated[0]), float(held.device[0]), int(held.split[0])
    memory = MemoryBreakdown(
        components={k: float(v[0]) for k, v in held.components.items()}, stage_peaks=held.stage_peaks[0],
        allocated=allocated, reserved=allocated * question.stack.allocator_ratio, device=device,
        usable=float(terms.usable[row]),
        host_per_node=float(held.host_per_node[0]), host_usable=float(terms.host_capacity[row]),
        nvme_per_node=float(held.nvme_per_node[0]), nvme_usable=float(terms.nvme_capacity[row]),
        least=device)
    least = question.memory_residuals[split].lowered(question.memory_least[split], memory.shares)
    return replace(memory, least=max(memory.certain, device * least))

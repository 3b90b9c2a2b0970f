"""One layout with its stages settled, in full: where its bytes and seconds go and whether it fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from planner.layouts.axes import RECOMPUTE
from planner.layouts.table import Floats, Ints, Layouts
from planner.physics.training.estimate import StepBreakdown, TimeTerms, step_breakdown, time_terms
from planner.physics.training.memory import MemoryTerms, memory_terms
from planner.physics.training.parameters import trained_share
from planner.physics.training.question import Question, splits_model
from planner.physics.training.schedule import in_flight_chunks, usual_layers
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
    # forward alone is a third of the work; a frozen base has no weight gradients, another third
    share = 1.0 if question.tuning.trains_base else 1 / 3 if question.tuning.forward_only else 2 / 3
    share = min(share, (1 + 2 * trained_share(question)) / 3) + question.sample.forwards / 3
    flops = share * speed * question.shape.model_flops_per_token(
        question.sequence_length, question.kernels.scan_chunk)
    flops += speed / question.sequence_length * encoder_flops(question)
    peak = question.peak_rate(int(rows.candidate[row]), question.precisions[int(rows.precision[row])])
    return Evaluation(layers, counts, step, _memory(question, rows, row, layers, counts, memory), speed, flops,
                      flops / peak)


def evaluate_fixed(question: Question, rows: Layouts, row: int, recompute_layers: int | None = None, *,
                   time: TimeTerms | None = None, memory: MemoryTerms | None = None) -> Evaluation:
    """Return a layout whose recompute column is fixed, layers split as frameworks do by default.

    recompute_layers: layers of every stage under the row's mode, the rest keep everything; none means all.
    time, memory: terms of the rows, where they are known.
    """
    shape = question.shape
    # torchtitan's pipeline splits all layers alike; Megatron's recipes for mixtures state their layouts
    lead = shape.lead_layers if question.stack.fully_sharded else 0
    layers = usual_layers(shape.layers, lead, int(rows.pp[row]), int(rows.schedule[row]))
    counts = np.zeros((len(layers), len(RECOMPUTE)), np.int64)
    dropped = layers if recompute_layers is None else np.minimum(layers, recompute_layers)
    counts[:, int(rows.recompute[row])] += dropped
    counts[:, 0] += layers - dropped
    return evaluate(question, rows, row, layers, counts, time, memory)


def _memory(question: Question, rows: Layouts, row: int, layers: Ints, counts: Ints,
            terms: MemoryTerms) -> MemoryBreakdown:
    stack, stages = question.stack, len(layers)
    chunks = int(rows.vpp[row])
    flight = in_flight_chunks(stages, chunks, int(rows.micro_batches[row]), np.arange(stages), int(rows.schedule[row]))
    held = stage_memory(question, terms, row, layers, counts, flight, chunks)
    fixed = stack.context_bytes + float(terms.communicators[row])
    device = held.allocated * stack.allocator_ratio + fixed
    worst = int(np.argmax(device))
    split = int(splits_model(rows)[row])
    margin = question.memory_margins[split]
    parts = {
        "weights": held.weights[worst], "gradients": held.gradients[worst], "master_weights": held.master[worst],
        "optimizer": held.moments[worst], "reference": held.reference[worst],
        "activations": held.activations[worst], "logits": held.logits[worst],
        "communication_buffers": held.gathered[worst] + terms.communicators[row],
        "framework": stack.context_bytes + held.allocated[worst] * (stack.allocator_ratio - 1),
        "reserve": device[worst] * (margin - 1),
    }
    node_gpus = min(question.candidates[int(rows.candidate[row])].node.gpus, int(rows.gpus[row]))
    ranks = int(rows.tp[row] * rows.cp[row] * rows.dp[row])
    on_node = np.sort(layers)[::-1][:max(1, node_gpus // ranks)].mean()
    return MemoryBreakdown(
        components={k: float(v) for k, v in parts.items()}, stage_peaks=device * margin,
        allocated=float(held.allocated[worst]), reserved=float(held.allocated[worst] * stack.allocator_ratio),
        device=float(device[worst]), usable=float(terms.usable[row]),
        host_per_node=float(terms.host_per_layer[row] * on_node), host_usable=float(terms.host_capacity[row]),
        nvme_per_node=float(terms.nvme_per_layer[row] * on_node), nvme_usable=float(terms.nvme_capacity[row]),
        least=float(device[worst]) * question.memory_least[split])

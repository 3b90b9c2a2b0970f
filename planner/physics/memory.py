"""Device memory of a training step: what is held, by what, and the two phases that can peak.

e bytes of an activation (2), t tokens of a micro-batch on a GPU, h hidden, A query width, KV key width, f
feed-forward width, V vocabulary. Saved per token and layer: norms 4eh (inputs and outputs), attention e(2A + 2KV)
and the log-sum-exp, feed-forward 3ef gated or 2ef plain. With f = 4h, dropout masks and no flash attention this is
34sbh of Korthikanti et al. 2022 (arXiv 2205.05198); a test holds that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.layouts.axes import RECOMPUTE
from planner.layouts.table import Floats, Ints, Layouts
from planner.physics.question import Question

E = 2
"""Bytes of a 16-bit activation."""


@dataclass(frozen=True, slots=True)
class MemoryTerms:
    """Bytes on one GPU, one row a layout. `per_layer` states grow with the layers of a stage.

    Arrays of shape (rows, 3) hold one column per recompute mode: none, selective, full.
    """

    weights: Floats
    gradients: Floats
    master: Floats
    moments: Floats
    table_parameters: Floats
    head_parameters: Floats
    kept: Floats
    live: Floats
    logits: Floats
    gathered: Floats
    communicators: Floats
    capacity: Floats
    usable: Floats
    host_per_layer: Floats
    host_capacity: Floats


def saved_per_token(question: Question, rows: Layouts) -> Floats:
    """Return bytes a layer keeps per token of a GPU's micro-batch, shape (rows, 3): none, selective, full."""
    shape, stack = question.shape, question.stack
    tp = rows.tp.astype(np.float64)
    split = tp if stack.sequence_parallel else np.ones_like(tp)
    h, q, kv, f = shape.hidden, shape.query_width, shape.kv_width, shape.ffn
    inputs, outputs = 2 * E * h / split, 2 * E * h / (np.ones_like(tp) if stack.gathered_norm_outputs else split)
    unfused = 0.0 if stack.fused_norm_and_activation else 8 * h / split
    masks = 2 * h / split if shape.dropout else 0.0
    norms = inputs + outputs + unfused + masks
    # flash attention keeps a log-sum-exp; unfused attention its scores before and after dropout, and the mask
    core = (4 if stack.fused_attention else (2 * E + 1) * question.sequence_length) * shape.heads / tp
    attention = E * (2 * q + 2 * kv) / tp + core
    silu = 0 if stack.fused_norm_and_activation or not shape.gated else 2
    mlp = f * ((3 if shape.gated else 2) * E + silu) / tp
    drops = {"core_attn": core, "layernorm": outputs + unfused, "mlp": mlp}
    none = norms + attention + mlp
    if stack.selective_recompute == ("every-second-matmul",):
        selective = E * (2 * h / split + (2 * q + kv + f) / tp)
    else:
        selective = none - sum((drops[m] for m in stack.selective_recompute), np.zeros_like(tp))
    return np.stack([none, selective, E * h / split], axis=1)


def memory_terms(question: Question, rows: Layouts) -> MemoryTerms:
    """Return the memory terms of each row."""
    shape, stack = question.shape, question.stack
    tp, shard = rows.tp.astype(np.float64), rows.shard.astype(np.float64)
    states = [stack.states.get(p) or stack.states["bf16"] for p in question.precisions]  # type: ignore[call-overload]
    def recipe(field: str) -> Floats:
        return np.array([getattr(s, field) for s in states], np.float64)[rows.precision]

    layer = shape.matrices / tp + shape.vectors
    optimizer = np.where(rows.zero >= 1, 1 / shard, 1.0)
    on_device = optimizer * (1 - rows.offload)
    tokens = rows.micro_batch * question.sequence_length / rows.cp
    kept = saved_per_token(question, rows) * tokens[:, None]
    vocab = shape.vocab / tp if stack.vocab_parallel_loss else np.full_like(tp, shape.vocab)
    table, head = shape.embedding / tp, (shape.vocab * shape.hidden if not shape.tied else 0) / tp
    zero3 = rows.zero == 3
    # ZeRO-3 holds two gathered layers, the tables of the root unit, and the unreduced gradient of a layer
    # under a pipeline FSDP keeps weights gathered and gradients unreduced until the last micro-batch
    held = (2 + stack.reduce_bytes) * layer * np.ceil(shape.layers / rows.pp)
    gathered = np.where(zero3, np.where(rows.pp > 1, held, 2 * (2 * layer + table + head) + 4 * layer), 0.0)
    kinds = [rows.tp > 1, rows.cp > 1, rows.dp > 1, rows.pp > 1]
    communicators = stack.communicator_bytes * np.sum(kinds, axis=0)
    usable = np.array([c.gpu.usable_memory for c in question.candidates])[rows.candidate]
    host = np.array([c.node.cpu.memory for c in question.candidates])[rows.candidate]
    on_node = np.array([c.node.gpus for c in question.candidates])[rows.candidate]
    room = (usable / question.memory_margin - stack.context_bytes - communicators) / stack.allocator_ratio
    return MemoryTerms(
        weights=recipe("weight") * np.where(zero3, 1 / shard, 1.0),
        gradients=recipe("gradient") * np.where(rows.zero >= 2, 1 / shard, 1.0),
        master=recipe("master") * on_device, moments=recipe("moments") * on_device,
        table_parameters=table, head_parameters=head, kept=kept,
        live=kept[:, 0] * stack.live_layers,
        logits=stack.loss_bytes_per_logit * tokens * vocab, gathered=gathered, communicators=communicators,
        capacity=room, usable=usable,
        # master, moments and a pinned gradient buffer live on the host, for all GPUs of the node
        host_per_layer=on_node * layer * rows.offload * optimizer * (recipe("master") + recipe("moments") + 4),
        host_capacity=host * question.kernels.host_memory_share)


def layer_size(question: Question, rows: Layouts) -> Floats:
    """Return the parameters of one layer on one GPU before ZeRO shards them."""
    return question.shape.matrices / rows.tp + question.shape.vectors


def mode_index(name: str) -> int:
    """Return the column of a recompute mode."""
    return RECOMPUTE.index(name)


@dataclass(frozen=True, slots=True)
class StageMemory:
    """Peak bytes of every stage of one layout by component, arrays of shape (stages,); states, then work."""

    weights: Floats
    gradients: Floats
    master: Floats
    moments: Floats
    activations: Floats
    logits: Floats
    gathered: Floats

    @property
    def allocated(self) -> Floats:
        """Tensors of the phase that peaks."""
        return (self.weights + self.gradients + self.master + self.moments + self.activations + self.logits
                + self.gathered)


def stage_memory(question: Question, terms: MemoryTerms, layer: float, row: int, layers: Ints, counts: Ints,
                 in_flight: Ints, chunks: int) -> StageMemory:
    """Return the peak of each stage of row `row`.

    layers: (stages,); counts: (stages, 3) layers per recompute mode; in_flight: (stages,) chunk activations.
    """
    parameters = layer * layers.astype(np.float64)
    parameters[0] += terms.table_parameters[row]
    parameters[-1] += terms.head_parameters[row]
    kept = (counts * terms.kept[row]).sum(axis=1) * in_flight / chunks
    last = np.arange(len(layers)) == len(layers) - 1
    live = np.where(layers > 0, terms.live[row], 0.0)
    logits = np.where(last & (terms.logits[row] > live), terms.logits[row], 0.0)
    work = np.where(logits > 0, 0.0, live)
    gradients = parameters * terms.gradients[row]
    activations, gathered = kept + work, np.full(len(layers), terms.gathered[row])
    if not question.stack.gradients_persist:
        # freed gradients never meet the saved activations: the peak is the larger of loss and backward
        loss_peaks = activations + logits >= gradients + live
        activations = np.where(loss_peaks, activations, live)
        logits = np.where(loss_peaks, logits, 0.0)
        gradients = np.where(loss_peaks, 0.0, gradients)
    return StageMemory(weights=parameters * terms.weights[row], gradients=gradients,
                       master=parameters * terms.master[row], moments=parameters * terms.moments[row],
                       activations=activations, logits=logits, gathered=gathered)

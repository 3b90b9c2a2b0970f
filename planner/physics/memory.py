"""Device memory of a training step: what is held, by what, and the two phases that can peak.

e bytes of an activation (2), t tokens of a micro-batch on a GPU, h hidden, A query width, KV key width, f
feed-forward width, V vocabulary. Saved per token and layer: norms 4eh (inputs and outputs), attention e(2A + 2KV)
and the log-sum-exp, feed-forward 3ef gated or 2ef plain. With f = 4h, dropout masks and no flash attention this is
34sbh of Korthikanti et al. 2022 (arXiv 2205.05198); a test holds that.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from planner.layouts.table import Floats, Ints, Layouts
from planner.physics.layers import LayerKind
from planner.physics.parameters import adapter_parameters, layer_parameters, owned_parameters, sequence_split
from planner.physics.question import Question
from planner.physics.tuning import ADAPTER_INPUT_BYTES

E = 2
"""Bytes of a 16-bit activation."""


@dataclass(frozen=True, slots=True)
class States:
    """Bytes of one GPU's states: of one uniform layer, or of what one end of the pipeline holds besides layers."""

    weights: Floats
    gradients: Floats
    master: Floats
    moments: Floats

    def held(self, gradients_persist: bool) -> Floats:
        """Return what is held while activations peak: gradients only where their buffers persist."""
        return self.every - (0.0 if gradients_persist else self.gradients)

    @property
    def every(self) -> Floats:
        """Return all states together, as backward and the optimizer step see them."""
        return self.weights + self.gradients + self.master + self.moments


@dataclass(frozen=True, slots=True)
class MemoryTerms:
    """Bytes on one GPU, one row a layout: states of a layer, of the first end (tables, leading layers) and the last.

    `kept` of shape (rows, 3) holds one column per recompute mode: none, selective, full; `kept_first` is what the
    leading layers keep for one micro-batch.
    """

    layer: States
    first: States
    last: States
    kept: Floats
    kept_first: Floats
    live: Floats
    logits: Floats
    gathered: Floats
    communicators: Floats
    capacity: Floats
    usable: Floats
    host_per_layer: Floats
    host_capacity: Floats
    nvme_per_layer: Floats
    nvme_capacity: Floats


def saved_per_token(question: Question, rows: Layouts, kind: LayerKind) -> Floats:
    """Return bytes a layer keeps per token of a GPU's micro-batch, shape (rows, 3): none, selective, full."""
    shape, stack, tuning = question.shape, question.stack, question.tuning
    tp = rows.tp.astype(np.float64)
    if tuning.forward_only:
        # the key-value cache; latent attention caches the latent vector, whole on every rank
        cache = E * kind.latent_width if kind.latent_width else E * kind.key_value_width / tp
        if kind.scan is not None:
            # a recurrence keeps one state a sequence, in 32 bits
            cache = cache + 4 * kind.scan.inner * kind.scan.state / question.sequence_length / tp
        return np.stack([cache * np.ones_like(tp)] * 3, axis=1)
    split = sequence_split(question, rows)
    h = shape.hidden
    width = kind.norms * E * h
    inputs, outputs = width / split, width / (np.ones_like(tp) if stack.gathered_norm_outputs else split)
    unfused = 0.0 if stack.fused_norm_and_activation else 4 * kind.norms * h / split
    masks = 2 * h / split if shape.dropout else 0.0
    # flash attention keeps a log-sum-exp; unfused attention its scores before and after dropout, and the mask
    core = (4 if stack.fused_attention else (2 * E + 1) * question.sequence_length) * kind.heads / tp
    attention = E * (kind.attention_width + kind.value_width) / tp + E * kind.latent_width + core
    if kind.scan is not None:
        attention = attention + E * (kind.scan.projected + 2 * kind.scan.inner) / tp
    silu = 0 if stack.fused_norm_and_activation or kind.fan == 1 else 2
    mlp = kind.ffn * ((kind.fan + 1) * E + silu) / tp
    if kind.experts is not None:
        e = kind.experts
        mlp = mlp + e.per_token * (e.ffn * ((e.fan + 1) * E + silu) + 2 * E * e.hidden) / tp
    if not tuning.trains_base:
        outputs, attention, mlp = _frozen(question, kind, tp, outputs, attention, mlp)
    drops = {"core_attn": core, "layernorm": outputs + unfused, "mlp": mlp}
    none = inputs + outputs + unfused + masks + attention + mlp
    if stack.selective_recompute == ("every-second-matmul",):
        selective = E * (2 * h / split + (2 * kind.query_width + kind.key_value_width / 2 + kind.ffn) / tp)
    else:
        selective = none - sum((drops[m] for m in stack.selective_recompute), np.zeros_like(tp))
    return np.stack([none, selective, E * h / split], axis=1)


def _frozen(question: Question, kind: LayerKind, tp: Floats, outputs: Floats, attention: Floats,
            mlp: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the saved parts under a frozen base: inputs of products go, those of adapters come.

    Attention keeps queries, keys, values and context for its own backward, the activation its two inputs.
    """
    tuning, h = question.tuning, question.shape.hidden
    if not tuning.keeps_frozen_inputs:
        outputs, mlp = 0.0 * outputs, mlp - E * kind.ffn / tp
    adapted = (h * (tuning.adapts("attention", "column") + tuning.adapts("mlp", "column"))
               + (kind.value_width * tuning.adapts("attention", "row") + kind.ffn * tuning.adapts("mlp", "row")) / tp)
    return outputs, attention + ADAPTER_INPUT_BYTES * adapted, mlp


def _states(question: Question, rows: Layouts, dense: Floats, experts: Floats, trained: Floats,
            base_bytes: float | None = None) -> States:
    """Return the state bytes of `dense` and `experts` parameters on one GPU, `trained` adapter parameters besides."""
    stack, tuning = question.stack, question.tuning
    shard = rows.shard.astype(np.float64)
    whole, sharded = dense, dense / shard
    if question.shape.experts:
        whole, sharded = whole + experts, sharded + experts / (shard / rows.ep)

    def recipe(field: str) -> Floats:
        by_precision = [getattr(stack.recipe(p), field) for p in question.precisions]
        return np.array(by_precision, np.float64)[rows.precision]

    def over(stage: int) -> Floats:
        """Parameters left on one GPU where ZeRO shards from `stage` on."""
        return np.where(rows.zero >= stage, sharded, whole)

    if tuning.trains_base:
        on_gpu = over(1) * (1 - rows.offload)
        gradients = over(2) * (1 - rows.offload if stack.offload.gradients else 1.0)
        return States(weights=recipe("weight") * over(3) * (1 - rows.offload_parameters),
                      gradients=recipe("gradient") * gradients,
                      master=recipe("master") * on_gpu, moments=recipe("moments") * on_gpu)
    weight, gradient, moments = tuning.adapter_states
    cut = np.where(rows.zero >= 1, trained / shard, trained)
    held = base_bytes if base_bytes is not None else tuning.base_bytes
    adapters = weight * np.where(rows.zero >= 3, trained / shard, trained)
    return States(weights=held * over(3) * (1 - rows.offload_parameters) + adapters,
                  gradients=gradient * np.where(rows.zero >= 2, trained / shard, trained),
                  master=np.zeros(len(rows)), moments=moments * cut * (1 - rows.offload))


def _live(question: Question, rows: Layouts, kept: Floats) -> Floats:
    """Return what one layer holds while it works: its saved set and gradients, or forward its widest tensors."""
    if not question.tuning.forward_only:
        live: Floats = kept[:, 0] * question.stack.live_layers
        return live
    tokens = rows.micro_batch * question.sequence_length / rows.cp
    width = max(kind.attention_width + kind.fan * kind.ffn + (
        kind.experts.per_token * kind.experts.fan * kind.experts.ffn if kind.experts else 0)
        for kind, _ in question.shape.kinds)
    return tokens * E * (2 * question.shape.hidden + width / rows.tp)


def _sum(*parts: States) -> States:
    return States(*(sum(getattr(p, f.name) for p in parts) for f in fields(States)))


def memory_terms(question: Question, rows: Layouts) -> MemoryTerms:
    """Return the memory terms of each row."""
    shape, stack = question.shape, question.stack
    tp, none = rows.tp.astype(np.float64), np.zeros(len(rows))
    layer, layer_experts = layer_parameters(rows, shape.kinds)
    lead, lead_experts = layer_parameters(rows, shape.lead)
    adapters = [none, none] if question.tuning.trains_base else [
        adapter_parameters(question, rows, kinds) for kinds in (shape.kinds, shape.lead)]
    # a tied head is the token table on one stage, and a copy of it on the last of several
    table, head = shape.embedding / tp, np.where((rows.pp == 1) & shape.tied, 0, shape.vocab * shape.hidden) / tp
    tokens = (rows.micro_batch * question.sequence_length / rows.cp)[:, None]
    kept = tokens * sum(share * saved_per_token(question, rows, kind) for kind, share in shape.kinds)
    outside = _outside(question, rows, layer, layer_experts, kept[:, -1] * rows.offload_activations)
    kept[:, -1] *= 1 - rows.offload_activations
    kept_first = sum((count * saved_per_token(question, rows, kind)[:, 0] for kind, count in shape.lead), none)
    vocab = shape.vocab / tp if stack.vocab_parallel_loss else np.full_like(tp, shape.vocab)
    # ZeRO-3 holds two gathered layers, the tables of the root unit, and the unreduced gradient of a layer;
    # under a pipeline FSDP keeps weights gathered and gradients unreduced until the last micro-batch
    whole = layer + layer_experts
    reduced = stack.reduce_bytes if question.tuning.trains_base else 0.0
    held = (2 + reduced) * (whole * np.ceil(shape.layers / rows.pp) + lead + lead_experts)
    unit = _gathered_unit(question, rows, whole) + 2 * (table + head)
    gathered = np.where(rows.zero == 3, np.where(rows.pp > 1, held, unit), 0.0)
    expanded = 2 * whole if question.tuning.quantized else none
    kinds = [rows.tp > 1, rows.cp > 1, rows.dp > 1, rows.pp > 1, rows.ep > 1]
    communicators = stack.communicator_bytes * np.sum(kinds, axis=0)
    usable = np.array([c.gpu.usable_memory for c in question.candidates])[rows.candidate]
    host = np.array([c.node.cpu.memory for c in question.candidates])[rows.candidate]
    on_node = np.minimum(rows.gpus, np.array([c.node.gpus for c in question.candidates])[rows.candidate])
    room = (usable / question.memory_margin - stack.context_bytes - communicators) / stack.allocator_ratio
    per_logit = 0.0 if question.tuning.forward_only else stack.loss_bytes_per_logit
    drives = np.array([c.node.nvme.capacity if c.node.nvme else 0.0 for c in question.candidates])[rows.candidate]
    return MemoryTerms(
        layer=_states(question, rows, layer, layer_experts, adapters[0]),
        first=_sum(_states(question, rows, lead, lead_experts, adapters[1]),
                   _states(question, rows, table, none, none, base_bytes=question.tuning.table_bytes)),
        last=_states(question, rows, head, none, none, base_bytes=question.tuning.table_bytes),
        kept=kept, kept_first=kept_first * tokens[:, 0], live=_live(question, rows, kept),
        logits=per_logit * tokens[:, 0] * vocab, gathered=gathered + expanded,
        communicators=communicators, capacity=room, usable=usable,
        host_per_layer=on_node * outside[0], host_capacity=host * question.kernels.host_memory_share,
        nvme_per_layer=on_node * outside[1], nvme_capacity=drives)


def _gathered_unit(question: Question, rows: Layouts, layer: Floats) -> Floats:
    """Return bytes of the weights that ZeRO-3 holds gathered, and of a gradient not reduced yet.

    Two layers and the gradient of one; or matrix by matrix, as many as the stack keeps alive, one at least.
    """
    weights, gradients, live = 2 * layer, layer, question.stack.live_parameters
    if live is not None:
        largest = max(kind.largest_matrix for kind, _ in (*question.shape.kinds, *question.shape.lead)) / rows.tp
        weights = np.minimum(weights, np.maximum(largest, live))
        gradients = np.minimum(gradients, np.maximum(largest, live / 2))
    # a frozen base is gathered as it is stored
    return weights * min(2.0, question.tuning.base_bytes) + (4 * gradients if question.tuning.trains_base else 0.0)


def _outside(question: Question, rows: Layouts, dense: Floats, experts: Floats,
             checkpoint: Floats) -> tuple[Floats, Floats]:
    """Return bytes per layer that one GPU keeps in host memory, and on flash.

    dense, experts: parameters of a layer before ZeRO shards them; checkpoint: bytes of one micro-batch's.
    """
    stack = question.stack
    states = stack.recipe(question.precisions[0])
    owned = owned_parameters(rows, dense, experts)
    held = states.weight if question.tuning.trains_base else question.tuning.base_bytes
    # master and moments with a pinned gradient buffer; adapters' are too few to count
    optimizer = (states.master + states.moments + 4) * rows.offload if question.tuning.trains_base else 0.0
    moved = owned * (optimizer + held * rows.offload_parameters)
    flight = np.minimum(rows.pp, rows.micro_batches)
    return (np.where(rows.nvme == 1, 0.0, moved) + checkpoint * flight, np.where(rows.nvme == 1, moved, 0.0))


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


def stage_memory(question: Question, terms: MemoryTerms, row: int, layers: Ints, counts: Ints, in_flight: Ints,
                 chunks: int) -> StageMemory:
    """Return the peak of each stage of row `row`.

    layers: (stages,) uniform layers; counts: (stages, 3) of them per recompute mode; in_flight: (stages,) chunk
    activations.
    """
    n, flight = layers.astype(np.float64), in_flight / chunks
    last = np.arange(len(layers)) == len(layers) - 1

    def states(field: str) -> Floats:
        total: Floats = n * getattr(terms.layer, field)[row]
        total[0] += getattr(terms.first, field)[row]
        total[-1] += getattr(terms.last, field)[row]
        return total

    kept = (counts * terms.kept[row]).sum(axis=1) * flight
    kept[0] += terms.kept_first[row] * flight[0]
    live = np.full(len(layers), terms.live[row])
    logits = np.where(last & (terms.logits[row] > live), terms.logits[row], 0.0)
    work = np.where(logits > 0, 0.0, live)
    gradients = states("gradients")
    activations, gathered = kept + work, np.full(len(layers), terms.gathered[row])
    if not question.stack.gradients_persist:
        # freed gradients never meet the saved activations: the peak is the larger of loss and backward
        loss_peaks = activations + logits >= gradients + live
        activations = np.where(loss_peaks, activations, live)
        logits = np.where(loss_peaks, logits, 0.0)
        gradients = np.where(loss_peaks, 0.0, gradients)
    return StageMemory(weights=states("weights"), gradients=gradients, master=states("master"),
                       moments=states("moments"), activations=activations, logits=logits, gathered=gathered)

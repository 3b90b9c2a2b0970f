"""Device memory of a training step: what is held, by what, and the two phases that can peak."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from planner.layouts.axes import lead_modes
from planner.layouts.table import Floats, Ints, Layouts
from planner.physics.training.activations import checkpoint_gradients, live_layer, saved_per_token
from planner.physics.training.gathered import gathered_bytes, keeps_unreduced, largest_matrix
from planner.physics.training.parameters import (
    Kinds,
    adapter_parameters,
    layer_parameters,
    owned_parameters,
    trained_share,
)
from planner.physics.training.question import Question
from planner.physics.training.schedule import DUALPIPE
from planner.physics.training.seen import encoder_kept, encoder_states
from planner.physics.training.states import (
    COPIED,
    STATES,
    States,
    adapted,
    added,
    copied_experts,
    frozen,
    over,
    trained,
)


@dataclass(frozen=True, slots=True)
class MemoryTerms:
    """Bytes on one GPU, one row a layout: states of a layer, of the first end (tables, leading layers) and the last.

    `kept` of shape (rows, 3) holds one column per recompute mode: none, selective, full; `kept_first` is what the
    leading layers keep for one micro-batch, `kept_last` the same on the last stage where DualPipe holds both ends.
    """

    layer: States
    first: States
    last: States
    kept: Floats
    kept_first: Floats
    kept_last: Floats
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

    def take(self, rows: Ints) -> MemoryTerms:
        """Return the terms of the chosen rows."""
        taken: dict[str, Any] = {name: getattr(self, name)[rows] for name in _TERMS}
        return MemoryTerms(layer=self.layer.take(rows), first=self.first.take(rows), last=self.last.take(rows), **taken)


_TERMS = tuple(f.name for f in fields(MemoryTerms) if f.name not in ("layer", "first", "last"))

def _layers(question: Question, rows: Layouts, kinds: Kinds, share: float) -> States:
    """Return the states of the weighted sum of `kinds`, of which `share` trains."""
    tuning, parts = question.tuning, layer_parameters(rows, kinds)
    if tuning.trains_base:
        return trained(question, rows, parts, share)
    base = frozen(question, rows, parts, tuning.base_bytes)
    return base if tuning.adapter is None else added(base, adapted(
        question, rows, adapter_parameters(question, rows, kinds), tuning.adapter))


def _in_mode(kept: Floats, rows: Layouts) -> Floats:
    """Return what a leading layer keeps: under the recompute mode of its row, or all where staging chooses."""
    chosen: Floats = np.take_along_axis(kept, lead_modes(rows.recompute)[:, None], axis=1)[:, 0]
    return chosen


def _tables(question: Question, rows: Layouts, held: Floats) -> States:
    """Return the states of a table (embedding or head): frozen beside adapters, or with a trained copy of its own."""
    tuning, parts = question.tuning, (held, np.zeros(len(rows)))
    if tuning.trains_base:
        return trained(question, rows, parts)
    base = frozen(question, rows, parts, tuning.table_bytes)
    return added(base, adapted(question, rows, parts, question.recipes.table)) if tuning.trains_tables else base


def _twice(states: States, rows: Layouts) -> States:
    """Return the states where DualPipe holds two stages on a rank, of which the two copies share the optimizer."""
    times = np.where(rows.schedule == DUALPIPE, 2, 1)
    return replace(states, weights=states.weights * times, gradients=states.gradients * times,
                   reference=states.reference * times)


def _both(states: States, other: States, rows: Layouts) -> States:
    """Return the states of one end of the pipeline, with those of the other where DualPipe holds both on a rank."""
    dual = rows.schedule == DUALPIPE
    return States(*(getattr(states, name) + np.where(dual, getattr(other, name), 0.0) for name in STATES))


def memory_terms(question: Question, rows: Layouts) -> MemoryTerms:
    """Return the memory terms of each row, at the longest sequences."""
    question = question.at_longest
    shape, stack = question.shape, question.stack
    tp, none = rows.tp.astype(np.float64), np.zeros(len(rows))
    layer, layer_experts = layer_parameters(rows, shape.kinds)
    lead, lead_experts = layer_parameters(rows, shape.lead)
    # a tied head is the token table on one stage, and a copy of it on the last of several
    table, head = shape.embedding / tp, np.where((rows.pp == 1) & shape.tied, 0, shape.vocab * shape.hidden) / tp
    tokens = question.tokens(rows)[:, None]
    kept = tokens * sum(share * saved_per_token(question, rows, kind) for kind, share in shape.kinds)
    live = live_layer(question, rows, kept)
    # backward stops at the first layer that trains, so the frozen ones below keep nothing
    kept = kept * trained_share(question)
    outside = _outside(question, rows, layer, layer_experts, kept[:, -1] * rows.offload_activations)
    kept[:, -1] *= 1 - rows.offload_activations
    live = live + checkpoint_gradients(question, rows, kept)
    kept_first = (trained_share(question) == 1) * sum(
        (count * _in_mode(saved_per_token(question, rows, kind), rows) for kind, count in shape.lead), none)
    kept_first = kept_first * tokens[:, 0] + encoder_kept(question, rows)
    vocab = shape.vocab / tp if stack.vocab_parallel_loss else np.full_like(tp, shape.vocab)
    whole = layer + layer_experts - copied_experts(question, layer_experts)
    piped = rows.pp > 1
    # a pipeline has one of the tables at either end, and the leading layers in place of others on its first stage
    rank = np.where(piped, whole * np.ceil((shape.layers + shape.lead_layers) / rows.pp),
                    whole * shape.layers + lead + lead_experts)
    expanded = np.maximum(largest_matrix(question, rows), stack.expands_all_experts * layer_experts)
    gathered = 2 * question.tuning.quantized * expanded + gathered_bytes(
        question, rows, whole, rank, np.where(piped, np.maximum(table, head), table + head))
    groups = sum(getattr(rows, axis) > 1 for axis in ("tp", "cp", "dp", "pp", "ep")) + stack.standing_groups * piped
    communicators = stack.communicator_bytes * groups + np.where(rows.shard > 1, stack.bucket_bytes, 0.0)
    on = question.hardware
    usable, host = on.usable[rows.candidate], on.host[rows.candidate]
    on_node = np.minimum(rows.gpus, on.gpus[rows.candidate])
    room = (usable / question.memory_margin(rows) - stack.context_bytes - communicators) / stack.allocator_ratio
    per_logit = 0.0 if question.tuning.forward_only else question.loss_bytes_per_logit
    share = trained_share(question)
    states = _layers(question, rows, shape.kinds, share)
    first = added(_layers(question, rows, shape.lead, float(share == 1)), _tables(question, rows, table),
                  encoder_states(question, rows))
    last = _tables(question, rows, head)
    if not stack.gradients_persist:
        # the shard of a gradient takes the place of the whole one, layer by layer
        replaced = keeps_unreduced(question, rows)
        states, first, last = (replace(part, gradients=np.where(replaced, 0.0, part.gradients))
                               for part in (states, first, last))
    step = max(stack.recipe(p).step for p in question.precisions) if question.tuning.trains_base else 0.0
    if step:
        dense, more = (np.ceil(shape.layers / rows.pp) * part for part in (layer, layer_experts))
        held = over(question, rows, (dense + lead + table + head, more + lead_experts), 1)
        live = np.maximum(live, step * share * (1 - rows.offload) * held)
    if rows.schedule.any():
        states, first, last = _twice(states, rows), _both(first, last, rows), _both(last, first, rows)
    return MemoryTerms(
        layer=states, first=first, last=last,
        kept=kept, kept_first=kept_first,
        kept_last=np.where(rows.schedule == DUALPIPE, kept_first, 0.0), live=live,
        logits=per_logit * tokens[:, 0] * vocab, gathered=gathered,
        communicators=communicators, capacity=room, usable=usable,
        host_per_layer=on_node * outside[0], host_capacity=host * question.kernels.host_memory_share,
        nvme_per_layer=on_node * outside[1], nvme_capacity=on.flash[rows.candidate])


def _outside(question: Question, rows: Layouts, dense: Floats, experts: Floats,
             checkpoint: Floats) -> tuple[Floats, Floats]:
    """Return bytes per layer that one GPU keeps in host memory, and on flash.

    dense, experts: parameters of a layer before ZeRO shards them; checkpoint: bytes of one micro-batch's.
    """
    stack = question.stack
    states = stack.recipe(question.precisions[0])
    owned = owned_parameters(rows, dense, experts)
    held = states.weight if question.tuning.trains_base else question.tuning.base_bytes
    held += COPIED * question.sample.copy
    # master and moments with a pinned gradient buffer; adapters' are too few to count
    optimizer = (states.master + states.moments + 4) * rows.offload if question.tuning.trains_base else 0.0
    moved = owned * (optimizer * trained_share(question) + held * rows.offload_parameters)
    flight = np.minimum(rows.pp, rows.micro_batches)
    pinned = (stack.offload.pinned * np.where(rows.nvme == 1, 0.0, moved)
              + stack.offload.pinned_checkpoints * checkpoint * flight)
    return pinned, np.where(rows.nvme == 1, moved, 0.0)

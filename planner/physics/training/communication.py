"""Exposed time of the traffic of one layout: tensor, context, expert, data and pipeline parallel.

Exposed means not hidden behind compute; how much a stack hides is a fact of the stack (`Overlap`).
t tokens of a micro-batch on a GPU, h hidden, KV key width, P parameters of a rank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.layouts.table import Floats, Ints, Layouts, Mask
from planner.physics import collectives
from planner.physics.collectives import all_to_all, node_members
from planner.physics.layers import Experts, LayerKind
from planner.physics.training.compute import LayerTimes, layer_times
from planner.physics.training.parameters import held_parameters, sequence_split, trained_parameters
from planner.physics.training.question import Question
from planner.physics.training.schedule import DUALPIPE


def dispatch(question: Question, rows: Layouts, kinds: Sequence[tuple[LayerKind, float]]) -> Floats:
    """Return seconds of a layer and micro-batch, the weighted sum over `kinds`: forward and backward."""
    total = np.zeros(len(rows))
    mixtures = [(kind.experts, share) for kind, share in kinds if kind.experts is not None]
    if mixtures:
        members = node_members(question.candidates, rows, rows.ep, rows.expert_split)
        for experts, share in mixtures:
            total = total + share * 4 * _one_way(question, rows, experts, members)
    return total


def _one_way(question: Question, rows: Layouts, experts: Experts, members: Floats) -> Floats:
    """Return seconds of one all-to-all over the activations of a micro-batch."""
    tokens = question.tokens(rows) / sequence_split(question, rows)
    ranks = rows.ep.astype(np.float64)
    nodes = ranks / members
    run = question.stack.experts
    assert run is not None, "question_of refuses mixtures on stacks without experts"
    payload = question.element_bytes(rows.precision) * tokens * experts.hidden * run.imbalance
    if run.deduplicated:
        # what arrives from other nodes is passed on inside, so every copy but those for the rank itself crosses there
        to_ranks, to_nodes = (reached(experts, parts, in_turn=run.in_turn) for parts in (ranks, nodes))
    else:
        to_nodes = np.full_like(ranks, experts.per_token)
        to_ranks = to_nodes / nodes
    return all_to_all(question.candidates, rows, rows.ep, rows.expert_split,
                      payload * to_ranks * (members - 1) / members, payload * to_nodes * (nodes - 1) / nodes)


def reached(experts: Experts, parts: Floats, *, in_turn: bool) -> Floats:
    """Return in how many of `parts` equal parts of them the experts of a token are, on average."""
    if not in_turn:
        return parts * (1 - missed(experts, parts))
    # runs of `per_token` begin at its multiples: those that cross into the next part begin as many places before it
    held = experts.count / parts
    return np.minimum(parts, 1 + (experts.per_token - np.gcd(experts.per_token, held.astype(np.int64))) / held)


def missed(experts: Experts, parts: Floats) -> Floats:
    """Return the probability that none of a token's experts is in one of `parts` equal parts of them."""
    held, missed = experts.count / parts, np.ones_like(parts)
    for chosen in range(experts.per_token):
        missed = missed * np.maximum(0.0, experts.count - held - chosen) / (experts.count - chosen)
    return missed


@dataclass(frozen=True, slots=True)
class LayerTraffic:
    """Exposed seconds per layer and micro-batch, for `expert` all; full recompute repeats `tensor_forward`."""

    tensor: Floats
    tensor_forward: Floats
    context: Floats
    expert: Floats


def layer_traffic(question: Question, rows: Layouts, times: LayerTimes,
                  kinds: Sequence[tuple[LayerKind, float]]) -> LayerTraffic:
    """Return the traffic of one layer, the weighted sum over `kinds`; for the rows of `times`."""
    forward = tensor_forward(question, rows, kinds)
    return LayerTraffic(tensor=2 * forward, tensor_forward=forward, expert=dispatch(question, rows, kinds),
                        context=context_traffic(question, rows, times, kinds))


def tensor_forward(question: Question, rows: Layouts, kinds: Sequence[tuple[LayerKind, float]]) -> Floats:
    """Return what tensor parallelism exposes in the forward half of a layer; backward is as much."""
    activations = question.element_bytes(rows.precision) * question.tokens(rows) * question.shape.hidden
    split = sequence_split(question, rows).astype(np.int64)
    pair = np.zeros(len(rows))
    for size, operations in ((split, ("all_gather", "reduce_scatter")),
                             (np.where(split == 1, rows.tp, 1), ("all_reduce",))):
        groups = list(collectives.by_links(question.candidates, rows, size, np.ones_like(size)))
        for operation in operations:
            pair += collectives.seconds_over(question.collectives, groups, operation, size, activations)
    # tokens go to whole experts from the rank that holds them: only shared ones are exchanged for
    alone = sum(share for kind, share in kinds if kind.experts and not kind.ffn)
    exchanges = sum(share * kind.exchanges for kind, share in kinds) - (rows.expert_split < rows.tp) * alone
    forward: Floats = exchanges * pair * (1 - question.stack.overlap.tensor_parallel)
    return forward


def context_traffic(question: Question, rows: Layouts, times: LayerTimes, kinds: Sequence[tuple[LayerKind, float]]
                    ) -> Floats:
    """Return what context parallelism exposes, the faster way; for the rows of `times`."""
    return np.minimum(ring(question, rows, times, kinds), ulysses(question, rows, kinds))


def _seconds(question: Question, rows: Layouts, operation: str, size: Ints, stride: Ints, buffer: Floats) -> Floats:
    """Return the time of one collective for each row, as `collectives.seconds` does."""
    return collectives.seconds(question.collectives, question.candidates, rows, operation, size, stride, buffer)


def swaps_heads(question: Question, rows: Layouts) -> Mask:
    """Return where context parallelism is faster by all-to-alls of heads (Ulysses) than by a ring."""
    kinds = question.shape.kinds
    took = layer_times(question, rows)
    return (rows.cp > 1) & (ulysses(question, rows, kinds) < ring(question, rows, took, kinds))


def ring(question: Question, rows: Layouts, times: LayerTimes, kinds: Sequence[tuple[LayerKind, float]]) -> Floats:
    """Return what context parallelism exposes: keys and values go round a ring behind attention, or are gathered."""
    tokens, hidden = question.tokens(rows), question.stack.overlap.context_parallel
    exchanged = sum(share * kind.keys_and_values(rows.tp.astype(np.float64)) for kind, share in kinds
                    if not kind.crosses)
    held = question.element_bytes(rows.precision) * tokens * rows.cp * exchanged
    keys = _seconds(question, rows, "all_gather", rows.cp, rows.tp, held)
    if question.stack.context_gathered:
        return 3 * keys
    first = question.collectives.ring_exposed
    return (_ring_exposed(keys, times.attention_core, hidden, first)
            + _ring_exposed(2 * keys, times.backward_attention_core, hidden, first))


def ulysses(question: Question, rows: Layouts, kinds: Sequence[tuple[LayerKind, float]]) -> Floats:
    """Return what context parallelism exposes where all-to-alls swap a part of the sequence for a part of the heads.

    Infinite where the stack lacks it, or the key-value heads do not divide and it repeats none. Source: Jacobs et al.
    2023 (arXiv 2309.14509).
    """
    heads = np.gcd.reduce([kind.key_value_heads for kind, _ in kinds])
    can = question.stack.ulysses & ((heads % (rows.tp * rows.cp) == 0) | ("ulysses" in question.stack.repeats_heads))
    if not can.any():
        return np.full(len(rows), np.inf)
    tokens = question.tokens(rows)
    widths = sum(share * (kind.attention_width + kind.value_width) for kind, share in kinds)
    swapped = _seconds(question, rows, "alltoall", rows.cp, rows.tp,
                       question.element_bytes(rows.precision) * tokens * widths / rows.tp)
    return np.where(can, 2 * swapped, np.inf)


def _ring_exposed(traffic: Floats, attention: Floats, hidden: float, first: float) -> Floats:
    """Return what a ring exchange of keys and values leaves uncovered; a share always is, the first block."""
    return np.maximum(0.0, traffic - hidden * attention) + first * traffic


@dataclass(frozen=True, slots=True)
class StepTraffic:
    """Exposed seconds of one step: gradients and weights over data parallelism, and stage to stage.

    `per_layer` is paid per layer and micro-batch (ZeRO-3 gathers), `per_step` once.
    """

    per_layer: Floats
    per_step: Floats
    pipeline: Floats


@dataclass(frozen=True, slots=True)
class RankParameters:
    """Parameters on one GPU before ZeRO shards them: a mean layer's, its experts', and the heaviest rank's."""

    layer: Floats
    layer_experts: Floats
    dense: Floats
    experts: Floats


def rank_parameters(question: Question, rows: Layouts, *, trained: bool) -> RankParameters:
    """Return the parameters (those that train, or all) of the heaviest rank: its share of layers and the tables."""
    shape = question.shape
    count = trained_parameters if trained else held_parameters
    layer, layer_experts = count(question, rows, shape.kinds)
    lead, lead_experts = count(question, rows, shape.lead)
    layers = np.ceil(shape.layers / rows.pp)
    both = (rows.pp == 1) & (not shape.tied)
    tables = (shape.embedding + np.where(both, shape.head, 0)) / rows.tp
    if trained and not question.tuning.trains_base:
        tables = np.zeros(len(rows))
    tables = tables + sum(question.learned(part) if trained else part.tower.parameters for part in question.seen)
    return RankParameters(layer, layer_experts, layer * layers + lead + tables, layer_experts * layers + lead_experts)


def step_traffic(question: Question, rows: Layouts, compute: Floats, layers: Floats) -> StepTraffic:
    """Return the data-parallel and pipeline traffic of each row.

    `compute` is forward and backward seconds of one layer for one micro-batch, `layers` the layers of a stage.
    Frozen weights are gathered under ZeRO-3 but have no gradients to reduce.
    """
    stack, tuning = question.stack, question.tuning
    held = rank_parameters(question, rows, trained=False)
    trained = held if tuning.trains_base and not question.seen else rank_parameters(question, rows, trained=True)
    width = question.element_bytes(rows.precision)
    # a frozen base is gathered as it is stored
    stored = np.minimum(width, tuning.base_bytes) if tuning.quantized else width
    gather, gather_layer = _sharded(question, rows, "all_gather", stored, held)
    gather = gather + stack.shard_broadcast * (rows.shard - 1)
    reduce, reduce_layer = _sharded(question, rows, "reduce_scatter", stack.reduce_bytes, trained)
    copied, copied_layer = _replicated(question, rows, trained)
    reduce, reduce_layer = reduce + copied, reduce_layer + copied_layer
    # a ZeRO-3 layer is gathered for forward and again for backward, its gradient reduced behind backward; gradients
    # that accumulate unreduced go once a step, as they do under any pipeline
    once_reduced = (rows.no_sync == 1) | (rows.pp > 1)
    sharded = (2 + question.sample.forwards) * gather_layer + np.where(
        once_reduced, reduce_layer / rows.micro_batches, reduce_layer)
    each = rows.zero == 3
    exposed = sharded - stack.overlap.shard_gather * np.minimum(sharded, compute) + _units(question, rows)
    # the host has every unit to see to, too
    waited = np.where(rows.shard > 1, question.launch + question.units * stack.launch_unit - compute, 0.0)
    per_layer = np.where(each, np.maximum(exposed, waited), 0.0)
    # ZeRO-2 reduces after every micro-batch, the others once a step; plain DDP all-reduces and gathers nothing
    reduces = np.where((rows.zero == 2) & ~once_reduced, rows.micro_batches, 1)
    plain, _ = _sharded(question, rows, "all_reduce", stack.reduce_bytes, trained)
    # frozen weights are never updated, so below ZeRO-3 nothing is gathered
    once = np.where(rows.zero == 0, plain, reduces * reduce + (gather if tuning.trains_base else 0.0))
    once = once * np.where(rows.schedule == DUALPIPE, 2, 1)  # a rank holds two stages
    window = compute * layers * np.where(rows.vpp > 1, rows.pp * (rows.vpp - 1) / rows.vpp, 1.0) * reduces
    hidden = stack.overlap.data_parallel * np.minimum(once, window)
    whole = np.ceil(question.shape.layers / rows.pp)
    tables = np.maximum(0.0, gather + reduce - whole * (gather_layer + reduce_layer))
    return StepTraffic(per_layer=per_layer,
                       per_step=np.where(each, tables * (1 - stack.overlap.shard_gather), once - hidden),
                       pipeline=pipeline_traffic(question, rows))


def _units(question: Question, rows: Layouts) -> Floats:
    """Return seconds of a mean layer that ZeRO-3 spends on its units whatever their bytes, forward and backward."""
    run = question.stack.experts
    experts = sum(share * kind.experts.count for kind, share in question.shape.kinds if kind.experts)
    one_by_one = 2 * experts * ((run and run.gather_expert) or 0.0) / rows.ep
    return np.where(rows.shard > 1, question.stack.gather_unit * question.units + one_by_one, 0.0)


def _sharded(question: Question, rows: Layouts, operation: str, bytes_each: Floats | float,
             rank: RankParameters) -> tuple[Floats, Floats]:
    """Return the time of a collective over a rank's parameters, and the part of it that is one layer's.

    Dense parameters are shared out over dp x cp, experts over the ranks that hold the same ones.
    """
    def over(chosen: Layouts, dense: Floats, experts: Floats) -> Floats:
        took = _seconds(question, chosen, operation, chosen.shard, chosen.tp, dense)
        if not question.shape.experts:
            return took
        return took + _seconds(question, chosen, operation, chosen.expert_shard.astype(np.int64),
                               chosen.expert_split * chosen.ep, experts)

    layer = np.zeros(len(rows))
    # only ZeRO-3 moves layers one by one, each with its own start and way around the ring
    each = np.flatnonzero(rows.zero == 3)
    if len(each):
        layer[each] = over(rows.take(each), (bytes_each * rank.layer)[each], (bytes_each * rank.layer_experts)[each])
    return over(rows, bytes_each * rank.dense, bytes_each * rank.experts), layer


def _replicated(question: Question, rows: Layouts, rank: RankParameters) -> tuple[Floats, Floats]:
    """Return the all-reduce of sharded gradients over the copies of a hybrid shard group, and one layer's part."""
    whole, layer = np.zeros(len(rows)), np.zeros(len(rows))
    copied = np.flatnonzero(rows.hsdp > 1)
    if len(copied):
        few = rows.take(copied)
        for out, dense, experts in ((whole, rank.dense, rank.experts), (layer, rank.layer, rank.layer_experts)):
            owned = dense[copied] / few.shard + experts[copied] / few.expert_shard
            out[copied] = _seconds(question, few, "all_reduce", few.hsdp,
                                  few.tp * few.shard, question.stack.reduce_bytes * owned)
    return whole, layer


def pipeline_traffic(question: Question, rows: Layouts) -> Floats:
    """Return exposed stage-to-stage seconds of a step: steady sends less what overlaps, and the fill and drain."""
    tokens = question.tokens(rows)
    split = rows.tp if question.stack.scatter_gather else sequence_split(question, rows)
    payload = question.element_bytes(rows.precision) * tokens * question.shape.hidden / split
    stride: Ints = rows.tp * rows.cp * rows.dp
    send = collectives.point_to_point(question.hardware.links, rows.candidate, stride, payload)
    # interleaving sends v times as often, and is the schedule in which stacks overlap sends
    hidden = np.where(rows.vpp > 1, question.stack.overlap.pipeline, 0.0)
    steady = (2 + question.sample.forwards) * rows.micro_batches * rows.vpp * send * (1 - hidden)
    return np.where(rows.pp > 1, steady + 2 * (rows.pp - 1) * send, 0.0)

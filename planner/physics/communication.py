"""Exposed time of the traffic of one layout: tensor, context, data and pipeline parallel.

Exposed means not hidden behind compute; how much a stack hides is a fact of the stack (`Overlap`).
t tokens of a micro-batch on a GPU, h hidden, KV key width, P parameters of a rank.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.layouts.table import Floats, Ints, Layouts
from planner.physics import collectives
from planner.physics.compute import LayerTimes
from planner.physics.question import Question


@dataclass(frozen=True, slots=True)
class LayerTraffic:
    """Exposed seconds per layer and micro-batch; `tensor_forward` is what a full recompute repeats."""

    tensor: Floats
    tensor_forward: Floats
    context: Floats


def layer_traffic(question: Question, rows: Layouts, times: LayerTimes) -> LayerTraffic:
    """Return the tensor- and context-parallel traffic of one layer; for the rows of `times`."""
    shape, overlap, candidates = question.shape, question.stack.overlap, question.candidates
    tokens = rows.micro_batch * question.sequence_length / rows.cp
    one = np.ones_like(rows.tp)
    activations = 2.0 * tokens * shape.hidden
    if question.stack.sequence_parallel:
        pair = (collectives.seconds(candidates, rows.candidate, "all_gather", rows.tp, one, activations)
                + collectives.seconds(candidates, rows.candidate, "reduce_scatter", rows.tp, one, activations))
    else:
        pair = collectives.seconds(candidates, rows.candidate, "all_reduce", rows.tp, one, activations)
    # two pairs a direction: around attention and around the feed-forward
    forward = 2 * pair * (1 - overlap.tensor_parallel)

    exchange = 4.0 * tokens * rows.cp * shape.kv_width / rows.tp
    keys = collectives.seconds(candidates, rows.candidate, "all_gather", rows.cp, rows.tp, exchange)
    return LayerTraffic(tensor=2 * forward, tensor_forward=forward,
                        context=_ring_exposed(keys, times.attention_core, overlap.context_parallel)
                        + _ring_exposed(2 * keys, times.backward_attention_core, overlap.context_parallel))


def _ring_exposed(traffic: Floats, attention: Floats, hidden: float) -> Floats:
    """Return what a ring exchange of keys and values leaves uncovered; a tenth always is, the first block."""
    return np.maximum(0.0, traffic - hidden * attention) + 0.1 * traffic


@dataclass(frozen=True, slots=True)
class StepTraffic:
    """Exposed seconds of one step: gradients and weights over data parallelism, and stage to stage.

    `per_layer` is paid per layer and micro-batch (ZeRO-3 gathers), `per_step` once.
    """

    per_layer: Floats
    per_step: Floats
    pipeline: Floats


def rank_parameters(question: Question, rows: Layouts) -> tuple[Floats, Floats]:
    """Return the parameters of one layer, and of the heaviest rank, on one GPU before ZeRO shards them."""
    shape = question.shape
    layer = shape.matrices / rows.tp + shape.vectors
    tables = (shape.embedding + np.where((rows.pp == 1) & (not shape.tied), shape.head, 0)) / rows.tp
    return layer, layer * np.ceil(shape.layers / rows.pp) + tables


def step_traffic(question: Question, rows: Layouts, compute: Floats, layers: Floats) -> StepTraffic:
    """Return the data-parallel and pipeline traffic of each row.

    `compute` is forward and backward seconds of one layer for one micro-batch, `layers` the layers of a stage.
    """
    stack, candidates = question.stack, question.candidates
    layer, rank = rank_parameters(question, rows)
    shard, stride = rows.shard, rows.tp

    def over(operation: str, bytes_: Floats) -> Floats:
        return collectives.seconds(candidates, rows.candidate, operation, shard, stride, bytes_)

    gather, reduce = over("all_gather", 2.0 * rank), over("reduce_scatter", stack.reduce_bytes * rank)
    share = layer / rank
    # a ZeRO-3 layer is gathered for forward and again for backward, its gradient reduced behind backward
    sharded = (2 * gather + reduce) * share
    per_layer = np.where(rows.zero == 3, sharded - stack.overlap.shard_gather * np.minimum(sharded, compute), 0.0)
    # ZeRO-2 reduces after every micro-batch, the others once a step; plain DDP all-reduces and gathers nothing
    reduces = np.where(rows.zero == 2, rows.micro_batches, 1)
    once = np.where(rows.zero == 0, over("all_reduce", stack.reduce_bytes * rank), reduces * reduce + gather)
    batch = compute * layers
    window = batch * np.where(rows.vpp > 1, rows.pp * (rows.vpp - 1) / rows.vpp, 1.0) * reduces
    hidden = stack.overlap.data_parallel * np.minimum(once, window)
    tables = (gather + reduce) * (1 - share * np.ceil(question.shape.layers / rows.pp))
    return StepTraffic(per_layer=per_layer,
                       per_step=np.where(rows.zero == 3, tables * (1 - stack.overlap.shard_gather), once - hidden),
                       pipeline=_pipeline(question, rows))


def _pipeline(question: Question, rows: Layouts) -> Floats:
    """Return exposed stage-to-stage seconds of a step: steady sends less what overlaps, and the fill and drain."""
    tokens = rows.micro_batch * question.sequence_length / rows.cp
    split = rows.tp if question.stack.sequence_parallel else np.ones_like(rows.tp)
    payload = 2.0 * tokens * question.shape.hidden / split
    stride: Ints = rows.tp * rows.cp * rows.dp
    send = collectives.point_to_point(question.candidates, rows.candidate, stride, payload)
    # interleaving sends v times as often, and is the schedule in which stacks overlap sends
    hidden = np.where(rows.vpp > 1, question.stack.overlap.pipeline, 0.0)
    steady = 2 * rows.micro_batches * rows.vpp * send * (1 - hidden)
    return np.where(rows.pp > 1, steady + 2 * (rows.pp - 1) * send, 0.0)

"""Bytes of a model's weights on one GPU of an inference engine, by how they are stored and cut."""

from __future__ import annotations

import numpy as np

from planner.catalog.architecture import Model
from planner.catalog.attention import Attention, LatentAttention
from planner.catalog.formats import WeightFormat
from planner.layouts.table import Floats, Ints
from planner.physics.kinds import counted_layers, shape_of
from planner.physics.layers import Experts, LayerKind
from planner.physics.serving.sequences import Cut, undivided
from planner.physics.shapes import attention_matrices

TOWER_BYTES = 2
"""Of a weight of an image tower, which quantized checkpoints leave alone."""


def weight_bytes(model: Model, weights: WeightFormat, tp: Ints, pp: Ints, data: Ints | None = None, *,
                 last: bool = False) -> Floats:
    """Return bytes of weights on a GPU of the first stage, or of the last one, for each row.

    data: ranks of attention data parallelism among the tp GPUs, which each hold all of attention.
    Experts are split by tp as other matrices are, whichever of tensor and expert parallelism does it. Key and value
    matrices are held whole heads at a time, so that more ranks than heads hold copies.
    """
    cut = Cut(tp, pp, undivided() if data is None else data)
    shape = shape_of(_without_indexers(model))
    stage = np.ceil(model.layers / pp) / model.layers
    kinds = [(kind, shape.layers * share) for kind, share in shape.kinds] + list(shape.lead)
    inside = sum((count * _layer(kind, weights, cut) for kind, count in kinds), np.zeros(len(cut)))
    inside += _copies(model, weights, cut) + _indexers(model, weights)
    table, head = _stored(weights.embedding, weights), _stored(weights.head, weights)
    output = shape.embedding * head if model.tied else shape.head * head
    tables = np.where(pp == 1, shape.embedding * table + (0 if model.tied else output),
                      output if last else shape.embedding * table) / tp
    towers = np.where((pp > 1) & last, 0.0, _towers(model, tp))
    total: Floats = inside * stage + tables + towers
    return total


def _without_indexers(model: Model) -> Model:
    """Return the model with full attention, whose layers the physics reads alike for every model."""
    blocks = tuple(
        block.model_copy(update={"attention": block.attention.model_copy(update={"indexer": None})})
        if isinstance(block.attention, Attention | LatentAttention) else block for block in model.blocks)
    return model.model_copy(update={"blocks": blocks})


def _indexers(model: Model, weights: WeightFormat) -> float:
    """Return the bytes of the indexers of sparse attention, which every rank holds."""
    plain = _without_indexers(model)
    return sum((attention_matrices(block.attention, model.hidden) - attention_matrices(other.attention, model.hidden))
               * block.count * weights.of_attention for block, other in zip(model.blocks, plain.blocks, strict=True)
               if block.attention and other.attention)


def _stored(table: float | None, weights: WeightFormat) -> float:
    return weights.other if table is None else table


def _towers(model: Model, tp: Ints) -> Floats:
    """Return the bytes of what sees and what hears."""
    one = np.ones(len(tp))
    return sum((tower.parameters * TOWER_BYTES / (one if tower.whole else tp) for tower in model.towers),
               np.zeros(len(tp)))


def _layer(kind: LayerKind, weights: WeightFormat, cut: Cut) -> Floats:
    matrix = weights.other if weights.experts_alone else weights.matrix
    attention = sum(linear.k * linear.n for linear in kind.attention if linear.split != "none")
    experts = kind.expert_matrices * weights.matrix * _padding(kind.experts, weights, cut) if kind.experts else 0.0
    # of what is not split the router is small, and latent projections are quantized
    return (attention * weights.of_attention / cut.heads
            + ((kind.split_matrices - attention) * matrix + experts) / cut.tp
            + kind.whole_matrices * matrix + kind.vectors * weights.other)


def _padding(experts: Experts, weights: WeightFormat, cut: Cut) -> Floats:
    """Return by how much rounding up its widths makes an expert larger."""
    hidden = -(-experts.hidden // weights.hidden_multiple) * weights.hidden_multiple
    if weights.ffn_multiple == 1:
        return np.full(len(cut), hidden / experts.hidden)
    width = experts.ffn / cut.tp
    grown: Floats = hidden / experts.hidden * np.ceil(width / weights.ffn_multiple) * weights.ffn_multiple / width
    return grown


def _copies(model: Model, weights: WeightFormat, cut: Cut) -> Floats:
    """Return the bytes of key and value matrices that ranks hold beyond their share, over all layers."""
    extra = np.zeros(len(cut))
    for block, count in counted_layers(model):
        for attention in filter(None, (block.attention, block.cross)):
            if not isinstance(attention, Attention):
                continue
            held = np.ceil(attention.kv_heads / cut.heads) - attention.kv_heads / cut.heads
            extra += count * held * attention.projected * model.hidden * weights.of_attention
    return extra

"""Bytes of a model's weights on one GPU of an inference engine, by how they are quantized.

Quantization is of the matrices inside layers; embedding, output matrix, norms and routers stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.catalog.architecture import Attention, Model
from planner.layouts.table import Floats, Ints
from planner.physics.kinds import shape_of
from planner.physics.layers import LayerKind


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """Bytes of one weight of a quantized matrix with its share of the scales, and of any other weight."""

    matrix: float
    other: float = 2.0
    experts_alone: bool = False
    """Whether only routed experts are quantized, as in gpt-oss."""


FORMATS = {
    "fp32": WeightFormat(4, 4),
    "bf16": WeightFormat(2),
    "fp8": WeightFormat(1),
    "int8": WeightFormat(1),
    # groups of 128: a 16-bit scale, and for AWQ and GPTQ a 4-bit zero
    "int4": WeightFormat(0.5 + 2.5 / 128),
    "w4a16": WeightFormat(0.5 + 2 / 128),
    "gptq-int8": WeightFormat(1 + 3 / 128),
    # blocks of 16 with an 8-bit scale, of 32 with an exponent, of 64 with a 32-bit maximum
    "nvfp4": WeightFormat(0.5 + 1 / 16),
    "mxfp4": WeightFormat(0.5 + 1 / 32, experts_alone=True),
    "nf4": WeightFormat(0.5 + 4 / 64),
}
"""By the names that scenarios and evidence use; fp16 is as bf16."""


def weight_bytes(model: Model, weights: WeightFormat, tp: Ints, pp: Ints) -> Floats:
    """Return bytes of weights on a GPU of the first stage, for each pair of tp and pp.

    Experts are split by tp as other matrices are, whichever of tensor and expert parallelism does it. Key and value
    matrices are held whole heads at a time, so that more ranks than heads hold copies.
    """
    shape = shape_of(model)
    stage = np.ceil(model.layers / pp) / model.layers
    kinds = [(kind, shape.layers * share) for kind, share in shape.kinds] + list(shape.lead)
    inside = sum((count * _layer(kind, weights, tp) for kind, count in kinds), np.zeros(len(tp)))
    inside += _copies(model, weights, tp)
    both = (pp == 1) & (not model.tied)
    tables = (shape.embedding + np.where(both, shape.head, 0)) * weights.other / tp
    found: Floats = inside * stage + tables
    return found


def _layer(kind: LayerKind, weights: WeightFormat, tp: Ints) -> Floats:
    matrix = weights.other if weights.experts_alone else weights.matrix
    # of what is not split the router is small, and latent projections are quantized
    return ((kind.split_matrices * matrix + kind.expert_matrices * weights.matrix) / tp
            + kind.whole_matrices * matrix + kind.vectors * weights.other)


def _copies(model: Model, weights: WeightFormat, tp: Ints) -> Floats:
    """Return the bytes of key and value matrices that ranks hold beyond their share, over all layers."""
    matrix = weights.other if weights.experts_alone else weights.matrix
    extra = np.zeros(len(tp))
    for block in model.layer_kinds():
        attention = block.attention
        if isinstance(attention, Attention):
            width = attention.head_dim + attention.value_dim
            held = np.ceil(attention.kv_heads / tp) - attention.kv_heads / tp
            extra += held * width * model.hidden * matrix
    return extra

"""LoRA adapters served beside a model: the slots that an engine allocates for them, and what they add to a step.

Beside each product of k x n an adapter of rank r has two, of k x r and r x n. As vLLM and SGLang do by default, tensor
parallelism splits only the one on the side that the product itself is split on, and slots of all adapters are allocated
at start, in 16 bits. A step reads the adapters that its rows ask for, reads every product's input again, and adds to
its output (S-LoRA, arXiv:2311.03285; Punica, arXiv:2310.18547).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.catalog.architecture import Model
from planner.layouts.table import Floats
from planner.physics.kinds import shape_of
from planner.physics.layers import LayerKind, Linear
from planner.physics.serving.sequences import Cut

ELEMENT = 2
"""Bytes of an element of adapters and activations."""


@dataclass(frozen=True, slots=True)
class AdapterSlots:
    """How many a replica serves at once, asked for alike, and their rank."""

    count: int
    rank: int

    def asked_for(self, rows: Floats) -> Floats:
        """Return how many different ones so many rows ask for on average."""
        distinct: Floats = self.count * (1 - (1 - 1 / self.count) ** np.maximum(rows, 1.0))
        return distinct


def _width(linear: Linear, ranks: Floats) -> Floats:
    """Return the weights of an adapter of rank one on one of so many ranks of tensor parallelism."""
    inner = linear.k / (ranks if linear.split == "row" else 1.0)
    outer = linear.n / (ranks if linear.split == "column" else 1.0)
    return np.asarray(len(linear.modules) * inner + outer + 0 * ranks)


def _expert_width(kind: LayerKind, ranks: Floats) -> Floats:
    """Return the same of all routed experts of a layer, which all ranks share out."""
    experts = kind.experts
    if experts is None:
        return 0 * ranks
    each = experts.fan * (experts.hidden + experts.ffn) + experts.ffn + experts.hidden
    return experts.count * each / ranks


def slot_bytes(model: Model, adapters: AdapterSlots, cut: Cut) -> Floats:
    """Return the bytes of all slots on a GPU, for each row."""
    shape, heads, ranks = shape_of(model), cut.heads.astype(np.float64), cut.tp.astype(np.float64)
    stage, total = np.ceil(model.layers / cut.pp) / model.layers, np.zeros(len(cut))
    kinds = [(kind, shape.layers * share) for kind, share in shape.kinds] + [(kind, float(n)) for kind, n in shape.lead]
    for kind, count in kinds:
        for linears, split in ((kind.attention, heads), (kind.mlp, ranks)):
            total = total + count * sum((_width(linear, split) for linear in linears), 0 * split)
        total = total + count * _expert_width(kind, ranks)
    slots: Floats = adapters.count * adapters.rank * ELEMENT * total * stage
    return slots


def layer_seconds(adapters: AdapterSlots, kind: LayerKind, rows: Floats, together: Floats, ranks: Floats,
                  spread: Floats, memory: Floats, start: float) -> Floats:
    """Return the seconds that adapters add to one layer.

    rows: of a step on a rank, with `together` those of all copies of attention, whose experts are on `spread` GPUs;
    ranks: of tensor parallelism; memory: bytes/s; start: seconds of both products of an adapter, however small.
    """
    asked, took = adapters.asked_for(rows), np.zeros(len(rows))
    for linear in kind.linears:
        k = linear.k / (ranks if linear.split == "row" else 1.0)
        n = linear.n / (ranks if linear.split == "column" else 1.0)
        moved = asked * adapters.rank * _width(linear, ranks) + rows * (k + 2 * n)
        took = took + len(linear.modules) * start + ELEMENT * moved / memory
    if kind.experts is not None:
        experts = kind.experts
        routed = together * experts.per_token / spread
        used = np.minimum(adapters.asked_for(together) * adapters.rank * _expert_width(kind, spread),
                          routed * adapters.rank * _expert_width(kind, spread) * spread / experts.count)
        passed = routed * (experts.hidden + (2 * experts.fan + 1) * experts.ffn + 2 * experts.hidden)
        took = took + (experts.fan + 1) * start + ELEMENT * (used + passed) / memory
    return took

"""Parameters on one GPU: what tensor and expert parallelism leave of a layer, and which of them train."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.catalog.stack import Stack
from planner.layouts.table import Floats, Ints, Layouts, from_rows
from planner.physics.layers import LayerKind, Linear
from planner.physics.training.question import Question

Kinds = Sequence[tuple[LayerKind, float]]


def sequence_split(question: Question, rows: Layouts) -> Floats:
    """Return over how many GPUs norms and residuals of a sequence are split: tp under sequence parallelism, else 1."""
    split: Floats = np.where(question.stack.sequence_parallel & (rows.sp == 1), rows.tp, 1).astype(np.float64)
    return split


def owned_parameters(rows: Layouts, dense: Floats, experts: Floats) -> Floats:
    """Return the parameters whose optimizer states one GPU owns: from ZeRO-1 on its shard of the rank's."""
    return np.where(rows.zero >= 1, dense / rows.shard + experts / rows.expert_shard, dense + experts)


def layer_parameters(rows: Layouts, kinds: Kinds) -> tuple[Floats, Floats]:
    """Return (dense, expert) parameters on one GPU of the weighted sum of `kinds`, before ZeRO shards them."""
    dense, experts = np.zeros(len(rows)), np.zeros(len(rows))
    for kind, share in kinds:
        dense = dense + share * (kind.split_matrices / rows.tp + kind.whole_matrices + kind.vectors)
        experts = experts + share * kind.expert_matrices / (rows.expert_split * rows.ep)
    return dense, experts


def held_parameters(question: Question, rows: Layouts, kinds: Kinds) -> tuple[Floats, Floats]:
    """Return (dense, expert) parameters on one GPU, whether they train or not."""
    return layer_parameters(rows, kinds)


def adapter_parameters(question: Question, rows: Layouts, kinds: Kinds) -> tuple[Floats, Floats]:
    """Return (dense, expert) adapter parameters on one GPU: rank x (inputs + outputs) of every adapted product."""
    tuning, total, experts = question.tuning, np.zeros(len(rows)), np.zeros(len(rows))
    for kind, share in kinds:
        for linear in kind.linears:
            total = total + share * tuning.adapter_rank * _adapter_width(linear, tuning.adapted(linear), rows.tp)
        if kind.experts is not None:
            joint = question.stack.experts is not None and question.stack.experts.joint_adapters
            width = sum((_adapter_width(linear, _joined(tuning.adapted(linear, routed=True), joint), rows.expert_split)
                         for linear in kind.experts.linears), np.zeros(len(rows)))
            experts = experts + share * tuning.adapter_rank * width * kind.experts.count / rows.ep
    return total, experts


def _joined(adapted: tuple[int, int], joint: bool) -> tuple[int, int]:
    """Return how many matrices of a product have an adapter, and their columns, each as often as ranks add up."""
    matrices, columns = adapted
    return matrices, columns * (matrices if joint else 1)


def _adapter_width(linear: Linear, adapted: tuple[int, int], ranks: Ints) -> Floats:
    matrices, columns = adapted
    split = ranks.astype(np.float64)
    k = linear.k / split if linear.split == "row" else np.full(len(split), float(linear.k))
    return matrices * k + linear.columns(split) * columns / linear.n


def saved_parameters(question: Question) -> int:
    """Return the parameters in a checkpoint: the whole model's, or the adapters' where these alone train."""
    beside = sum(map(question.learned, question.seen))
    if question.tuning.trains_base or question.tuning.forward_only:
        return question.shape.total + beside
    layouts = from_rows([{}], 1)
    uniform = [question.shape.layers * part for part in adapter_parameters(question, layouts, question.shape.kinds)]
    lead = adapter_parameters(question, layouts, question.shape.lead)
    return round(float(sum(part[0] for part in (*uniform, *lead)))) + beside


def trained_share(question: Question) -> float:
    """Return the share of the uniform layers that train: the last ones, where those below are frozen."""
    layers = question.tuning.trained_layers
    return 1.0 if layers is None else min(1.0, layers / question.shape.layers)


def trained_parameters(question: Question, rows: Layouts, kinds: Kinds) -> tuple[Floats, Floats]:
    """Return (dense, expert) parameters on one GPU that train: all of them, the last layers', or the adapters alone."""
    if question.tuning.trains_base:
        dense, experts = layer_parameters(rows, kinds)
        share = trained_share(question)
        return (dense, experts) if share == 1 else (share * dense, share * experts)
    return adapter_parameters(question, rows, kinds)


def checkpoint_bytes(stack: Stack, precision: str, question: Question) -> float:
    """Return the bytes of a checkpoint: what trains in 16 bits, a full copy and the optimizer's states."""
    states = stack.recipe(precision)
    return saved_parameters(question) * (2 + max(states.master, 4) + states.moments)

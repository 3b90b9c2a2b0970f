"""States of weights on one GPU: what trains, what is frozen, and what trains beside it, as ZeRO shards them."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from planner.catalog.recipes import TrainedBytes
from planner.layouts.table import Floats, Ints, Layouts
from planner.physics.training.question import Question


@dataclass(frozen=True, slots=True)
class States:
    """Bytes of one GPU's states: of one uniform layer, or of what one end of the pipeline holds besides layers."""

    weights: Floats
    gradients: Floats
    master: Floats
    moments: Floats
    reference: Floats
    """Weights of a frozen copy."""

    def take(self, rows: Ints) -> States:
        """Return those of the chosen rows."""
        return States(*(getattr(self, name)[rows] for name in STATES))

    def held(self, gradients_persist: bool) -> Floats:
        """Return what is held while activations peak: gradients only where their buffers persist."""
        return self.every - (0.0 if gradients_persist else self.gradients)

    @property
    def every(self) -> Floats:
        """Return all states together, as backward and the optimizer step see them."""
        return self.weights + self.gradients + self.master + self.moments + self.reference


STATES = tuple(f.name for f in fields(States))
COPIED = 2.0
"""Bytes of a weight of a frozen copy, in 16 bits."""
Parts = tuple[Floats, Floats]
"""Dense parameters on one GPU, and those of routed experts, which other ranks share out."""


def over(question: Question, rows: Layouts, parts: Parts, stage: int) -> Floats:
    """Return the parameters left on one GPU where ZeRO shards from `stage` on."""
    dense, experts = parts
    shard = rows.shard.astype(np.float64)
    whole, sharded = dense, dense / shard
    if question.shape.experts:
        whole, sharded = whole + experts, sharded + experts / rows.expert_shard
    return np.where(rows.zero >= stage, sharded, whole)


def trained(question: Question, rows: Layouts, parts: Parts, share: float = 1.0) -> States:
    """Return the state bytes of parameters by the stack's recipe; `share` of them train, the rest is frozen."""
    stack = question.stack

    def recipe(field: str) -> Floats:
        by_precision = [getattr(stack.recipe(p), field) for p in question.precisions]
        return np.array(by_precision, np.float64)[rows.precision]

    weights = over(question, rows, parts, _sharded_from(question)) * (1 - rows.offload_parameters)
    on_gpu = share * over(question, rows, parts, 1) * (1 - rows.offload)
    gradients = share * over(question, rows, parts, 2) * (1 - rows.offload if stack.offload.gradients else 1.0)
    return States(weights=recipe("weight") * weights, gradients=recipe("gradient") * gradients,
                  master=recipe("master") * on_gpu, moments=recipe("moments") * on_gpu,
                  reference=_copy(question, weights))


def frozen(question: Question, rows: Layouts, parts: Parts, held: float) -> States:
    """Return the weights of a frozen base, `held` bytes a parameter."""
    none, (dense, experts) = np.zeros(len(rows)), parts
    whole = copied_experts(question, experts)
    weights = over(question, rows, (dense, experts - whole), _sharded_from(question)) + whole
    weights = weights * (1 - rows.offload_parameters)
    return States(weights=held * weights, gradients=none, master=none, moments=none,
                  reference=held / COPIED * _copy(question, weights))


def copied_experts(question: Question, experts: Floats) -> Floats:
    """Return the parameters of routed experts that every rank holds whole, of a quantized base that is not sharded."""
    copied = question.tuning.quantized and question.stack.copies_quantized_experts
    return experts if copied else np.zeros_like(experts)


def _copy(question: Question, weights: Floats) -> Floats:
    """Return the bytes of a frozen copy, sharded and offloaded as the weights that train; zero without one."""
    return COPIED * weights if question.sample.copy else np.zeros_like(weights)


def adapted(question: Question, rows: Layouts, parts: Parts, held: TrainedBytes) -> States:
    """Return the states of what trains beside a frozen base, of which `held` are the bytes a parameter."""
    return States(weights=held.weight * over(question, rows, parts, _sharded_from(question)),
                  gradients=held.gradient * over(question, rows, parts, 2), master=np.zeros(len(rows)),
                  moments=held.moments * over(question, rows, parts, 1) * (1 - rows.offload),
                  reference=np.zeros(len(rows)))


def _sharded_from(question: Question) -> int:
    """Return the ZeRO stage from which weights are sharded."""
    return 2 if question.stack.fully_sharded else 3


def added(*parts: States) -> States:
    """Return the sum of states."""
    return States(*(sum(getattr(p, name) for p in parts) for name in STATES))

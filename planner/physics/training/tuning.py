"""What a training method changes: which weights train, how the frozen ones are stored, how large the adapters are.

Adapters of rank r on a matrix of k x n hold r(k + n) parameters, trained in 32 bits (weight, gradient, both moments).
What quantized weights, adapters and their inputs take is in calibration/recipes.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from planner.catalog.recipes import Recipes, TrainedBytes
from planner.catalog.stack import Stack, Trained
from planner.physics.layers import Linear

LANGUAGE: frozenset[Trained] = frozenset({"language"})
"""What trains of a model that also sees unless told: encoder and projector are frozen."""
TABLES = "embeddings"
"""Embedding and head, which train whole beside the adapters."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """One method. `base_bytes` are of the frozen matrices, `table_bytes` of embedding and head."""

    trains_base: bool
    adapter_rank: int
    quantized: bool
    base_bytes: float
    table_bytes: float = 2.0
    base: str | None = None
    """The quantization of the base, where it has one."""
    keeps_frozen_inputs: bool = False
    """Whether frozen products keep their inputs: the 4-bit one of bitsandbytes did before 0.43.2, a plain one not."""
    targets: frozenset[str] | None = None
    """Matrices with an adapter, by the names of their modules, and `routed`; none means all of them."""
    dropout: float = 0.0
    """Share of an adapter's input that is dropped at random."""
    adapter: TrainedBytes | None = None
    """Bytes per adapter parameter, where there are adapters."""
    trains_tables: bool = False
    """Whether embedding and head train beside the adapters, as copies of the frozen ones."""
    trained_layers: int | None = None
    """Layers that train, the last ones, with the head; none where all do."""
    forward_only: bool = False
    """Nothing trains: the model is held for inference."""

    def adapted(self, linear: Linear, *, routed: bool = False) -> tuple[int, int]:
        """Return how many matrices of a product have an adapter, and their columns; `routed` is that of an expert."""
        if not self.adapter_rank or (routed and self.targets is not None and "routed" not in self.targets):
            return 0, 0
        return linear.adapted(self.targets)


PRETRAIN = Tuning(True, 0, False, 2.0)
STILL = Tuning(False, 0, False, 2.0)
"""The language model lets gradients through and learns nothing."""
INFERENCE = Tuning(False, 0, False, 2.0, forward_only=True)


def adapter_bytes(recipes: Recipes, stack: Stack) -> TrainedBytes:
    """Return the bytes per adapter parameter: as the stack holds weights without a master copy, else as PEFT does."""
    own = stack.recipe("bf16")
    return recipes.adapter if own.master else TrainedBytes(weight=own.weight, gradient=own.gradient,
                                                           moments=own.moments)


def tuning_of(recipes: Recipes, stack: Stack, method: str, rank: int, trained_layers: int | None = None,
              adapted: Collection[str] = (), optimizer: str | None = None) -> Tuning:
    """Return what a method (pretrain, full, lora, qlora, inference) changes; trained_layers freezes those below.

    adapted: modules with an adapter; none means all; TABLES among them trains embedding and head whole.
    optimizer: of adapters, where it is not AdamW; that of whole weights is in the recipe of the stack.
    """
    targets, tables = frozenset(adapted) - {TABLES} or None, TABLES in adapted
    if trained_layers is not None and method in ("pretrain", "full"):
        return replace(PRETRAIN, trained_layers=trained_layers)
    if method == "inference":
        return INFERENCE
    if method == "lora":
        return Tuning(False, rank, False, 2.0, adapter=_by(recipes, optimizer, adapter_bytes(recipes, stack)),
                      targets=targets, dropout=stack.adapter_dropout, trains_tables=tables)
    if method == "qlora":
        return Tuning(False, rank, True, recipes.bases[recipes.qlora], base=recipes.qlora,
                      targets=targets, dropout=stack.adapter_dropout, trains_tables=tables,
                      adapter=_by(recipes, optimizer, stack.quantized_adapter or recipes.adapter))
    return PRETRAIN


def in_32_bits(tuning: Tuning, precisions: Collection[str]) -> Tuning:
    """Return the method with a plain frozen base as wide as a question in 32 bits alone computes."""
    if tuning.adapter is None or tuning.quantized or not set(precisions) <= {"fp32", "tf32"}:
        return tuning
    return replace(tuning, base_bytes=4.0, table_bytes=4.0)


def _by(recipes: Recipes, optimizer: str | None, held: TrainedBytes) -> TrainedBytes:
    """Return the bytes of adapters by an optimizer, whose states take no more than AdamW's in the same format."""
    moments = recipes.optimizers.get(optimizer or "", held.moments)
    return held.model_copy(update={"moments": min(moments, held.moments)})

"""What a training method changes: which weights train, how the frozen ones are stored, how large the adapters are.

Adapters of rank r on a matrix of k x n hold r(k + n) parameters, trained in 32 bits (weight, gradient, both moments).
NF4 with double quantization keeps 0.5 + 1/64 + 4/(64 x 256) = 0.5159 bytes (bitsandbytes functional.py, block 64).
"""

from __future__ import annotations

from dataclasses import dataclass

NF4_BYTES = 0.5 + 1 / 64 + 4 / (64 * 256)
ADAPTER_STATES = (4.0, 4.0, 8.0)
"""Bytes per adapter parameter: weight, gradient, moments."""
ADAPTER_INPUT_BYTES = 4.9
"""Bytes saved per element of an adapted input: dropout copy, mask and cast, over the frozen layer's own (fitted)."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """One method. `base_bytes` are of the frozen matrices; embedding, head and norms stay in 16 bits."""

    trains_base: bool
    adapter_rank: int
    quantized: bool
    base_bytes: float

    @property
    def keeps_frozen_inputs(self) -> bool:
        """Whether frozen products keep their inputs: bitsandbytes' 4-bit product does, a plain one need not."""
        return self.quantized


PRETRAIN = Tuning(True, 0, False, 2.0)


def tuning_of(method: str, rank: int) -> Tuning:
    """Return what a method (pretrain, full, lora, qlora) changes."""
    if method == "lora":
        return Tuning(False, rank, False, 2.0)
    return Tuning(False, rank, True, NF4_BYTES) if method == "qlora" else PRETRAIN

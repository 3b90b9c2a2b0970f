"""What a training method changes: which weights train, how the frozen ones are stored, how large the adapters are.

Adapters of rank r on a matrix of k x n hold r(k + n) parameters, trained in 32 bits (weight, gradient, both moments).
NF4 keeps half a byte and a 32-bit scale for each block of 64; double quantization keeps the scales in 8 bits,
0.5 + 1/64 + 4/(64 x 256) = 0.5159 bytes (bitsandbytes functional.py). GPTQ keeps a 16-bit scale and a 4-bit zero for
each group of 128, and its permutation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

NF4_BYTES = 0.5 + 1 / 64 + 4 / (64 * 256)
BASE_BYTES = {"nf4": 0.5625, "nf4-dq": NF4_BYTES, "int4-gptq": 0.55, "int8": 1.0}
"""Bytes per frozen weight by quantization."""
ADAPTER_STATES = (4.0, 4.0, 8.0)
"""Bytes per adapter parameter: weight, gradient, moments."""
ADAPTER_INPUT_BYTES = 4.9
"""Bytes saved per element of an adapted input: dropout copy, mask and cast, over the frozen layer's own (fitted)."""
TABLE_STATES = (2.0, 2.0, 6.0)
"""The same of an embedding or head that trains beside adapters: PEFT's modules_to_save copies it as it is stored,
and AdamW over many tensors at once holds the square root of the second moment too."""
TARGETS = frozenset({"attention-in", "attention-out", "mlp-in", "mlp-out", "experts"})
"""The products that can have adapters: into and out of attention and feed-forward, and those of routed experts."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """One method. `base_bytes` are of the frozen matrices, `table_bytes` of embedding and head."""

    trains_base: bool
    adapter_rank: int
    quantized: bool
    base_bytes: float
    table_bytes: float = 2.0
    keeps_frozen_inputs: bool = False
    """Whether frozen products keep their inputs: bitsandbytes' 4-bit product does, a plain one need not."""
    targets: frozenset[str] = TARGETS
    """Products with an adapter, of TARGETS."""
    adapter_states: tuple[float, float, float] = ADAPTER_STATES
    """Bytes per adapter parameter: weight, gradient, moments."""
    trains_tables: bool = False
    """Whether embedding and head train beside the adapters, as copies of the frozen ones."""
    trained_layers: int | None = None
    """Layers that train, the last ones, with the head; none where all do."""
    forward_only: bool = False
    """Nothing trains: the model is held for inference."""

    def adapts_experts(self, split: str) -> bool:
        """Say whether a product of routed experts that splits by `split` has an adapter."""
        return "experts" in self.targets and self.adapts("mlp", split)

    def adapts(self, part: str, split: str) -> bool:
        """Say whether a product of `part` (attention, mlp) that splits by `split` has an adapter."""
        return self.adapter_rank > 0 and f"{part}-{'out' if split == 'row' else 'in'}" in self.targets


PRETRAIN = Tuning(True, 0, False, 2.0)
INFERENCE = Tuning(False, 0, False, 2.0, forward_only=True)


def tuning_of(method: str, rank: int, trained_layers: int | None = None) -> Tuning:
    """Return what a method (pretrain, full, lora, qlora, inference) changes; trained_layers freezes those below."""
    if trained_layers is not None and method in ("pretrain", "full"):
        return replace(PRETRAIN, trained_layers=trained_layers)
    if method == "inference":
        return INFERENCE
    if method == "lora":
        return Tuning(False, rank, False, 2.0)
    return Tuning(False, rank, True, NF4_BYTES, keeps_frozen_inputs=True) if method == "qlora" else PRETRAIN

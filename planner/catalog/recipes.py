"""What a user chooses over a stack's own training recipe: bytes of optimizers, losses, frozen bases and adapters."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.catalog.ranges import Held
from planner.catalog.sourced import Sourced
from planner.yaml_io import Frozen


class TrainedBytes(Frozen):
    """Bytes of each parameter that trains beside a frozen base."""

    weight: float = Field(ge=1e-4, le=64)
    gradient: Held
    moments: Held


class UsualTuning(Frozen):
    """What a fine-tuning run takes unless it is told."""

    example: str
    """Whose recipe it is, as a reason says it."""
    sequence_length: int = Field(gt=0, le=10**8)
    """Tokens, of a model that reads as many."""
    global_batch: int = Field(gt=0, le=10**6)
    """Sequences."""


class Text(Frozen):
    """What text is in tokens where nobody counts them."""

    characters_per_token: float = Field(ge=0.1, le=100)


class Recipes(Sourced):
    """Bytes by the names of optimizers, losses and quantized bases."""

    optimizers: dict[str, Held]
    """Per parameter, of an optimizer's states; paged ones leave the GPU under pressure. AdamW is the stack's own."""
    least_gradient: Held
    """Per parameter, where every gradient is applied and freed as backward makes it: the matrix at hand."""
    losses: dict[Literal["plain", "chunked", "fused"], Held]
    """Per logit of a plain loss and of one in chunks, per hidden element of one fused with its projection."""
    bases: dict[str, Held]
    """Per frozen weight, by quantization."""
    cast_bases: tuple[str, ...]
    """Quantizations beside which PEFT casts what is not quantized to 32 bits."""
    qlora: str
    """The quantization that QLoRA has unless a row says otherwise."""
    adapter: TrainedBytes
    table: TrainedBytes
    """Of an embedding or head that trains beside adapters."""
    adapter_input: Held
    """Saved per element of an adapted input, over the frozen layer's own: dropout copy, mask and cast."""
    tuning: UsualTuning
    text: Text

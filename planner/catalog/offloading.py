"""What a training framework can keep outside the GPU."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.yaml_io import Frozen


class OffloadSupport(Frozen):
    """What a framework can keep outside the GPU, and where; nothing where left out."""

    optimizer: tuple[Literal["host", "nvme"], ...] = ()
    optimizers: tuple[str, ...] = ()
    """Optimizers whose states may leave; none named means any."""
    parameters: tuple[Literal["host", "nvme"], ...] = ()
    activations: bool = False
    """Checkpoints of full recompute, on the host."""
    together: bool = False
    """Whether weights go wherever optimizer states go (FSDP's CPU offload)."""
    pinned: Annotated[float, Field(ge=1, le=100)] = 1.5
    """Host bytes pinned over those held: DeepSpeed's buffer factor; PyTorch rounds blocks up to powers of two."""
    pinned_checkpoints: Annotated[float, Field(ge=1, le=100)] = 1.5
    """The same of offloaded checkpoints: one where they go to pageable memory."""
    gradients: bool = False
    """Whether gradients follow the optimizer states (ZeRO-Offload) or stay on the GPU."""

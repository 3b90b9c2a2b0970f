"""What a training framework can do, what it keeps in memory and what it overlaps: facts, with their source."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.catalog.hardware import Precision
from planner.catalog.sourced import Sourced
from planner.units import Bytes, Seconds
from planner.yaml_io import Frozen

RecomputeModule = Literal["core_attn", "layernorm", "mlp", "every-second-matmul"]


class StateBytes(Frozen):
    """Bytes per parameter of one precision recipe: compute weight, accumulated gradient, master copy, both moments."""

    weight: float = Field(gt=0)
    gradient: float = Field(gt=0)
    master: float = Field(ge=0)
    moments: float = Field(ge=0)


class Overlap(Frozen):
    """Share of each kind of traffic hidden behind compute that is long enough to hide it."""

    tensor_parallel: float = Field(ge=0, le=1)
    data_parallel: float = Field(ge=0, le=1)
    shard_gather: float = Field(ge=0, le=1)
    pipeline: float = Field(ge=0, le=1)
    context_parallel: float = Field(ge=0, le=1)


class ExpertHost(Frozen):
    """Host time that a mixture of experts adds to a layer, forward and backward: fixed, and per local expert."""

    layer: Seconds
    expert: Seconds


class OffloadSupport(Frozen):
    """What a framework can keep outside the GPU, and where; nothing where left out."""

    optimizer: tuple[Literal["host", "nvme"], ...] = ()
    parameters: tuple[Literal["host", "nvme"], ...] = ()
    activations: bool = False
    """Checkpoints of full recompute, on the host."""
    together: bool = False
    """Whether weights go wherever optimizer states go (FSDP's CPU offload)."""
    gradients: bool = False
    """Whether gradients follow the optimizer states (ZeRO-Offload) or stay on the GPU."""


class Stack(Sourced):
    """One framework at one generation of releases."""

    zero_stages: tuple[Literal[0, 1, 2, 3], ...]
    zero_with_pipeline: Literal[0, 1, 2, 3]
    """Highest ZeRO stage that the framework allows together with pipeline parallelism."""
    pipeline: bool
    interleaving: bool
    tensor_parallel: bool
    sequence_parallel: bool
    context_parallel: bool
    ulysses: bool = False
    """Whether context parallelism can exchange heads by all-to-all instead of keys and values round a ring."""
    live_parameters: int | None = Field(default=None, gt=0)
    """Parameters that ZeRO-3 keeps gathered where it gathers matrix by matrix; none where it gathers whole layers."""
    hybrid_shard: bool = False
    """Whether ZeRO-3 can shard within groups of GPUs and replicate over them (HSDP)."""
    offload: OffloadSupport = OffloadSupport()
    recompute_layers: bool
    """Whether a number of layers per stage can be fully recomputed while the rest keep everything."""
    selective_recompute: tuple[RecomputeModule, ...]
    states: dict[Precision, StateBytes]
    gradients_persist: bool
    """Gradient buffers live through forward (Megatron, DeepSpeed) or are freed by the step (plain PyTorch)."""
    reduce_bytes: float
    """Bytes per element of the gradient reduction."""
    fused_norm_and_activation: bool
    gathered_norm_outputs: bool = False
    """Saves the norm outputs gathered over tensor parallelism rather than sharded (DTensor style)."""
    live_layers: float = Field(gt=0)
    """Saved sets a layer holds while its backward runs: the saved tensors and their gradients."""
    loss_bytes_per_logit: float
    vocab_parallel_loss: bool
    allocator_ratio: float = Field(ge=1)
    """Reserved over allocated bytes."""
    memory_spread: float | None = Field(default=None, ge=1)
    """Device memory at 95% confidence over its median, where evidence rows of the stack are too few for a class."""
    context_bytes: Bytes
    communicator_bytes: Bytes
    """Device bytes of one communicator; a job holds one for each kind of group larger than one."""
    elementwise: float = Field(gt=0)
    """Bytes moved by norms, activations, rotary and residuals over the counted minimum."""
    fused_attention: bool = True
    """Flash attention, which skips what the causal mask hides and keeps no scores; unfused does neither."""
    attention_kernel: dict[str, float] = Field(default={})
    """Share of a GPU architecture's attention rates that the stack's kernel generation reaches, where below one."""
    overlap: Overlap
    expert_host: ExpertHost | None = None
    """None where the stack has no mixture of experts."""
    step_overhead: Seconds
    slowdown: float = Field(default=1.0, gt=0)
    """Measured over counted step time of the stack that no counted cause explains."""

    def recipe(self, precision: str) -> StateBytes:
        """Return the bytes per parameter of a precision; those of bf16 where the stack states none."""
        return self.states.get(precision) or self.states["bf16"]  # type: ignore[call-overload]

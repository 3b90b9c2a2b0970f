"""Efficiencies and reliability: assumptions are data too."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from planner.catalog.hardware import Precision
from planner.catalog.ranges import MOST_OF_PEAK, Factor, Few, Hours, Passes, Share
from planner.catalog.sourced import Sourced
from planner.catalog.stack import RecomputeModule
from planner.units import ByteRate, Seconds


class ArchitectureRates(Sourced):
    """What kernels reach on one GPU architecture, as fractions of the datasheet."""

    gemm: dict[Precision, Share]
    """What large products reach in a benchmark, on parts whose own `gemm_efficiency` is not known."""
    sustained: dict[Precision, Factor] = Field(default={}, validate_default=True)
    """What they reach in training, at the clocks that power leaves, over that; 1 where not stated."""
    attention_forward: float = Field(ge=1e-4, le=1)
    attention_backward: float = Field(ge=1e-4, le=1)
    """Backward attention rate over forward rate."""
    memory: float = Field(ge=1e-4, le=1)

    @field_validator("sustained")
    @classmethod
    def _every_precision(cls, sustained: dict[Precision, float], info: ValidationInfo) -> dict[Precision, float]:
        gemm = info.data.get("gemm", {})
        for precision, kept in sustained.items():
            if (share := kept * gemm.get(precision, 0.0)) > MOST_OF_PEAK:
                raise ValueError(f"{precision}: {kept:g} of gemm.{precision} is {share:.3g} of the rate on paper, at "
                                 f"most {MOST_OF_PEAK:g}")
        return {**{p: 1.0 for p in gemm if p not in ("fp16", "tf32") or "bf16" not in gemm}, **sustained}

    def kept(self, precision: str) -> float:
        """Return the share of a format's benchmark rate that training sustains: for fp16 and tf32 that of bf16."""
        usual = self.sustained.get("bf16", 1.0) if precision in ("fp16", "tf32") else 1.0
        return self.sustained.get(precision, usual)  # type: ignore[call-overload, no-any-return]


class KernelShape(Sourced):
    """How efficiency falls with the shape of a kernel, and fixed traffic; the same on every GPU."""

    half_k: Annotated[float, Field(ge=0, le=1e9)]
    half_mn: Annotated[float, Field(ge=0, le=1e9)]
    tile: Few
    resident_tiles: Few
    """Tiles that a multiprocessor works on at once: a wave of them fills the GPU."""
    wave_exponent: Annotated[float, Field(ge=0, le=10)]
    misaligned: Factor
    alignment: Few
    core_multiple: Few
    """What the width of a head must be a multiple of for tensor cores to take its products."""
    launch: Seconds
    launches_per_forward: float = Field(gt=1, le=100)
    """Kernels that a layer launches forward and backward, over those forward."""
    attention_half_sequence: Annotated[float, Field(ge=0, le=1e9)]
    attention_backward_flops: float = Field(ge=1e-4, le=100)
    """FLOPs of fused attention backward over forward: five products for two."""
    unfused_attention: float = Field(ge=1e-4, le=1)
    """Share of the peak that the batched products of unfused attention reach."""
    unfused_attention_passes: Passes
    """Times unfused attention moves its 16-bit scores through memory forward: mask, softmax, dropout."""
    scan: float = Field(ge=1e-4, le=1)
    """Share of the 16-bit peak that the products of a recurrence reach."""
    scan_chunk: Few
    """Tokens that kernels of a recurrence work on at once."""
    scan_launches: float = Field(ge=0, le=1e4)
    """Kernels of a recurrence, forward."""
    scan_backward: float = Field(ge=1e-4, le=100)
    """Time of a recurrence backward over forward."""
    scan_passes: Passes
    """Times what is projected for a recurrence, and what it returns, pass through memory forward."""
    norm_bytes: Passes
    """Bytes moved forward per element of a norm: itself and the residual that is added to."""
    rotary_bytes: Passes
    """Bytes moved forward per element of queries, keys and values: rotated or copied."""
    embedding_bytes: Passes
    """Bytes moved per element of an embedding, looked up and its gradient added."""
    cache_gain: float = Field(ge=1, le=100)
    """Rate of the last-level cache over that of memory, for what a kernel reads that the one before has written."""
    elementwise_backward: float = Field(ge=1e-4, le=100)
    """Bytes that elementwise work moves backward over forward."""
    adapter_backward: float = Field(ge=1e-4, le=100)
    """The same of what adapters add to a product."""
    recompute: dict[RecomputeModule, Annotated[float, Field(ge=0, le=1)]]
    """Of modules that are parts of others, their share of those: moe_act of routed experts, mla_up_proj of attention's
    products, every-second-matmul of the whole forward."""
    loss_bytes_per_logit: Passes
    cast_forward_bytes: Passes
    """Bytes moved per element of a low-precision product's input, forward; backward is per element of its output."""
    cast_backward_bytes: Passes
    optimizer_bytes_per_parameter: Passes
    host_adam_bytes_per_parameter: Passes
    """Host memory traffic of one CPU Adam update over what the host's datasheet bandwidth sustains."""
    host_adam_per_thread: float = Field(ge=1e5, le=1e12)
    """Parameters/s that a hardware thread of the host steps."""
    host_memory_share: float = Field(ge=1e-4, le=1)
    """Share of host memory that a job may pin."""
    resolution: float = Field(ge=1e-4, lt=1)
    """Relative difference in step time below which two layouts are told apart no better than by chance."""
    jitter_per_doubling: Annotated[float, Field(ge=0, le=1)]
    """Step time lost to stragglers for each doubling of the nodes."""


class Collectives(Sourced):
    """What collectives reach beside the curves and links of fabrics."""

    tree: float = Field(ge=1e-4, le=1)
    """Share of a ring's rate that an adapter keeps in a tree of nodes."""
    ring_exposed: float = Field(ge=0, le=1)
    """Share of a ring exchange of keys and values that no compute hides: the first block."""


class Reliability(Sourced):
    """Failures and what they cost a run."""

    gpu_hours_per_interruption: Hours
    hardware_share: float = Field(ge=1e-4, le=1)
    """Interruptions that take a node away until it is repaired."""
    repair: Seconds
    restart: Seconds
    checkpoint_write_per_node: ByteRate
    node_hours_per_reclaim: Hours
    """Of spot nodes whose offer does not say it: how long until the provider takes one back."""
    replace: Seconds
    """Until another spot node takes its place."""

"""Efficiencies, reliability and residuals: assumptions are data too."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from planner.catalog.hardware import Precision
from planner.catalog.sourced import Sourced
from planner.catalog.stack import RecomputeModule
from planner.units import ByteRate, Seconds
from planner.yaml_io import Frozen


class ArchitectureRates(Sourced):
    """What kernels reach on one GPU architecture, as fractions of the datasheet."""

    gemm: dict[Precision, float]
    """What large products reach in a benchmark, on parts whose own `gemm_efficiency` is not known."""
    sustained: dict[Precision, float] = Field(default={}, validate_default=True)
    """Share of that which they keep in training, at the clocks that power leaves; 1 where not stated."""
    attention_forward: float = Field(gt=0, le=1)
    attention_backward: float = Field(gt=0, le=1)
    """Backward attention rate over forward rate."""
    memory: float = Field(gt=0, le=1)

    @field_validator("sustained")
    @classmethod
    def _every_precision(cls, sustained: dict[Precision, float], info: ValidationInfo) -> dict[Precision, float]:
        gemm = info.data.get("gemm", {})
        return {**{p: 1.0 for p in gemm if p not in ("fp16", "tf32") or "bf16" not in gemm}, **sustained}

    def kept(self, precision: str) -> float:
        """Return the share of a format's benchmark rate that training sustains: for fp16 and tf32 that of bf16."""
        usual = self.sustained.get("bf16", 1.0) if precision in ("fp16", "tf32") else 1.0
        return self.sustained.get(precision, usual)  # type: ignore[call-overload, no-any-return]


class KernelShape(Sourced):
    """How efficiency falls with the shape of a kernel, and fixed traffic; the same on every GPU."""

    half_k: float
    half_mn: float
    tile: int
    resident_tiles: int = Field(gt=0)
    """Tiles that a multiprocessor works on at once: a wave of them fills the GPU."""
    wave_exponent: float
    misaligned: float
    alignment: int
    core_multiple: int = Field(gt=0)
    """What the width of a head must be a multiple of for tensor cores to take its products."""
    launch: Seconds
    launches_per_forward: float = Field(gt=1)
    """Kernels that a layer launches forward and backward, over those forward."""
    attention_half_sequence: float
    attention_backward_flops: float = Field(gt=0)
    """FLOPs of fused attention backward over forward: five products for two."""
    unfused_attention: float = Field(gt=0, le=1)
    """Share of the peak that the batched products of unfused attention reach."""
    unfused_attention_passes: float
    """Times unfused attention moves its 16-bit scores through memory forward: mask, softmax, dropout."""
    scan: float = Field(gt=0, le=1)
    """Share of the 16-bit peak that the products of a recurrence reach."""
    scan_chunk: int = Field(gt=0)
    """Tokens that kernels of a recurrence work on at once."""
    scan_launches: float = Field(ge=0)
    """Kernels of a recurrence, forward."""
    scan_backward: float = Field(gt=0)
    """Time of a recurrence backward over forward."""
    scan_passes: float
    """Times what is projected for a recurrence, and what it returns, pass through memory forward."""
    norm_bytes: float = Field(ge=0)
    """Bytes moved forward per element of a norm: itself and the residual that is added to."""
    rotary_bytes: float = Field(ge=0)
    """Bytes moved forward per element of queries, keys and values: rotated or copied."""
    embedding_bytes: float = Field(ge=0)
    """Bytes moved per element of an embedding, looked up and its gradient added."""
    elementwise_backward: float = Field(gt=0)
    """Bytes that elementwise work moves backward over forward."""
    recompute: dict[RecomputeModule, float]
    """Of modules that are parts of others, their share of those: moe_act of routed experts, mla_up_proj of attention's
    products, every-second-matmul of the whole forward."""
    loss_bytes_per_logit: float
    cast_forward_bytes: float
    """Bytes moved per element of a low-precision product's input, forward; backward is per element of its output."""
    cast_backward_bytes: float
    optimizer_bytes_per_parameter: float
    host_adam_bytes_per_parameter: float
    """Host memory traffic of one CPU Adam update over what the host's datasheet bandwidth sustains."""
    host_memory_share: float = Field(gt=0, le=1)
    """Share of host memory that a job may pin."""
    resolution: float = Field(gt=0, lt=1)
    """Relative difference in step time below which two layouts are told apart no better than by chance."""
    jitter_per_doubling: float
    """Step time lost to stragglers for each doubling of the nodes."""


class Collectives(Sourced):
    """What collectives reach beside the curves and links of fabrics."""

    tree: float = Field(gt=0, le=1)
    """Share of a ring's rate that an adapter keeps in a tree of nodes."""
    ring_exposed: float = Field(ge=0, le=1)
    """Share of a ring exchange of keys and values that no compute hides: the first block."""


class Reliability(Sourced):
    """Failures and what they cost a run."""

    gpu_hours_per_interruption: float = Field(gt=0)
    hardware_share: float = Field(gt=0, le=1)
    """Interruptions that take a node away until it is repaired."""
    repair: Seconds
    restart: Seconds
    checkpoint_write_per_node: ByteRate
    node_hours_per_reclaim: float = Field(gt=0)
    """Of spot nodes whose offer does not say it: how long until the provider takes one back."""
    replace: Seconds
    """Until another spot node takes its place."""
    spare_confidence: float = Field(gt=0, lt=1)
    """Probability that the spares on hand cover the nodes under repair."""


class Residual(Frozen):
    """Quantiles of measured over predicted for one class of evidence."""

    stack: str | None = None
    architecture: str | None = None
    model: Literal["whole", "split"] | None = None
    """Whether tensor or pipeline parallelism splits the model."""
    method: str | None = None
    quantity: str | None = None
    engine: str | None = None
    kind: Literal["dense", "moe"] | None = None
    """Whether the model is a mixture of experts."""
    regime: str | None = None
    rows: int = Field(ge=1)
    q05: float = Field(gt=0)
    q10: float = Field(gt=0)
    q50: float = Field(gt=0)
    q90: float = Field(gt=0)
    q95: float = Field(gt=0)


TRAITS = ("stack", "architecture", "model", "method", "quantity", "engine", "kind", "regime")
"""What tells classes apart, the fields of Residual that have names for values."""


class Residuals(Sourced):
    """Residual classes of one quantity, the most specific first; the last matches everything."""

    classes: tuple[Residual, ...] = Field(min_length=1)

    def match(self, **traits: str) -> Residual:
        """Return the first class whose stated traits all agree with `traits`."""
        for entry in self.classes:
            stated = {k: v for k in TRAITS if (v := getattr(entry, k)) is not None}
            if all(traits.get(k) == v for k, v in stated.items()):
                return entry
        return self.classes[-1]


def serving_interval(residuals: Residuals, quantity: str, engine: str, architecture: str, *,
                     mixture: bool) -> tuple[float, float]:
    """Return the 5% and 95% quantiles of measured over predicted of a quantity of serving speed, over all regimes.

    quantity: output_tok_s_per_gpu, ttft_ms or tpot_ms.
    """
    found = residuals.match(quantity=quantity, engine=engine, architecture=architecture,
                            kind="moe" if mixture else "dense")
    return found.q05, found.q95

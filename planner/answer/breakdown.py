"""Where the bytes of a GPU and the seconds of a step go."""

from __future__ import annotations

import math
from typing import Literal, Self

from pydantic import Field, model_validator

from planner.catalog.residuals import Residual
from planner.yaml_io import Frozen, absent, empty

Fits = Literal["fits", "tight", "does not fit"]
RELATIVE = 1e-6
"""How closely sums and products of seconds must agree, relative."""


def _zero(seconds: float) -> bool:
    return seconds == 0


class MemoryComponents(Frozen):
    """Device bytes of the worst stage's GPU, by what they hold."""

    weights: int = Field(default=0, ge=0)
    """Weights, in the formats they are kept in."""
    gradients: int = Field(default=0, ge=0)
    """Gradients."""
    master_weights: int = Field(default=0, ge=0)
    """The full copy of weights that the optimizer steps."""
    optimizer: int = Field(default=0, ge=0)
    """The optimizer's moments."""
    reference: int = Field(default=0, ge=0, exclude_if=empty)
    """Weights of the frozen copy that preferences are held against; left out where there is none."""
    activations: int = Field(default=0, ge=0)
    """What forward keeps for backward, and what a layer works with."""
    logits: int = Field(default=0, ge=0)
    """Logits and their gradients, on the last stage."""
    communication_buffers: int = Field(default=0, ge=0)
    """Buckets, gathered weights and communicators."""
    framework: int = Field(default=0, ge=0)
    """The CUDA context, and what the allocator wastes."""
    reserve: int = Field(default=0, ge=0)
    """Margin between the median prediction and the requested confidence."""
    kv_cache: int = Field(default=0, ge=0)
    """The key-value cache, for serving."""


class Median(Frozen):
    """What tools should print of the worst stage's GPU: PyTorch's two peaks, and nvidia-smi's."""

    allocated: int
    """PyTorch's peak of allocated bytes."""
    reserved: int
    """PyTorch's peak of reserved bytes."""
    device: int
    """What nvidia-smi shows."""


class Evidence(Frozen):
    """Measured runs that a prediction is held against."""

    rows: int = Field(ge=0)
    """Published runs of the same stack, as much alike as there are; none where it is not validated."""
    sources: int = Field(default=0, ge=0)
    """That these rows are from."""
    median_abs_error: float | None = None
    """Median of the relative error of these rows; none without rows."""
    validated: bool
    """Whether the stack has measured runs of the method."""
    unlike: tuple[str, ...] = Field(default=(), exclude=True, repr=False)
    """By what none of them is like the question; not part of the JSON."""
    causes: tuple[tuple[str, float], ...] = Field(default=(), exclude=True, repr=False)
    """Variances of the logarithm of measured over predicted, by cause; not part of the JSON."""
    alike: dict[str, str] | None = Field(default=None, exclude_if=absent)
    """Traits that they share with the question, by name; none without rows."""


def evidence_of(residual: Residual) -> Evidence:
    """Return the runs that a prediction is held against."""
    known = residual.validated
    return Evidence(rows=residual.rows if known else 0, sources=residual.sources if known else 0,
                    median_abs_error=residual.error if known else None, validated=known,
                    unlike=() if not known else residual.unseen, causes=residual.causes,
                    alike=dict(residual.alike) if known else None)


class Memory(Frozen):
    """Device memory of the worst stage's GPU, and what the layout keeps outside."""

    fits: Fits
    """Verdict at the requested confidence; `tight` if it may fit or not, more likely not where more is expected than
    is usable.
    """
    usable_bytes: int = Field(gt=0)
    """What a program can allocate on the GPU."""
    peak_bytes: int = Field(ge=0)
    """Device memory of the worst stage at the requested confidence: the sum of the components."""
    components: MemoryComponents
    """Bytes by purpose."""
    host_bytes_per_node: int = Field(default=0, ge=0)
    """Pinned host memory for offloaded data, for all GPUs of a node; 0 without offload."""
    host_parts: dict[str, int] = Field(default={}, exclude_if=empty)
    """The same by what holds it, where processes and what waits there are counted too."""
    nvme_bytes_per_node: int = Field(default=0, ge=0)
    """Local NVMe for offloaded data, for all GPUs of a node; 0 without such offload."""
    host_usable_bytes: int | None = Field(default=None, exclude=True)
    """What a node's host has for offloaded data; not part of the JSON, as what follows."""
    nvme_usable_bytes: int | None = Field(default=None, exclude=True)
    """The same of its local NVMe."""
    median: Median | None = Field(default=None, exclude=True)
    """Not part of the JSON."""
    interval90_bytes: tuple[int, int] | None = Field(default=None, exclude_if=absent)
    """Device memory of the worst stage, 5% and 95% quantile of comparable evidence; left out of a service."""
    evidence: Evidence | None = Field(default=None, exclude_if=absent)
    """What the memory is held against; left out of a service."""

    @property
    def expected_bytes(self) -> int:
        """What the worst stage is as likely to exceed as not."""
        return self.peak_bytes - self.components.reserve

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        parts = self.components.model_dump()
        total = sum(parts.values())
        if abs(total - self.peak_bytes) > len(parts):
            raise ValueError(f"memory components add up to {total} bytes, peak_bytes is {self.peak_bytes}")
        return self


class TimeComponents(Frozen):
    """Exposed seconds of a step (what overlaps is not counted), by what takes them."""

    compute: float = 0.0
    """Forward and backward, without recompute."""
    recompute: float = 0.0
    """Forward again, of what was dropped."""
    tensor_parallel: float = 0.0
    """Exchange within layers."""
    pipeline_bubble: float = 0.0
    """Waiting for other stages."""
    pipeline_p2p: float = 0.0
    """Sends between stages."""
    context_parallel: float = 0.0
    """Exchange of keys and values."""
    expert_parallel: float = 0.0
    """All-to-alls of tokens to experts and back."""
    data_parallel: float = 0.0
    """Reduction of gradients and gathering of weights."""
    offload: float = 0.0
    """Transfers to and from the host or local NVMe."""
    optimizer_step: float = 0.0
    """The step itself."""
    other: float = 0.0
    """Kernel launches, imbalance and all else."""
    generation: float = Field(default=0.0, exclude_if=_zero)
    """Of reinforcement learning, as what follows: drawing answers, as far as the trainer waits for them."""
    reward: float = Field(default=0.0, exclude_if=_zero)
    """Judging answers."""
    log_probabilities: float = Field(default=0.0, exclude_if=_zero)
    """Forward passes of the policy over the answers."""
    reference: float = Field(default=0.0, exclude_if=_zero)
    """The same of the model that it is held near."""
    values: float = Field(default=0.0, exclude_if=_zero)
    """The same of the critic."""
    critic_update: float = Field(default=0.0, exclude_if=_zero)
    """Forward, backward and step of the critic."""
    actor_update: float = Field(default=0.0, exclude_if=_zero)
    """The same of the policy."""
    synchronization: float = Field(default=0.0, exclude_if=_zero)
    """New weights on their way to the rollouts."""


class Time(Frozen):
    """Speed: a training step, or for serving one decode iteration at the planned batch."""

    step_seconds: float = Field(gt=0)
    """The sum of the components."""
    components: TimeComponents
    """What takes them."""
    steps: int | None = Field(default=None, ge=0)
    """Optimizer steps of the whole job; none where no amount of work was asked."""
    tokens_per_second_per_gpu: float = Field(ge=0)
    """Of training; for serving, output tokens."""
    model_tflops_per_gpu: float = Field(ge=0)
    """Model TFLOP/s: no recompute counted, causal attention halved."""
    mfu: float = Field(ge=0)
    """model_tflops_per_gpu over the dense peak of the compute precision, 0 to 1."""
    interval90_seconds: tuple[float, float]
    """Step seconds, 5% and 95% quantile of comparable evidence."""
    evidence: Evidence | None = Field(default=None, exclude_if=absent)
    """What the speed is held against; left out of a service."""

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        total = math.fsum(self.components.model_dump().values())
        if not math.isclose(total, self.step_seconds, rel_tol=RELATIVE):
            raise ValueError(f"time components add up to {total} s, step_seconds is {self.step_seconds}")
        low, high = self.interval90_seconds
        if low > high:
            raise ValueError(f"interval90_seconds must rise, got {low} to {high}")
        return self

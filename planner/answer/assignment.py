"""One workload on one set of GPUs: the layout, where its bytes and seconds go, and what it costs.

An `Assignment` is what `planner estimate --json` prints, and the element of a Plan's lists.
Key order here is key order in the JSON; base units, named in the field.
"""

from __future__ import annotations

import math
from typing import Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from planner.answer.bought import Bought
from planner.answer.level import Serving
from planner.solver.quantize import COST_QUANTUM, DURATION_QUANTUM
from planner.yaml_io import Frozen

Fits = Literal["fits", "tight", "does not fit"]
SECONDS_PER_DAY = 86400.0
RELATIVE = 1e-6
"""How closely sums and products of seconds must agree, relative."""
DIGITS = 1e-12
"""What products of floats lose, relative: more than a cent of sums above a trillion."""


class RecomputeLayers(Frozen):
    """How many of a stage's layers keep everything, drop the cheap part, or drop all but their input."""

    none: int = Field(default=0, ge=0)
    selective: int = Field(default=0, ge=0)
    full: int = Field(default=0, ge=0)


class Stage(Frozen):
    """One pipeline stage: all chunks of layers that one pipeline rank holds."""

    layers: int = Field(ge=0)
    """Transformer layers, over all virtual chunks; embedding and head are not counted."""
    recompute_layers: RecomputeLayers
    """The stage's layers by recompute mode."""
    peak_bytes: int = Field(ge=0)
    """Device bytes of one GPU of the stage at the asked confidence."""
    seconds: float = Field(ge=0)
    """Forward and backward of one micro-batch."""


class Offload(Frozen):
    """Shares (0 to 1) of the states that live outside the GPU, and where."""

    optimizer: float = Field(default=0.0, ge=0, le=1)
    parameters: float = Field(default=0.0, ge=0, le=1)
    activations: float = Field(default=0.0, ge=0, le=1)
    to: Literal["none", "host", "nvme"] = "none"


class Layout(Frozen):
    """How the work is split: degrees of parallelism, batch split, recompute and offload."""

    tp: int = Field(gt=0)
    """Tensor-parallel GPUs."""
    pp: int = Field(gt=0)
    """Pipeline stages."""
    vpp: int = Field(gt=0)
    """Virtual chunks of layers interleaved on a stage."""
    cp: int = Field(gt=0)
    """Context-parallel GPUs."""
    ep: int = Field(gt=0)
    """Expert-parallel GPUs; divides dp x cp."""
    dp: int = Field(gt=0)
    """Data-parallel copies (serving: replicas)."""
    shard: int = Field(gt=0)
    """Ranks over which ZeRO shards states."""
    zero: int = Field(ge=0, le=3)
    """ZeRO stage: 1 shards optimizer states, 2 gradients too, 3 weights too."""
    micro_batch: int = Field(gt=0)
    """Sequences a pipeline works on at once."""
    micro_batches: int = Field(gt=0)
    """Micro-batches a pipeline works through in a step."""
    recompute: Literal["none", "selective", "full", "mixed"]
    """What every layer keeps for backward; `mixed` where layers differ (see stages)."""
    precision: str
    """Number format of matrix products."""
    offload: Offload = Offload()
    stages: tuple[Stage, ...] = ()
    """One a pipeline stage, first to last; empty for serving."""

    @model_validator(mode="after")
    def _experts_divide(self) -> Self:
        if (self.dp * self.cp) % self.ep:
            raise ValueError(f"ep {self.ep} must divide dp x cp = {self.dp * self.cp}")
        if self.stages and len(self.stages) != self.pp:
            raise ValueError(f"{len(self.stages)} stages are listed for pp {self.pp}")
        return self


class MemoryComponents(Frozen):
    """Device bytes of the worst stage's GPU, by what they hold."""

    weights: int = Field(default=0, ge=0)
    gradients: int = Field(default=0, ge=0)
    master_weights: int = Field(default=0, ge=0)
    optimizer: int = Field(default=0, ge=0)
    activations: int = Field(default=0, ge=0)
    logits: int = Field(default=0, ge=0)
    communication_buffers: int = Field(default=0, ge=0)
    framework: int = Field(default=0, ge=0)
    reserve: int = Field(default=0, ge=0)
    """Margin between the median prediction and the asked confidence."""
    kv_cache: int = Field(default=0, ge=0)


class Median(Frozen):
    """What tools should print of the worst stage's GPU: PyTorch's two peaks, and nvidia-smi's."""

    allocated: int
    reserved: int
    device: int


class Memory(Frozen):
    """Device memory of the worst stage's GPU, and what the layout keeps outside."""

    fits: Fits
    usable_bytes: int = Field(gt=0)
    """What a program can allocate on the GPU."""
    peak_bytes: int = Field(ge=0)
    """Worst stage's device use at the asked confidence: the sum of the components."""
    components: MemoryComponents
    host_bytes_per_node: int = Field(default=0, ge=0)
    nvme_bytes_per_node: int = Field(default=0, ge=0)
    median: Median | None = Field(default=None, exclude=True)
    """Not part of the JSON."""

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
    recompute: float = 0.0
    tensor_parallel: float = 0.0
    pipeline_bubble: float = 0.0
    pipeline_p2p: float = 0.0
    context_parallel: float = 0.0
    expert_parallel: float = 0.0
    data_parallel: float = 0.0
    offload: float = 0.0
    optimizer_step: float = 0.0
    other: float = 0.0


class Time(Frozen):
    """Speed: a training step, or for serving one decode iteration at the planned batch."""

    step_seconds: float = Field(gt=0)
    """The sum of the components."""
    components: TimeComponents
    steps: int | None = Field(default=None, ge=0)
    """Optimizer steps of the whole job; none where no amount of work was asked."""
    tokens_per_second_per_gpu: float = Field(ge=0)
    model_tflops_per_gpu: float = Field(ge=0)
    """Model TFLOP/s: no recompute counted, causal attention halved."""
    mfu: float = Field(ge=0)
    """model_tflops_per_gpu over the dense peak of the compute precision, 0 to 1."""
    interval90_seconds: tuple[float, float]
    """Step seconds, 5% and 95% quantile of comparable evidence."""

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        total = math.fsum(self.components.model_dump().values())
        if not math.isclose(total, self.step_seconds, rel_tol=RELATIVE):
            raise ValueError(f"time components add up to {total} s, step_seconds is {self.step_seconds}")
        low, high = self.interval90_seconds
        if low > high:
            raise ValueError(f"interval90_seconds must rise, got {low} to {high}")
        return self


class Assignment(Frozen):
    """One workload placed on hardware; what was not asked (`planner estimate`: price, duration) is none."""

    workload: str
    kind: Literal["training", "serving"]
    node: str
    gpu: str
    nodes: int = Field(gt=0)
    """Nodes in the layout."""
    gpus: int = Field(gt=0)
    """GPUs in the layout: tp x pp x cp x dp."""
    spare_nodes: int = Field(default=0, ge=0)
    """Nodes on top, paid for, that stand in for failed ones."""
    offer: str | None = None
    usd_per_node_hour: float | None = Field(default=None, ge=0)
    stack: str
    layout: Layout
    memory: Memory
    time: Time
    serving: Serving | None = None
    goodput: float | None = Field(default=None, gt=0, le=1)
    """Share of wall time that moves the job forward: what failures, checkpoints and restarts leave."""
    duration_days: float | None = Field(default=None, ge=0)
    """steps x step_seconds / goodput, in days: a whole number of microseconds, up."""
    cost_usd: float | None = Field(default=None, ge=0)
    energy_kwh: float | None = Field(default=None, ge=0)
    purchase: Bought | None = None
    """Of nodes that are bought; elsewhere the key is left out."""

    @model_serializer(mode="wrap")
    def _without_purchase(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out the purchase where there is none."""
        data: dict[str, Any] = write(self)
        if data.get("purchase") is None:
            data.pop("purchase", None)
        return data

    @model_validator(mode="after")
    def _counts_agree(self) -> Self:
        layout = self.layout
        product = layout.tp * layout.pp * layout.cp * layout.dp
        if product != self.gpus:
            raise ValueError(f"tp x pp x cp x dp = {product}, gpus is {self.gpus}")
        return self

    @model_validator(mode="after")
    def _duration_agrees(self) -> Self:
        if self.time.steps is None or self.goodput is None or self.duration_days is None:
            return self
        days = self.time.steps * self.time.step_seconds / self.goodput / SECONDS_PER_DAY
        # in the integers of the solver: of a job of milliseconds, the last microsecond is more than RELATIVE
        if not math.isclose(days, self.duration_days, rel_tol=RELATIVE, abs_tol=DURATION_QUANTUM / SECONDS_PER_DAY):
            raise ValueError(f"steps x step_seconds / goodput is {days} d, "
                             f"duration_days is {self.duration_days}")
        return self

    @model_validator(mode="after")
    def _rent_agrees(self) -> Self:
        if self.usd_per_node_hour is None or self.duration_days is None or self.cost_usd is None:
            return self
        rent = (self.nodes + self.spare_nodes) * self.usd_per_node_hour * 24 * self.duration_days
        if not math.isclose(rent, self.cost_usd, rel_tol=DIGITS, abs_tol=COST_QUANTUM):
            raise ValueError(f"rent of {self.nodes + self.spare_nodes} nodes is {rent:.2f} USD, "
                             f"cost_usd is {self.cost_usd:.2f}")
        return self


class Alternative(Assignment):
    """A next-best assignment, with the reason it lost."""

    why: str
    tied: bool = False
    """The difference to the plan is below the prediction's resolution."""

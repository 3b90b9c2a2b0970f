"""How the work is split over GPUs: all that a launch file needs of it, as `layout` of an assignment."""

from __future__ import annotations

from itertools import groupby
from typing import Literal, Self

from pydantic import Field, model_validator

from planner.yaml_io import Frozen

Schedule = Literal["1f1b", "gpipe", "zero-bubble", "dualpipe"]
ContextMethod = Literal["ring", "all-to-all", "all-gather"]


class RecomputeLayers(Frozen):
    """How many of a stage's layers keep everything, drop the cheap part, or drop all but their input."""

    none: int = Field(default=0, ge=0)
    """Layers that keep every activation."""
    selective: int = Field(default=0, ge=0)
    """Layers that drop what is cheap to compute again."""
    full: int = Field(default=0, ge=0)
    """Layers that drop all but their input."""


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
    """Share of the optimizer states."""
    parameters: float = Field(default=0.0, ge=0, le=1)
    """Share of the weights."""
    activations: float = Field(default=0.0, ge=0, le=1)
    """Share of the checkpoints of recomputed layers, always on the host."""
    to: Literal["none", "host", "nvme"] = "none"
    """Where optimizer states and weights are kept."""


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
    """Expert-parallel GPUs; ep x expert_tp divides tp x dp x cp."""
    dp: int = Field(gt=0)
    """Data-parallel copies (serving: replicas)."""
    shard: int = Field(gt=0)
    """Ranks over which ZeRO shards states."""
    zero: int = Field(ge=0, le=3)
    """ZeRO stage: 1 shards optimizer states, 2 gradients too, 3 weights too."""
    micro_batch: int = Field(gt=0)
    """Sequences in a micro-batch."""
    micro_batches: int = Field(gt=0)
    """Micro-batches per pipeline and step."""
    recompute: Literal["none", "selective", "full", "mixed"]
    """What every layer keeps for backward; `mixed` if layers differ (see stages)."""
    precision: str
    """Number format of matrix products."""
    offload: Offload = Offload()
    """What is kept outside the GPU."""
    stages: tuple[Stage, ...] = ()
    """The pipeline stages, first to last; empty for serving."""
    schedule: Schedule | None = None
    """Order of micro-batches in the pipeline; 1f1b with `vpp` above 1 is interleaved. None for serving."""
    sequence_parallel: bool | None = None
    """Whether norms and residuals are split along the sequence over the tensor-parallel GPUs. None for serving."""
    no_sync: bool | None = None
    """Whether gradients of micro-batches add up without a reduction in between. None for serving."""
    cp_method: ContextMethod | None = None
    """How context-parallel GPUs exchange: keys and values go round a ring, parts of the sequence are swapped for heads
    (Ulysses), or all keys and values are gathered. None where `cp` is 1."""
    expert_tp: int | None = Field(default=None, gt=0)
    """GPUs that split each expert. None for a model without experts."""

    @property
    def stored(self) -> str:
        """Format in which the weights of a service are stored: of fp16, which a GPU without bf16 runs, bf16."""
        return "bf16" if self.precision == "fp16" else self.precision

    @property
    def by_stage(self) -> str:
        """Layers of every stage that keep all, recompute selectively, and in full: 28/0/4*3 30/0/2."""
        runs = ((word, len([*alike])) for word, alike in groupby(
            f"{kept.none}/{kept.selective}/{kept.full}" for kept in (stage.recompute_layers for stage in self.stages)))
        return " ".join(word if count == 1 else f"{word}*{count}" for word, count in runs)

    @property
    def in_full(self) -> dict[str, str]:
        """The layout of a training job as `--layout` states all of it, so that `planner estimate` says of it what its
        plan says.
        """
        chosen = {"schedule": self.schedule or "1f1b", "no_sync": str(int(bool(self.no_sync)))}
        split = {"sp": str(int(bool(self.sequence_parallel)))} if self.tp > 1 else {}
        experts = {"expert_tp": str(self.expert_tp)} if self.expert_tp else {}
        alike = self.recompute != "mixed" and len({stage.layers for stage in self.stages}) == 1
        return {**self.stated, **chosen, **split, **experts, **({} if alike else {"stages": self.by_stage})}

    @property
    def stated(self) -> dict[str, str]:
        """The layout as `--layout` states one of training; recompute that differs by layer is left out."""
        axes = {"tp": self.tp, "pp": self.pp, "vpp": self.vpp, "cp": self.cp, "ep": self.ep, "dp": self.dp,
                "mbs": self.micro_batch, "zero": self.zero, "shard": self.shard,
                "offload_optimizer": self.offload.optimizer, "offload_parameters": self.offload.parameters,
                "offload_activations": self.offload.activations}
        where = {} if self.offload.to == "none" else {"offload_to": self.offload.to}
        kept = {} if self.recompute == "mixed" else {"recompute": self.recompute}
        return {key: f"{value:g}" for key, value in axes.items()} | where | kept

    @model_validator(mode="after")
    def _experts_divide(self) -> Self:
        ranks, group = self.tp * self.dp * self.cp, self.ep * (self.expert_tp or self.tp)
        if ranks % group:
            raise ValueError(f"ep x expert_tp = {group} must divide tp x dp x cp = {ranks}")
        if self.stages and len(self.stages) != self.pp:
            raise ValueError(f"{len(self.stages)} stages are listed for pp {self.pp}")
        return self

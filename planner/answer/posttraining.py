"""A job of reinforcement learning on its GPUs: who has which, and the moments of a step."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from planner.answer.placement import NodesOfKind, Placement
from planner.answer.show_as import ShowAs
from planner.units import plural, show_bytes, show_seconds
from planner.yaml_io import Frozen, absent


class RlPhase(Frozen):
    """One phase of a step, at its moment."""

    phase: str
    """generation, reward, log_probabilities, reference, values, critic_update, actor_update, offload, synchronization.
    """
    seconds: float = Field(ge=0)
    """Its own seconds; exposed ones are in time.components."""
    on: Literal["trainer", "rollouts", "all"]
    """Whose GPUs."""
    gpu_bytes: int = Field(ge=0)
    """Of the fullest GPU, at the asked confidence where the trainer works."""
    parts: dict[str, int]
    """Bytes by what they hold."""

    @property
    def label(self) -> str:
        """What the phase is called."""
        return self.phase.replace("_", " ")

    def __str__(self) -> str:
        """Return seconds, bytes, and the largest part."""
        largest = max(self.parts, key=lambda name: self.parts[name], default="")
        most = f", most of it {largest}" if len(self.parts) > 1 else f", {largest}" if largest else ""
        return f"{show_seconds(self.seconds)}, {show_bytes(self.gpu_bytes)} of a GPU{most}"


class RlRollouts(Frozen):
    """The engine that draws answers."""

    engine: str
    """Inference engine."""
    node: str
    """Node type, by its catalog name."""
    gpu: str
    """GPU, by its catalog name."""
    gpus: int = Field(gt=0)
    """GPUs of all replicas: those of the trainer where they are shared."""
    nodes: int = Field(gt=0)
    """Nodes that they are on."""
    replicas: int = Field(gt=0)
    """Replicas that share out the prompts."""
    tp: int = Field(gt=0)
    """Tensor-parallel GPUs of a replica."""
    pp: int = Field(gt=0)
    """Pipeline stages of a replica."""
    ep: int = Field(gt=0)
    """Expert-parallel GPUs of a replica."""
    dp: int = Field(gt=0)
    """Copies of attention of a replica."""
    memory_fraction: float = Field(gt=0, le=1)
    """Of a GPU's memory (gpu_memory_utilization)."""
    concurrency: int = Field(gt=0)
    """Answers that a replica writes at once, at most."""
    longest_tokens: int = Field(gt=0)
    """Tokens of the longest answer of a step, by which generation ends."""
    utilization: float = Field(ge=0, le=1)
    """Share of the step in which the rollouts work."""

    @property
    def degrees(self) -> str:
        """The degrees of parallelism of a replica that are above one."""
        return " ".join(f"{name} {degree}" for name, degree in (
            ("TP", self.tp), ("PP", self.pp), ("EP", self.ep), ("attention DP", self.dp)) if degree > 1)

    def __str__(self) -> str:
        """Return replicas, layout and place."""
        degrees = f", {self.degrees}" if self.degrees else ""
        return (f"{plural(self.replicas, 'replica')} of {self.engine}{degrees}, up to "
                f"{self.concurrency:,} answers each at once, {self.memory_fraction:.0%} of the memory")


class PostTrainingAssignment(Placement):
    """A job of reinforcement learning on its GPUs; `layout` is the trainer's."""

    kind: Literal["posttraining"] = "posttraining"
    """Post-training."""
    serving: None = None
    """Always none."""
    tuning: Annotated[Literal["full", "lora", "qlora"], ShowAs("trains", "layout")]
    """What trains."""
    framework: Annotated[str, ShowAs("framework", "layout")]
    """Of reinforcement learning; `stack` is its trainer's."""
    placement: Annotated[Literal["colocated", "disaggregated"], ShowAs("placement", "layout")]
    """Whether trainer and rollouts share their GPUs."""
    policy_lag: int = Field(ge=0)
    """Steps that answers may lie behind the policy."""
    trainer_gpus: Annotated[int, ShowAs("GPUs of the trainer", "hardware")] = Field(gt=0)
    """GPUs that train."""
    swapped: bool
    """Whether the trainer's weights and states wait on the host while answers are drawn."""
    rollouts: Annotated[RlRollouts, ShowAs("rollouts", "layout")]
    """Who draws answers."""
    phases: Annotated[tuple[RlPhase, ...], ShowAs("phase", "performance")]
    """The phases of a step, one after the other."""
    prompts: int = Field(gt=0)
    """Prompts of a step."""
    samples_per_prompt: int = Field(gt=0)
    """Answers to each."""
    answers_per_second: Annotated[float, ShowAs("answers/s", "performance")] = Field(gt=0)
    """Answers drawn and learned from, of all GPUs."""
    micro_batch_tokens: int | None = Field(default=None, ge=1)
    """Tokens that a micro-batch of one model copy holds at most, where sequences are packed."""
    trainer_utilization: float = Field(ge=0, le=1)
    """Share of the step in which the trainer works."""
    rollouts_usable_bytes: int | None = Field(default=None, exclude_if=absent)
    """What a program can allocate on the rollouts' GPU, where that is another one."""
    duration_interval90_days: tuple[float, float] | None = Field(default=None, exclude_if=absent)
    """5% and 95% quantile of the run's days, by the error of the step alone; left out without a duration."""

    @property
    def sides(self) -> tuple[tuple[str, str], ...]:
        """Who trains and who draws answers, each with its fullest GPU, where they have GPUs of their own."""
        if self.placement == "colocated":
            return ()
        usable = self.memory.usable_bytes
        there = usable if self.rollouts_usable_bytes is None else self.rollouts_usable_bytes
        return ("trainer", self._fullest("trainer", usable)), ("rollouts", self._fullest("rollouts", there))

    def _fullest(self, on: Literal["trainer", "rollouts"], usable: int) -> str:
        """Return the bytes of a GPU at the fullest phase of a side, and what holds them."""
        phase = max((each for each in self.phases if each.on == on), key=lambda each: each.gpu_bytes)
        parts = ", ".join(f"{name} {show_bytes(size)}" for name, size in sorted(
            phase.parts.items(), key=lambda part: -part[1]) if size)
        return f"{show_bytes(phase.gpu_bytes)} of {show_bytes(usable)} a GPU, at its fullest ({phase.label}): {parts}"

    @property
    def kinds_of_nodes(self) -> tuple[NodesOfKind, ...]:
        """The trainer's, and where they are others those of the rollouts."""
        there = self.rollouts
        if there.node == self.node:
            return super().kinds_of_nodes
        return (NodesOfKind(self.nodes - there.nodes, self.node, self.gpus - there.gpus, self.gpu),
                NodesOfKind(there.nodes, there.node, there.gpus, there.gpu))

    @model_validator(mode="after")
    def _counts_agree(self) -> Self:
        layout, apart = self.layout, self.rollouts.gpus if self.placement == "disaggregated" else 0
        product = layout.tp * layout.pp * layout.cp * layout.dp
        if product != self.trainer_gpus or product + apart != self.gpus:
            raise ValueError(f"tp x pp x cp x dp = {product}, trainer_gpus is {self.trainer_gpus} and gpus {self.gpus}")
        return self

"""Reinforcement learning on language models: its frameworks, and what a step takes beside passes and decoding."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.catalog.diffusion_law import Residue
from planner.catalog.ranges import Factor, Held, Share, Width
from planner.catalog.sourced import Sourced
from planner.units import Bytes, Seconds
from planner.yaml_io import Frozen

TrainerKind = Literal["fsdp", "megatron", "deepspeed"]
ModelKind = Literal["dense", "mixture"]
PlacedAs = Literal["colocated", "disaggregated"]
Rate = Annotated[float, Field(ge=1e3, le=1e15)]
"""Bytes/s."""


class RlFramework(Frozen):
    """A framework: who trains, who generates, and its defaults."""

    aliases: tuple[str, ...] = ()
    trainers: dict[TrainerKind, str] = Field(min_length=1)
    """The training stack that each of its trainers is."""
    engines: tuple[str, ...] = Field(min_length=1)
    """Inference engines, the default first."""
    engine_axes: tuple[Literal["pp", "ep", "dp"], ...] = ("pp", "ep", "dp")
    """By what its replicas of the rollouts may be split beside tensor parallelism."""
    placements: tuple[PlacedAs, ...] = Field(min_length=1)
    """How trainer and rollouts may share GPUs."""
    memory_fraction: Share
    """Of a GPU's memory, what the engine takes beside a trainer by default (gpu_memory_utilization)."""
    packed: int = Field(ge=1, le=10**7)
    """Tokens of a micro-batch of one model copy."""
    loss: Literal["plain", "chunked", "fused"] = "chunked"
    """How log-probabilities are taken of logits."""
    rollout_format: Literal["bf16", "fp8", "mxfp8"] = "bf16"
    """Of the weights that answers are drawn with."""
    frozen: Held = 2.0
    """Bytes of a frozen weight under adapters."""
    written: Literal["first", "all"] | None = None
    """Whether the trainer's first process, or each of them its share, brings new weights to files that rollouts read:
    from the GPU to pageable memory, and from there to the file; none sends them otherwise."""
    adapter_sync: Seconds | None = None
    """Gathering the adapters of one layer on their way to the engine; none merges them and sends all weights."""
    reference: bool = True
    """Whether a KL reference runs by default."""
    recomputes: bool = True
    """Whether the trainer computes the log-probabilities of answers again, instead of taking the engine's."""
    eager: bool = False
    """Whether the engine runs without CUDA graphs by default."""
    release: str | None = Field(default=None, pattern=r"^\d{1,4}(\.\d{1,4}){0,3}$")
    """Release of its default engine; none is the newest."""
    sleeps: bool = True
    """Whether the engine frees its memory while the trainer works (sleep mode)."""
    pace: Factor = 1.0
    """Measured over counted seconds of the trainer's passes."""
    in_process: bool = False
    """Whether all roles run in the trainer's processes, so that nothing is dispatched between phases."""
    together: bool = False
    """Whether answers are drawn in micro-batches as they are trained on, one batch after the other."""
    shares: bool = False
    """Whether an engine on the trainer's GPUs draws with the weights that train, and holds none of its own."""
    quantized: Literal["shared", "merged"] | None = None
    """Whether adapters may train on weights of four bits: the engine draws with the same weights and adapters, or with
    16-bit weights into which adapters are merged; none does not."""
    most_gpus: int | None = Field(default=None, ge=1, le=10**6)
    """Most GPUs that it runs on; none sets no bound."""
    swaps: bool = False
    """Whether the trainer's weights and states wait on the host between updates by default."""
    stays: bool = True
    """Whether they can stay on the GPU while an engine draws there."""
    most_lag: int = Field(default=0, ge=0, le=1000)
    """Steps that answers may lie behind the policy at most."""
    sync: Rate
    """Bytes/s at which each rollout GPU takes new weights from trainers elsewhere."""
    broadcast: Rate | None = None
    """Bytes/s at which all weights go to all rollout GPUs elsewhere together; none sends each its own, at `sync`."""
    reshard: Rate
    """The same from a trainer on the same GPU."""
    across: Seconds = 0.0
    """Host time of a decode step that kernels do not hide, where the engine's replica lies on several machines."""


class FrameworkRuns(Frozen):
    """Published runs of one framework."""

    rows: int = Field(ge=1, le=10**6)
    error: float = Field(ge=0, le=10)
    """Median of the relative error."""
    sources: int = Field(default=1, ge=1, le=10**6)
    kinds: frozenset[ModelKind] = Field(min_length=1)
    """Of which models."""
    whole: bool = True
    """Whether steps are among them, or micro-batches of the trainer alone."""


class FrameworkResidue(Residue):
    """How far runs lie from what is predicted: of all, and which runs of each framework there are."""

    by: dict[str, FrameworkRuns] = Field(min_length=1)

    def unlike(self, framework: str, kind: ModelKind) -> tuple[str, ...]:
        """Return by what no run of a framework is like the question."""
        runs = self.by.get(framework)
        if runs is None:
            return ("stack",)
        return (*(("kind",) if kind not in runs.kinds else ()), *(("whole",) if not runs.whole else ()))


class PostTrainingLaw(Sourced):
    """Frameworks by name, and the constants that they share."""

    frameworks: dict[str, RlFramework] = Field(min_length=1)
    usual: str
    """The framework that is taken where none is named."""
    spread: Factor
    """Standard deviation over mean of answers whose spread is not told."""
    prompts_most: int = Field(ge=1, le=10**7)
    """Prompts of a step; more of them, where no amount of work is told, are a data set."""
    longest: Share
    """Share of the answers that the longest allowed covers, where it is not told."""
    endless: Share | Literal[0]
    """Share of the answers that do not end by themselves, and run to the longest allowed."""
    eager_layer: Seconds
    """Host time of an engine for a layer and decode step without CUDA graphs."""
    eager_sequence: Seconds
    """What a sequence and decode step takes there beside what the engine's release takes in a service."""
    eager_adapters: Factor
    """Launches of a layer's adapters, where the engine draws with them beside the weights, over those of the layer."""
    phase: Seconds
    """Dispatch and collection of one phase."""
    wake: Seconds
    """Waking the engine and putting it to sleep."""
    generation: Factor
    """Measured over counted seconds of generation."""
    forward: Factor
    """The same of passes for log-probabilities."""
    update: Factor
    """The same of updates."""
    pageable: Rate
    """Bytes/s of one GPU's copies to and from pageable host memory over PCIe."""
    coherent: Rate
    """Bytes/s that a link to the host has which is no PCIe, and reads its memory as it is, pageable or not."""
    coherent_share: Share
    """Share of such a link that copies reach."""
    asleep: Bytes
    """What a sleeping engine keeps of a GPU."""
    process: Bytes
    """Host memory of the processes of one GPU."""
    batch_token: Annotated[float, Field(ge=0, le=1e6)]
    """Host bytes, on the node that hands a step's answers on, of each token that an answer is padded to."""
    step: FrameworkResidue
    phases: FrameworkResidue
    memory: FrameworkResidue
    unseen: Factor
    """Spread of a framework, or a kind of model, without runs over that of those with some."""

    def eager(self, framework: RlFramework, *, adapted: bool) -> tuple[float, float]:
        """Return host seconds of a decode step for each layer and each sequence, beside those of CUDA graphs.

        Where all roles run in one process, nothing schedules sequences.
        """
        if not framework.eager:
            return 0.0, 0.0
        if framework.in_process:
            return self.eager_layer, 0.0
        if not (adapted and framework.adapter_sync is not None):
            return self.eager_layer, self.eager_sequence
        return self.eager_layer * (1 + self.eager_adapters), self.eager_sequence

    def copied(self, link: float) -> float:
        """Return bytes/s of a GPU's copies to and from host memory over a link of so many."""
        return self.coherent_share * link if link >= self.coherent else self.pageable

    def widened(self, residue: FrameworkResidue, framework: str, kind: ModelKind) -> float:
        """Return by what the spread of runs is multiplied for a question of this framework and kind of model."""
        return self.unseen if {"stack", "kind"} & set(residue.unlike(framework, kind)) else 1.0

    def framework(self, name: str) -> str | None:
        """Return a framework's name by name or alias; none where there is none."""
        said = name.lower()
        return next((known for known, each in self.frameworks.items() if said in (known, *each.aliases)), None)


class PostTrainingRuns(Sourced):
    """What rows of published runs leave open. Lengths in tokens."""

    prompt: Width
    """Mean prompt, where only the answer is told."""
    input: Width
    """Longest prompt, where nothing is told."""
    output: Width
    """Longest answer, where nothing is told."""
    samples: Width
    """Answers to a prompt."""
    prompts: Width
    """Prompts of a step."""
    spread: Factor
    """Standard deviation over mean of the answers."""
    answer: Share
    """Mean answer over the longest, where only that is told."""
    guessed: Factor
    """Spread of runs whose answers are taken to be so long over that of those that tell it."""

"""A job of reinforcement learning as emitters read it: axes of the trainer, of the rollouts and of a step, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from planner.answer.assignment import Assignment, PostTrainingAssignment
from planner.catalog.architecture import Model
from planner.catalog.load import Catalog
from planner.catalog.posttraining import RlFramework, TrainerKind
from planner.catalog.releases import Target
from planner.errors import InputError
from planner.launch.axes import No, SayOf, Settings
from planner.launch.hosts import host, on_hosts
from planner.launch.work import STEPS
from planner.scenario.portfolio_job import AnyWork
from planner.scenario.posttraining import PostTraining

PROMPTS = 0.999
"""Of all prompts, those that are let in whole."""
ROUNDED = 3
"""Digits of a share of memory."""


@dataclass(frozen=True, slots=True)
class Reinforced:
    """One job of reinforcement learning, placed: what an emitter turns into files."""

    placed: PostTrainingAssignment
    asked: PostTraining
    model: Model
    node_gpus: int
    framework: RlFramework
    target: str
    release: Target

    @property
    def trainer(self) -> TrainerKind:
        """What trains: fsdp, megatron or deepspeed."""
        return next(kind for kind, stack in self.framework.trainers.items() if stack == self.placed.stack)

    @property
    def colocated(self) -> bool:
        """Whether trainer and rollouts share their GPUs."""
        return self.placed.placement == "colocated"

    @property
    def longest(self) -> int:
        """Tokens of a prompt and its answer."""
        assert self.asked.max_model_len is not None
        return self.asked.max_model_len

    @property
    def prompt(self) -> int:
        """Tokens of the longest prompt that is let in; the rest is left to its answer."""
        return min(round(self.asked.input.quantile(PROMPTS)), self.longest // 2)

    @property
    def packed(self) -> int:
        """Tokens of a micro-batch on each GPU of a model copy's context; the longest sequence fits."""
        return -(-max(self.placed.micro_batch_tokens or self.framework.packed, self.longest) // self.placed.layout.cp)

    @property
    def steps(self) -> int:
        """Of the whole run."""
        return self.asked.steps or STEPS

    def has(self, phase: str) -> bool:
        """Say whether a step has a phase."""
        return any(one.phase == phase for one in self.placed.phases)

    def value(self, axis: str) -> object:
        """Return the value of an axis, or of a choice of the question."""
        return VALUES[axis](self)


def shaped(gpus: int, node: int) -> tuple[int, int] | None:
    """Return nodes and GPUs of each for so many, whole nodes or a part of one; none where nodes would differ."""
    return (1, gpus) if gpus <= node else (gpus // node, node) if gpus % node == 0 else None


def all_or_none(say: Callable[[Reinforced, bool], Settings | No]) -> SayOf[Reinforced]:
    """Return what to say of the optimizer states where all are on the host, or none; `say` is told which."""
    def held(work: Reinforced) -> Settings | No:
        share = work.placed.layout.offload.optimizer
        if share not in (0, 1):
            return No(f"{share:.0%} of the optimizer states on the host (all or none)", {"offload_optimizer": 1})
        return say(work, share == 1)
    return held


VALUES: Mapping[str, Callable[[Reinforced], object]] = {
    "trainer": lambda w: w.trainer,
    "trainer_gpus": lambda w: w.placed.trainer_gpus,
    "tp": lambda w: w.placed.layout.tp,
    "sp": lambda w: bool(w.placed.layout.sequence_parallel),
    "pp": lambda w: w.placed.layout.pp,
    "cp": lambda w: w.placed.layout.cp,
    "ep": lambda w: w.placed.layout.ep,
    "expert_tp": lambda w: w.placed.layout.expert_tp,
    "zero": lambda w: w.placed.layout.zero,
    "recompute": lambda w: w.placed.layout.recompute,
    "offload": lambda w: w.placed.layout.offload.optimizer,
    "swapped": lambda w: w.placed.swapped,
    "placement": lambda w: w.placed.placement,
    "policy_lag": lambda w: w.placed.policy_lag,
    "method": lambda w: w.placed.method,
    "lora_rank": lambda w: w.asked.rank,
    "quantized": lambda w: w.asked.tuning == "qlora",
    "prompts": lambda w: w.placed.prompts,
    "samples_per_prompt": lambda w: w.placed.samples_per_prompt,
    "max_model_len": lambda w: w.longest,
    "packed": lambda w: w.packed,
    "reference": lambda w: w.has("reference"),
    "reward": lambda w: w.asked.reward.by,
    "rollouts_node": lambda w: w.placed.rollouts.node == w.placed.node,
    "engine": lambda w: w.placed.rollouts.engine,
    "rollout_gpus": lambda w: w.placed.rollouts.gpus,
    "rollout_tp": lambda w: w.placed.rollouts.tp,
    "rollout_pp": lambda w: w.placed.rollouts.pp,
    "rollout_ep": lambda w: w.placed.rollouts.ep,
    "rollout_dp": lambda w: w.placed.rollouts.dp,
    "memory_fraction": lambda w: round(w.placed.rollouts.memory_fraction, ROUNDED),
    "concurrency": lambda w: w.placed.rollouts.concurrency,
}
"""Every axis of such a job, and every choice of the question that a framework has to be told."""


def reinforced_of(placed: Assignment, asked: AnyWork | None, catalog: Catalog, target: str) -> Reinforced:
    """Return what an emitter reads of an assignment. Raises InputError."""
    if not isinstance(placed, PostTrainingAssignment) or placed.model is None:
        raise InputError(f"{target} is for reinforcement learning, and the plan is of {placed.method or placed.kind}")
    if not isinstance(asked, PostTraining):
        raise InputError("an estimate does not say how long prompts and answers may be: planner plan ... --launch does")
    return Reinforced(placed=on_hosts(placed, catalog), asked=asked, model=catalog.model(placed.model),
                      node_gpus=host(catalog, placed.node).gpus, target=target, release=catalog.releases.target(target),
                      framework=catalog.posttraining_law.frameworks[placed.framework])

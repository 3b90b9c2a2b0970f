"""One way to run a step of reinforcement learning: who has which GPUs, the layouts, and what a step takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from planner.jobs.posttraining.question import RlQuestion
from planner.layouts.table import Amount
from planner.physics.posttraining.generation import Drawn
from planner.physics.posttraining.passes import Trained, TrainedRows
from planner.physics.posttraining.step import (
    P,
    RlModels,
    RlStep,
    RoleGpus,
    exposed,
    host_bytes,
    moments,
    phase_seconds,
    updated_there,
)
from planner.physics.training.parameters import checkpoint_bytes


@dataclass(frozen=True, slots=True)
class Rollouts:
    """Replicas of the engine: tp, pp, ep and dp of one, and how many."""

    tp: int
    pp: int
    ep: int
    dp: int
    replicas: int
    drawn: Drawn
    node: str


@dataclass(frozen=True)
class RlWay:
    """One way: who has which GPUs, layouts, and what a step takes. Bytes of one GPU, seconds of a step."""

    question: RlQuestion
    candidate: int
    rollouts_on: int
    """Number of the rollouts' hardware: the trainer's where they share GPUs."""
    placed: RoleGpus
    row: int
    """Of the trainer's layouts on its GPUs."""
    layout: Mapping[str, float]
    rollouts: Rollouts
    step: float
    """Seconds of a step at the median."""
    peak: float
    """Bytes of the fullest GPU, at the confidence of its trainer."""
    usable: float
    """Bytes of a GPU that the fullest phase may take."""
    host: float
    """Bytes of one node's host memory."""
    host_usable: float

    @property
    def framework(self) -> str:
        """The framework."""
        return self.question.name

    @property
    def engine(self) -> str:
        """The engine of the rollouts."""
        return self.question.engine

    @cached_property
    def policy(self) -> Trained:
        """The policy in its layout, in full."""
        return self._rows[0].one(self.row)

    @cached_property
    def models(self) -> RlModels[Trained]:
        """The models beside it."""
        policy, models = self._rows
        return models.each(lambda rows: self.policy if rows is policy else rows.one(self.row))

    @property
    def _rows(self) -> tuple[TrainedRows, RlModels[TrainedRows]]:
        found = self.question.trained(self.placed.trainer)
        assert found is not None
        return found

    @property
    def saved(self) -> float:
        """Bytes of a checkpoint of what trains, wherever its states are."""
        policy, models = self._rows
        trainers = [each.trainer for each in (policy, models.critic) if each]
        return sum(checkpoint_bytes(each.stack, each.typical.precisions[0], each.typical) for each in trainers)

    @cached_property
    def made(self) -> RlStep:
        """The step by phase."""
        here = self.question.candidates[self.question.at].node.name
        return step_of(self.question, self.placed, self.policy, self.models, self.rollouts.drawn,
                       self.rollouts.replicas, elsewhere=self.rollouts.node != here)

    @property
    def gpus(self) -> int:
        """All GPUs at work."""
        return self.placed.gpus

    @property
    def lacking(self) -> float:
        """Bytes that it misses memory by, of a GPU or of a GPU's share of the host; below zero it fits."""
        return max(self.peak - self.usable, self.host - self.host_usable)

    @property
    def rank(self) -> tuple[float, ...]:
        """What is faster comes first, then what is simpler."""
        row = self.layout
        # one that hides behind the other takes as long, but for the order in which it is added up
        return (round(self.step, 6), not self.placed.colocated, self.placed.swaps, row.get("offload", 0.0),
                row.get("pp", 1), row.get("tp", 1), row.get("cp", 1), row.get("ep", 1), self.rollouts.pp,
                self.rollouts.tp)


def on_node(question: RlQuestion, placed: RoleGpus) -> int:
    """Return how many GPUs of the trainer share a host."""
    return min(question.candidates[question.at].node.gpus, placed.trainer)


def batch_bytes(question: RlQuestion) -> float:
    """Return the bytes of a step's answers on the node that hands them on, padded to the longest that is allowed."""
    tokens = question.asked.answers * (question.asked.max_model_len or 0)
    return 0.0 if question.framework.in_process else question.law.batch_token * tokens


def host_of(question: RlQuestion, placed: RoleGpus, made: RlStep, policy: P, models: RlModels[P]) -> Amount:
    """Return the bytes of the fullest node's host."""
    return made.host * on_node(question, placed) + updated_there(policy, models) + batch_bytes(question)


def step_of(question: RlQuestion, placed: RoleGpus, policy: P, models: RlModels[P], drawn: Drawn, replicas: Amount,
            *, elsewhere: bool = False) -> RlStep:
    """Return a step by phase, of one way or of many; `elsewhere` says that rollouts are on other hardware."""
    law, framework = question.law, question.framework
    seconds = phase_seconds(law, framework, question.batch, placed, policy, models, drawn, replicas,
                            question.asked.reward.seconds,
                            law.copied(question.candidates[question.at].gpu.pcie_bandwidth))
    return RlStep(moments(law, framework, placed, seconds, policy, models, drawn), exposed(seconds, placed),
                  host_bytes(law, framework, placed, policy, models, drawn), elsewhere)

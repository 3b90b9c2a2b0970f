"""Seconds and bytes of a step from those of its roles: who works when, what is resident then, and what the host holds.

Colocated, phases follow each other and a step is their sum: the engine draws while the trainer waits (its states may
wait on the host), then it sleeps. Disaggregated, trainer and rollouts have GPUs of their own; with answers that may lie
a step behind the policy, a step is the longer of the two, and what is left of drawing is a wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Generic, TypeVar

import numpy as np

from planner.catalog.posttraining import PostTrainingLaw, RlFramework
from planner.layouts.table import Amount
from planner.physics.posttraining.generation import Drawn, RolloutBatch
from planner.physics.posttraining.passes import Passes

P = TypeVar("P", bound=Passes)
Q = TypeVar("Q", bound=Passes)

WAITING = ("generation", "reward")
"""Phases of the rollouts; the others are the trainer's."""
COPIES = 2
"""Of weights that are written: from the GPU to memory, and from there to a file."""


@dataclass(frozen=True, slots=True)
class RlModels(Generic[P]):
    """Models of a step beside the policy, each run in the trainer's layout; none where there is none."""

    reference: P | None = None
    critic: P | None = None
    reward: P | None = None


    def each(self, how: Callable[[P], Q]) -> RlModels[Q]:
        """Return what `how` makes of every model there is."""
        return RlModels(*(None if model is None else how(model) for model in (
            self.reference, self.critic, self.reward)))


@dataclass(frozen=True, slots=True)
class RoleGpus:
    """Who has which GPUs: of rollouts zero where they share those of the trainer."""

    trainer: int
    rollouts: int
    lag: int
    swaps: bool
    """Whether the trainer's states wait on the host while answers are drawn."""

    @property
    def colocated(self) -> bool:
        """Whether trainer and rollouts share GPUs."""
        return not self.rollouts

    @property
    def gpus(self) -> int:
        """All GPUs."""
        return self.trainer + self.rollouts


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase: its own seconds, and bytes of the fullest GPU at its moment by what they hold."""

    name: str
    seconds: Amount
    gpu: Mapping[str, Amount]

    @property
    def bytes(self) -> Amount:
        """Bytes of the GPU in all."""
        return total(self.gpu.values())


@dataclass(frozen=True, slots=True)
class RlStep:
    """A step: its phases, exposed seconds by phase that add up, and bytes of one GPU's share of the host by holder."""

    phases: tuple[Phase, ...]
    exposed: Mapping[str, Amount]
    held: Mapping[str, Amount]
    elsewhere: bool = False
    """Whether the rollouts are on other hardware, whose memory is no part of the trainer's."""

    @property
    def seconds(self) -> Amount:
        """The whole step."""
        return total(self.exposed.values())

    @property
    def host(self) -> Amount:
        """Bytes of one GPU's share of the host."""
        return total(self.held.values())

    @property
    def peak(self) -> Amount:
        """Bytes of the fullest GPU, of those that train where the others are of another kind."""
        return largest([phase.bytes for phase in self._here])

    @property
    def fullest(self) -> Phase:
        """The phase whose GPU is fullest, of one way."""
        return max(self._here, key=lambda phase: float(phase.bytes))

    @property
    def _here(self) -> list[Phase]:
        return [phase for phase in self.phases if not (self.elsewhere and phase.name == "generation")]


def total(parts: Iterable[Amount]) -> Amount:
    """Return the sum of parts."""
    return sum(parts, 0.0)


def largest(sizes: Sequence[Amount]) -> Amount:
    """Return the largest."""
    most: Amount = reduce(np.maximum, sizes)
    return most


def exposed(seconds: Mapping[str, Amount], placed: RoleGpus) -> dict[str, Amount]:
    """Return what of each phase nothing hides."""
    if placed.colocated or not placed.lag:
        return dict(seconds)
    worked = total(spent for name, spent in seconds.items() if name not in WAITING and name != "synchronization")
    waited = total(seconds.get(name, 0.0) for name in WAITING)
    return {**seconds, "reward": 0.0, "generation": np.maximum(0.0, waited - worked)}


def written(law: PostTrainingLaw, framework: RlFramework, policy: Passes, processes: int) -> float:
    """Return the seconds in which 16-bit weights are copied to the host and to a file; zero where they are sent."""
    if framework.written is None or policy.adapted:
        return 0.0
    return COPIES * 2 * policy.parameters / law.pageable / (processes if framework.written == "all" else 1)


def phase_seconds(law: PostTrainingLaw, framework: RlFramework, batch: RolloutBatch, placed: RoleGpus, policy: Passes,
                  models: RlModels[P], drawn: Drawn, replicas: Amount, remote: float, copied: float
                  ) -> dict[str, Amount]:
    """Return the own seconds of every phase.

    remote: seconds that rewards take elsewhere. copied: bytes/s of a GPU's copies to and from the host.
    """
    each = batch.sequences * batch.answers.mean / replicas
    phase, wake = (0.0, 0.0) if framework.in_process else (law.phase, law.wake)
    sequence = law.eager(framework, adapted=policy.adapted)[1]
    draw = law.generation * (drawn.seconds + sequence * each) + phase

    def fetched(size: Amount) -> Amount:
        return size / copied if placed.swaps else 0.0

    def forward(model: Passes) -> Amount:
        return framework.pace * law.forward * model.forward_seconds + phase + fetched(model.held("weights"))

    def update(model: Passes) -> Amount:
        return framework.pace * law.update * model.update_seconds + phase + fetched(2 * model.states)

    seconds: dict[str, Amount] = {"generation": draw + (2 * wake if placed.colocated else 0.0)}
    if models.reward is not None:
        seconds["reward"] = forward(models.reward)
    elif remote:
        seconds["reward"] = remote
    if framework.recomputes:
        seconds["log_probabilities"] = forward(policy)
    if models.reference is not None:
        seconds["reference"] = forward(models.reference)
    if models.critic is not None:
        seconds |= {"values": forward(models.critic), "critic_update": update(models.critic)}
    seconds["actor_update"] = update(policy)
    seconds["synchronization"] = phase + (0.0 if placed.colocated and framework.shares
                                          else _copied(law, framework, placed, policy, drawn))
    return seconds


def _copied(law: PostTrainingLaw, framework: RlFramework, placed: RoleGpus, policy: Passes, drawn: Drawn) -> Amount:
    """Return the seconds in which new weights reach the engine."""
    if policy.adapted and framework.adapter_sync is not None:
        return framework.adapter_sync * policy.layers
    if framework.broadcast is not None and not placed.colocated:
        return 2 * policy.parameters / framework.broadcast
    rate = framework.reshard if placed.colocated else framework.sync
    return drawn.weights / rate + written(law, framework, policy, placed.trainer)


def _frozen(policy: Passes, models: RlModels[P]) -> list[Amount]:
    """Return the bytes of each model that only reads; the reference of adapters is the policy without them."""
    return [other.held("weights") for other in (None if policy.adapted else models.reference, models.reward) if other]


def moments(law: PostTrainingLaw, framework: RlFramework, placed: RoleGpus, seconds: Mapping[str, Amount],
            policy: Passes, models: RlModels[P], drawn: Drawn) -> tuple[Phase, ...]:
    """Return every phase with the bytes of its GPU: those of the rollouts while they draw, else the trainer's."""
    # the trainer's process is there whatever it does
    context, frozen = policy.held("framework"), _frozen(policy, models)
    waiting = 0.0 if placed.swaps else total(frozen)
    states = {"policy": policy.states, **({"critic": models.critic.states} if models.critic else {})}
    kept: dict[str, Amount] = dict.fromkeys(states, 0.0) if placed.swaps else states
    engine = drawn.weights + drawn.cache + drawn.work
    asleep = 0.0 if not placed.colocated else law.asleep if framework.sleeps else engine
    made = list[Phase]()
    for name, spent in seconds.items():
        gpu: dict[str, Amount]
        if name == "generation":
            beside = {**kept, "frozen models": waiting, "trainer's context": context} if placed.colocated else {}
            if placed.colocated and framework.shares and not placed.swaps:
                beside["policy"] = policy.states - policy.held("weights")
            gpu = {"rollout weights": drawn.weights, "cache": drawn.cache, "engine": drawn.work, **beside}
        else:
            gpu = {**kept, "frozen models": waiting, "engine": asleep, "work": context}
            if name == "actor_update":
                gpu |= {"policy": policy.states, "work": policy.working}
            elif name == "critic_update" and models.critic:
                gpu |= {"critic": models.critic.states, "work": models.critic.working}
            elif name == "log_probabilities" and placed.swaps:
                gpu |= {"policy": policy.held("weights")}
            elif name in ("reference", "reward") and placed.swaps:
                gpu |= {"frozen models": largest([0.0, *frozen])}
            elif name == "values" and models.critic and placed.swaps:
                gpu |= {"critic": models.critic.held("weights")}
            elif name == "synchronization" and placed.swaps:
                gpu |= {"policy": policy.held("weights"), "engine": drawn.weights + asleep}
        made.append(Phase(name, spent, {part: size for part, size in gpu.items() if np.ndim(size) or size}))
    return tuple(made)


def updated_there(policy: P, models: RlModels[P]) -> Amount:
    """Return the bytes of a node's host that the states of what trains take, where they are updated there."""
    return policy.host_per_node + (models.critic.host_per_node if models.critic else 0.0)


def host_bytes(law: PostTrainingLaw, framework: RlFramework, placed: RoleGpus, policy: Passes, models: RlModels[P],
               drawn: Drawn) -> dict[str, Amount]:
    """Return the host memory of one GPU's processes: their own, what waits there, and a sleeper's weights."""
    held: dict[str, Amount] = {"processes": law.process * (2 if placed.colocated else 1)}
    if placed.colocated and framework.sleeps and not framework.shares:
        held["weights of the engine asleep"] = drawn.weights
    if placed.swaps:
        held["states of the policy"] = policy.states
        if models.critic:
            held["states of the critic"] = models.critic.states
        if frozen := _frozen(policy, models):
            held["frozen models"] = total(frozen)
    return held

"""Every way to run a step of reinforcement learning on some GPUs: who has which, the trainer's layout, the rollouts'.

A trainer's layouts that another matches in time and in bytes are left out before rollouts are put beside them: less
memory leaves more to the engine, so that what is left out can never win.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from planner.jobs.posttraining.held import Held
from planner.jobs.posttraining.question import RlQuestion
from planner.jobs.serving.rates import layouts as replica_layouts
from planner.physics.posttraining.generation import Drawn, Engines, drawn
from planner.physics.posttraining.passes import Trained
from planner.physics.posttraining.step import (
    Placed,
    RlModels,
    RlStep,
    exposed,
    host_bytes,
    moments,
    phase_seconds,
)
from planner.physics.serving.deployment import Replicas

ELSEWHERE = (1, 2, 4, 8)
"""Nodes of other hardware that are tried for rollouts."""


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


@dataclass(frozen=True, slots=True)
class RlWay:
    """One way: who has which GPUs, layouts, and what a step takes. Bytes of one GPU, seconds of a step."""

    candidate: int
    rollouts_on: int
    """Number of the rollouts' hardware: the trainer's where they share GPUs."""
    framework: str
    stack: str
    engine: str
    placed: Placed
    policy: Trained
    models: RlModels
    rollouts: Rollouts
    made: RlStep
    usable: float
    """Bytes of a GPU that the fullest phase may take."""
    host: float
    """Bytes of one node's host memory."""
    host_usable: float

    @property
    def gpus(self) -> int:
        """All GPUs at work."""
        return self.placed.gpus

    @property
    def step(self) -> float:
        """Seconds of a step at the median."""
        return self.made.seconds

    @property
    def peak(self) -> float:
        """Bytes of the fullest GPU, at the confidence of its trainer."""
        return self.made.fullest.bytes

    @property
    def lacking(self) -> float:
        """Bytes that it misses memory by, of a GPU or of a GPU's share of the host; below zero it fits."""
        return max(self.peak - self.usable, self.host - self.host_usable)

    @property
    def rank(self) -> tuple[float, ...]:
        """What is faster comes first, then what is simpler."""
        row = self.policy.row
        return (self.step, not self.placed.colocated, self.placed.swaps, row.get("offload", 0.0), row.get("pp", 1),
                row.get("tp", 1), row.get("cp", 1), row.get("ep", 1), self.rollouts.pp, self.rollouts.tp)


@dataclass(frozen=True, slots=True)
class _Half:
    """A layout of the trainer with the models beside it, and whether its states wait on the host meanwhile."""

    policy: Trained
    models: RlModels
    swaps: bool
    seconds: float
    needs: tuple[float, ...]
    """Bytes that must be few: of what stays beside the engine, of the host, of weights; seconds
    that the rollouts wait for; and bytes that a GPU lacks."""


def ways_on(question: RlQuestion, gpus: int, held: Mapping[str, str]) -> Iterator[RlWay]:
    """Yield the ways on so many GPUs that keep the axes held; those that another matches may be left out.

    Raises InputError for an unknown axis, and PlannerError for what cannot be run.
    """
    asks = Held(held)
    placement = question.asked.placement
    if placement != "disaggregated" and "colocated" in question.framework.placements and not question.asked.policy_lag \
            and not question.asked.rollouts_on and not asks.has("rollout_gpus"):
        yield from _colocated(question, gpus, asks)
    if placement != "colocated" and "disaggregated" in question.framework.placements and not question.asked.rollouts_on:
        for split in splits_of(gpus, question.candidates[question.at].node.gpus):
            if asks.keeps("rollout_gpus", gpus - split):
                yield from apart(question, split, gpus - split, question.at, asks)
    for on in question.elsewhere:
        size = question.candidates[on].node.gpus
        for count in {size * nodes for nodes in ELSEWHERE} | ({int(asks.values["rollout_gpus"])} if asks.has(
                "rollout_gpus") else set()):
            if asks.keeps("rollout_gpus", count):
                yield from apart(question, gpus, count, on, asks)


def splits_of(gpus: int, size: int) -> list[int]:
    """Return how many of some GPUs may train: a quarter, half or three quarters, of several nodes whole ones."""
    each = size if gpus > size else 1
    parts = {round(gpus * part / 4 / each) * each for part in (1, 2, 3)}
    return sorted(part for part in parts if 0 < part < gpus)


def _halves(question: RlQuestion, gpus: int, placed: Placed, asks: Held) -> list[_Half]:
    """Return the trainer's layouts that fit and that no other matches; where none fits the leanest."""
    law, framework, candidate = question.law, question.framework, question.candidates[question.at]
    nothing = Drawn(0.0, 0.0, 1, 0.0, 0.0, 0.0, 1.0)
    halves = list[_Half]()
    usable, host = candidate.gpu.usable_memory, candidate.node.cpu.memory * question.catalog.kernels.host_memory_share
    room = usable * (1 - framework.memory_fraction)
    on_node = min(candidate.node.gpus, gpus)
    for policy, models in question.trained(gpus):
        if not asks.keeps_row(policy.row):
            continue
        for swaps in ((False, True) if placed.colocated else (False,)):
            if not asks.keeps("swap", int(swaps)):
                continue
            mine = Placed(placed.trainer, placed.rollouts, placed.lag, swaps)
            seconds = phase_seconds(law, framework, question.batch, mine, policy, models, nothing, 1, 0.0)
            phases = moments(law, framework, mine, seconds, policy.held("framework"), policy, models, nothing)
            kept = next(phase.bytes for phase in phases if phase.name == "generation")
            waits = host_bytes(law, framework, mine, policy, models, nothing)
            on_host = waits * on_node + policy.peak.memory.host_per_node
            over = max(max(phase.bytes for phase in phases) - usable, on_host - host)
            # less than the engine leaves anyway, or than the host has beside an engine's copy, is nothing gained
            tight = on_host + on_node * usable > host
            # judging by a model is the trainer's work, and yet the rollouts' wait where the two overlap
            judged = seconds.get("reward", 0.0) if placed.lag else 0.0
            worked = math.fsum(spent for name, spent in seconds.items() if name != "generation") - judged
            halves.append(_Half(policy, models, swaps, worked, (
                    max(kept + law.asleep, room) if placed.colocated else 0.0, on_host if tight else 0.0,
                    policy.held("weights") if swaps else 0.0, judged, over)))
    fitting = [half for half in halves if half.needs[-1] <= 0]
    if not fitting:
        return sorted(halves, key=lambda half: half.needs[-1])[:1]
    if placed.colocated and not framework.sleeps:
        # an engine that stays decides what fits beside it
        return fitting
    fitting.sort(key=lambda half: (half.seconds, half.needs))
    best = list[_Half]()
    for half in fitting:
        if not any(all(mine <= theirs for mine, theirs in zip(other.needs[:-1], half.needs[:-1], strict=True))
                   for other in best):
            best.append(half)
    return best


def _colocated(question: RlQuestion, gpus: int, asks: Held) -> Iterator[RlWay]:
    placed = Placed(gpus, 0, 0, swaps=False)
    usable = question.candidates[question.at].gpu.usable_memory
    for half in _halves(question, gpus, placed, asks):
        mine = Placed(gpus, 0, 0, swaps=half.swaps)
        room = usable - half.needs[0]
        for rollouts in _rollouts(question, question.at, gpus, room, asks, flowing=False):
            yield _way(question, mine, half, rollouts, question.at)


def apart(question: RlQuestion, trainer: int, rollouts: int, on: int, asks: Held) -> Iterator[RlWay]:
    """Yield the ways with so many GPUs of the trainer, and so many of another candidate for rollouts."""
    lag = question.asked.policy_lag
    placed = Placed(trainer, rollouts, lag, swaps=False)
    gpu = question.candidates[on].gpu
    room = gpu.usable_memory * question.catalog.engine(question.engine).memory_fraction
    halves = _halves(question, trainer, placed, asks)
    if not halves:
        return
    for drawing in _rollouts(question, on, rollouts, room, asks, flowing=lag > 1):
        for half in halves:
            yield _way(question, placed, half, drawing, on)


def _rollouts(question: RlQuestion, at: int, gpus: int, room: float, asks: Held, *, flowing: bool
              ) -> Iterator[Rollouts]:
    """Yield replicas that fill so many GPUs with `room` bytes of each."""
    if room <= 0:
        return
    d = question.deployed(at)
    node = question.candidates[at].node
    table = replica_layouts(d.model, question.candidates[at], Counter())
    if asks.has("rollout_tp") and asks.values["rollout_tp"] not in table.tp:
        # wider than what is searched
        wide, one = np.array([int(asks.values["rollout_tp"])]), np.ones(1, np.int64)
        table = Replicas(0 * one, wide, one, one, one)
    for row in range(len(table)):
        rows = table.take(np.array([row]))
        each, tp, pp, dp = (int(column[0]) for column in (rows.gpus, rows.tp, rows.pp, rows.dp))
        ep = int(rows.ep[0])
        if any(degree > 1 and axis not in question.framework.engine_axes
               for axis, degree in (("pp", pp), ("ep", ep), ("dp", dp))):
            continue
        if gpus % each or (each < gpus and each < node.gpus and gpus < each) or not (
                asks.keeps("rollout_tp", tp) and asks.keeps("rollout_pp", pp) and asks.keeps("rollout_ep", ep)
                and asks.keeps("rollout_dp", dp)):
            continue
        engines = Engines(d, rows, gpus // each, question.catalog.engine(question.engine), None, room)
        slots = question.slots(engines, at)
        if slots is not None:
            took = drawn(question.batch, engines, slots, question.host_layer, flowing=flowing)
            yield Rollouts(tp, pp, ep, dp, gpus // each, took, node.name)


def _way(question: RlQuestion, placed: Placed, half: _Half, rollouts: Rollouts, on: int) -> RlWay:
    law, framework, work = question.law, question.framework, question.asked
    candidate, policy, models = question.candidates[question.at], half.policy, half.models
    seconds = phase_seconds(law, framework, question.batch, placed, policy, models, rollouts.drawn, rollouts.replicas,
                            work.reward.seconds)
    phases = moments(law, framework, placed, seconds, policy.held("framework"), policy, models, rollouts.drawn)
    each = host_bytes(law, framework, placed, policy, models, rollouts.drawn)
    on_node = min(candidate.node.gpus, placed.trainer)
    made = RlStep(phases, exposed(seconds, placed), each)
    return RlWay(question.at, on, question.name, question.policy.stack.name, question.engine, placed, policy, models,
                 rollouts, made, candidate.gpu.usable_memory, each * on_node + policy.peak.memory.host_per_node,
                 candidate.node.cpu.memory * question.catalog.kernels.host_memory_share)

"""What the fleet chooses from: the columns of jobs, the demands that they answer, and what was picked of them.

A job that ends has *runs*, of which one is taken. A service has *replicas*, of which any number is, for each of its
demands. To the solver both are plain figures; what a column is in full, only its job knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from planner.answer.schema import Search
from planner.jobs.market import is_always
from planner.money.rent import RentalOffer
from planner.physics.serving.deployment import Replicas
from planner.physics.serving.settings import USUAL, EngineSettings
from planner.simulate.fleet import Role
from planner.solver.column import Column

__all__ = ["MICRO", "Columns", "Demand", "Pick", "Processed", "ReplicaColumn", "Role", "Run", "joined"]
MICRO = 1e6


@dataclass(frozen=True, slots=True)
class ReplicaColumn:
    """A replica as the fleet sees it: GPUs and requests/s within its latency targets, and what it is."""

    candidate: int
    format: str
    role: Role
    tp: int
    pp: int
    ep: int
    dp: int
    rate: float
    batch: float
    """Sequences that decode on average at that rate; for prefill the share of time at work."""
    held: float
    """Sequences of mean length that the cache holds."""
    settings: EngineSettings = USUAL
    """What the engine is started with."""

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.tp * self.pp * self.dp

    @property
    def layout(self) -> tuple[int, str, Role, int, int, int, int]:
        """What it is, whatever the settings."""
        return self.candidate, self.format, self.role, self.tp, self.pp, self.ep, self.dp

    @property
    def rows(self) -> Replicas:
        """The layout as a table of one row, of the only candidate."""
        ones = np.ones(1, np.int64)
        return Replicas(0 * ones, self.tp * ones, self.pp * ones, self.ep * ones, self.dp * ones)

    @property
    def plainness(self) -> tuple[int, int, int, int, int]:
        """What is simpler comes first."""
        return self.settings.changed, self.pp, self.dp, self.ep, self.tp


@dataclass(frozen=True, slots=True)
class Demand:
    """Requests to a service, or of a range of its classes of prompt length, that replicas must answer."""

    needed: float
    """Requests/s at a factor of one, headroom included."""
    day: tuple[float, ...] | None = None
    """Factors of the rate, hour by hour; none where every hour is alike."""
    spares: int = 0
    """Replicas that may fail with every request still answered; or nodes."""
    classes: tuple[int, int] = (0, 0)
    """First and last class that it is of: of the demands of a job just one answers each class."""
    is_part: bool = False
    """Whether it is of some of the classes only."""
    whole_nodes: bool = False
    """Whether the spares are nodes, with all replicas on them."""
    changing: int = 0
    """Seconds for which a node that an hour of the day adds is paid besides: to start, and to empty."""
    unit: str = "requests/s"
    """Of what is needed: users of a closed loop are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """All that one job may be done by."""

    runs: tuple[Column, ...] = ()
    replicas: tuple[tuple[int, ReplicaColumn], ...] = ()
    """Each with the number of the demand that it answers."""
    doubtful: Callable[[], Sequence[tuple[int, ReplicaColumn]]] = tuple
    """The same at the rates up to which replays may keep the targets though the formula does not, or never does."""
    demands: tuple[Demand, ...] = ()
    open_bound: int | None = None
    """Nothing that was left unsearched is below it, in the objective's quantum; none where nothing was left."""
    account: Search = field(default_factory=Search)
    """What was looked at, and what was removed by what."""

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search for them."""
        return False

    def of(self, candidate: int) -> Self:
        """Return those of one candidate alone."""
        return replace(self, runs=tuple(run for run in self.runs if run.candidate == candidate))


@dataclass(frozen=True, slots=True)
class Run:
    """A job that ends, in one of its columns, on one offer; none where money is not asked about."""

    job: int
    column: Column
    offer: RentalOffer | None


@dataclass(frozen=True, slots=True)
class Pick:
    """Replicas of one layout for one demand of a job on one offer, at the busiest hour, and the nodes they are on."""

    job: int
    demand: int
    column: ReplicaColumn
    offer: RentalOffer
    replicas: int
    nodes: int
    daily: tuple[int, ...]
    """Nodes in every hour of the day; one figure where every hour is alike."""
    hourly: tuple[int, ...] = ()
    """Replicas in every hour of the day; none where every hour is alike."""
    part: float = 1.0
    """Of its nodes, what it pays for: others that run on them pay the rest."""
    share: float = 1.0
    """Of the hours of what it pays for, in which it runs."""
    together: int = 1
    """Nodes of the offer in all, at their busiest."""
    buys: int = 0
    """GPUs at work on them, where the offer is to buy; of several picks the first says so."""
    idle: int = 0
    """GPUs of the nodes that nothing uses at the busiest hour; of several picks the first says so."""

    @property
    def usd_per_node_hour(self) -> float:
        """What it pays for each of its nodes."""
        estate = self.offer.estate
        return self.part * (self.offer.usd_per_node_hour if estate is None else estate(self.together) / MICRO)

    @property
    def always(self) -> bool:
        """Whether the nodes are paid for at every hour, as what is owned, bought or committed to."""
        return is_always(self.offer)


@dataclass(frozen=True, slots=True)
class Processed:
    """Tokens or images of a job, or of a month of a service, and the GPUs at work on them."""

    input: float
    """Tokens trained on, or of prompts."""
    output: float = 0.0
    """Tokens of answers; zero of what is trained."""
    prompt_gpus: float = 0.0
    """GPUs by the share of their time that goes into prompts."""
    gpus: float = 0.0
    images: float = 0.0
    """Images or clips trained on or made; zero of what reads text."""


def joined(accounts: Sequence[Search], seconds: float) -> Search:
    """Return several accounts as one, with the seconds that they took."""
    domains: dict[str, tuple[int | float | str, ...]] = {}
    removed: dict[str, int] = {}
    for account in accounts:
        for axis, values in account.domains.items():
            domains[axis] = tuple(dict.fromkeys((*domains.get(axis, ()), *values))) if axis in domains else values
        for rule, count in account.removed.items():
            removed[rule] = removed.get(rule, 0) + count
    return Search(layouts=sum(search.layouts for search in accounts), legal=sum(search.legal for search in accounts),
                  fit=sum(search.fit for search in accounts), staged=sum(search.staged for search in accounts),
                  removed=removed, domains=domains).took(seconds)

"""What every kind of work is to the verbs: `Job`. A new kind is a folder with a class that does this."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self, TypeAlias, runtime_checkable

from planner.answer.assignment import Alternative, Assignment
from planner.answer.schema import Infeasible
from planner.jobs.columns import Columns, Pick, Processed, Run
from planner.jobs.market import Market
from planner.scenario.batch import Batch
from planner.scenario.default import Defaults
from planner.scenario.limits import Limits, Objective
from planner.simulate.trace import Trace
from planner.solver.settings import UNLIMITED, Effort

Depth: TypeAlias = Literal["each", "every", "best", "any", "shared"]
"""What is looked for: the best on the candidates that are shown, the one best on every candidate, the best of all,
anything that keeps the limits, or of every candidate all that may be of use to jobs that share it: the fastest or
cheapest with every number of GPUs."""
Progress: TypeAlias = Callable[[float], None]
Picked: TypeAlias = Run | Pick
Held: TypeAlias = Mapping[str, str]
"""Axes of a layout held at one value, as the user writes them: `{"tp": "4"}`."""
NOTHING_HELD: Held = {}
ENDLESS = 1e18
"""Bytes, or bytes/s, that nothing uses up."""


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms jobs are looked at: the market, the limits of the whole fleet, and what is minimized."""

    market: Market
    limits: Limits
    objective: Objective
    period: float = 0.0
    """Seconds that nodes are counted by where jobs share them over time; a run gains nothing below that."""
    robust: bool = False
    """Whether costs are means over the interval of the step."""


@dataclass(frozen=True, slots=True)
class Replaying:
    """On what services are replayed: a trace, or where there is none requests drawn as the question says."""

    trace: Trace | None = None
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    """What replays showed of the replicas of a demand, in the order of its picks. Rates are of one replica."""

    meets: bool
    """Whether every target is met."""
    asked: tuple[float, ...]
    """Requests/s that each gets."""
    held: tuple[float, ...]
    """Of these what it holds within the targets."""
    requests: int
    """Replayed in all."""
    missed: Callable[[], str] = str
    """Says which target is missed by how much, where one is: it may take a replay more to know."""
    unsure: bool = False
    """Whether all replays keep the targets, and only how much they vary says that others may not."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is different in a question that is asked again."""

    limits: Mapping[str, Any] = field(default_factory=dict)
    """By name; None lifts one."""
    memory: float = 0.0
    """Bytes more on every GPU."""
    host: float = 0.0
    """Bytes more of every node's host memory."""
    nics: float = 0.0
    """Bytes/s more of every network adapter."""
    own: int | None = 0
    """Owned nodes more of each kind; None is as many as one likes."""
    objective: Objective | None = None
    work: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Keys of a workload, by the name of its job."""


@dataclass(frozen=True, slots=True)
class Knob:
    """Something that costs: what is given and used of it, and the changes that give one unit more of it, and all."""

    limit: str
    given: str
    used: str
    unit: str
    more: Change
    without: Change


@dataclass(frozen=True, slots=True)
class Short:
    """What lacks memory, in words, and by how much the nearest layout misses."""

    because: str
    """Empty where nothing does."""
    nearest: str | None = None
    memory: float = 0.0
    """Bytes more on its GPUs with which it would fit, as to them."""
    host: float = 0.0
    """Bytes more of its nodes' host memory."""


@dataclass(frozen=True, slots=True)
class Leaner:
    """A smaller value of a key of the work, which takes less memory."""

    limit: str
    """What the key is called."""
    asked: str
    instead: str
    factor: float
    """By how much it is less, above one."""
    work: Mapping[str, Any]
    """Keys of the workload."""


class Job(Protocol):
    """One piece of work of a question, resolved against the catalog, on the terms of the question."""

    @property
    def name(self) -> str:
        """What answers call it."""

    @property
    def terms(self) -> Terms:
        """The market, the limits and the objective that it is looked at with."""

    @property
    def has_requests(self) -> bool:
        """Whether it is a service, whose requests can be replayed."""

    def under(self, terms: Terms) -> Self:
        """Return the job on other terms; candidates keep their numbers."""

    def asking(self, update: Mapping[str, Any]) -> Self:
        """Return the job with keys of its workload changed, or the `confidence` of what fits."""

    def columns(self, effort: Effort = UNLIMITED, depth: Depth = "each", held: Held = NOTHING_HELD) -> Columns:
        """Return all that it may be done by; what is left out is no part of what is looked for."""

    def assignments(self, columns: Columns, picks: Sequence[Picked], replaying: Replaying | None = None
                    ) -> list[Assignment]:
        """Return its part of a fleet in full; with `replaying`, also as a replay of its requests found it."""

    def faults(self, columns: Columns, picks: Sequence[Picked]) -> list[str]:
        """Return what an independent check finds wrong with what was picked; empty where nothing is."""

    def miss(self, columns: Columns, possible: Callable[[Change], bool]) -> Infeasible | None:
        """Return why nothing does it, whatever the limits; none where something does, or limits may be the cause.

        possible: whether the question with a change has a plan.
        """

    def broken(self, columns: Columns, effort: Effort) -> list[str]:
        """Return the rules that together leave no legal layout; empty where there are some. Raises OutOfTime."""

    def short(self, columns: Columns) -> Short:
        """Return what lacks memory, and the nearest miss."""

    @property
    def leaner(self) -> Iterable[Leaner]:
        """Smaller values of what takes memory, key by key, the nearest first."""

    @property
    def axes(self) -> Collection[str]:
        """Axes of its layouts that a choice may hold."""

    @property
    def choices(self) -> Mapping[str, str]:
        """Other choices that are its own, and the path of the scenario value of each."""

    def knobs(self, assignments: Sequence[Assignment]) -> Iterable[Knob]:
        """Yield what is its own that may cost something: latency targets, memory, network."""

    def processed(self, columns: Columns, picks: Sequence[Picked]) -> Processed:
        """Return the tokens that it is paid for, and what works on them."""

    def decided(self, columns: Columns) -> Defaults:
        """Return what decided beside the defaults of the question."""


@runtime_checkable
class Scalable(Job, Protocol):
    """A job whose columns tell those of jobs that differ in how much there is to do, and until when, alone."""

    @property
    def alike(self) -> Hashable | None:
        """What such jobs have in common; none where it has no such jobs."""

    @property
    def amount(self) -> int:
        """How much there is to do."""

    def columns_like(self, columns: Columns) -> Columns | None:
        """Return its columns of depth "shared" by those of one with no less to do and no less time for each of it; none
        where those do not tell its own.
        """


@runtime_checkable
class Replayable(Job, Protocol):
    """A service, whose requests can be replayed on a part of a fleet."""

    def tried(self, picks: Sequence[Pick], factor: float, given: Trace | None, least: float = 0.0) -> Tried:
        """Return what replays show of the picks of one demand, at its rate times a factor; given: a trace to hold.

        least: the share of that up to which it is of no interest how much is held.
        """

    def tried_day(self, picks: Sequence[Pick]) -> Tried:
        """Return what a replay of the whole day shows of its busiest hours, of the picks of one demand."""

    def at_load(self, load: float) -> Self:
        """Return the service at another rate, or with as many users, which changes no way to run a replica."""

    def times(self, growth: float) -> Self:
        """Return the service, one without a trace, at so many times its load."""

    @property
    def has_trace(self) -> bool:
        """Whether the requests are those of a trace, so that what one layout holds of them tells of all."""

    @property
    def can_miss(self) -> bool:
        """Whether a load can be too much for what is tried: nothing that nobody waits for is too late."""


@runtime_checkable
class Alone(Job, Protocol):
    """A job that ends, and may be asked for more where it has the fleet to itself."""

    @property
    def confidence(self) -> float:
        """With which what is planned fits in memory, 0.5 to 1."""

    def alternatives(self, columns: Columns, picks: Sequence[Picked], effort: Effort, *, proven: bool
                     ) -> list[Alternative]:
        """Return what comes next, best first, with why each lost."""

    def simplest(self, columns: Columns, picks: Sequence[Picked], effort: Effort) -> tuple[Columns, Run, int]:
        """Return the simplest of what cannot be told from what was picked, its columns, and the objective's value.

        Raises OutOfTime.
        """

    def trade_offs(self, measures: Sequence[Objective], effort: Effort) -> tuple[Columns, list[Run]]:
        """Return the exact frontier of the measures, the best by the first one first, unless a bound is left open."""

    def closest(self, columns: Columns) -> Assignment | None:
        """Return the layout that misses memory by least, in full; none where no layout is legal."""

    def counts(self, most: int) -> Sequence[int]:
        """Return the numbers of GPUs up to `most` that its rules admit, rising; other limits of the fleet hold."""

    @property
    def batch(self) -> Batch | None:
        """The sequences of a step that are asked for; none where nothing is trained."""

    def beside(self, columns: Columns, run: Run, best: Assignment) -> Alternative:
        """Return a run beside the best one, with why it lost."""

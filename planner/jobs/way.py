"""What `WaysJob` asks of a kind of work: its ways, and what each takes and is called."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from planner.answer.assignment import Assignment
from planner.catalog.load import Catalog
from planner.jobs.columns import Columns, Run
from planner.jobs.job import Held, Leaner, Short, Terms
from planner.solver.settings import Effort


class Way(Protocol):
    """One way to do a job."""

    @property
    def candidate(self) -> int:
        """Number of its hardware."""

    @property
    def gpus(self) -> int:
        """GPUs at work."""

    @property
    def step(self) -> float:
        """Seconds of a step at the median."""

    @property
    def rank(self) -> tuple[float, ...]:
        """What is faster comes first, then what is simpler."""


W = TypeVar("W", bound=Way)
J = TypeVar("J")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways(Columns, Generic[W]):
    """Runs, and the way of each by its key; and of what fits nowhere what comes nearest."""

    made: tuple[W, ...] = ()
    nearest: W | None = None


@dataclass(frozen=True, slots=True)
class WorkWithWays(ABC, Generic[J, W]):
    """A workload that ends, looked up."""

    name: str
    asked: J
    catalog: Catalog
    terms: Terms
    confidence: float

    @abstractmethod
    def sizes(self, at: int) -> list[int]:
        """Return the numbers of GPUs that the work divides over and the limits admit on a candidate."""

    @abstractmethod
    def ways(self, at: int, gpus: int, held: Held) -> Iterator[W]:
        """Yield every way on so many GPUs of a candidate; none where it lacks a fact."""

    @abstractmethod
    def fits(self, way: W) -> bool:
        """Say whether it fits at the confidence."""

    @abstractmethod
    def lacking(self, way: W) -> float:
        """Return the bytes by which it misses memory."""

    @abstractmethod
    def least(self, ways: Sequence[W]) -> W:
        """Return the one that takes least memory."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """Steps of the job; one where no amount of work is asked."""

    @abstractmethod
    def late(self, way: W) -> float:
        """Return seconds at the confidence of the deadline over those at the median."""

    @abstractmethod
    def saved(self, way: W) -> float:
        """Return the bytes of a checkpoint."""

    @abstractmethod
    def complexity(self, way: W) -> int:
        """Return how many choices of it are not the plain ones."""

    @abstractmethod
    def domains(self) -> Mapping[str, tuple[int | float | str, ...]]:
        """Return what is searched, by name."""

    @abstractmethod
    def assignment(self, way: W, run: Run | None) -> Assignment:
        """Return a way in full; with a run also what it takes and costs."""

    @abstractmethod
    def broken(self, columns: Columns, effort: Effort) -> list[str]:
        """Return why there is no way at all; empty where there are some."""

    @abstractmethod
    def short(self, columns: Columns) -> Short:
        """Return what lacks memory, and the nearest miss."""

    @property
    @abstractmethod
    def axes(self) -> Collection[str]:
        """Axes of its layouts that a choice may hold."""

    @property
    @abstractmethod
    def leaner(self) -> Iterable[Leaner]:
        """Smaller values of what takes memory, key by key, the nearest first."""

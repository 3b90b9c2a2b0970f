"""How far a search is, for who waits for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from planner.process.news import tell
from planner.solver.fleet.problem import Goal
from planner.solver.search.candidate_run import Stems
from planner.solver.search.found import StagedLayout


@dataclass(frozen=True, slots=True)
class SoFar:
    """A search as it stands. Values are of the objective, in its quantum."""

    goal: Goal
    done: float
    """Share of the candidates whose search has ended, 0 to 1."""
    value: int | None
    """The best so far."""
    bound: int | None
    """Nothing is better."""
    part: str = ""
    """What is searched now, where a question has several searches: `LoRA`, `without the deadline`; value and bound are
    its own, and `done` is of all.
    """


_PARTS: list[tuple[str, int, int]] = []
"""The parts that are worked on, the outermost first: name, number from 0, how many there are."""
_AMONG: list[tuple[float, float, int | None, int | None]] = []
"""What some candidates are among: the share done before them and their own, the best so far, the bound of others."""
_ASIDE: list[bool] = []
"""Whether searches are at work of which nothing is told."""


@contextmanager
def part(name: str, at: int, of: int) -> Iterator[None]:
    """What is told meanwhile is of this part of a question: the one numbered `at`, from 0, of so many."""
    _PARTS.append((name, at, of))
    try:
        yield
    finally:
        _PARTS.pop()


@contextmanager
def among(before: float, share: float, value: int | None, bound: int | None) -> Iterator[None]:
    """What is told meanwhile is of this share of the candidates, after those `before`; value: the best of all so far,
    bound: nothing of the others is better.
    """
    _AMONG.append((before, share, value, bound))
    try:
        yield
    finally:
        _AMONG.pop()


@contextmanager
def aside() -> Iterator[None]:
    """What is searched meanwhile decides nothing, and nothing is told of it."""
    _ASIDE.append(True)
    try:
        yield
    finally:
        _ASIDE.pop()


def say(how_far: Callable[[], SoFar]) -> None:
    """Tell whoever waits how far a search is, in the part of the question that it is of."""
    if not _ASIDE:
        tell(lambda: _of_all(how_far()))


def _of_all(one: SoFar) -> SoFar:
    done, value, bound = one.done, one.value, one.bound
    for before, share, best, least in reversed(_AMONG):
        done = before + share * done
        value = min((of for of in (value, best) if of is not None), default=None)
        bound = min((of for of in (bound, least, value) if of is not None), default=None)
    for _, at, of in reversed(_PARTS):
        done = (at + done) / of
    names = filter(None, (*(name for name, *_ in _PARTS), one.part))
    return replace(one, done=done, value=value, bound=bound, part=", ".join(names))


def so_far(goal: Goal, runs: Collection[Stems], found: Sequence[StagedLayout]) -> SoFar:
    """Return how the search of some candidates stands; `found` is what they have."""
    value = min((staged.key[0] for staged in found), default=None)
    open_ = [run for run in runs if not run.ended]
    ahead = [key[0] for run in open_ for key in (run.ahead, *(entry[0] for entry in run.heap[:1])) if key is not None]
    bound = min([*ahead, *([] if value is None else [value])], default=None)
    return SoFar(goal, 1 - len(open_) / max(1, len(runs)), value, bound)

"""The largest micro-batch, sequence or model that a layout still holds."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from planner.answer.assignment import Assignment
from planner.errors import PlannerError

T = TypeVar("T")
STEP = 1024
"""Tokens by which sequences are tried, or the least multiple of them that the layout divides."""
LONGEST = 2**24


@dataclass(frozen=True, slots=True)
class Largest(Generic[T]):
    """The largest value that fits with its estimate, both none where none does; and the next that does not."""

    value: T | None
    estimate: Assignment | None
    beyond: T | None
    missing_bytes: int
    """Device bytes that the next value is short of; 0 where something else than memory forbids it."""
    misses: Assignment | None = None
    """The estimate of the next."""


def largest_of(values: Sequence[T], ask: Callable[[T], Assignment]) -> Largest[T]:
    """Return the last of `values` that fits. They rise in memory; those that break a rule are passed over.

    Raises PlannerError where all of them do.
    """
    best: tuple[T, Assignment] | None = None
    for value, assignment in _legal(values, ask):
        if assignment.memory.fits != "fits":
            return _result(best, value, assignment)
        best = (value, assignment)
    return _result(best, None, None)


def largest_sequence(ask: Callable[[int], Assignment], multiple: int) -> Largest[int]:
    """Return the longest sequence that fits, in tokens: a multiple of `multiple` and of STEP. Raises PlannerError."""
    step = STEP * multiple
    return largest_count(lambda count: ask(count * step), lambda count: count * step, LONGEST // step)


def largest_count(ask: Callable[[int], Assignment], named: Callable[[int], T], most: int, at_once: int = 1
                  ) -> Largest[T]:
    """Return the largest number up to `most` that fits, by what it is called. Raises PlannerError.

    at_once: requests of a service that its replicas must hold together.
    """
    low, high = 0, 1
    estimates: dict[int, Assignment] = {}

    def fits(count: int) -> bool:
        estimates[count] = said = ask(count)
        held = said.serving.max_batch * said.serving.replicas if said.kind == "serving" and said.serving else at_once
        return said.memory.fits == "fits" and held >= at_once

    while high <= most and fits(high):
        low, high = high, 2 * high
    low += bisect(range(low + 1, min(high, most + 1)), False, key=lambda count: not fits(count))
    high = low + 1
    best = (named(low), estimates[low]) if low else None
    return _result(best, named(high) if high in estimates else None, estimates.get(high))


def largest_model(names: Sequence[str], ask: Callable[[str], Assignment], fits: Callable[[str], bool]) -> Largest[str]:
    """Return the first of `names`, largest model first, that fits; those the layout or physics refuses are passed.

    fits: whether `ask` answers with what fits, sooner told. Raises PlannerError where all of them are refused.
    """
    fitting = next((at for at, name in enumerate(names) if _is_so(fits, name)), None)
    refused: PlannerError | None = None
    beyond: tuple[str, Assignment] | None = None
    for name in reversed(names[:fitting]):
        try:
            beyond = name, ask(name)
            break
        except PlannerError as error:
            refused = refused or error
    if fitting is not None:
        return _result((names[fitting], ask(names[fitting])), *(beyond or (None, None)))
    if refused is not None and beyond is None:
        raise refused
    return _result(None, *(beyond or (None, None)))


def _is_so(fits: Callable[[str], bool], name: str) -> bool:
    """Say whether one fits; not so where it is refused."""
    try:
        return fits(name)
    except PlannerError:
        return False


def _legal(values: Sequence[T], ask: Callable[[T], Assignment]) -> Iterator[tuple[T, Assignment]]:
    """Yield the values that are not refused, estimated; where all are, the cause is in what they share: raise it."""
    refused: PlannerError | None = None
    legal = False
    for value in values:
        try:
            assignment = ask(value)
        except PlannerError as error:
            refused = error
            continue
        legal = True
        yield value, assignment
    if refused is not None and not legal:
        raise refused


def _result(best: tuple[T, Assignment] | None, beyond: T | None, assignment: Assignment | None) -> Largest[T]:
    missing = max(0, assignment.memory.peak_bytes - assignment.memory.usable_bytes) if assignment else 0
    return Largest(best[0] if best else None, best[1] if best else None, beyond, missing, assignment)

"""Calls that are answered together: one after the other in this process, by processes beside it, or by a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from planner.process.workers import Call, Workers

Answering = Callable[[Sequence[Call]], Iterator[Any]]
"""Yields what calls return, in their order."""


class _Crew:
    """Who answers; this process where nobody else does."""

    answering: Answering | None = None


def together(calls: Sequence[Call]) -> Iterator[Any]:
    """Yield what calls return, in their order. Raises what one of them raised."""
    if _Crew.answering is None:
        yield from (call() for call in calls)
    else:
        yield from _Crew.answering(calls)


@contextmanager
def answered_by(answering: Answering) -> Iterator[None]:
    """Calls are answered by somebody else meanwhile."""
    before, _Crew.answering = _Crew.answering, answering
    try:
        yield
    finally:
        _Crew.answering = before


@contextmanager
def on_processes(count: int) -> Iterator[None]:
    """Calls are answered by so many processes meanwhile, unless somebody else answers them already.

    None is started before there are calls.
    """
    if count == 1 or _Crew.answering is not None:
        yield
        return
    with Workers[int](count) as pool, answered_by(partial(_shared, pool)):
        yield


def _shared(pool: Workers[int], calls: Sequence[Call]) -> Iterator[Any]:
    for at, call in enumerate(calls):
        pool.add(at, call)
    found: dict[int, Any] = {}
    for answer in pool.answers():
        found[answer.key] = answer.result()
    yield from (found[at] for at in range(len(calls)))

"""Why nothing makes images or clips as asked: they fit nowhere, or take longer than the latency target even alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from planner.answer.relaxation import Relaxation
from planner.answer.schema import Infeasible
from planner.jobs.generation.lacking import leaner
from planner.jobs.generation.options import CallWay
from planner.jobs.job import Change
from planner.scenario.demand import Level
from planner.scenario.extent import said
from planner.scenario.generation import Generation
from planner.units import SECONDS, at_least, parse, show_seconds

ROOM = 1.05
"""Over the least latency seen, so that a rate above zero meets it."""


def misses(name: str, asked: Generation, soonest: CallWay | None, lacking: str | None,
           possible: Callable[[Change], bool], where: str | None) -> Infeasible:
    """Return the cause where no way on the candidates does; possible: whether a changed question has a plan."""
    if soonest is None:
        smaller = [each for each in leaner(asked) if possible(Change(work={name: each.work}))]
        first = {each.limit: each for each in reversed(smaller)}
        return Infeasible(
            because=(f"no way to run {asked.model} at {said(asked.resolution, asked.frames, asked.audio)} fits, with "
                     "every block offloaded and a tiled decoder",), nearest=lacking,
            relaxations=tuple(Relaxation(limit=each.limit, from_=each.asked, to=each.instead, work=each.work)
                              for each in first.values()))
    assert asked.e2e is not None
    return Infeasible(
        because=(f"no way on the candidates meets e2e {asked.e2e} for {name}, even idle",),
        nearest=f"{where}: {show_seconds(soonest.alone)} idle",
        relaxations=tuple(_eased(name, asked.e2e, soonest.alone, possible)))


def _eased(name: str, level: Level, seconds: float, possible: Callable[[Change], bool]) -> Iterator[Relaxation]:
    eased = level._replace(seconds=parse(at_least(seconds * ROOM, SECONDS, "s", "ms", "us"), SECONDS, "latency", "2 s"))
    if possible(Change(work={name: {"e2e": eased}})):
        yield Relaxation(limit="e2e", from_=str(level), to=str(eased))

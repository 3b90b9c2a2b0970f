"""Why each job of a schedule is where and when it is: what every other way of it would cost, or what it lacks.

All other jobs stay where they are, so that each figure is arithmetic, and a schedule that can be had.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from planner.answer.assignment import Assignment
from planner.answer.portfolio import OtherWay, Why
from planner.ask.portfolio.admitting import admitting
from planner.ask.portfolio.elsewhere import Elsewhere, Rest, elsewhere
from planner.ask.portfolio.lacking import lacking, occupants
from planner.ask.portfolio.standing import kinds_of, standing_elsewhere
from planner.jobs.agenda import Agenda
from planner.jobs.columns import MICRO
from planner.scenario.moment import iso, written
from planner.solver.fleet.program import Ints
from planner.solver.fleet.schedule import Placed, Schedule, lateness
from planner.units import plural, show_usd


def explained(agenda: Agenda, schedule: Schedule, made: tuple[Assignment, ...]) -> tuple[Assignment, ...]:
    """Return the assignments of a schedule, each with its reasons."""
    reasons: dict[str, Why] = {}
    for at, item in enumerate(agenda.items):
        reasons[agenda.label(item)] = _why(agenda, schedule, at)
    for number, standing in enumerate(agenda.services):
        name = agenda.portfolio.jobs[standing.job].name
        reasons[name] = Why(start="it runs from the day that was asked",
                            others=tuple(standing_elsewhere(agenda, schedule, number)))
    return tuple(assignment.model_copy(update={"reasons": reasons[assignment.workload]}) for assignment in made)


def _why(agenda: Agenda, schedule: Schedule, at: int) -> Why:
    task, placed = agenda.problem.tasks[at], schedule.tasks[at]
    columns = agenda.columns[agenda.items[at].job]
    options = [option for option, _ in agenda.offering.every(columns)]
    rest, known = elsewhere(agenda, schedule, at, options)
    if placed is None:
        return Why(start=_rejected(agenda, schedule, at, rest, known), others=tuple(_others(agenda, rest, known, at)),
                   admits=tuple(admitting(agenda, at, known, task.worth or 0)))
    admits = []
    if lateness(agenda.problem, task, placed):
        admits = list(admitting(agenda, at, elsewhere(agenda, schedule, at, options, in_time=True)[1], 0))
    return Why(start=_start(agenda, schedule, at, rest, known), others=tuple(_others(agenda, rest, known, at)),
               admits=tuple(admits))


def _rejected(agenda: Agenda, schedule: Schedule, at: int, rest: Rest, known: Elsewhere) -> str:
    """Return why a job is not done."""
    task = agenda.problem.tasks[at]
    waits = [agenda.label(agenda.items[other]) for other in task.after if schedule.tasks[other] is None]
    if waits:
        return f"rejected: it waits for {', '.join(waits)}, which is rejected"
    best = _best(known, np.ones(len(known.end), dtype=bool))
    if best is None:
        return "rejected: it takes longer than the horizon"
    least = int(known.more.min())
    if known.against[best] and least <= (task.worth or 0):
        return f"rejected: {lacking(agenda, rest, known, best, at)}"
    costs = f"even with room for it, doing it costs {show_usd(least / MICRO)}" if known.against[best] else (
        f"doing it costs {show_usd(int(known.more[best]) / MICRO)}")
    return f"rejected: {costs} more, and it is worth {show_usd((task.worth or 0) / MICRO)}"


def _start(agenda: Agenda, schedule: Schedule, at: int, rest: Rest, known: Elsewhere) -> str:
    """Return why a job does not start earlier, and why it pauses."""
    placed, problem = schedule.tasks[at], agenda.problem
    assert placed is not None
    said = [_not_earlier(agenda, at, placed, rest, known)]
    option = problem.tasks[at].options[placed.option]
    for (_, stop), (resume, _) in zip(placed.runs, placed.runs[1:], strict=False):
        others = occupants(agenda, rest, option.pool, stop, resume)
        since, until = (written(agenda.moment(period * problem.period_seconds)) for period in (stop, resume))
        said.append(f"it pauses from {since} to {until}" + (f" for {others}" if others else ""))
    return "; ".join(said)


def _not_earlier(agenda: Agenda, at: int, placed: Placed, rest: Rest, known: Elsewhere) -> str:
    problem, task = agenda.problem, agenda.problem.tasks[at]
    first, option = placed.runs[0][0], task.options[placed.option]
    if first == problem.earliest(task):
        return "it starts when it is released" if first else "it starts with the horizon"
    alike = np.array([other.pool == option.pool and other.nodes == option.nodes and other.seconds == option.seconds
                      for other in known.options], dtype=bool)
    sooner = alike[known.ways.option] & (known.ways.start < first) & (known.ways.start >= problem.earliest(task))
    best = _best(known, sooner)
    if best is None:
        return "it starts as early as it can"
    if known.against[best]:
        # of starts that cannot be had, the last says what it waits for
        last = int(np.flatnonzero(sooner)[np.argmax(known.ways.start[sooner])])
        return f"no earlier: {lacking(agenda, rest, known, last, at)}"
    day = written(agenda.moment(int(known.ways.start[best]) * problem.period_seconds))
    return f"no earlier: from {day} on it would cost {_more(int(known.more[best]))}"


def _best(known: Elsewhere, among: Ints | np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> int | None:
    """Return the cheapest way of some that can be had, else the one that least stands against."""
    rows = np.flatnonzero(among)
    if not len(rows):
        return None
    order = np.lexsort((known.end[rows], known.more[rows], known.against[rows]))
    return int(rows[order[0]])


def _others(agenda: Agenda, rest: Rest, known: Elsewhere, at: int) -> Iterator[OtherWay]:
    """Yield the best with fewer nodes, with more, and on every other pool."""
    now = None if rest.was is None else agenda.problem.tasks[at].options[rest.was.option]
    nodes = np.array([option.nodes for option in known.options], dtype=np.int64)[known.ways.option]
    pools = np.array([option.pool for option in known.options], dtype=np.int64)[known.ways.option]
    for (how, node), kind in kinds_of(agenda).items():
        mine = np.isin(pools, kind)
        here = now is not None and now.pool in kind
        fewer_or_more = [mine & (nodes < now.nodes), mine & (nodes > now.nodes)] if now is not None and here else [mine]
        for group in fewer_or_more:
            best = _best(known, group)
            if best is not None:
                yield _way(agenda, rest, known, best, at)
            elif not here:
                yield OtherWay(pool=f"{how} {node}", because=_nothing(agenda, at, kind))
            elif now is not None and group is fewer_or_more[0] and now.nodes > 1:
                yield OtherWay(pool=agenda.suppliers[now.pool].name, because="no layout of it on fewer nodes fits and "
                               "ends in time, or every one is beaten in nodes, time and cost elsewhere")


def _nothing(agenda: Agenda, at: int, kind: Sequence[int]) -> str:
    """Return why some pools have no way at all."""
    suppliers, columns = [agenda.suppliers[pool] for pool in kind], agenda.columns[agenda.items[at].job]
    candidates = {supplier.offer.candidate for supplier in suppliers}
    fewest = min((run.rented_nodes for run in columns.runs if run.candidate in candidates), default=None)
    if fewest is None:
        return "no layout of it fits there, or every one is beaten in nodes, time and cost elsewhere"
    most = [supplier.most for supplier in suppliers if supplier.most is not None]
    if len(most) == len(suppliers) and fewest > max(most):
        return f"it takes {plural(fewest, 'node')} there, and there are {max(most):,}"
    return "it takes longer there than the horizon"


def _way(agenda: Agenda, rest: Rest, known: Elsewhere, way: int, at: int) -> OtherWay:
    option, size = known.options[int(known.ways.option[way])], agenda.problem.period_seconds
    can = not known.against[way]
    more = int(known.more[way])
    return OtherWay(pool=agenda.suppliers[option.pool].name, nodes=option.nodes,
                    start=iso(agenda.moment(int(known.ways.start[way]) * size)),
                    end=iso(agenda.moment(int(known.end[way]))), usd=more / MICRO if can else None,
                    because=_more(more) if can else lacking(agenda, rest, known, way, at))


def _more(micro_usd: int) -> str:
    """Return a difference in money in words."""
    if not micro_usd:
        return "the same, so nothing is gained"
    return f"{show_usd(abs(micro_usd) / MICRO)} {'more' if micro_usd > 0 else 'less'}"

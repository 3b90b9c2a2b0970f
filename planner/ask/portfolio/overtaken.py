"""Jobs that are released again and again while what they wait for still runs: all of them may then start at once."""

from __future__ import annotations

from collections.abc import Iterator

from planner.jobs.agenda import Agenda
from planner.scenario.moment import written
from planner.solver.fleet.schedule import Schedule
from planner.units import DAY


def overtaken(agenda: Agenda, found: Schedule) -> Iterator[str]:
    """Yield which jobs are released more than once before what they wait for has ended, and what would space them."""
    problem = agenda.problem
    for number, job in enumerate(agenda.portfolio.jobs):
        if job.every is None or not job.after:
            continue
        mine = [at for at, item in enumerate(agenda.items) if item.job == number and found.tasks[at] is not None]
        ends = max((placed.end(problem, problem.tasks[other]) for at in mine for other in problem.tasks[at].after
                    if (placed := found.tasks[other]) is not None), default=0)
        early = sum(problem.tasks[at].release < ends for at in mine)
        if early > 1:
            yield (f"{early:,} of {len(mine):,} {job.name} are released before {', '.join(job.after)} has ended, so "
                   f"that they start together: release: {written(agenda.moment(ends))} has one every "
                   f"{job.every / DAY:g} d from then on")

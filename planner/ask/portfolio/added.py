"""What it takes to add jobs to a portfolio's plan: what it costs, and which other jobs move."""

from __future__ import annotations

from planner.answer.portfolio import Added, Moved
from planner.ask.portfolio.ledger import objective_of
from planner.jobs.agenda import Agenda
from planner.scenario.moment import written
from planner.solver.check_schedule import check_schedule
from planner.solver.fleet.schedule import Placed, Schedule
from planner.solver.settings import Effort


def kept_to(agenda: Agenda, schedule: Schedule, before: Schedule, effort: Effort) -> Schedule:
    """Return a schedule at the same cost that leaves jobs as they were, as far as a short search goes."""
    # CP-SAT takes half a second to load
    from planner.solver.fleet.scheduling import keeping

    kept = schedule if effort.is_over else keeping(agenda.problem, schedule, before.tasks)
    return schedule if check_schedule(agenda.problem, kept) else kept


def added_to(earlier: Agenda, before: Schedule, agenda: Agenda, schedule: Schedule) -> Added:
    """Return what the jobs that `agenda` has more take."""
    names = [job.name for job in agenda.portfolio.jobs]
    new = tuple(names[len(earlier.portfolio.jobs):])
    admitted = schedule.value is not None and all(
        placed is not None for item, placed in zip(agenda.items, schedule.tasks, strict=True) if names[item.job] in new)
    now, then = objective_of(agenda, schedule).value, objective_of(earlier, before).value
    usd = None if now is None or then is None else now - then
    moved = [Moved(workload=agenda.label(agenda.items[at]), was=was, now=now)
             for at, (was, now) in enumerate(zip(_shown(earlier, before), _shown(agenda, schedule), strict=False))
             if was != now]
    return Added(jobs=new, admitted=admitted, usd=usd, moved=tuple(moved))


def _shown(agenda: Agenda, schedule: Schedule) -> list[str]:
    """Return every task as hardware and dates; empty where there is no plan."""
    return [_placed(agenda, at, placed) for at, placed in enumerate(schedule.tasks)]


def _placed(agenda: Agenda, at: int, placed: Placed | None) -> str:
    if placed is None:
        return "rejected"
    problem, task = agenda.problem, agenda.problem.tasks[at]
    option, size = task.options[placed.option], problem.period_seconds
    first, last = (written(agenda.moment(second)) for second in (placed.runs[0][0] * size, placed.end(problem, task)))
    pauses = f", {len(placed.runs) - 1} paused" if len(placed.runs) > 1 else ""
    return f"{option.nodes:,} x {agenda.suppliers[option.pool].name}, {first} to {last}{pauses}"

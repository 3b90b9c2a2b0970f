"""Why a portfolio has no plan: the job that cannot be done by itself, or the limits that exclude it together."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from planner.answer.relaxation import Relaxation
from planner.answer.schema import Infeasible
from planner.ask.portfolio.enough import free_of_charge, more_nodes, put_off, relaxed, solve_again
from planner.ask.portfolio.limited import asked_limit, limits_of, without_limits
from planner.jobs.agenda import Agenda
from planner.jobs.columns import Columns
from planner.scenario.recurring import due_written
from planner.solver.column import Column
from planner.solver.fleet.schedule import DAY_SECONDS
from planner.solver.minimal import minimal
from planner.solver.quantize import DURATION_QUANTUM
from planner.solver.settings import Effort
from planner.units import plural, show_within

NODES = "nodes"  # the limit that quotas and what is owned or bought set


def no_plan(agenda: Agenda, effort: Effort) -> Infeasible:
    """Return the job or the limits that leave no plan, and the single changes that would do."""
    if agenda.empty:
        return _nothing_does(agenda, agenda.empty[0], effort)
    for number in range(len(agenda.portfolio.jobs)):
        alone = agenda.only({number})
        if solve_again(alone.problem, effort).status == "infeasible":
            return _because(alone, effort, f"{agenda.portfolio.jobs[number].name} alone")
    return _because(agenda, effort, "all the jobs")


def _nothing_does(agenda: Agenda, number: int, effort: Effort) -> Infeasible:
    """Return why a job has no column: too little time, or what its kind says."""
    asked, job, columns = agenda.portfolio.jobs[number], agenda.jobs[number], agenda.columns[number]
    said = job.miss(columns, lambda change: False)
    if said is not None:
        return said.model_copy(update={"because": tuple(f"{asked.name}: {reason}" for reason in said.because)})
    limits = job.terms.limits
    held = [name for name in ("deadline", "max_power", "max_gpus", "max_nodes") if getattr(limits, name) is not None]
    market = job.terms.market
    held += [NODES] if any(offer.nodes is not None for offer in market.offers) else []

    def without(*names: str) -> Columns:
        endless = replace(market, offers=tuple(replace(offer, nodes=None) for offer in market.offers))
        terms = replace(job.terms, objective="time" if "deadline" in names else "gpus",
                        market=endless if NODES in names else market,
                        limits=limits.model_copy(update=dict.fromkeys(name for name in names if name != NODES)))
        return job.under(terms).columns(effort, "best")

    if not without(*held).runs:
        short = job.short(columns)
        return Infeasible(because=(f"{asked.name}: no layout fits on any of the nodes there may be: {short.because}",),
                          nearest=short.nearest)
    enough = {name: left.runs for name in held if (left := without(name)).runs}
    relaxations = [relaxation for name, runs in enough.items() for relaxation in _lifted(agenda, number, name, runs)]
    if "deadline" in enough and limits.deadline is not None:
        least, given = _least(enough["deadline"]), limits.deadline.seconds
        on = " on the nodes there may be" if NODES in enough else ""
        return Infeasible(because=(f"{asked.name}: no layout finishes in the {show_within(given)} that it has{on}",),
                          nearest=f"{show_within(least)} instead of {show_within(given)}",
                          relaxations=tuple(relaxations))
    kept = " and ".join("the nodes there may be" if name == NODES else f"{name} {asked_limit(agenda, name)}"
                        for name in enough or held if name != "deadline")
    keeps = "fits on" if [*enough] == [NODES] else "keeps"
    return Infeasible(because=(f"{asked.name}: no layout {keeps} {kept}",), relaxations=tuple(relaxations))


def _least(runs: Sequence[Column]) -> float:
    """Return the seconds of the fastest run."""
    return min(column.duration_us for column in runs) * DURATION_QUANTUM


def _lifted(agenda: Agenda, number: int, name: str, runs: Sequence[Column]) -> Iterator[Relaxation]:
    """Yield what one limit would have to be for the best of the runs that there are without it."""
    if name == "deadline":
        yield from _later(agenda, number, _least(runs))
        return
    if name == NODES:
        yield from _more_of(agenda, runs)
        return
    best = min(runs, key=lambda run: run.power_w)
    enough = {"max_power": f"{best.power_w:,} W", "max_gpus": f"{best.gpus:,}", "max_nodes": f"{best.rented_nodes:,}"}
    yield Relaxation(limit=name, from_=asked_limit(agenda, name), to=enough[name])


def _more_of(agenda: Agenda, runs: Sequence[Column]) -> Iterator[Relaxation]:
    """Yield how many nodes would do, of the kind of which it takes the fewest, where a quota or what is owned is less.
    """
    best = min(runs, key=lambda run: run.rented_nodes)
    mine = [supplier for supplier in agenda.suppliers if supplier.offer.candidate == best.candidate]
    rent, to = agenda.portfolio.sourcing.rent, plural(best.rented_nodes, "node")
    for node in dict.fromkeys(supplier.node for supplier in mine if supplier.is_rented):
        if rent is not None and rent.quota.get(node, best.rented_nodes) < best.rented_nodes:
            yield Relaxation(limit=f"quota.{node}", from_=plural(rent.quota[node], "node"), to=to)
    for supplier in mine:
        if supplier.how == "own":
            yield Relaxation(limit=f"own.{supplier.node}", from_=plural(supplier.most or 0, "node"), to=to)


def _later(agenda: Agenda, number: int, seconds: float) -> Iterator[Relaxation]:
    """Yield the deadline that leaves a job so long, where that is within the horizon."""
    asked, problem = agenda.portfolio.jobs[number], agenda.problem
    release = ((asked.release or agenda.portfolio.horizon.start) - agenda.portfolio.horizon.start).total_seconds()
    start = -(-release // problem.period_seconds) * problem.period_seconds
    end = math.ceil(start + seconds)
    if asked.deadline is not None and -(-end // DAY_SECONDS) * DAY_SECONDS <= problem.horizon:
        yield Relaxation(limit=f"{asked.name}.deadline", from_=due_written(asked.deadline),
                         to=put_off(agenda, number, [(math.floor(release), end)]))


def _because(agenda: Agenda, effort: Effort, who: str) -> Infeasible:
    """Return a minimal set of limits and deadlines that leave no schedule, and what would do instead of each."""
    names = list(limits_of(agenda))

    def possible(held: Collection[str]) -> bool:
        return solve_again(without_limits(agenda, set(names) - set(held)), effort).status != "infeasible"

    reasons = minimal(names, possible)
    if not reasons:
        return Infeasible(because=(f"{_together(agenda, effort) or who}: more work than the nodes there may be can do "
                                   "within the horizon",), relaxations=tuple(more_nodes(agenda, effort)))
    relaxations = tuple(relaxed(agenda, reasons, effort))
    said, lifted = [f"no schedule of {who} keeps {_shown(agenda, reasons)}"], set(reasons)
    # where no single change is enough, what else is in the way
    while not relaxations and not possible(rest := [name for name in names if name not in lifted]):
        more = minimal(rest, possible)
        said.append(f"without that, none keeps {_shown(agenda, more)}" if more else
                    "without that, it is more work than the nodes there may be can do within the horizon")
        if not more:
            break
        lifted |= set(more)
    return Infeasible(because=tuple(said), relaxations=relaxations)


def _together(agenda: Agenda, effort: Effort) -> str:
    """Return a smallest set of the jobs that must be done that cannot be done together, whatever the limits."""
    names = [job.name for job in agenda.portfolio.jobs if job.worth is None]

    def possible(held: Collection[str]) -> bool:
        kept = agenda.only({at for at, job in enumerate(agenda.portfolio.jobs) if job.name in held})
        return solve_again(free_of_charge(without_limits(kept, list(limits_of(kept)))), effort).status != "infeasible"

    return " and ".join(minimal(names, possible)) if len(names) > 1 else ""


def _shown(agenda: Agenda, names: Sequence[str]) -> str:
    return " and ".join(f"{name} {asked_limit(agenda, name)}" for name in names)

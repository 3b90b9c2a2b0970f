"""Why a portfolio has no plan: the job that cannot be done by itself, or the limits that exclude it together."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

from planner.answer.relaxation import Relaxation
from planner.answer.schema import Infeasible
from planner.jobs.agenda import POWER, Agenda
from planner.jobs.columns import MICRO, Columns
from planner.scenario.moment import written
from planner.solver.check_schedule import spent, spent_within, total_of
from planner.solver.column import Column
from planner.solver.fleet.schedule import CENT, DAY_SECONDS, Problem, Schedule, Task
from planner.solver.minimal import minimal
from planner.solver.quantize import DURATION_QUANTUM
from planner.solver.settings import Effort
from planner.units import DAY, plural, show_within

NODES = "nodes"  # the limit that quotas and what is owned or bought set
STEEP = 10**9
"""Cents for a day after a deadline, where the least lateness is looked for."""
TRIES = 8  # of a limit of nodes, GPUs or power that may be enough


def no_plan(agenda: Agenda, effort: Effort) -> Infeasible:
    """Return the job or the limits that leave no plan, and the single changes that would do."""
    if agenda.empty:
        return _nothing_does(agenda, agenda.empty[0], effort)
    for number in range(len(agenda.portfolio.jobs)):
        alone = agenda.only({number})
        if _solve(alone.problem, effort).status == "infeasible":
            return _because(alone, effort, f"{agenda.portfolio.jobs[number].name} alone")
    return _because(agenda, effort, "all the jobs")


def _solve(problem: Problem, effort: Effort) -> Schedule:
    from planner.solver.fleet.scheduling import checked

    return checked(problem, effort)


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
    whole = -(-(start + seconds) // DAY) * DAY
    if asked.deadline is not None and whole <= problem.horizon:
        yield Relaxation(limit=f"{asked.name}.deadline", from_=written(asked.deadline),
                         to=written(agenda.moment(round(whole))))


def _because(agenda: Agenda, effort: Effort, who: str) -> Infeasible:
    """Return a minimal set of limits and deadlines that leave no schedule, and what would do instead of each."""
    names = list(_limits(agenda))

    def possible(held: Collection[str]) -> bool:
        return _solve(_without(agenda, set(names) - set(held)), effort).status != "infeasible"

    reasons = minimal(names, possible)
    if not reasons:
        return Infeasible(because=(f"{_together(agenda, effort) or who}: more work than the nodes there may be can do "
                                   "within the horizon",), relaxations=tuple(_more_nodes(agenda, effort)))
    relaxations = tuple(_relaxed(agenda, reasons, effort))
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
        return _solve(_free(_without(kept, list(_limits(kept)))), effort).status != "infeasible"

    return " and ".join(minimal(names, possible)) if len(names) > 1 else ""


def _more_nodes(agenda: Agenda, effort: Effort) -> Iterator[Relaxation]:
    """Yield for each kind of owned node how many would be enough, where some number is."""
    for at, supplier in enumerate(agenda.suppliers):
        if (capacity := supplier.pool.capacity) is None:
            continue
        high = max(sum(max((option.nodes for option in task.options if option.pool == at), default=0)
                       for task in agenda.problem.tasks), *capacity) * 2
        if not _enough(agenda, at, high, effort):
            continue
        high = 1 + bisect_left(range(1, high), True, key=partial(_enough, agenda, at, effort=effort))
        owned = max(capacity)
        yield Relaxation(limit=f"own.{supplier.node}", from_=plural(owned, "node"), to=plural(owned + high, "node"))


def _enough(agenda: Agenda, at: int, more: int, effort: Effort) -> bool:
    """Say whether there is a schedule with so many more nodes of a pool all the time."""
    pools = list(agenda.problem.pools)
    pools[at] = replace(pools[at], capacity=tuple(nodes + more for nodes in pools[at].capacity or ()))
    return _solve(_priced(replace(agenda.problem, pools=tuple(pools))), effort).value is not None


def _free(problem: Problem) -> Problem:
    """Return a problem without money, so that any schedule ends the search."""
    pools = tuple(replace(pool, micro_usd_per_node_hour=0, lots=tuple(
        replace(lot, micro_usd=(0,)) for lot in pool.lots)) for pool in problem.pools)
    tasks = tuple(replace(task, late_cents_per_day=0, worth=None if task.worth is None else 0, options=tuple(
        replace(option, micro_usd=0, resume_micro_usd=0) for option in task.options)) for task in problem.tasks)
    return replace(problem, pools=pools, tasks=tasks, budget=None, purses=())


def _shown(agenda: Agenda, names: Sequence[str]) -> str:
    return " and ".join(f"{name} {asked_limit(agenda, name)}" for name in names)


def _limits(agenda: Agenda) -> Iterator[str]:
    """Yield what may be lifted, by its name."""
    if agenda.problem.budget is not None:
        yield "budget"
    if agenda.problem.purses:
        yield "budget_by_quarter"
    yield from agenda.ceilings
    jobs = {item.job for item in agenda.items}
    for at in sorted(jobs):
        asked = agenda.portfolio.jobs[at]
        if asked.deadline is not None and asked.late is None:
            yield f"{asked.name}.deadline"


def asked_limit(agenda: Agenda, name: str) -> str:
    """Return a limit as it was asked."""
    limits, rent = agenda.portfolio.limits, agenda.portfolio.sourcing.rent
    if name.endswith(".deadline"):
        asked = next(job for job in agenda.portfolio.jobs if f"{job.name}.deadline" == name)
        return "" if asked.deadline is None else written(asked.deadline)
    if name.startswith("quota."):
        return plural(rent.quota[name.removeprefix("quota.")], "node") if rent else ""
    return str(limits.model_dump(mode="json")[name])


def _without(agenda: Agenda, lifted: Collection[str]) -> Problem:
    """Return the problem without some limits; the horizon stays."""
    problem, jobs = agenda.problem, agenda.portfolio.jobs
    tasks = tuple(replace(task, deadline=None) if f"{jobs[item.job].name}.deadline" in lifted else task
                  for task, item in zip(problem.tasks, agenda.items, strict=True))
    return replace(problem, tasks=tasks, budget=None if "budget" in lifted else problem.budget,
                   purses=() if "budget_by_quarter" in lifted else problem.purses,
                   ceilings=tuple(ceiling for name, ceiling in zip(agenda.ceilings, problem.ceilings, strict=True)
                                  if name not in lifted))


def _relaxed(agenda: Agenda, reasons: Collection[str], effort: Effort) -> Iterator[Relaxation]:
    """Yield of every reason by itself what would be enough, with all others kept."""
    for name in reasons:
        if name.endswith(".deadline"):
            yield from _postponed(agenda, name, effort)
            continue
        schedule = _solve(_without(agenda, {name}), effort)
        if schedule.value is not None:
            if name in agenda.ceilings:
                schedule = _leanest(agenda, name, schedule, effort)
            yield Relaxation(limit=name, from_=asked_limit(agenda, name), to=taken_of(agenda, name, schedule))


def _leanest(agenda: Agenda, name: str, schedule: Schedule, effort: Effort) -> Schedule:
    """Return a schedule that takes the least of nodes, GPUs or power, as far as some tries go, with all others kept."""
    problem, at = _priced(agenda.problem), agenda.ceilings.index(name)
    low, high = problem.ceilings[at].most, max(total_of(problem, schedule, problem.ceilings[at]))
    for _ in range(TRIES):
        if high - low <= 1 or effort.is_over:
            break
        middle = replace(problem.ceilings[at], most=(low + high) // 2)
        found = _solve(replace(problem, ceilings=(*problem.ceilings[:at], middle, *problem.ceilings[at + 1:])), effort)
        if found.value is None:
            low = middle.most
        else:
            schedule, high = found, max(total_of(problem, found, middle))
    return schedule


def _priced(problem: Problem) -> Problem:
    """Return a problem without money where no limit counts it, so that any schedule ends the search."""
    return problem if problem.budget is not None or problem.purses else _free(problem)


def taken_of(agenda: Agenda, name: str, schedule: Schedule) -> str:
    """Return what a schedule takes of a limit, up, in the unit that it is asked in."""
    if name == "budget":
        return _dollars(sum(usd for usd, _, _ in spent(agenda.problem, schedule)))
    if name == "budget_by_quarter":
        return _dollars(max(spent_within(agenda.problem, schedule, purse) for purse in agenda.problem.purses))
    ceiling = agenda.problem.ceilings[agenda.ceilings.index(name)]
    most = max(total_of(agenda.problem, schedule, ceiling))
    return f"{most:,} W" if name in POWER else plural(most, "node") if name.startswith("quota.") else f"{most:,}"


def _dollars(micro_usd: Fraction | int) -> str:
    """Write money up to whole dollars, so that it is enough."""
    return f"{-(-micro_usd // int(MICRO)):,} USD"


def _postponed(agenda: Agenda, name: str, effort: Effort) -> Iterator[Relaxation]:
    """Yield the deadline, to the day, that would do for a job with all other limits kept."""
    jobs, problem = agenda.portfolio.jobs, agenda.problem
    number = next(at for at, job in enumerate(jobs) if f"{job.name}.deadline" == name)

    horizon = agenda.portfolio.horizon
    ways = sum(len(task.options) for task in problem.tasks) * horizon.periods * -(-int(horizon.length) // DAY_SECONDS)
    steep_cents = min(STEEP, 2**60 // (ways * CENT) or 1)  # all ways together are priced in 64 bits

    def late(task: Task) -> Task:
        return replace(task, deadline=None, due=task.deadline, late_cents_per_day=steep_cents)

    steep = replace(problem, tasks=tuple(late(task) if item.job == number else task
                                         for task, item in zip(problem.tasks, agenda.items, strict=True)))
    schedule = _solve(steep, effort)
    if schedule.value is not None:
        known = zip(steep.tasks, agenda.items, schedule.tasks, strict=True)
        ends = [placed.end(steep, task) for task, item, placed in known if item.job == number and placed is not None]
        day = -(-max(ends, default=0) // DAY_SECONDS) * DAY_SECONDS
        yield Relaxation(limit=name, from_=asked_limit(agenda, name), to=written(agenda.moment(day)))

"""Why a portfolio's plan is as it is: what each limit is worth, and why a job is not on other hardware.

Each figure is the difference to the same question solved again with that one thing changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from planner.answer.explanation import Explanation, WhyNot, Worth
from planner.ask.explain.worth import HUNDREDTH
from planner.ask.portfolio.cause import no_plan
from planner.ask.portfolio.dated import assignments_of
from planner.ask.portfolio.ledger import objective_of
from planner.ask.portfolio.limited import asked_limit, taken_of
from planner.ask.portfolio.plan import answered, solved
from planner.ask.portfolio.searching import Searching
from planner.catalog.load import Catalog
from planner.errors import InputError, UnknownName
from planner.jobs.agenda import POWER, QUARTER, Agenda
from planner.jobs.columns import MICRO
from planner.jobs.pools import Supplier
from planner.scenario.hardware_names import candidate_nodes
from planner.scenario.moment import written
from planner.scenario.portfolio import Portfolio
from planner.scenario.portfolio_supply import Owned
from planner.scenario.recurring import due_written
from planner.solver.check_schedule import used
from planner.solver.fleet.schedule import Schedule
from planner.solver.progress import part
from planner.solver.settings import Effort
from planner.units import plural, show_usd

WATTS = 1000.0
WAYS = ("own", "buy", "reserve", "rent", "spot")
IN_TIME, PLANNED = "in time", "planned"
"""Choices of a job that is late or rejected."""
ELSEWHERE = "other nodes"
"""Choice of a job that is on all there are."""


@dataclass(frozen=True, slots=True)
class _Knob:
    """What may bind: the question with one unit more of it, and without it where that means something."""

    name: str
    given: str
    used: str
    unit: str
    more: Portfolio
    without: Portfolio | None


def explain_portfolio(portfolio: Portfolio, catalog: Catalog, choices: Sequence[str], effort: Effort) -> Explanation:
    """Return what limits are worth, or what becomes of `choices` (`base=dgx-h200`, `tune=rent`). Raises InputError."""
    search = Searching(effort)
    agenda, schedule = answered(portfolio, catalog, search)
    asked = [pair for text in choices for pair in _parts(agenda, schedule, text)]
    if schedule.value is None:
        return Explanation(status=schedule.status, notes=agenda.market.notes, objective=objective_of(agenda, schedule),
                           infeasible=no_plan(agenda, effort) if schedule.status == "infeasible" else None)
    made = assignments_of(agenda, schedule)
    asked = asked or [(assignment.job or "", PLANNED if assignment.status == "rejected" else IN_TIME)
                      for assignment in made if assignment.status == "rejected" or assignment.late_days]
    return Explanation(
        status=schedule.status, notes=agenda.market.notes, objective=objective_of(agenda, schedule), assignments=made,
        why_not=tuple(_why_not(agenda, schedule, job, what, catalog, effort) for job, what in dict.fromkeys(asked)),
        worth=() if choices else tuple(_worths(agenda, schedule, catalog, search)))


def _worths(agenda: Agenda, schedule: Schedule, catalog: Catalog, search: Searching) -> list[Worth]:
    def saves(portfolio: Portfolio) -> float | None:
        if search.effort.is_over or schedule.value is None:
            return None
        _, other = answered(portfolio, catalog, search)
        if other.value is None or "feasible" in (other.status, schedule.status):
            return None
        return max(schedule.value - other.value, 0) / MICRO

    rows, knobs = [], list(_knobs(agenda, schedule))
    for at, knob in enumerate(knobs):
        with part(f"without the {knob.name.replace('_', ' ')}", at, len(knobs)):
            without = None if knob.without is None else saves(knob.without)
            # what is worth nothing altogether is worth nothing by the unit
            per_unit = 0.0 if without == 0 else saves(knob.more)
        rows.append(Worth(limit=knob.name, given=knob.given, used=knob.used, binds=bool(without or per_unit),
                          unit=knob.unit, saves=per_unit, without=without))
    return sorted(rows, key=lambda row: -(row.without or row.saves or 0.0))


def _knobs(agenda: Agenda, schedule: Schedule) -> Iterator[_Knob]:
    asked = agenda.portfolio
    steps: dict[str, Callable[[float], tuple[str, float]]] = {
        **dict.fromkeys(("budget", QUARTER), lambda usd: ("1%", usd * (1 + HUNDREDTH))),
        **dict.fromkeys(POWER, lambda watts: ("1 kW", watts + WATTS)), "max_nodes": lambda count: ("1 node", count + 1),
        "max_gpus": lambda count: ("8 GPUs", count + 8)}
    for name, step in steps.items():
        value = getattr(asked.limits, name)
        if isinstance(value, int | float):
            unit, more = step(value)
            yield _Knob(name, asked_limit(agenda, name), taken_of(agenda, name, schedule), unit,
                        *(_limited(asked, name, limit) for limit in (more, None)))
    amounts = asked.limits.budget_by_quarter
    by_quarter = amounts if isinstance(amounts, dict) else {}
    for quarter, usd in by_quarter.items():
        if (name := f"{QUARTER}.{quarter}") in agenda.purses:
            unit, more = steps[QUARTER](usd)
            rest = {other: each for other, each in by_quarter.items() if other != quarter}
            yield _Knob(name, asked_limit(agenda, name), taken_of(agenda, name, schedule), unit, *(
                _limited(asked, QUARTER, limit) for limit in ({**rest, quarter: more}, rest or None)))
    rent = asked.sourcing.rent
    for node, most in rent.quota.items() if rent is not None else ():
        name = f"quota.{node}"
        if rent is not None and name in agenda.ceilings:
            others = {other: count for other, count in rent.quota.items() if other != node}
            raised, lifted = (_sourced(asked, "rent", rent.model_copy(update={"quota": quota}))
                              for quota in ({**others, node: most + 1}, others))
            yield _Knob(name, asked_limit(agenda, name), taken_of(agenda, name, schedule), "1 node", raised, lifted)
    for node in dict.fromkeys(stock.node for stock in asked.sourcing.own):
        busiest = max(nodes for at, supplier in enumerate(agenda.suppliers)
                      if supplier.how == "own" and supplier.node == node
                      for nodes in used(agenda.problem, schedule)[at])
        owned = sum(stock.nodes for stock in asked.sourcing.own if stock.node == node)
        yield _Knob(f"own.{node}", plural(owned, "node"), plural(busiest, "node"), "1 node",
                    _sourced(asked, "own", (*asked.sourcing.own, Owned(node=node, nodes=1))), None)
    for at, job in enumerate(asked.jobs):
        if job.deadline is not None:
            ends = [placed.end(agenda.problem, task) for task, item, placed in zip(
                agenda.problem.tasks, agenda.items, schedule.tasks, strict=True) if item.job == at and placed]
            day = timedelta(days=1)
            later = job.deadline + day if isinstance(job.deadline, timedelta) else min(
                job.deadline + day, asked.horizon.end)
            yield _Knob(f"{job.name}.deadline", due_written(job.deadline),
                        f"ends {written(agenda.moment(max(ends)))[:10]}" if ends else "rejected", "1 d",
                        *(asked.model_copy(update={"jobs": (*asked.jobs[:at], job.model_copy(update=update),
                                                            *asked.jobs[at + 1:])})
                          for update in ({"deadline": later}, {"deadline": None, "late": None})))


def _limited(asked: Portfolio, name: str, limit: object) -> Portfolio:
    return asked.model_copy(update={"limits": asked.limits.model_copy(update={name: limit})})


def _sourced(asked: Portfolio, name: str, value: object) -> Portfolio:
    return asked.model_copy(update={"sourcing": asked.sourcing.model_copy(update={name: value})})


def _parts(agenda: Agenda, schedule: Schedule, text: str) -> list[tuple[str, str]]:
    """Return the job and what it is asked to be on: of a job alone all that it is not on. Raises InputError."""
    job, given, what = (part.strip() for part in text.partition("="))
    if given and not what:
        raise InputError(f"--why-not {text!r}: of many jobs write JOB, JOB=HARDWARE or JOB=SOURCE, such as "
                         f"{agenda.portfolio.jobs[0].name}=rent")
    if job not in (names := [other.name for other in agenda.portfolio.jobs]):
        raise UnknownName("job in --why-not", job, names)
    if given:
        return [(job, what)]
    number = names.index(job)
    pools = {task.options[placed.option].pool for task, item, placed in zip(
        agenda.problem.tasks, agenda.items, schedule.tasks, strict=False) if item.job == number and placed is not None}
    pools |= {service.blocks[at].pool for standing, service, counts in zip(
        agenda.services, agenda.problem.services, schedule.services, strict=False) if standing.job == number
        for load in counts for row in load for at, count in enumerate(row) if count}
    on = {name for pool in pools for name in (agenda.suppliers[pool].how, agenda.suppliers[pool].node)}
    return [(job, what) for what in dict.fromkeys(name for supplier in agenda.suppliers for name in (
        supplier.how, supplier.node)) if what not in on] or [(job, ELSEWHERE)]


def _meant(agenda: Agenda, what: str, catalog: Catalog) -> list[Supplier]:
    """Return the pools that a name means: hardware, or a way to have it. Raises InputError."""
    known = {"owned": "own", "bought": "buy", "reserved": "reserve", "rented": "rent"}
    how = known.get(what, what)
    if how in WAYS:
        return [supplier for supplier in agenda.suppliers if supplier.how == how]
    nodes: list[str] = []
    with suppress(UnknownName):
        nodes = candidate_nodes([what], catalog)
    if not nodes:
        raise UnknownName("hardware or source in --why-not", what,
                          [*WAYS, *(supplier.node for supplier in agenda.suppliers)])
    return [supplier for supplier in agenda.suppliers if supplier.node in nodes]


def _why_not(agenda: Agenda, schedule: Schedule, job: str, what: str, catalog: Catalog, effort: Effort) -> WhyNot:
    """Return what it costs to have a job on other pools, or to have it at all, or in time."""
    number = next(at for at, other_job in enumerate(agenda.portfolio.jobs) if other_job.name == job)
    changed = None if what == ELSEWHERE else _held(agenda, number, what, catalog)
    asked = {job: what}
    if changed is None:
        return WhyNot(asked=asked, verdict="not offered",
                      because=f"{what}: not among the pools of the question, or without a layout for {job}")
    other = solved(changed, effort)
    if other.value is None:
        if other.status != "infeasible":
            return WhyNot(asked=asked, verdict="undecided", because="time ran out before a plan with it was found")
        why = no_plan(changed, effort)
        return WhyNot(asked=asked, verdict="infeasible", because="; ".join(why.because), infeasible=why)
    value, mine = objective_of(changed, other).value, objective_of(agenda, schedule).value
    assert schedule.value is not None
    assert value is not None
    assert mine is not None
    # what is forgone counts with the money: else a rejected job would look cheap
    more = (other.value - schedule.value) / MICRO
    shown = next((assignment for assignment in assignments_of(changed, other) if assignment.job == job), None)
    excess = more / (schedule.value / MICRO) if schedule.value else 0.0
    if more <= 0:
        return WhyNot(asked=asked, verdict="is the plan" if changed.problem == agenda.problem else "tied",
                      because="the plan, or one that costs the same, does just that", value=value, excess=excess,
                      assignment=shown)
    forgone = value - mine - more
    worth = f", less {show_usd(forgone)} that is then not forgone" if forgone > 0.005 else ""
    return WhyNot(asked=asked, verdict="worse", value=value, excess=excess, assignment=shown,
                  because=f"all jobs together then cost {show_usd(value)}, {show_usd(value - mine)} more{worth}")


def _held(agenda: Agenda, number: int, what: str, catalog: Catalog) -> Agenda | None:
    """Return the question with one job held to some pools, to be done, or to be in time; none where nothing does."""
    problem, mine = agenda.problem, {at for at, item in enumerate(agenda.items) if item.job == number}
    tasks, items = list(problem.tasks), list(agenda.items)
    services, standing, beyond = list(problem.services), list(agenda.services), list(agenda.beyond)
    pools = None if what in (PLANNED, IN_TIME) else {
        agenda.suppliers.index(supplier) for supplier in _meant(agenda, what, catalog)}
    for at in mine:
        task = tasks[at]
        if what == IN_TIME and task.due is not None:
            task = replace(task, deadline=task.due, due=None, late_cents_per_day=0)
        if pools is None:
            tasks[at] = replace(task, worth=None)
            continue
        kept = [place for place, option in enumerate(task.options) if option.pool in pools]
        if not kept:
            return None
        tasks[at] = replace(task, options=tuple(task.options[place] for place in kept))
        items[at] = replace(items[at], columns=tuple(items[at].columns[place] for place in kept))
        beyond[at] = tuple(option for option in beyond[at] if option.pool in pools)
    for at, service in enumerate(standing):
        if service.job == number and pools is not None:
            kept = [block for block, each in enumerate(services[at].blocks) if each.pool in pools]
            if not kept:
                return None
            services[at] = replace(services[at], blocks=tuple(services[at].blocks[block] for block in kept))
            standing[at] = replace(service, columns=tuple(service.columns[block] for block in kept))
    return replace(agenda, problem=replace(problem, tasks=tuple(tasks), services=tuple(services)),
                   items=tuple(items), services=tuple(standing), beyond=tuple(beyond))

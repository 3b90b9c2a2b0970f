"""Resolve, columns of each job, one schedule, a check without the solver, the answer in full."""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TypeAlias

from planner.answer.assignment import Assignment
from planner.answer.schema import Plan
from planner.ask.account import UNREPLAYED, Interrupted, provenance_of
from planner.ask.portfolio.added import added_to, kept_to
from planner.ask.portfolio.cause import no_plan
from planner.ask.portfolio.dated import assignments_of
from planner.ask.portfolio.ledger import cash_of, objective_of, periods_of, supply_of
from planner.ask.portfolio.overtaken import overtaken
from planner.ask.portfolio.searching import Searching
from planner.ask.portfolio.served import replayed
from planner.ask.portfolio.why import explained
from planner.catalog.load import Catalog
from planner.jobs.agenda import Agenda, agenda_of
from planner.jobs.columns import joined
from planner.jobs.job import Scalable
from planner.jobs.kinds import jobs_of
from planner.jobs.market import price_dates
from planner.jobs.pools import suppliers_of
from planner.scenario.default import Default
from planner.scenario.limits import Deadline
from planner.scenario.portfolio import Portfolio
from planner.solver.fleet.schedule import Schedule
from planner.solver.progress import part
from planner.solver.settings import UNLIMITED, Effort

Answered: TypeAlias = tuple[Agenda, Schedule]
"""A question with its columns, and its schedule."""
HAIR = 1e-9
"""Of a deadline, that rounding may lose."""


def plan_portfolio(portfolio: Portfolio, catalog: Catalog, *, defaults: Sequence[Default] = (),
                   effort: Effort = UNLIMITED, before: Portfolio | None = None) -> Plan:
    """Return the cheapest plan found for many jobs on one fleet, with its gap.

    Raises PlannerError for wrong input, and Interrupted with the best so far where Ctrl-C ended the search.

    before: the same without the last jobs, which are then added to its plan.
    """
    started, search = time.monotonic(), Searching(effort)
    earlier = None if before is None else answered(before, catalog, search)
    search.so_far = True
    agenda, found = answered(portfolio, catalog, search)
    try:
        if earlier is not None and found.value is not None and earlier[1].value is not None:
            found = kept_to(agenda, found, earlier[1], effort)
        plan = _described(portfolio, catalog, (agenda, found), earlier, defaults, effort, started)
    except KeyboardInterrupt:  # what was found is said all the same
        found = replace(found, interrupted=True)
        plan = _described(portfolio, catalog, (agenda, found), earlier, defaults, effort, started)
    if found.interrupted:
        raise Interrupted(plan)
    return plan


def _described(portfolio: Portfolio, catalog: Catalog, answer: Answered, earlier: Answered | None,
               defaults: Sequence[Default], effort: Effort, started: float) -> Plan:
    """Return the plan that a schedule is, in full."""
    agenda, found = answer
    accounts = {id(columns.account): columns.account for columns in agenda.columns}
    account = joined([*accounts.values()], time.monotonic() - started)
    removed = {**account.removed, **({"not_offered": agenda.left_out} if agenda.left_out else {}),
               **({"no_offer": len(agenda.market.dropped)} if agenda.market.dropped else {})}
    planned = found.value is not None
    made = explained(agenda, found, assignments_of(agenda, found)) if planned else ()
    cut = (UNREPLAYED,) if found.interrupted and agenda.services and agenda.missed is None else ()
    notes = (*agenda.market.notes, *(overtaken(agenda, found) if planned else ()), *cut)
    return Plan(status=found.status, notes=notes, objective=objective_of(agenda, found),
                assignments=made,
                supply=supply_of(agenda, found) if planned else (),
                periods=periods_of(agenda, found) if planned else (),
                added=None if earlier is None else added_to(*earlier, agenda, found),
                cash=cash_of(agenda, found) if planned else (),
                search=account.model_copy(update={"removed": removed}),
                infeasible=no_plan(agenda, effort) if found.status == "infeasible" else None,
                provenance=provenance_of(portfolio, catalog, _decided(agenda, defaults, made)))


def _decided(agenda: Agenda, defaults: Sequence[Default], made: Sequence[Assignment]) -> list[Default]:
    """Return the defaults of the question with what decided beside them; of each job the stack that it is planned by.
    """
    decided = [*defaults, price_dates(one.offer.as_of for one in agenda.suppliers)]
    for job, columns in zip(agenda.jobs, agenda.columns, strict=True):
        for one in job.decided(columns):
            if one.name == "stack":
                by = ", ".join(sorted({each.stack for each in made if each.job == job.name})) or one.value
                decided.append(one.model_copy(update={"name": f"{job.name}.stack", "value": by}))
            elif one.name != "max_gpus":
                decided.append(one)
    return list({one.name: one for one in decided}.values())


def answered(portfolio: Portfolio, catalog: Catalog, search: Searching) -> Answered:
    """Return the question with its columns, and its schedule, proven only where all columns are known.

    Raises KeyboardInterrupt where Ctrl-C came before there was any schedule.
    """
    agenda = prepared(portfolio, catalog, search)
    if agenda.empty:
        return agenda, _so_far(agenda, Schedule("infeasible"))
    if search.interrupted:
        found = solved(agenda, search.soon)
        if found.value is None:
            raise KeyboardInterrupt
        return agenda, replace(found, status="feasible", bound=None, interrupted=True)
    agenda, found = replayed(agenda, search.effort, solved)
    return agenda, _so_far(agenda, found)


def prepared(portfolio: Portfolio, catalog: Catalog, search: Searching) -> Agenda:
    """Return the question with the columns of every job; after Ctrl-C, whatever it cut short, with a first few."""
    try:
        return _prepared(portfolio, catalog, search)
    except KeyboardInterrupt:
        if search.interrupted or not search.so_far:
            raise
        search.interrupted = True
        return _prepared(portfolio, catalog, search)


def _prepared(portfolio: Portfolio, catalog: Catalog, search: Searching) -> Agenda:
    """Return the question with the columns of every job."""
    market, suppliers = suppliers_of(portfolio, catalog)
    jobs = jobs_of(portfolio, catalog, market)
    scalable = [(job.alike, job) if isinstance(job, Scalable) else (None, None) for job in jobs]
    together: dict[Hashable, list[Scalable]] = {}
    for alike, like in scalable:
        if alike is not None and like is not None:
            together.setdefault(alike, []).append(like)
    longest = {alike: _longest(group) for alike, group in together.items()}
    columns = []
    for at, (asked, job, (alike, like)) in enumerate(zip(portfolio.jobs, jobs, scalable, strict=True)):
        with part(f"layouts of {job.name}", at, len(jobs)):
            mine = None
            if alike is not None and like is not None:
                most, limit = longest[alike]
                mine = like.columns_like(search.columns((alike, most.amount, limit), most))
            key: object = (asked.workload, job.terms.limits, job.terms.period, job.terms.market.offers)
            columns.append(search.columns(key, job) if mine is None else mine)
    return agenda_of(portfolio, jobs, columns, market, suppliers, catalog.reliability)


def _longest(group: Sequence[Scalable]) -> tuple[Scalable, float]:
    """Return of jobs that differ in amount and deadline alone the one whose columns tell those of all, and its deadline
    in seconds.
    """
    longest = max(group, key=lambda job: job.amount)
    limit = max(job.terms.limits.deadline.seconds / job.amount for job in group
                if job.terms.limits.deadline is not None) * longest.amount * (1 + HAIR)
    limits = longest.terms.limits.model_copy(update={"deadline": Deadline(limit)})
    return longest.under(replace(longest.terms, limits=limits)), limit


def _so_far(agenda: Agenda, found: Schedule) -> Schedule:
    """Return a schedule without its proof where the time was over before every column was known."""
    if all(columns.open_bound is None for columns in agenda.columns):
        return found
    if found.value is None:
        return Schedule("undecided")
    return replace(found, status="feasible", bound=None)


def solved(agenda: Agenda, effort: Effort) -> Schedule:
    """Return the schedule, checked. Raises RuntimeError where the check contradicts it, which is a defect."""
    # CP-SAT takes half a second to load
    from planner.solver.fleet.scheduling import checked

    found, relaxed = checked(agenda.problem, effort, agenda.relaxed), agenda.relaxed
    if relaxed is None or found.value is not None or found.interrupted:
        return found
    # where few columns have no schedule, all may have one
    best = checked(relaxed, effort)
    return found if best.status == "infeasible" else Schedule("undecided", interrupted=best.interrupted)

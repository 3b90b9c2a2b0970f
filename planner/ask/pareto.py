"""Trade-offs: the exact frontier between cost, days, GPUs and energy, as a plan whose alternatives are its points."""

from __future__ import annotations

import time
from collections.abc import Sequence

from planner.answer.assignment import Alternative, Assignment
from planner.answer.objective import NAMES
from planner.answer.schema import Plan
from planner.ask.plan import Interrupted, decided, search_of
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.provenance import provenance_of
from planner.jobs.training.assignment import alternative_of, assignment_of
from planner.jobs.training.cause import infeasible_of
from planner.jobs.training.prepared import job_of, prepare
from planner.jobs.training.solved import Planned, planned
from planner.layouts.enumerate import Grid
from planner.scenario.default import Default
from planner.scenario.scenario import Scenario
from planner.solver.fleet.problem import Goal
from planner.solver.search.found import StagedLayout
from planner.solver.search.pareto import pareto, parse_measures
from planner.solver.search.source import grid_source
from planner.solver.settings import UNLIMITED, Effort

LABELS: dict[Goal, str] = {"cost": "cost", "time": "days", "gpus": "GPUs", "energy": "energy"}


def trade_offs(scenario: Scenario, catalog: Catalog, names: Sequence[str], defaults: Sequence[Default] = (),
               effort: Effort = UNLIMITED) -> Plan:
    """Return the plan that is best by the first measure, and as alternatives all other points of the frontier.

    Raises InputError for unknown measures, or without tokens, where only the number of GPUs is asked.
    """
    try:
        measures = parse_measures(names)
    except ValueError as error:
        raise InputError(f"--pareto {error}") from None
    if scenario.workload.tokens is None:
        raise InputError("--pareto needs workload.tokens: what holds a model has neither cost nor days")
    started = time.monotonic()
    prepared = prepare(scenario.model_copy(update={"objective": measures[0]}), catalog)
    solved = planned(prepared, effort)
    points, open_ = _frontier(solved, measures)
    best = assignment_of(solved.context, points[0]) if points else None
    status = "feasible" if open_ and solved.choice.status == "optimal" else solved.choice.status
    plan = Plan(
        status=status, notes=prepared.notes,
        objective=solved.objective,
        assignments=(best,) if best else (),
        alternatives=tuple(_point(solved, one, best, measures) for one in points[1:]) if best else (),
        search=search_of(solved, time.monotonic() - started), infeasible=infeasible_of(solved),
        provenance=provenance_of(prepared.scenario, catalog, (*defaults, *decided(prepared)),
                                 pareto=tuple(NAMES[name] for name in measures)))
    if solved.choice.frontier.interrupted:
        raise Interrupted(plan)
    return plan


def _frontier(solved: Planned, measures: Sequence[Goal]) -> tuple[list[StagedLayout], bool]:
    """Return the points of the frontier, and whether some may be missing."""
    if solved.choice.best is None:
        return [], False
    if solved.choice.status != "optimal":
        return [solved.choice.best], True
    prepared = solved.prepared
    points, account = pareto(prepared.question, prepared.space, job_of(prepared), grid_source(Grid(prepared.facts)),
                             measures, solved.effort.stop)
    return points, account.open_bound is not None or account.interrupted


def _point(solved: Planned, found: StagedLayout, best: Assignment, measures: Sequence[Goal]) -> Alternative:
    """Return a point with what it costs and what it gives beside the first."""
    this = alternative_of(solved.context, found, best)
    changes = [f"{getattr(this, NAMES[name]) / getattr(best, NAMES[name]) - 1:+.1%} {LABELS[name]}"
               for name in measures]
    return this.model_copy(update={"why": "on the frontier: " + ", ".join(changes)})

"""`--pareto`: the exact frontier between cost, days, GPUs and energy, as a plan whose alternatives are its points."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from planner.answer.assignment import Alternative, Assignment
from planner.answer.objective import NAMES
from planner.answer.schema import Plan
from planner.ask.account import finished, provenance_of, search_of, with_decided
from planner.ask.explain.cause import infeasible_of
from planner.ask.simple import only
from planner.errors import InputError
from planner.jobs.columns import Columns, Run
from planner.jobs.job import Change
from planner.jobs.solved import ResolvedScenario, Solved, solve
from planner.scenario.default import Default
from planner.scenario.limits import Objective
from planner.solver.search.pareto import parse_measures
from planner.solver.settings import UNLIMITED, Effort

LABELS: dict[Objective, str] = {"cost": "cost", "time": "days", "gpus": "GPUs", "energy": "energy"}


def trade_offs(question: ResolvedScenario, names: Sequence[str], defaults: Sequence[Default] = (),
               effort: Effort = UNLIMITED) -> Plan:
    """Return the plan that is best by the first measure, and as alternatives all other points of the frontier.

    Raises InputError for unknown measures, or where the fleet is not of one job that ends.
    """
    only(question, "--pareto")
    try:
        measures = parse_measures(names)
    except ValueError as error:
        raise InputError(f"--pareto {error}") from None
    started = time.monotonic()
    question = question.changed(Change(objective=measures[0]))
    solved = solve(question, effort, so_far=True)
    columns, runs, whole = _frontier(solved, measures)
    shown = replace(solved, columns=(columns,), solution=replace(solved.solution, run=runs[0])) if runs else solved
    made = shown.assignments()
    status = "feasible" if not whole and solved.status == "optimal" else solved.status
    scenario = question.scenario.model_copy(update={"objective": measures[0]})
    return finished(Plan(
        status=status, notes=question.terms.market.notes, objective=solved.objective, assignments=tuple(made),
        alternatives=tuple(_point(shown, run, made[0], measures) for run in runs[1:]),
        search=search_of(solved, time.monotonic() - started), infeasible=infeasible_of(solved),
        provenance=provenance_of(scenario, question.catalog, with_decided(defaults, shown),
                                 pareto=tuple(NAMES[name] for name in measures))), shown)


def _frontier(solved: Solved, measures: Sequence[Objective]) -> tuple[Columns, list[Run], bool]:
    """Return the points of the frontier with their columns, and whether they are all there are."""
    best = solved.solution.run
    if best is None or solved.status != "optimal":
        return solved.columns[0], [best] if best else [], best is None
    columns, runs = only(solved.question, "--pareto").trade_offs(measures, solved.effort)
    return columns, runs, columns.open_bound is None and not columns.interrupted


def _point(shown: Solved, run: Run, best: Assignment, measures: Sequence[Objective]) -> Alternative:
    """Return a point with what it costs and what it gives beside the first."""
    this = only(shown.question, "--pareto").beside(shown.columns[0], run, best)
    changes = [f"{getattr(this, NAMES[name]) / getattr(best, NAMES[name]) - 1:+.1%} {LABELS[name]}"
               for name in measures]
    return this.model_copy(update={"why": "on the frontier: " + ", ".join(changes)})

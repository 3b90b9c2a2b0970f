"""A portfolio on every kind of hardware alone, by every way to have it, each planned to its own best."""

from __future__ import annotations

from collections.abc import Iterator

from planner.answer.assignment import Assignment
from planner.answer.comparison import Row
from planner.answer.schema import Plan
from planner.ask.portfolio.plan import plan_portfolio
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.scenario.limits import Hardware
from planner.scenario.portfolio import Portfolio
from planner.solver.progress import part
from planner.solver.settings import Effort


def compare_portfolio(portfolio: Portfolio, catalog: Catalog, effort: Effort
                      ) -> Iterator[tuple[Row, tuple[Assignment, ...]]]:
    """Yield a row for all jobs on each node type alone, by each way to have it. Raises PlannerError."""
    nodes = portfolio.hardware.candidates
    for at, node in enumerate(nodes):
        for kind, how, asked in _ways(portfolio, node):
            row = Row.model_validate({"node": node, "gpu": catalog.gpu(catalog.node(node).gpu).name, "kind": kind,
                                      "offer": how, "status": "infeasible"})
            try:
                with part(node, at, len(nodes)):
                    plan = plan_portfolio(asked, catalog, effort=effort)
            except InputError as error:  # nobody rents or sells this
                yield row.model_copy(update={"why_not": str(error)}), ()
                continue
            yield _filled(row, plan, catalog), plan.assignments


def _ways(portfolio: Portfolio, node: str) -> Iterator[tuple[str, str, Portfolio]]:
    """Yield how nodes of a type are had, and the question with nothing else."""
    sourcing = portfolio.sourcing
    own = tuple(owned for owned in sourcing.own if owned.node == node)
    for kind, how, there, kept in (("owned", "owned nodes", bool(own), {"own": own, "rent": None, "buy": None}),
                                   ("rent", "rented nodes", sourcing.rent is not None, {"own": (), "buy": None}),
                                   ("buy", "bought nodes", sourcing.buy is not None, {"own": (), "rent": None})):
        if there:
            yield kind, how, portfolio.model_copy(update={
                "hardware": Hardware(candidates=(node,)), "sourcing": sourcing.model_copy(update=kept)})


def _filled(row: Row, plan: Plan, catalog: Catalog) -> Row:
    if plan.objective.value is None:
        because = "; ".join(plan.infeasible.because) if plan.infeasible else "time ran out before a plan was found"
        return row.model_copy(update={"status": plan.status, "why_not": because})
    nodes = max((period.serving + period.training for period in plan.periods), default=0)
    days = sum(assignment.duration_days or 0.0 for assignment in plan.assignments if assignment.kind == "training")
    return row.model_copy(update={
        "status": plan.status, "gpus": nodes * catalog.node(row.node).gpus, "cost_usd": plan.objective.value,
        "duration_days": days, "late": sum(bool(assignment.late_days) for assignment in plan.assignments),
        "rejected": sum(assignment.status == "rejected" for assignment in plan.assignments)})

"""Why a portfolio has no plan: the job that cannot be done by itself, or the limits that exclude it together."""

from __future__ import annotations

from planner.answer.schema import Infeasible
from planner.jobs.agenda import Agenda
from planner.solver.settings import Effort


def no_plan(agenda: Agenda, effort: Effort) -> Infeasible:
    """Return the job or the limits that leave no plan, and the single changes that would do."""
    return Infeasible(because=("no plan",))

"""A fleet of one job that ends may be asked for more: the simplest of the tied, or its trade-offs."""

from __future__ import annotations

from dataclasses import replace

from planner.errors import InputError
from planner.jobs.job import Alone
from planner.jobs.solved import ResolvedScenario, Solved, alone_in
from planner.solver.settings import OutOfTime

NO_TIME = "the time limit left no time for --prefer simple: this is the proven optimum"


def only(question: ResolvedScenario, option: str) -> Alone:
    """Return the job that an option is for. Raises InputError where services, or several jobs, share the fleet."""
    alone = alone_in(question)
    if alone is None:
        raise InputError(f"{option} is for one training job that has the fleet to itself, not for a service")
    return alone


def tells_apart(solved: Solved) -> bool:
    """Say whether the plan is of a job of which some layouts are tied: of GPUs, as of services, one more is more."""
    return solved.question.terms.objective != "gpus" and alone_in(solved.question) is not None


def simplest(solved: Solved) -> tuple[Solved, tuple[str, ...]]:
    """Return the simplest plan within the resolution of the prediction, and what the user should know.

    The same where nothing is proven, or too little time is left.
    """
    alone = only(solved.question, "--prefer")
    if solved.status != "optimal" or not solved.picks:
        return solved, ()
    try:
        columns, run, value = alone.simplest(solved.columns[0], solved.picks, solved.effort)
    except OutOfTime:
        return solved, (NO_TIME,)
    return replace(solved, columns=(columns,), solution=replace(solved.solution, run=run, value=value)), ()

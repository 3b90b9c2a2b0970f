"""What comes next after a plan: for services the best fleet of every other hardware and format alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from planner.answer.assignment import SIMPLEST, Alternative, Assignment, alternative
from planner.jobs.columns import Pick, ReplicaColumn
from planner.jobs.solved import Solved
from planner.units import show_more

MOST_ALTERNATIVES = 6
SAME = 5e-4
"""Relative difference that no printed figure shows."""
MEASURED = {"cost": "cost", "time": "time", "gpus": "GPUs", "energy": "energy"}
Kind: TypeAlias = tuple[int, str]
"""A candidate, and the format of weights."""


def alternatives_of(solved: Solved, shown: Solved, simple: Solved) -> list[Alternative]:
    """Return what comes next, best first; before that the simplest of the tied, or where it is shown the optimum."""
    lead = _simplest(solved, simple) if shown is solved else [
        alternative(assignment, "the proven optimum; --prefer simple took the simplest of the tied",
                    tied=solved.question.terms.objective != "gpus") for assignment in solved.assignments()]
    optimal = [runner_up.layout for runner_up in lead]
    others = _other_fleets(shown) if shown.alone is None else shown.alone.alternatives(
        shown.columns[0], shown.picks, solved.effort, proven=solved.status == "optimal")
    return [*lead, *(runner_up for runner_up in others if runner_up.layout not in optimal)]


def _simplest(solved: Solved, simple: Solved) -> list[Alternative]:
    """Return the simplest of the tied with its price; nothing where that is the plan."""
    best, value = solved.solution.value, simple.solution.value
    if simple is solved or not best or value is None or simple.picks == solved.picks:
        return []
    more, what = value / best - 1, MEASURED[solved.question.terms.objective]
    price = f"{show_more(more)} {what}" if more >= SAME else f"same {what}"
    return [alternative(assignment, f"{SIMPLEST}: {price}", tied=True) for assignment in simple.assignments()]


def _other_fleets(solved: Solved) -> list[Alternative]:
    """Return the best fleet of every other kind of hardware and format alone."""
    best, picks = solved.solution.value, solved.replicas
    assert best is not None
    taken = {(pick.column.candidate, pick.column.format) for pick in picks}
    kinds = {(column.candidate, column.format) for columns in solved.columns for _, column in columns.replicas}
    others = [other for kind in sorted(kinds - (taken if len(taken) == 1 else set()))
              if (other := solved.again(partial(_is_kind, kind))).solution.value is not None]
    others.sort(key=lambda other: other.solution.value or 0)
    made: list[Alternative] = []
    seen = {_kind(solved, picks)} if len(taken) == 1 else set()
    for other in others:
        kind = _kind(other, other.replicas)
        if kind in seen:
            continue
        seen.add(kind)
        shown = other.assignments()
        if len(made) + len(shown) > MOST_ALTERNATIVES:
            break
        more = (other.solution.value or 0) / best - 1
        fleet = len(seen) if len(shown) > 1 else None
        made += [_alternative(assignment, more, fleet, solved) for assignment in shown]
    return made


def _kind(solved: Solved, picks: Sequence[Pick]) -> tuple[str, str]:
    """Return the node type and the format of picks that are all of one kind."""
    first = picks[0].column
    return solved.question.terms.market.candidates[first.candidate].node.name, first.format


def _is_kind(kind: Kind, column: ReplicaColumn) -> bool:
    return (column.candidate, column.format) == kind


def _alternative(assignment: Assignment, more: float, fleet: int | None, solved: Solved) -> Alternative:
    what = MEASURED[solved.question.terms.objective]
    tied = more < solved.question.catalog.kernels.resolution
    why = f"{show_more(more)} {what}" if abs(more) >= SAME else f"same {what}"
    return alternative(assignment, why, tied=tied, fleet=fleet)

"""What comes next after a plan: for services the best fleet of every other hardware and format alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from planner.answer.assignment import Alternative, Assignment, alternative
from planner.jobs.columns import Pick, ReplicaColumn
from planner.jobs.solved import Solved

MOST_ALTERNATIVES = 6
Kind: TypeAlias = tuple[int, str]
"""A candidate, and the format of weights."""


def alternatives_of(solved: Solved, shown: Solved) -> list[Alternative]:
    """Return what comes next, best first; where the simplest of the tied is shown, the optimum leads."""
    lead = [] if shown is solved else [
        alternative(one, "the proven optimum; --prefer simple took the simplest of the tied",
                    tied=solved.question.terms.objective != "gpus") for one in solved.assignments()]
    optimal = [one.layout for one in lead]
    found = _other_fleets(shown) if shown.alone is None else shown.alone.alternatives(
        shown.columns[0], shown.picks, solved.effort, proven=solved.status == "optimal")
    return [*lead, *(one for one in found if one.layout not in optimal)]


def _other_fleets(solved: Solved) -> list[Alternative]:
    """Return the best fleet of every other kind of hardware and format alone."""
    best, picks = solved.solution.value, [pick for pick in solved.picks if isinstance(pick, Pick)]
    assert best is not None
    taken = {(pick.column.candidate, pick.column.format) for pick in picks}
    kinds = {(column.candidate, column.format) for columns in solved.columns for _, column in columns.replicas}
    others = [other for kind in sorted(kinds - (taken if len(taken) == 1 else set()))
              if (other := solved.again(admitted=partial(_is_kind, kind))).solution.value is not None]
    others.sort(key=lambda other: other.solution.value or 0)
    made: list[Alternative] = []
    seen = {_kind(solved, picks)} if len(taken) == 1 else set()
    for other in others:
        kind = _kind(other, [pick for pick in other.picks if isinstance(pick, Pick)])
        if kind in seen:
            continue
        seen.add(kind)
        shown = other.assignments()
        if len(made) + len(shown) > MOST_ALTERNATIVES:
            break
        more = (other.solution.value or 0) / best - 1
        made += [_alternative(one, more, len(shown) - 1, solved) for one in shown]
    return made


def _kind(solved: Solved, picks: Sequence[Pick]) -> tuple[str, str]:
    """Return the node type and the format of picks that are all of one kind."""
    first = picks[0].column
    return solved.question.terms.market.candidates[first.candidate].node.name, first.format


def _is_kind(kind: Kind, column: ReplicaColumn) -> bool:
    return (column.candidate, column.format) == kind


def _alternative(one: Assignment, more: float, others: int, solved: Solved) -> Alternative:
    what = {"cost": "cost", "gpus": "GPUs", "energy": "energy"}[solved.question.terms.objective]
    tied = more < solved.question.catalog.kernels.resolution
    together = f", with the {others} other{'s' if others > 1 else ''} of its fleet" if others else ""
    return alternative(one, f"{more:+.1%} {what}{together}", tied=tied)

"""The fastest layout of a training job on a node type, where an estimate leaves the layout open."""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.answer.assignment import Assignment
from planner.ask.explain.cause import infeasible_of
from planner.errors import InputError
from planner.jobs.job import Held
from planner.jobs.solved import ResolvedScenario, Solved, solve
from planner.scenario.limits import Limits
from planner.units import plural


@dataclass(frozen=True, slots=True)
class Estimated:
    """An estimate, and where its layout was left open how it was chosen."""

    assignment: Assignment
    why: tuple[str, ...] = ()
    """What was chosen, or what binds where nothing that was searched fits."""


def fastest(question: ResolvedScenario, gpus: int | None, held: Held, *, told: bool = True) -> Estimated:
    """Return the fastest layout that fits on `gpus` GPUs with some axes held, or what comes nearest where none does.

    question: of one training job on one node type; without a number of GPUs all of the node work, or as many as some
    layout can use. told: whether it is said how it was chosen. Raises InputError where no layout is legal.
    """
    size = question.terms.market.candidates[0].node.gpus
    solved = _solved(question, held, Limits(gpus=gpus or size))
    nearest = _closest(solved)
    if gpus is None and not solved.picks and nearest is None:
        solved = _solved(question, held, Limits(max_gpus=size))
        nearest = _closest(solved)
    (columns,), (job,) = solved.columns, solved.question.jobs
    kept = f" with {', '.join(f'{axis} {value}' for axis, value in held.items())}" if held else ""
    if solved.picks:
        (assignment,) = solved.assignments()
        idle = f" ({size - assignment.gpus} of the node stay idle)" if gpus is None and assignment.gpus < size else ""
        chosen = f"Chosen: the fastest layout{kept} that fits on {plural(assignment.gpus, 'GPU')}{idle}"
        return Estimated(assignment, (f"{chosen}; {columns.account.layouts:,} were considered",))
    if nearest is None:
        raise _illegal(solved)
    return Estimated(nearest, (f"Of {columns.account.layouts:,} layouts{kept} none fits: "
                               f"{job.short(columns).because}",) if told else ())


def fits(question: ResolvedScenario, gpus: int | None, held: Held) -> bool:
    """Say whether `fastest` finds a layout that fits; not so where none is legal."""
    size = question.terms.market.candidates[0].node.gpus
    solved = _solved(question, held, Limits(gpus=gpus or size))
    if gpus is None and not solved.picks:
        fewer = _solved(question, held, Limits(max_gpus=size))
        solved = fewer if fewer.picks and _closest(solved) is None else solved
    return any(assignment.memory.fits == "fits" for assignment in solved.assignments())


def _solved(question: ResolvedScenario, held: Held, limits: Limits) -> Solved:
    if float(held.get("offload_parameters") or 0) > 0 and float(held.get("offload_optimizer") or 1) < 1:
        raise InputError(f"no layout is legal: offload_parameters {held['offload_parameters']} with offload_optimizer "
                         f"{held['offload_optimizer']}: weights leave the GPU with all of their optimizer states")
    return solve(question.under(replace(question.terms, limits=limits)), held=held)


def _closest(solved: Solved) -> Assignment | None:
    """Return what misses memory by least, where nothing fits."""
    return solved.alone.closest(solved.columns[0]) if solved.alone and not solved.picks else None


def _illegal(solved: Solved) -> InputError:
    cause = infeasible_of(solved)
    assert cause is not None
    changes = " or ".join(f"{relaxation.limit} {relaxation.to}" for relaxation in cause.relaxations)
    return InputError(f"no layout is legal: {'; '.join(cause.because)}" + (f": {changes} has one" if changes else ""))

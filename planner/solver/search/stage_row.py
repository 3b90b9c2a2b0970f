"""Stage one row exactly: its split, its column, and whether memory cost it time."""

from __future__ import annotations

from dataclasses import replace

from planner.physics.training.question import Question
from planner.solver import staging
from planner.solver.column import Column
from planner.solver.search.found import Frontier, RowBatch, StagedLayout
from planner.solver.search.job import Pricing
from planner.solver.search.staging_input import staging_problem


def stage_row(question: Question, pricing: Pricing, batch: RowBatch, row: int,
              out: Frontier) -> tuple[list[StagedLayout], bool]:
    """Stage one row. Return it with every number of spare nodes that keeps every limit, best first, and whether memory
    cost it time (or all); count in `out`.
    """
    out.staged += 1
    rows, time = batch.rows, batch.time
    problem = staging_problem(question, rows, time, batch.memory, row)
    staged = staging.solve(problem)
    if staged is None:
        out.removed["staging"] += 1
        return [], True
    # where time does not count, what fits is not bettered by more offload
    short = pricing.job.timed and _costs_time(problem, staged)
    step = (problem.seconds(staged.objective) + float(time.step[row])) * float(time.jitter[row])
    found, over = priced(pricing, batch, row, staged, step)
    if not found:
        out.removed[f"{over}_staged"] += 1
    return found, short


def priced(pricing: Pricing, batch: RowBatch, row: int, split: staging.Staged, step: float
           ) -> tuple[list[StagedLayout], str | None]:
    """Return a staged row of some step with every number of spare nodes that keeps every limit, best first, and the
    last limit that one broke.
    """
    found, broken = list[StagedLayout](), None
    for column, share in pricing.columns(batch.rows, row, step):
        cents = pricing.cost(column)
        over = _over_limit(pricing, column, cents)
        broken = over or broken
        if over is None:
            found.append(StagedLayout(batch, row, split, step, share, column, cents, pricing.key(column)))
    return sorted(found, key=lambda one: one.key), broken


def _over_limit(pricing: Pricing, column: Column, cents: int) -> str | None:
    """Return the limit that a staged layout breaks, which its bound did not show; none where it keeps all."""
    job, most = pricing.job, pricing.job.offers[column.candidate].max_nodes
    limits = (("deadline", column.upper_us, job.deadline_us), ("budget", cents, job.budget_cents),
              ("power", column.power_w, job.max_power_w), ("owned", column.rented_nodes, most))
    return next((name for name, value, limit in limits if limit is not None and value > limit), None)


def _costs_time(problem: staging.StagingProblem, staged: staging.Staged) -> bool:
    """Say whether memory made the split slower than it need be."""
    fastest = min(problem.mode_ns[mode] for mix in problem.mixes for mode in mix)
    fixed = problem.min_layers == problem.max_layers
    if fixed and all(not count or ns == fastest for row in staged.counts
                     for count, ns in zip(row, problem.mode_ns, strict=True)):
        return False
    return staged.objective > _without_memory(problem, fixed=fixed)


def _without_memory(problem: staging.StagingProblem, *, fixed: bool) -> int:
    """Return the objective of the same split with memory for everything."""
    layers = problem.max_layers if fixed else (problem.layers,) * problem.stages
    none = (0,) * problem.stages
    free = staging.solve(replace(problem, keep_units=(0, 0, 0), state_units=0, fixed_units=none, backward_units=0,
                                 backward_fixed=none, max_layers=layers, shared=()))
    assert free is not None, "a split without memory limits always exists"
    return free.objective

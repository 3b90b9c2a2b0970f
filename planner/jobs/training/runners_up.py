"""What comes next after a training plan, and why it lost: other hardware, other sizes and layouts of the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from planner.answer.assignment import Alternative, Assignment, alternative
from planner.jobs.training.assignment import Context, assignment_of
from planner.layouts.enumerate import Grid
from planner.layouts.rules import Facts
from planner.solver.search.found import Frontier, StagedLayout
from planner.solver.search.frontier import GridSearch
from planner.solver.search.source import grid_source
from planner.solver.settings import Effort
from planner.units import DAY, show_kwh, show_more, show_seconds, show_usd

MOST_ALTERNATIVES = 8
LEAST_COUNT = 3
"""Best layouts of the hardware that won that are looked for, however much other hardware there is."""


def next_best(context: Context, facts: Facts, frontier: Frontier, best: StagedLayout,
              effort: Effort) -> list[StagedLayout]:
    """Return the next best layouts and sizes on the hardware of a proven optimum, as many as other hardware leaves room
    for.
    """
    if effort.is_over:
        return []
    held = {"candidate": (best.column.candidate,)}
    facts = replace(facts, space=replace(facts.space, only={**facts.space.only, **held}))
    others = len({staged.column.candidate for staged in frontier.found}) - 1
    search = GridSearch(context.question, facts.space, context.job, effort,
                        count=max(LEAST_COUNT, MOST_ALTERNATIVES + 1 - others))
    more = search.run(grid_source(Grid(facts)))
    frontier.interrupted |= more.interrupted  # the plan stands; what was to come next is cut short
    return [staged for staged in more.found if staged.column.key != best.column.key]


def runners_up(layouts: Sequence[StagedLayout], best: StagedLayout, kept: Sequence[StagedLayout] = ()
               ) -> list[StagedLayout]:
    """Return the next best: of every other candidate its best, then of the same hardware other sizes and layouts.

    kept: those that are among them in any case, as the best of each other stack.

    Where something else than cost decided, the cheapest that was found is among them.
    """
    ranked = sorted((f for f in layouts if f is not best), key=lambda f: f.key)
    most = MOST_ALTERNATIVES - len(kept)
    chosen: list[StagedLayout] = []
    seen: set[tuple[int, ...]] = {(best.column.candidate, best.column.gpus)}
    hardware = {best.column.candidate}
    for staged in ranked:
        if staged.column.candidate not in hardware:
            hardware.add(staged.column.candidate)
            seen.add((staged.column.candidate, staged.column.gpus))
            chosen.append(staged)
    for staged in ranked:
        if len(chosen) >= most:
            break
        size = (staged.column.candidate, staged.column.gpus)
        if size not in seen and staged.column.candidate == best.column.candidate:
            seen.add(size)
            chosen.append(staged)
    if ranked and ranked[0] not in chosen:
        chosen.insert(0, ranked[0])
    chosen = sorted(chosen, key=lambda f: f.key)[:most]
    cheapest = min(ranked, key=lambda f: (f.cents, f.key), default=best)
    if cheapest.cents < best.cents and cheapest not in chosen:
        chosen[-1:] = [cheapest]
    mine = {layout.column.key for layout in kept}
    return sorted([*kept, *(layout for layout in chosen if layout.column.key not in mine)], key=lambda f: f.key)


def alternative_of(context: Context, staged: StagedLayout, best: Assignment) -> Alternative:
    """Return a runner-up with the reason it lost, and whether the difference can be told at all."""
    this = assignment_of(context, staged)
    objective = context.job.objective
    ours, theirs = _value(best, objective), _value(this, objective)
    excess = theirs / ours - 1
    tied = objective != "gpus" and abs(excess) < context.question.kernels.resolution
    why = _why(best, this, objective, excess)
    if this.stack != best.stack:
        why = f"with {this.stack}: {why}" + ("" if context.validated else "; its speed is not validated")
    return alternative(this, why, tied=tied)


def _value(assignment: Assignment, objective: str) -> float:
    mean = assignment.mean_cost_usd
    value = {"cost": assignment.cost_usd if mean is None else mean, "time": assignment.duration_days,
             "gpus": assignment.gpus, "energy": assignment.energy_kwh}[objective]
    assert value is not None
    return float(value)


def _why(best: Assignment, this: Assignment, objective: str, excess: float) -> str:
    if this.offer is None:
        return f"{this.gpus} {this.gpu} GPUs against {best.gpus} {best.gpu}"
    if abs(excess) < TOLD_APART:
        return f"same {_MEASURES[objective]}; {_otherwise(best, this, objective)}"
    lead = f"{show_more(excess)} {_MEASURES[objective]}"
    if objective == "gpus":
        return f"{lead}: {this.gpus:,} against {best.gpus:,}"
    if best.node == this.node and best.offer == this.offer:
        return f"{lead}: {_largest_difference(best, this)}"
    shown = _hours if objective == "cost" else _SHOWN[objective]
    return f"{lead}: {shown(this)} against {shown(best)}"


TOLD_APART = 5e-4
"""Relative difference below which a reason calls two values the same."""
_MEASURES = {"cost": "cost", "time": "time", "gpus": "GPUs", "energy": "energy"}
_SHOWN: dict[str, Callable[[Assignment], str]] = {
    "cost": lambda a: show_usd(_value(a, "cost")), "time": lambda a: show_seconds(_value(a, "time") * DAY),
    "gpus": lambda a: f"{a.gpus:,}", "energy": lambda a: show_kwh(_value(a, "energy"))}


def _otherwise(best: Assignment, this: Assignment, objective: str) -> str:
    """Name the first other measure, in the order of the solver's ties, by which the runner-up is visibly worse."""
    for other in ("cost", "gpus", "time"):
        excess = _value(this, other) / max(_value(best, other), 1e-9) - 1
        if other != objective and excess >= TOLD_APART:
            return f"{show_more(excess)} {_MEASURES[other]}: {_SHOWN[other](this)} against {_SHOWN[other](best)}"
    behind = f"behind by less than {TOLD_APART:.2%}"
    cost = _value(this, "cost")
    if cost < _value(best, "cost") * (1 - TOLD_APART):
        return f"{behind}, though for {show_usd(cost)} against {_SHOWN['cost'](best)}"
    if this.nodes + this.spare_nodes > best.nodes + best.spare_nodes:
        return f"more nodes: {this.nodes + this.spare_nodes:,} against {best.nodes + best.spare_nodes:,}"
    return f"{behind}, or harder to set up"


def _hours(a: Assignment) -> str:
    """Say how many paid GPU-hours at what price."""
    assert a.usd_per_node_hour is not None
    assert a.duration_days is not None
    per_node = a.gpus / a.nodes
    hours = (a.nodes + a.spare_nodes) * per_node * a.duration_days * 24
    return f"{show_hours(hours)} at {show_usd(a.usd_per_node_hour / per_node)}"


def show_hours(hours: float) -> str:
    """Write GPU-hours for people: `21.3 GPU-hours`, `3.20 k GPU-hours`, `1.25 M GPU-hours`."""
    if hours >= 999_500:
        return f"{hours / 1e6:,.2f} M GPU-hours"
    return f"{hours / 1e3:,.2f} k GPU-hours" if hours >= 999.5 else f"{hours:,.1f} GPU-hours"


def _largest_difference(best: Assignment, this: Assignment) -> str:
    """Name the part of the step on which the runner-up spends most more GPU-seconds."""
    total = best.time.step_seconds * best.gpus
    ours, theirs = best.time.components.model_dump(), this.time.components.model_dump()
    spent = {name: (theirs[name] * this.gpus - ours[name] * best.gpus) / total for name in ours}
    name = max(spent, key=lambda key: spent[key])
    if spent[name] < 5e-4:
        return "fewer GPU-seconds a step, but more nodes, spares or failures"
    return f"{name.replace('_', ' ')} takes {spent[name]:+.1%} GPU time"

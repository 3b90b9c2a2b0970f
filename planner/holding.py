"""What holds a model: the fewest GPUs of every kind, for inference, LoRA, QLoRA and full training."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

from planner.answer.assemble import Context, alternative_of, assignment_of
from planner.answer.assignment import Alternative, Assignment
from planner.answer.schema import Infeasible, Objective, Plan, Search
from planner.catalog.load import Catalog
from planner.layouts.enumerate import enumerate_layouts
from planner.pipeline import provenance_of
from planner.prepare import MOST_HOLDING, job_of, prepare, residuals_of
from planner.scenario.scenario import Scenario
from planner.scenario.workload import Method
from planner.solver.choose import choose
from planner.solver.frontier import StagedLayout

METHODS: tuple[Method, ...] = ("inference", "qlora", "lora", "full")


def hold(scenario: Scenario, catalog: Catalog, defaults: Sequence[str]) -> Plan:
    """Return the fewest GPUs that hold the model, one assignment a method; other GPU kinds are the alternatives.

    Every count is proven: no layout of the space on fewer GPUs of that kind fits at the asked confidence.
    """
    started = time.monotonic()
    methods = (scenario.workload.method,) if scenario.workload.method else METHODS
    best: list[Assignment] = []
    others: list[Alternative] = []
    removed: Counter[str] = Counter()
    layouts = legal = fit = staged = 0
    without: list[str] = []
    for method in methods:
        work = scenario.workload.model_copy(update={"method": method})
        prepared = prepare(scenario.model_copy(update={"workload": work}), catalog)
        grid = enumerate_layouts(prepared.facts)
        choice = choose(prepared.question, prepared.space, job_of(prepared), grid.layouts)
        layouts, legal = layouts + grid.grid, legal + len(grid.layouts)
        fit, staged = fit + choice.frontier.fit, staged + choice.frontier.staged
        removed.update(grid.removed)
        removed.update(choice.frontier.removed)
        if choice.best is None:
            without.append(method)
            continue
        context = Context(method, prepared.question, job_of(prepared), prepared.offers, residuals_of(prepared))
        first = assignment_of(context, choice.best)
        best.append(first)
        others += [alternative_of(context, one, first) for one in _by_kind(choice.frontier.found)
                   if one.column.candidate != choice.best.column.candidate]
    total = float(sum(assignment.gpus for assignment in best))
    return Plan(
        status="optimal" if best else "infeasible", assignments=tuple(best), alternatives=tuple(others),
        objective=Objective(name="gpus", value=total, bound=total, gap=0.0) if best else Objective(name="gpus"),
        search=Search(layouts=layouts, legal=legal, fit=fit, staged=staged,
                      removed={name: count for name, count in removed.items() if count},
                      wall_seconds=round(time.monotonic() - started, 3)),
        infeasible=None if best else Infeasible(because=(_nothing(scenario, without),)),
        provenance=provenance_of(scenario, catalog, (*defaults, *([_nothing(scenario, without)] if without else []))))


def _nothing(scenario: Scenario, without: Sequence[str]) -> str:
    """Say which methods no count of GPUs within the limits holds."""
    limits = scenario.limits
    count = f"{limits.gpus} GPUs" if limits.gpus else f"up to {limits.max_gpus or MOST_HOLDING} GPUs of a kind"
    return f"nothing on {count} holds the model for {', '.join(without)}"


def _by_kind(found: Sequence[StagedLayout]) -> list[StagedLayout]:
    """Return the best staged layout of every candidate, fewest GPUs first."""
    kinds: dict[int, StagedLayout] = {}
    for one in sorted(found, key=lambda f: f.key):
        kinds.setdefault(one.column.candidate, one)
    return list(kinds.values())

"""What holds a model: the fewest GPUs of every kind, for inference, LoRA, QLoRA and full training."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from planner.answer.assignment import Alternative, Assignment
from planner.answer.schema import Infeasible, Objective, Plan, Search
from planner.catalog.load import Catalog
from planner.jobs.provenance import provenance_of
from planner.jobs.training.assignment import alternative_of, assignment_of
from planner.jobs.training.prepared import MOST_HOLDING, job_of, prepare
from planner.jobs.training.solved import context_of
from planner.layouts.enumerate import Grid
from planner.physics.shapes import parameters
from planner.scenario.default import Default
from planner.scenario.scenario import Scenario
from planner.scenario.workload import Method
from planner.solver.search.choose import Choice, choose
from planner.solver.search.found import StagedLayout
from planner.solver.settings import UNLIMITED, Effort

METHODS: tuple[Method, ...] = ("inference", "qlora", "lora", "full")


@dataclass(slots=True)
class Account:
    """What all searches of one question did together."""

    layouts: int = 0
    legal: int = 0
    fit: int = 0
    staged: int = 0
    removed: Counter[str] = field(default_factory=Counter)

    def add(self, grid: Grid, choice: Choice) -> None:
        """Count one search."""
        self.layouts, self.legal = self.layouts + grid.size, self.legal + grid.grown
        self.fit, self.staged = self.fit + choice.frontier.fit, self.staged + choice.frontier.staged
        self.removed.update(grid.removed)
        self.removed.update(choice.frontier.removed)


def hold(scenario: Scenario, catalog: Catalog, defaults: Sequence[Default], effort: Effort = UNLIMITED) -> Plan:
    """Return the fewest GPUs that hold the model, one assignment a method; other GPU kinds are the alternatives.

    Of several models the largest that fits is answered for. Every count is proven: no layout of the space on fewer
    GPUs of that kind fits at the asked confidence.
    """
    started = time.monotonic()
    methods = (scenario.workload.method,) if scenario.workload.method else METHODS
    models = sorted(scenario.workload.models, key=lambda name: -parameters(catalog.model(name)))
    best: list[Assignment] = []
    others: list[Alternative] = []
    account = Account()
    without: list[str] = []
    for method in methods:
        for model in models:
            held = _held(scenario, catalog, method, model, account, effort)
            if held:
                best.append(held[0])
                others += held[1]
                break
            without.append(f"{method} of {model}" if len(models) > 1 else method)
    total = float(sum(assignment.gpus for assignment in best))
    return Plan(
        status="optimal" if best else "infeasible",
        notes=(_nothing(scenario, without),) if best and without else (),
        assignments=tuple(best), alternatives=tuple(others),
        objective=Objective(name="gpus", value=total, bound=total, gap=0.0) if best else Objective(name="gpus"),
        search=Search(layouts=account.layouts, legal=account.legal, fit=account.fit, staged=account.staged,
                      removed={name: count for name, count in account.removed.items() if count},
                      wall_seconds=round(time.monotonic() - started, 3)),
        infeasible=None if best else Infeasible(because=(_nothing(scenario, without),)),
        provenance=provenance_of(scenario, catalog, defaults))


def _held(scenario: Scenario, catalog: Catalog, method: Method, model: str,
          account: Account, effort: Effort) -> tuple[Assignment, list[Alternative]] | None:
    """Return the fewest GPUs for one method and model, and those of every other kind; none where nothing fits."""
    work = scenario.workload.model_copy(update={"method": method, "model": model})
    prepared = prepare(scenario.model_copy(update={"workload": work}), catalog)
    grid = Grid(prepared.facts)
    choice = choose(prepared.question, grid, job_of(prepared), effort)
    account.add(grid, choice)
    if choice.best is None:
        return None
    name = f"{method} {model}" if len(scenario.workload.models) > 1 else method
    context = context_of(prepared, name)
    first = assignment_of(context, choice.best)
    return first, [alternative_of(context, one, first) for one in _by_kind(choice.frontier.found)
                   if one.column.candidate != choice.best.column.candidate]


def _nothing(scenario: Scenario, without: Sequence[str]) -> str:
    """Say which methods no count of GPUs within the limits holds."""
    limits = scenario.limits
    count = f"{limits.gpus} GPUs" if limits.gpus else f"up to {limits.max_gpus or MOST_HOLDING} GPUs of a kind"
    what = "" if len(scenario.workload.models) > 1 else "the model for "
    return f"nothing on {count} holds {what}{', '.join(without)}"


def _by_kind(found: Sequence[StagedLayout]) -> list[StagedLayout]:
    """Return the best staged layout of every candidate, fewest GPUs first."""
    kinds: dict[int, StagedLayout] = {}
    for one in sorted(found, key=lambda f: f.key):
        kinds.setdefault(one.column.candidate, one)
    return list(kinds.values())

"""The whole flow: scenario and catalog to layouts, estimates, a proven choice, and the plan."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata

from planner import __version__
from planner.answer.assemble import (
    MOST_ALTERNATIVES,
    Context,
    alternative_of,
    assignment_of,
    price_dates,
    runners_up,
    unwritten,
)
from planner.answer.infeasible import Miss, infeasible_of
from planner.answer.schema import PREFER_SIMPLE, Infeasible, Objective, Plan, Provenance, Search
from planner.catalog.load import Catalog
from planner.layouts.axes import SCHEDULES
from planner.layouts.enumerate import Grid
from planner.prepare import MOST_GPUS, Prepared, job_of, prepare, residuals_of
from planner.scenario.scenario import Scenario
from planner.solver.choose import Choice, choose
from planner.solver.found import StagedLayout
from planner.solver.frontier import Search as LayoutSearch
from planner.solver.frontier import grid_source
from planner.solver.simplest import simplest
from planner.units import DAY


class Interrupted(Exception):
    """The search was interrupted (Ctrl-C); `plan` is the best so far, with its gap."""

    def __init__(self, plan: Plan) -> None:
        super().__init__("interrupted")
        self.plan = plan


def make_plan(scenario: Scenario, catalog: Catalog, *, defaults: Sequence[str] = (),
              time_limit: float | None = None, simple: bool = False) -> Plan:
    """Return the proven plan for a resolved scenario. Raises PlannerError where the input is wrong.

    simple: of the layouts that cannot be told from the best one, the plan is the simplest; the best comes next.
    """
    if scenario.workload.tokens is None:
        from planner.holding import hold  # the other question, asked by leaving tokens out

        return hold(scenario, catalog, defaults)
    started = time.monotonic()
    prepared = prepare(scenario, catalog)
    grid = Grid(prepared.facts)
    stop = started + time_limit if time_limit is not None else None
    choice = choose(prepared.question, prepared.space, job_of(prepared), grid_source(grid), stop)
    context = _context(prepared)
    shown = choice.best
    if simple and choice.best and choice.status == "optimal":
        shown = simplest(prepared.question, prepared.space, job_of(prepared), grid_source(Grid(prepared.facts)),
                         choice.best, prepared.question.kernels.resolution)
    best = assignment_of(context, shown) if shown else None
    others = runners_up([*choice.frontier.found, *_next_best(prepared, choice)], shown) if shown else []
    rest = [alternative_of(context, other, best) for other in others if other is not choice.best] if best else []
    if best and choice.best is not None and shown is not choice.best:
        why = "the proven optimum; --prefer simple took the simplest of the tied"
        rest.insert(0, alternative_of(context, choice.best, best).model_copy(update={"why": why}))
    plan = Plan(
        status=choice.status, objective=_objective(scenario, choice), assignments=(best,) if best else (),
        alternatives=tuple(rest),
        search=search_of(prepared, grid, choice, time.monotonic() - started),
        infeasible=_infeasible(prepared, grid, choice) if choice.status == "infeasible" else None,
        provenance=provenance_of(scenario, catalog, (
            *defaults, *_decided(prepared), *(unwritten(context, shown) if shown else ()),
            *(_preferred(choice.best, shown) if choice.best and shown else ()))))
    if choice.frontier.interrupted:
        raise Interrupted(plan)
    return plan


def _next_best(prepared: Prepared, choice: Choice) -> list[StagedLayout]:
    """Return the next best layouts and sizes on the hardware of a proven optimum."""
    if choice.best is None or choice.status != "optimal":
        return []
    held = {"candidate": (choice.best.column.candidate,)}
    facts = replace(prepared.facts, space=replace(prepared.space, only={**prepared.space.only, **held}))
    search = LayoutSearch(prepared.question, facts.space, job_of(prepared), count=MOST_ALTERNATIVES + 1)
    return [one for one in search.run(grid_source(Grid(facts))).found if one.column.key != choice.best.column.key]


def _preferred(best: StagedLayout, shown: StagedLayout) -> list[str]:
    """Return what the simplest layout costs beside the best; nothing where they are one."""
    if shown is best:
        return []
    return [f"{PREFER_SIMPLE}, {shown.key[0] / best.key[0] - 1:+.1%} against the optimum, which comes next"]


def _context(prepared: Prepared) -> Context:
    return Context(prepared.scenario.name, prepared.question, job_of(prepared), prepared.offers, residuals_of(prepared))


_UNITS = {"cost": ("cost_usd", 1e-2), "time": ("duration_days", 1e-6 / DAY), "gpus": ("gpus", 1.0),
          "energy": ("energy_kwh", 1e-3)}


def _objective(scenario: Scenario, choice: Choice) -> Objective:
    name, unit = _UNITS[scenario.objective]
    scale = round(1 / unit) if scenario.objective in ("cost", "energy") else 1 / unit
    value = None if choice.value is None else choice.value / scale
    bound = None if choice.bound is None else choice.bound / scale
    gap = None if not value or bound is None else (value - bound) / value
    return Objective(name=name, value=value, bound=bound, gap=gap)


def search_of(prepared: Prepared, grid: Grid, choice: Choice, seconds: float) -> Search:
    """Return the account of a search: the space, what was removed and why, what was staged."""
    removed = {**grid.removed, **{k: v for k, v in choice.frontier.removed.items() if v}}
    if prepared.dropped:
        removed["no_offer"] = len(prepared.dropped)
    space = prepared.space
    names = {"candidate": [c.label for c in space.candidates], "precision": list(space.precisions),
             "schedule": [SCHEDULES[order] for order in space.schedules],
             "recompute": ["none", "selective", "full", "per layer"]}
    domains = {axis: tuple(names.get(axis, values)) for axis, values in grid.domains.items()}
    return Search(layouts=grid.size, legal=grid.grown, fit=choice.frontier.fit, removed=removed,
                  staged=choice.frontier.staged, domains=domains, wall_seconds=round(seconds, 3))


def _decided(prepared: Prepared) -> list[str]:
    limits = prepared.scenario.limits
    decided = [price_dates(o.as_of for o in prepared.offers)]
    if limits.gpus is None and limits.max_gpus is None:
        decided.append(f"max_gpus={MOST_GPUS}")
    return decided


def provenance_of(scenario: Scenario, catalog: Catalog, defaults: Sequence[str]) -> Provenance:
    """Return what the answer rests on: the resolved question, defaults, catalog and versions."""
    return Provenance(scenario=scenario.model_dump(mode="json", exclude_none=True), defaults=tuple(defaults),
                      catalog_digest=catalog.digest, versions=_versions())


def _versions() -> dict[str, str]:
    return {"planner": __version__, **{name: metadata.version(name) for name in ("ortools", "numpy", "networkx")}}


def _infeasible(prepared: Prepared, grid: Grid, choice: Choice) -> Infeasible:
    """Say why nothing works, what came nearest, and which single limit, lifted how far, would do."""
    def without(limit: str, objective: str, to: object = None) -> Choice:
        held = prepared.scenario.limits
        if limit == "deadline" and isinstance(to, float) and held.deadline is not None:
            to = held.deadline._replace(seconds=to)
        limits = held.model_copy(update={limit: to})
        relaxed = prepared.scenario.model_copy(update={"limits": limits, "objective": objective})
        again = prepare(relaxed, prepared.catalog)
        return choose(again.question, again.space, job_of(again), grid_source(Grid(again.facts)))

    return infeasible_of(prepared.scenario.limits, Miss(prepared.question, grid, choice.frontier), without)

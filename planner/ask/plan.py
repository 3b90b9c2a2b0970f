"""The whole flow: scenario and catalog to layouts, estimates, a proven choice, and the plan."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from planner.answer.assignment import Alternative, Assignment
from planner.answer.schema import Plan, Search
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.provenance import price_dates, provenance_of
from planner.jobs.training.assignment import alternative_of, assignment_of, runners_up
from planner.jobs.training.cause import infeasible_of
from planner.jobs.training.prepared import MOST_GPUS, Prepared, job_of, prepare
from planner.jobs.training.solved import Planned, planned
from planner.layouts.axes import SCHEDULES
from planner.layouts.enumerate import Grid
from planner.scenario.default import Default, Defaults
from planner.scenario.scenario import AnyScenario, ServingScenario
from planner.solver.search.found import StagedLayout
from planner.solver.search.simplest import simplest
from planner.solver.search.source import grid_source
from planner.solver.settings import Effort


class Interrupted(Exception):
    """The search was interrupted (Ctrl-C); `plan` is the best so far, with its gap."""

    def __init__(self, plan: Plan) -> None:
        super().__init__("interrupted")
        self.plan = plan


def make_plan(scenario: AnyScenario, catalog: Catalog, *, defaults: Sequence[Default] = (),
              time_limit: float | None = None, simple: bool = False, pareto: Sequence[str] = (),
              workers: int = 1, replay: Path | None = None,
              progress: Callable[[float], None] | None = None) -> Plan:
    """Return the proven plan for a resolved scenario. Raises PlannerError where the input is wrong.

    simple: of the layouts that cannot be told from the best one, the plan is the simplest; the best comes next.
    pareto: two or more of cost, days, gpus, energy; the first is minimized, and the alternatives are the exact frontier
    of their trade-offs. workers: processes that share the search out; they change how long it takes, not the answer.
    replay: a trace that a service's plan is replayed on; progress is called with the share done.
    """
    effort = effort_of(time_limit, workers)
    if isinstance(scenario, ServingScenario):
        from planner.jobs.serving.plan import plan_serving, refuse  # another physics and search

        refuse(simple=simple, pareto=pareto)
        return plan_serving(scenario, catalog, defaults, replay, progress, time_limit)
    if replay is not None:
        raise InputError("--replay is for services, and this is a training question")
    if pareto:
        from planner.ask.pareto import trade_offs  # another search, asked for by name

        return trade_offs(scenario, catalog, pareto, defaults, effort)
    if scenario.workload.tokens is None:
        from planner.ask.hold import hold  # the other question, asked by leaving tokens out

        # every count is claimed as proven, so that no time limit may cut one short
        return hold(scenario, catalog, defaults, Effort(workers=workers))
    started = time.monotonic()
    prepared = prepare(scenario, catalog)
    solved = planned(prepared, effort)
    choice, context = solved.choice, solved.context
    shown = choice.best
    if simple and choice.best and choice.status == "optimal":
        shown = simplest(prepared.question, prepared.space, job_of(prepared), grid_source(Grid(prepared.facts)),
                         choice.best, prepared.question.kernels.resolution)
    best = assignment_of(context, shown) if shown else None
    plan = Plan(
        status=choice.status, notes=prepared.notes,
        objective=solved.objective,
        assignments=(best,) if best else (),
        alternatives=tuple(_alternatives(solved, shown, best)) if best and shown else (),
        search=search_of(solved, time.monotonic() - started), infeasible=infeasible_of(solved),
        provenance=provenance_of(scenario, catalog, (*defaults, *decided(prepared), *cut_short(solved)),
                                 simple=shown is not choice.best))
    if choice.frontier.interrupted:
        raise Interrupted(plan)
    return plan


def _alternatives(solved: Planned, shown: StagedLayout, best: Assignment) -> Iterator[Alternative]:
    """Yield the next best; where the simplest of the tied is shown, the proven optimum leads them."""
    context, optimum = solved.context, solved.choice.best
    if optimum is not None and shown is not optimum:
        why = "the proven optimum; --prefer simple took the simplest of the tied"
        yield alternative_of(context, optimum, best).model_copy(update={"why": why})
    for other in runners_up([*solved.choice.frontier.found, *solved.next_best()], shown):
        if other is not optimum:
            yield alternative_of(context, other, best)


def search_of(solved: Planned, seconds: float) -> Search:
    """Return the account of a search: the space, what was removed and why, what was staged."""
    prepared, grid, choice = solved.prepared, solved.grid, solved.choice
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


def effort_of(time_limit: float | None, workers: int) -> Effort:
    """Return what an answer may take that is asked for now; `time_limit` is in seconds."""
    return Effort(None if time_limit is None else time.monotonic() + time_limit, workers)


def decided(prepared: Prepared) -> Defaults:
    """Return what decided beside the defaults of the question: how old prices are, and how far the search went."""
    limits = prepared.scenario.limits
    decided = [price_dates(o.as_of for o in prepared.offers)]
    if limits.gpus is None and limits.max_gpus is None:
        decided.append(Default(name="max_gpus", value=str(MOST_GPUS), why="no limit is given"))
    return decided


def cut_short(solved: Planned) -> Defaults:
    """Return how many nodes can be bought, where more were looked at."""
    removed = solved.choice.frontier.removed
    most = [f"{offer.nodes:,} {offer.estate.node.name}" for offer in solved.prepared.offers if offer.estate is not None]
    if not most or not any(count for name, count in removed.items() if name.startswith("owned")):
        return []
    return [Default(name="bought", value=f"at most {', '.join(most)}", why="as their networks join or are priced for")]

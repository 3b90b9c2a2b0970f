"""The cheapest replicas on nodes, with their proof: a day is taken apart into its periods wherever that is exact.

What is rented by the hour ties no period to another, so that each is a small question of its own, and their bounds add
up. What is always paid for does, and so do classes of prompts: then the whole day is one model, and the periods are
solved again with what it decided for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ortools.sat.python import cp_model

from planner.solver.engine import Ending, run
from planner.solver.fleet.committed import held
from planner.solver.fleet.cover_model import CoverModel
from planner.solver.fleet.covering import LIMITED, Cover, Covered, NodeSupply, Supplied
from planner.solver.settings import Settings, Status

TIDYING = 2.0
"""Deterministic seconds for what is decided last, among covers that are equal in money and GPUs of nodes."""
CHANGES = 10.0
"""The same for a day whose changes cost, which is one model of all hours."""
Goals = Callable[[CoverModel], Sequence[cp_model.LinearExprT]]


def cover(problem: Cover, settings: Settings = LIMITED) -> Covered:
    """Return the replicas with a proof of the objective; columns listed first win what is left of ties.

    Where the limit of `settings` ends the proof of the objective, the best replicas so far come with their bound.
    """
    if not problem.columns:
        return Covered("infeasible")
    if problem.one_provider or problem.homogeneous:
        return _of_one_kind(problem, settings)
    if len(problem.hours) == 1:
        return _solved(problem, settings, lambda made: [*made.then(), *made.tidy()])
    strongest = replace(problem, columns=_strongest(problem.columns))
    together = any(supply.always for supply in problem.supplies) or problem.ranges
    if problem.changing:
        covered = _in_turn(strongest, settings)
        return covered if covered.value is None else _tidied(problem, covered, settings)
    covered = _day(strongest, settings) if together else _by_period(strongest, settings)
    return covered if covered.value is None else _tidied(problem, covered, settings)


def _of_one_kind(problem: Cover, settings: Settings) -> Covered:
    """Return the best cover by supplies that are alike, of every such group in turn: the first of equals wins."""
    groups: dict[tuple[str, str], list[NodeSupply]] = {}
    for supply in problem.supplies:
        groups.setdefault(problem.alike(supply), []).append(supply)
    covers: list[Covered] = []
    for supplies in groups.values():
        keys = {supply.key for supply in supplies}
        columns = tuple(column for column in problem.columns if column.supply in keys)
        covers.append(cover(replace(problem, columns=columns, supplies=tuple(supplies), one_provider=False,
                                   homogeneous=False), settings))
    best = _better(*covers)
    if best is None:
        return Covered("infeasible" if all(covered.status == "infeasible" for covered in covers) else "undecided")
    open_bounds = [0 if covered.status == "undecided" else covered.bound for covered in covers]
    bound = min((bound for bound in open_bounds if bound is not None), default=best.bound)
    nothing = (0,) * len(problem.hours)
    return replace(best, status="optimal" if bound == best.value else "feasible", bound=bound,
                   replicas={column.key: best.replicas.get(column.key, nothing) for column in problem.columns},
                   nodes={supply.key: best.nodes.get(supply.key, nothing) for supply in problem.supplies})


def _strongest(columns: Sequence[Supplied]) -> tuple[Supplied, ...]:
    """Return the columns without those of less rate on as many GPUs: in their place others do for the same money."""
    best: dict[tuple[int, int, str, int], Supplied] = {}
    for column in columns:
        alike = column.service, column.supply, column.role, column.gpus
        if alike not in best or column.micro_rate > best[alike].micro_rate:
            best[alike] = column
    return tuple(column for column in columns if column in best.values())


def _solved(problem: Cover, settings: Settings, then: Goals, known: Covered | None = None) -> Covered:
    """Return the best cover by the objective, and among those by what comes `then`, in one model.

    It is not worse than the one that is known.
    """
    made, known = CoverModel(problem), _better(known, _together(problem, settings))
    first: Ending | None = None
    last: Ending | None = None
    # what is minimized already is not again
    for goal in {id(goal): goal for goal in (made.objective(), *then(made))}.values():
        if first is None and known is not None:
            made.start(goal, known)
        ending = run(made.model, goal, settings)
        first = first or ending
        if ending.status != "optimal":
            break
        last = ending
        made.model.add(goal == ending.read(goal))
    if first is None or first.value is None:
        return Covered(first.status if first else "infeasible")
    return made.read(last or first, first)


def _together(problem: Cover, settings: Settings) -> Covered | None:
    """Return the cover by replicas that do all of a request, where others may too: quickly proven, and a bound."""
    whole = tuple(column for column in problem.columns if column.role == "whole")
    if not whole or len(whole) == len(problem.columns):
        return None
    covered = cover(replace(problem, columns=whole), settings)
    return None if covered.value is None else covered


def _periods(problem: Cover, settings: Settings, known: Covered | None = None) -> list[Covered]:
    """Return the cover of each period by itself; the limit of `settings` is shared out."""
    limit, count = settings.deterministic_limit, len(problem.hours)
    if limit is not None:
        settings = replace(settings, deterministic_limit=limit / count)
    return [_solved(_period(problem, at, known), settings, CoverModel.then) for at in range(count)]


def _better(*covers: Covered | None) -> Covered | None:
    """Return the best of those that are there."""
    return min((covered for covered in covers if covered is not None and covered.value is not None),
               key=lambda covered: covered.value or 0, default=None)


def _by_period(problem: Cover, settings: Settings) -> Covered:
    """Return the cover of a day whose periods have nothing to do with each other."""
    parts = _periods(problem, settings)
    if any(part.value is None for part in parts):
        ended: Status = "infeasible" if any(part.status == "infeasible" for part in parts) else "undecided"
        return Covered(ended)
    bounds = [part.bound or 0 for part in parts]
    bound = max(bounds) if problem.objective == "gpus" else sum(bounds)
    covered = _joined(problem, parts, bound)
    return _again(problem, covered, settings) if problem.objective == "gpus" else covered


def _day(problem: Cover, settings: Settings) -> Covered:
    """Return the cover of a day with something that is decided for all of it."""
    decided = held(problem)
    if decided is not None:
        covered = _again(problem, decided, settings)
        if covered.status == "optimal" and covered.replicas:
            return covered
    rented = _rented(problem, settings)
    covered = _solved(problem, settings, lambda made: made.then()[:1], rented)
    return covered if covered.value is None else _again(problem, covered, settings)


def _in_turn(problem: Cover, settings: Settings) -> Covered:
    """Return the cover of a day whose changes cost: as one model, from what is best of each period by itself."""
    alone = replace(problem, changing=0)
    apart = not (any(supply.always for supply in problem.supplies) or problem.ranges)
    free = _by_period(alone, settings) if apart else _day(alone, settings)
    if free.value is None:
        return free
    made = CoverModel(problem)
    made.hint(free)
    made.model.add(made.objective() >= (free.bound or 0))
    first = run(made.model, made.objective(), _at_most(settings, CHANGES))
    if first.value is None:
        return Covered(first.status)
    made.model.add(made.objective() == first.value)
    made.model.clear_hints()  # type: ignore[no-untyped-call]
    made.hint(made.read(first, first))
    fewest = run(made.model, made.then()[1], _at_most(settings, TIDYING))
    covered = made.read(first if fewest.value is None else fewest, first)
    # a search that time ends may have more nodes beside each other in its model than replicas need
    return replace(covered, value=covered.worth(problem))


def _rented(problem: Cover, settings: Settings) -> Covered | None:
    """Return the cover by what is rented by the hour alone, which is soon found."""
    hourly = {supply.key for supply in problem.supplies if not supply.always}
    columns = tuple(column for column in problem.columns if column.supply in hourly)
    return None if problem.ranges or not columns else _by_period(replace(problem, columns=columns), settings)


def _again(problem: Cover, known: Covered, settings: Settings) -> Covered:
    """Solve every period again with what a known cover holds all day, so that each is the best by itself."""
    assert known.bound is not None
    most, goal = problem.max_gpus, problem.objective
    if goal == "gpus":
        assert known.value is not None
        # only the period with most of them counts; the others save money
        most, goal = min(known.value, most or known.value), "cost"
    eased = replace(problem, max_gpus=most, objective=goal)
    parts = _periods(eased, settings, known)
    if any(part.value is None for part in parts):
        return known
    covered = _joined(problem, parts, known.bound)
    if not known.replicas:
        return covered
    return min(covered, known, key=lambda either: (either.worth(problem), sum(either.costs(problem))))


def _period(problem: Cover, at: int, known: Covered | None = None) -> Cover:
    """Return one period of a day as a question of its own; what a known cover holds all day is there, and paid."""
    needs, columns, supplies, budget = problem.needs, problem.columns, problem.supplies, problem.micro_budget
    if known is not None:
        kept = {supply.key: max(known.nodes[supply.key]) for supply in supplies if supply.always}
        if budget is not None:
            budget -= sum(supply.micro_usd(kept[supply.key]) for supply in supplies if kept.get(supply.key))
        supplies = tuple(_held(supply, kept[supply.key]) if supply.always else supply for supply in supplies)
        if problem.ranges:
            active = {c.service for c in columns if max(known.replicas[c.key])}
            columns = tuple(column for column in columns if column.service in active)
            needs = tuple(need if service in active else (0,) * len(need) for service, need in enumerate(needs))
    return replace(problem, needs=tuple((need[at],) for need in needs), columns=columns, supplies=supplies,
                   hours=(problem.hours[at],), micro_budget=budget, ranges=())


def _held(supply: NodeSupply, nodes: int) -> NodeSupply:
    return replace(supply, micro_usd=lambda count: 0, most=nodes, always=False, linear=True)


def _joined(problem: Cover, parts: Sequence[Covered], bound: int) -> Covered:
    """Return the covers of all periods as one of the day."""
    replicas = {c.key: tuple(part.replicas.get(c.key, (0,))[0] for part in parts) for c in problem.columns}
    nodes = {supply.key: tuple(part.nodes[supply.key][0] for part in parts) for supply in problem.supplies}
    covered = Covered("feasible", replicas, nodes)
    value = covered.worth(problem)
    return replace(covered, status="optimal" if value == bound else "feasible", value=value, bound=bound)


def _tidied(problem: Cover, covered: Covered, settings: Settings) -> Covered:
    """Return a cover as good in every period with as few layouts as are soon found, those listed first."""
    made = CoverModel(problem)
    covered = replace(covered, replicas={c.key: covered.replicas.get(c.key, (0,) * len(problem.hours))
                                     for c in problem.columns})
    made.hold(covered)
    made.hint(covered)
    ending = run(made.model, made.tidy_at_once(), _at_most(settings, TIDYING))
    if ending.value is None:
        return covered
    tidied = made.read(ending, ending)
    # of what is not proven it may be a better one
    return replace(tidied, status=covered.status, value=tidied.worth(problem), bound=covered.bound)


def _at_most(settings: Settings, limit: float) -> Settings:
    """Return settings that end after so many deterministic seconds, if not sooner."""
    given = settings.deterministic_limit
    return replace(settings, deterministic_limit=limit if given is None else min(limit, given))

"""`planner explain` of services: what level and limits cost, and why not another choice, each solved again to proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from planner.answer.assignment import Assignment
from planner.answer.explanation import Explanation, WhyNot, Worth
from planner.answer.objective import show_amount
from planner.answer.schema import Objective
from planner.catalog.load import Catalog
from planner.errors import InputError, UnknownName
from planner.jobs.serving.answers import assignments
from planner.jobs.serving.cause import infeasible_of, show_limit
from planner.jobs.serving.fleet import Fleet
from planner.jobs.serving.options import Admitted
from planner.jobs.serving.plan import objective_of
from planner.jobs.serving.prepared import Prepared, prepare
from planner.jobs.training.choice import PLACES, as_rented, parts_of, ruled_out
from planner.scenario.demand import Level
from planner.scenario.limits import ServingLimits
from planner.scenario.scenario import ServingScenario
from planner.scenario.serving import Serving
from planner.solver.fleet.covering import Covered
from planner.units import show_seconds

Ask = Callable[[Mapping[str, str]], ServingScenario]
"""The question with some scenario values replaced, by dotted path."""
AXES = ("tp", "pp", "ep", "dp", "role")
"""Choices that hold a column: degrees of a replica, or what of a request it does."""
VALUES = {**PLACES, "quantization": "workload.quantization", "engine": "workload.engine"}
"""Choices that are scenario values, and the path of each."""
EASED, STEPS = 1.1, {"max_gpus": 1, "gpus": 1, "max_nodes": 1, "max_power": 1000.0}
"""A level is eased by a tenth; limits by a GPU, a node, a kilowatt, or a hundredth of the budget."""
Update = Mapping[str, Any]


@dataclass(frozen=True)
class _Solved:
    """A question with its fleet."""

    prepared: Prepared
    fleet: Fleet
    covered: Covered

    @cached_property
    def objective(self) -> Objective:
        """What is minimized."""
        return objective_of(self.prepared.scenario, self.covered)

    @cached_property
    def assignments(self) -> list[Assignment]:
        """The fleet as assignments."""
        return assignments(self.prepared, self.fleet.picks(self.covered), simulated=False)


def explain_services(ask: Ask, catalog: Catalog, choices: Sequence[str] = ()) -> Explanation:
    """Return what level and limits of a plan cost, or why none of `choices` (`tp=4,gpu=a100`) was taken.

    Raises PlannerError where the input is wrong.
    """
    asked = [parts_of(text, AXES, VALUES) for text in choices]
    plan = _solved(ask({}), catalog)
    found = plan.covered.value is not None
    infeasible = None if found else infeasible_of(plan.prepared, plan.fleet, plan.covered)
    return Explanation(
        status=plan.covered.status, notes=plan.prepared.notes, objective=plan.objective,
        assignments=tuple(plan.assignments) if found else (),
        why_not=tuple(_why_not(ask, catalog, choice, plan) for choice in asked),
        worth=tuple(sorted(_worths(plan, catalog), key=lambda one: -(one.without or 0.0)))
        if found and not asked else (), infeasible=infeasible)


def _solved(scenario: ServingScenario, catalog: Catalog, admitted: Admitted = lambda column: True) -> _Solved:
    prepared = prepare(scenario, catalog, admitted)
    fleet = prepared.fleet()
    return _Solved(prepared, fleet, fleet.solve())


def _why_not(ask: Ask, catalog: Catalog, asked: Mapping[str, str], plan: _Solved) -> WhyNot:
    """Return what becomes of one choice."""
    goal = plan.prepared.scenario.objective
    held = {axis: _held(axis, asked[axis]) for axis in AXES if axis in asked}
    if len(plan.prepared.scenario.services) > 1 and {"quantization", "engine"} & asked.keys():
        raise InputError("--why-not: quantization and engine are of one service, and the scenario has several")
    scenario = as_rented(ask({VALUES[key]: value for key, value in asked.items() if key in VALUES}), asked)
    try:
        other = _solved(scenario, catalog, lambda column: all(getattr(column, axis) == held[axis] for axis in held))
    except InputError as error:
        return WhyNot(asked=dict(asked), verdict="not offered", because=str(error))
    if other.covered.value is None:
        return _ruled_out(asked, held, other)
    value, best = other.objective.value or 0.0, other.assignments
    shown, whole = show_amount(goal, value), {"value": value, "assignment": best[0]}
    if plan.objective.value is None:
        return WhyNot(asked=dict(asked), verdict="better", because=f"with it there is a plan: {shown}", **whole)
    excess = value / plan.objective.value - 1 if plan.objective.value else 0.0
    whole["excess"] = excess
    if [(a.layout, a.offer) for a in best] == [(a.layout, a.offer) for a in plan.assignments]:
        return WhyNot(asked=dict(asked), verdict="is the plan", because="the plan does just that", **whole)
    if excess < 0:
        return WhyNot(asked=dict(asked), verdict="better", because=f"it would be better, {shown}, but the question "
                      "leaves it out", **whole)
    tied = excess < plan.prepared.catalog.kernels.resolution
    return WhyNot(asked=dict(asked), verdict="tied" if tied else "worse",
                  because=f"the best fleet with it comes to {shown}, {excess:+.1%}, of {_gpus(best)}", **whole)


def _held(axis: str, value: str) -> int | str:
    if axis == "role":
        if value not in ("whole", "prefill", "decode"):
            raise UnknownName("role in --why-not", value, ["whole", "prefill", "decode"])
        return value
    if not value.isdigit() or not int(value):
        raise InputError(f"--why-not {axis}={value}: expected a whole number above zero")
    return int(value)


def _ruled_out(asked: Mapping[str, str], held: Mapping[str, int | str], other: _Solved) -> WhyNot:
    """Return why no fleet has a choice."""
    if other.covered.status == "undecided":
        return WhyNot(asked=dict(asked), verdict="undecided", because="its proof takes too long")
    if held and not other.fleet.pairs:
        chosen = ", ".join(f"{axis}={value}" for axis, value in held.items())
        return WhyNot(asked=dict(asked), verdict="infeasible", because=(
            f"no layout with {chosen} is legal, fits and holds the level"))
    return ruled_out(asked, infeasible_of(other.prepared, other.fleet, other.covered))


def _gpus(best: Sequence[Assignment]) -> str:
    return " and ".join(f"{a.gpus:,} x {a.gpu}" for a in best)


def _worths(plan: _Solved, catalog: Catalog) -> Iterator[Worth]:
    """Yield what each level, reserve and limit costs."""
    scenario, used = plan.prepared.scenario, plan.assignments
    for service in scenario.services:
        mine = [a.serving for a in used if a.workload == service.label and a.serving]
        for name, level in service.levels:
            least = max(getattr(one, f"{name}_seconds").p95 for one in mine)
            eased = Level(level.seconds * EASED, level.at)
            yield _worth(plan, catalog, f"{_of(scenario, service)}{name}", str(level), f"{show_seconds(least)} at p95",
                         "a tenth more", *(_asking(scenario, service, {name: value}) for value in (eased, None)))
        for name, given, unit, less in (
                ("headroom", f"{service.headroom:.0%}", "a tenth of the rate less", max(service.headroom - 0.1, 0.0)),
                ("spare_replicas", str(service.spare_replicas), "1 fewer", max(service.spare_replicas - 1, 0))):
            if getattr(service, name):
                yield _worth(plan, catalog, _of(scenario, service) + name, given, "all of it", unit,
                             *(_asking(scenario, service, {name: value}) for value in (less, 0)))
    yield from _limits(plan)
    for node, count in scenario.sourcing.own.items():
        more = scenario.sourcing.model_copy(update={"own": {**scenario.sourcing.own, node: count + 1}})
        taken = sum(a.nodes for a in used if a.node == node)
        endless = scenario.sourcing.model_copy(update={"own": {**scenario.sourcing.own, node: 100 * count}})
        yield _worth(plan, catalog, f"own {node}", f"{count:,}", f"{taken:,}", "1 node", *(
            scenario.model_copy(update={"sourcing": sourcing}) for sourcing in (more, endless)))


def _of(scenario: ServingScenario, service: Serving) -> str:
    return "" if len(scenario.services) == 1 else f"{service.label} "


def _asking(scenario: ServingScenario, service: Serving, update: Update) -> ServingScenario:
    """Return the question with one service changed."""
    changed = [one.model_copy(update=dict(update)) if one is service else one for one in scenario.services]
    return scenario.model_copy(update={"workload": changed[0]} if scenario.workload is not None
                               else {"workloads": tuple(changed)})


def _worth(plan: _Solved, catalog: Catalog, limit: str, given: str, used: str, unit: str, more: ServingScenario,
           without: ServingScenario) -> Worth:
    return _priced(plan, limit, given, used, unit, lambda: _solved(more, catalog).covered,
                   lambda: _solved(without, catalog).covered)


def _priced(plan: _Solved, limit: str, given: str, used: str, unit: str, more: Callable[[], Covered],
            without: Callable[[], Covered]) -> Worth:
    free = _saved(plan, without())
    # what is worth nothing altogether is worth nothing by the unit
    one = 0.0 if free == 0 else _saved(plan, more())
    return Worth(limit=limit, given=given, used=used, binds=bool(free), unit=unit, saves=one, without=free)


def _saved(plan: _Solved, other: Covered) -> float | None:
    """Return by how much the objective is lower; none where that is not proven."""
    value = objective_of(plan.prepared.scenario, other).value
    if value is None or other.status != "optimal" or plan.objective.value is None:
        return None
    return max(plan.objective.value - value, 0.0)


def _limits(plan: _Solved) -> Iterator[Worth]:
    """Yield what each limit costs that is set: the same columns, covered again."""
    limits, used = plan.fleet.limits, plan.fleet.used(plan.covered)
    for name in ServingLimits.model_fields:
        value = getattr(limits, name)
        if value is None:
            continue
        step = STEPS.get(name, value / 100)
        yield _priced(plan, name, show_limit(name, value), show_limit(name, used[name]), show_limit(name, step),
                      *(partial(plan.fleet.solve, limits=limits.model_copy(update={name: eased}))
                        for eased in (value + step, None)))

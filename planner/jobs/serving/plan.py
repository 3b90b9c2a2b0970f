"""The plan of a serving question: the cheapest fleet that holds every level, with its proof and what comes next."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from planner.answer.assignment import Alternative, Assignment, alternative
from planner.answer.objective import NAMES
from planner.answer.schema import Objective, Plan, Search
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.provenance import price_dates, provenance_of
from planner.jobs.serving.answers import assignments
from planner.jobs.serving.assignment import MONTH_DAYS
from planner.jobs.serving.cause import infeasible_of
from planner.jobs.serving.columns import DEGREES, STAGES, ReplicaColumn
from planner.jobs.serving.fleet import Fleet, Pick
from planner.jobs.serving.options import SEQUENCES, TOKENS
from planner.jobs.serving.prepared import Prepared, prepare
from planner.jobs.serving.replay import Progress
from planner.scenario.default import Default, Defaults
from planner.scenario.scenario import ServingScenario
from planner.simulate.reading import read_trace
from planner.solver.fleet.covering import LIMITED, Covered
from planner.solver.settings import Settings

MICRO = 1e6
MOST_ALTERNATIVES = 6
WATTS_PER_KILOWATT = 1000


def plan_serving(scenario: ServingScenario, catalog: Catalog, defaults: Sequence[Default] = (),
                 replay: Path | None = None, progress: Progress | None = None, time_limit: float | None = None) -> Plan:
    """Return the proven plan for a resolved serving scenario, replayed on a trace or on requests drawn as it asks.

    Raises PlannerError where the input is wrong.
    """
    started, trace = time.monotonic(), read_trace(replay) if replay is not None else None
    if trace is not None and len(scenario.services) > 1:
        raise InputError("--replay has the requests of one service, and the scenario has several: planner simulate "
                         "--workload NAME replays them one by one")
    prepared = prepare(scenario, catalog)
    fleet = prepared.fleet(settings=LIMITED if time_limit is None else Settings(deterministic_limit=time_limit))
    found = fleet.solve()
    picks = fleet.picks(found)
    made = assignments(prepared, picks, trace=trace, progress=progress)
    infeasible = infeasible_of(prepared, fleet, found) if found.status == "infeasible" else None
    alternatives = _alternatives(prepared, fleet, picks, found) if made else ()
    return Plan(
        status=found.status, notes=prepared.notes, objective=objective_of(scenario, found), assignments=tuple(made),
        alternatives=tuple(alternatives), search=_search(prepared, time.monotonic() - started), infeasible=infeasible,
        provenance=provenance_of(scenario, catalog, (*defaults, *_decided(prepared))))


def objective_of(scenario: ServingScenario, found: Covered) -> Objective:
    """Return value and bound of a month of 30 days, in the unit of the name."""
    scale = {"cost": MONTH_DAYS / MICRO, "gpus": 1.0, "energy": MONTH_DAYS / WATTS_PER_KILOWATT}[scenario.objective]
    value, bound = (None if v is None else v * scale for v in (found.value, found.bound))
    gap = None if value is None or bound is None else (value - bound) / value if value else 0.0
    return Objective(name=NAMES[scenario.objective], value=value, bound=bound, gap=gap)


def _decided(prepared: Prepared) -> Defaults:
    """Return what decided beside the defaults of the question."""
    decided = [price_dates(offer.as_of for offer in prepared.offers)]
    for service in prepared.services:
        if service.trace is not None and service.prompts is None:
            decided.append(Default(name=f"{service.asked.label}.rate", value=f"{service.rate:.3g} requests/s",
                                   why=f"the trace's busiest five minutes; its mean is {service.trace.rate:.3g}"))
    return decided


def _search(prepared: Prepared, seconds: float) -> Search:
    account = prepared.account
    removed = {rule: count for rule, count in account.removed.items() if count}
    if prepared.dropped:
        removed["no_offer"] = len(prepared.dropped)
    formats = dict.fromkeys(name for service in prepared.services for name in service.asked.quantization or ())
    return Search(layouts=account.layouts, legal=account.legal, fit=account.fit, removed=removed,
                  staged=len({(at, column.layout) for at, column in prepared.columns}),
                  domains={"candidate": tuple(c.label for c in prepared.candidates), "quantization": tuple(formats),
                           "tp": DEGREES, "pp": STAGES, "attention_dp": DEGREES, "ep": (1, "attention_dp"),
                           "memory_fraction": _fractions(prepared), "max_batched_tokens": ("default", *TOKENS),
                           "max_sequences": ("default", *SEQUENCES)},
                  wall_seconds=round(seconds, 3))


def _fractions(prepared: Prepared) -> tuple[float | str, ...]:
    """Return the shares of memory that were tried."""
    more = {prepared.catalog.engine(service.asked.engine).memory_fraction_most for service in prepared.services}
    return ("default", *sorted(fraction for fraction in more if fraction is not None))


def _alternatives(prepared: Prepared, fleet: Fleet, picks: Sequence[Pick], found: Covered) -> list[Alternative]:
    """Return the best fleet of every other kind of hardware and format alone, best first."""
    assert found.value is not None
    taken = {(p.column.candidate, p.column.format) for p in picks}
    kinds = sorted({(column.candidate, column.format) for _, column in prepared.columns} - (taken if len(taken) == 1
                                                                                           else set()))
    others: list[tuple[int, list[Pick]]] = []
    for pair in kinds:
        other = fleet.solve(partial(_is_kind, pair))
        if other.value is not None:
            others.append((other.value, fleet.picks(other)))
    others.sort(key=lambda pair: pair[0])
    made: list[Alternative] = []
    seen = {_kind(prepared, picks)} if len(taken) == 1 else set()
    for value, other_picks in others:
        kind = _kind(prepared, other_picks)
        if kind in seen:
            continue
        seen.add(kind)
        shown = assignments(prepared, other_picks, simulated=False)
        if len(made) + len(shown) > MOST_ALTERNATIVES:
            break
        made += [_alternative(one, value / found.value - 1, len(shown) - 1, prepared) for one in shown]
    return made


def _kind(prepared: Prepared, picks: Sequence[Pick]) -> tuple[str, str]:
    """Return the node type and the format of picks that are all of one kind."""
    first = picks[0].column
    return prepared.candidates[first.candidate].node.name, first.format


def _is_kind(kind: tuple[int, str], column: ReplicaColumn) -> bool:
    return (column.candidate, column.format) == kind


def _alternative(one: Assignment, more: float, others: int, prepared: Prepared) -> Alternative:
    what = {"cost": "cost", "gpus": "GPUs", "energy": "energy"}[prepared.scenario.objective]
    tied = more < prepared.catalog.kernels.resolution
    together = f", with the {others} other{'s' if others > 1 else ''} of its fleet" if others else ""
    return alternative(one, f"{more:+.1%} {what}{together}", tied=tied)


def refuse(*, simple: bool, pareto: Sequence[str]) -> None:
    """Raise InputError for options of training plans."""
    if simple or pareto:
        raise InputError(f"{'--pareto' if pareto else '--prefer'} is for training plans, not for a service")

"""The whole flow: scenario and catalog to layouts, estimates, a proven choice, and the plan."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata

import numpy as np

from planner import __version__
from planner.answer.assemble import Context, alternative_of, assignment_of, runners_up
from planner.answer.assignment import Assignment
from planner.answer.estimate import estimate_of
from planner.answer.infeasible import Miss, infeasible_of
from planner.answer.schema import Infeasible, Objective, Plan, Provenance, Search
from planner.catalog.architecture import Model
from planner.catalog.calibration import Residual
from planner.catalog.load import Catalog
from planner.catalog.stack import Stack
from planner.errors import InputError
from planner.layouts.axes import Space
from planner.layouts.enumerate import Enumeration, enumerate_layouts
from planner.layouts.rules import Facts
from planner.money.rent import RentalOffer, candidates_with_offers, cheapest_per_candidate
from planner.physics.question import Question, computes, quantile, question_of
from planner.scenario.load import DEFAULT_STACK
from planner.scenario.scenario import Scenario
from planner.scenario.workload import Batch
from planner.solver.choose import Choice, choose
from planner.solver.job import Job
from planner.solver.quantize import budget, duration_limit, price
from planner.units import DAY

log = logging.getLogger("planner")
MOST_GPUS = 131_072
"""Largest cluster searched where no limit is given; printed with the domains."""


class Interrupted(Exception):
    """The search was interrupted (Ctrl-C); `plan` is the best so far, with its gap."""

    def __init__(self, plan: Plan) -> None:
        super().__init__("interrupted")
        self.plan = plan


@dataclass(frozen=True, slots=True)
class Prepared:
    """A scenario resolved against the catalog."""

    scenario: Scenario
    catalog: Catalog
    model: Model
    stack: Stack
    question: Question
    facts: Facts
    offers: list[RentalOffer]
    dropped: list[str]

    @property
    def space(self) -> Space:
        """What the axes range over."""
        return self.facts.space


def make_plan(scenario: Scenario, catalog: Catalog, *, defaults: Sequence[str] = (),
              time_limit: float | None = None) -> Plan:
    """Return the proven plan for a resolved scenario. Raises PlannerError where the input is wrong."""
    started = time.monotonic()
    prepared = prepare(scenario, catalog)
    layouts = enumerate_layouts(prepared.facts)
    stop = started + time_limit if time_limit is not None else None
    choice = choose(prepared.question, prepared.space, job_of(prepared), layouts.layouts, stop)
    context = _context(prepared)
    best = assignment_of(context, choice.best) if choice.best else None
    others = runners_up(choice.frontier.found, choice.best) if choice.best else []
    plan = Plan(
        status=choice.status, objective=_objective(scenario, choice), assignments=(best,) if best else (),
        alternatives=tuple(alternative_of(context, other, best) for other in others) if best else (),
        search=_search(prepared, layouts, choice, time.monotonic() - started),
        infeasible=_infeasible(prepared, layouts, choice) if choice.status == "infeasible" else None,
        provenance=Provenance(scenario=scenario.model_dump(mode="json", exclude_none=True),
                              defaults=(*defaults, *_decided(prepared)), catalog_digest=catalog.digest,
                              versions=_versions()))
    if choice.frontier.interrupted:
        raise Interrupted(plan)
    return plan


def prepare(scenario: Scenario, catalog: Catalog) -> Prepared:
    """Look up everything the scenario names. Raises InputError where no candidate has a usable offer."""
    work = scenario.workload
    model, stack = catalog.model(work.model), catalog.stack(work.stack or DEFAULT_STACK[work.method])
    # sorted, so that the order in which candidates are listed decides nothing
    candidates, offers, dropped = candidates_with_offers(sorted(set(scenario.hardware.candidates)),
                                                         scenario.sourcing.rent, catalog)
    for name in dropped:
        log.warning("%s is left out: no offer has terms %s", name, ", ".join(scenario.sourcing.rent.terms))
    if not candidates:
        raise InputError(f"no candidate has a usable offer: {', '.join(dropped)} with terms "
                         f"{', '.join(scenario.sourcing.rent.terms)}")
    sequence, batch = work.sequence_length or model.sequence_length, work.global_batch or Batch(model.global_batch)
    question = question_of(catalog, model, tuple(candidates), stack, sequence_length=sequence,
                           global_batch=batch.sequences,
                           precisions=work.precision, method=work.method, confidence=scenario.confidence,
                           lora_rank=work.lora_rank)
    limits = scenario.limits
    space = Space(model, tuple(candidates), work.precision, sequence, batch.sequences,
                  min(limits.max_gpus or MOST_GPUS, limits.gpus or MOST_GPUS), batch.tolerance)
    facts = Facts(space=space, stack=stack, node_gpus=np.array([c.node.gpus for c in candidates]),
                  clustered=np.array([c.clustered for c in candidates]),
                  precisions=np.array([[computes(c, r, p) for p in work.precision]
                                       for c, r in zip(candidates, question.rates, strict=True)]),
                  fixed_gpus=limits.gpus, max_nodes=limits.max_nodes)
    return Prepared(scenario, catalog, model, stack, question, facts, cheapest_per_candidate(offers), dropped)


def job_of(prepared: Prepared) -> Job:
    """Return what turns a step of this scenario into days and money, in the solver's quanta."""
    work, limits = prepared.scenario.workload, prepared.scenario.limits
    states = prepared.stack.states.get(work.precision[0]) or prepared.stack.states["bf16"]
    return Job(
        tokens=work.tokens, sequence_length=prepared.question.sequence_length,
        checkpoint_bytes=prepared.question.shape.total * (2 + max(states.master, 4) + states.moments),
        reliability=prepared.catalog.reliability, objective=prepared.scenario.objective,
        micro_usd_per_node_hour=tuple(price(o.usd_per_node_hour) for o in prepared.offers),
        upper=_upper(prepared), deadline_us=duration_limit(limits.deadline.seconds) if limits.deadline else None,
        budget_cents=budget(limits.budget) if limits.budget else None,
        max_power_w=int(limits.max_power) if limits.max_power else None)


def _upper(prepared: Prepared) -> tuple[float, ...]:
    """Return measured over predicted step time at the confidence of the deadline, by candidate."""
    deadline = prepared.scenario.limits.deadline
    if deadline is None or deadline.confidence is None:
        return (1.0,) * len(prepared.question.candidates)
    return tuple(quantile(r, deadline.confidence) for r in _residuals(prepared))


def _residuals(prepared: Prepared) -> list[Residual]:
    return [prepared.catalog.step_residuals.match(stack=prepared.stack.name, architecture=c.gpu.architecture)
            for c in prepared.question.candidates]


def _context(prepared: Prepared) -> Context:
    return Context(prepared.scenario.name, prepared.question, job_of(prepared), prepared.offers, _residuals(prepared))


_UNITS = {"cost": ("cost_usd", 1e-2), "time": ("duration_days", 1e-6 / DAY), "gpus": ("gpus", 1.0),
          "energy": ("energy_kwh", 1e-3)}


def _objective(scenario: Scenario, choice: Choice) -> Objective:
    name, unit = _UNITS[scenario.objective]
    scale = round(1 / unit) if scenario.objective in ("cost", "energy") else 1 / unit
    value = None if choice.value is None else choice.value / scale
    bound = None if choice.bound is None else choice.bound / scale
    gap = None if not value or bound is None else (value - bound) / value
    return Objective(name=name, value=value, bound=bound, gap=gap)


def _search(prepared: Prepared, layouts: Enumeration, choice: Choice, seconds: float) -> Search:
    removed = {**layouts.removed, **{k: v for k, v in choice.frontier.removed.items() if v}}
    if prepared.dropped:
        removed["no_offer"] = len(prepared.dropped)
    space = prepared.space
    names = {"candidate": [c.label for c in space.candidates], "precision": list(space.precisions),
             "recompute": ["none", "selective", "full", "per layer"]}
    domains = {axis: tuple(names.get(axis, values)) for axis, values in layouts.domains.items()}
    return Search(layouts=layouts.grid, legal=len(layouts.layouts), fit=choice.frontier.fit, removed=removed,
                  staged=choice.frontier.staged, domains=domains, wall_seconds=round(seconds, 3))


def _decided(prepared: Prepared) -> list[str]:
    limits = prepared.scenario.limits
    dates = sorted({o.as_of for o in prepared.offers})
    decided = [f"prices of {dates[0]} to {dates[-1]}" if len(dates) > 1 else f"prices of {dates[0]}"]
    if limits.gpus is None and limits.max_gpus is None:
        decided.append(f"max_gpus={MOST_GPUS}")
    return decided


def _versions() -> dict[str, str]:
    return {"planner": __version__, **{name: metadata.version(name) for name in ("ortools", "numpy", "networkx")}}


def _infeasible(prepared: Prepared, layouts: Enumeration, choice: Choice) -> Infeasible:
    """Say why nothing works, what came nearest, and which single limit, lifted how far, would do."""
    def without(limit: str, objective: str, to: object = None) -> Choice:
        held = prepared.scenario.limits
        if limit == "deadline" and isinstance(to, float) and held.deadline is not None:
            to = held.deadline._replace(seconds=to)
        limits = held.model_copy(update={limit: to})
        relaxed = prepared.scenario.model_copy(update={"limits": limits, "objective": objective})
        again = prepare(relaxed, prepared.catalog)
        return choose(again.question, again.space, job_of(again), enumerate_layouts(again.facts).layouts)

    return infeasible_of(prepared.scenario.limits, Miss(prepared.question, layouts, choice.frontier), without)


def make_estimate(*, model: str, node: str, gpus: int | None, layout: Mapping[str, str], sequence_length: int | None,
                  global_batch: int | None, method: str, stack: str | None, precision: str, confidence: float,
                  catalog: Catalog) -> Assignment:
    """Return one layout in full: memory, time and speed. Raises InputError where the layout is not legal."""
    shape, used = catalog.model(model), catalog.stack(stack or DEFAULT_STACK.get(method, "megatron-core"))
    return estimate_of(catalog, shape, catalog.node(node), used, gpus=gpus, layout=layout,
                       sequence_length=sequence_length or shape.sequence_length, global_batch=global_batch,
                       method=method, precision=precision, confidence=confidence)

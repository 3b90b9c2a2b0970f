"""A scenario resolved against the catalog: everything it names looked up, in the form that search and physics read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from planner.catalog.architecture import Model
from planner.catalog.calibration import Residual
from planner.catalog.hardware import Node
from planner.catalog.load import Catalog
from planner.catalog.stack import Stack
from planner.errors import InputError
from planner.layouts.axes import SCHEDULES, Space, domain
from planner.layouts.candidate import Candidate
from planner.layouts.rules import SPLIT_BY, Facts, split_code
from planner.layouts.table import Ints, from_rows
from planner.money.rent import (
    RentalOffer,
    candidates_with_offers,
    cheapest_per_candidate,
    notes_of,
    usual_candidate,
    with_storage,
)
from planner.physics.training.estimate import faster_whole
from planner.physics.training.parameters import saved_parameters
from planner.physics.training.question import Question, computes, quantile, question_of
from planner.physics.training.recipes import Recipe, with_recipe
from planner.scenario.scenario import Scenario
from planner.scenario.workload import DEFAULT_STACK, Batch, Training
from planner.solver.fleet.problem import FleetOffer
from planner.solver.quantize import budget, duration_limit, price
from planner.solver.search.job import Job

MOST_GPUS = 131_072
"""Largest cluster searched where no limit is given; printed with the domains."""
MOST_HOLDING = 1024
"""The same where the question is only what holds the model."""


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
    """The cheapest of each candidate."""
    dropped: list[str]
    every_offer: tuple[RentalOffer, ...] = ()
    """All that the question admits."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know of the offers."""
        return notes_of(self.every_offer, self.dropped, self.scenario.sourcing)

    @property
    def space(self) -> Space:
        """What the axes range over."""
        return self.facts.space


def prepare(scenario: Scenario, catalog: Catalog) -> Prepared:
    """Look up everything the scenario names. Raises InputError where no candidate has a usable offer."""
    work, method = scenario.workload, scenario.workload.method or "pretrain"
    model = catalog.model(work.model)
    stack = with_recipe(catalog.stack(work.stack or DEFAULT_STACK[method]), model,
                        Recipe(work.optimizer, work.optimizer_in_backward, work.loss))
    # sorted, so that the order in which candidates are listed decides nothing
    nodes = sorted(set(scenario.hardware.candidates))
    candidates: list[Candidate] = []
    offers: list[RentalOffer] = []
    dropped: list[str] = []
    if work.tokens is None:
        candidates = [usual_candidate(node, catalog) for node in _largest(nodes, catalog)]
    else:
        candidates, offers, dropped = candidates_with_offers(nodes, scenario.sourcing, catalog)
    terms = ", ".join(scenario.sourcing.rent.terms) if scenario.sourcing.rent else "none"
    if not candidates and scenario.sourcing.rent is None:
        raise InputError(f"no candidate is at hand: none of {', '.join(dropped)} is under sourcing.own, or bought at a "
                         "price of the catalog, and nothing is rented where sourcing.rent is not given")
    if not candidates:
        raise InputError(f"no candidate has a usable offer: {', '.join(dropped)} with terms {terms}")
    sequence, batch = work.sequence_length or model.sequence_length, work.global_batch or Batch(model.global_batch)
    if method == "inference":
        batch = Batch(1)
    question = question_of(catalog, model, tuple(candidates), stack, sequence_length=sequence,
                           global_batch=batch.sequences,
                           precisions=work.precision, method=method, confidence=scenario.confidence,
                           lora_rank=work.lora_rank, trained_layers=work.trained_layers)
    offers = [with_storage(offer, work.tokens or 0, checkpoint_bytes(stack, work.precision[0], question))
              for offer in offers]
    limits = scenario.limits
    space = Space(model, tuple(candidates), work.precision, sequence, batch.sequences,
                  most_gpus(scenario), batch.tolerance, hybrid_shard=stack.hybrid_shard,
                  offload_weights=work.tokens is not None, no_sync=stack.accumulation,
                  schedules=tuple(SCHEDULES.index(name) for name in stack.schedules))
    whole = _whole_sequences(question, space)
    space = replace(space, sequence_parallel=(1, 0) if len(whole) else (1,))
    facts = Facts(space=space, stack=stack, node_gpus=np.array([c.node.gpus for c in candidates]),
                  clustered=np.array([c.clustered for c in candidates]),
                  precisions=np.array([[computes(c, r, p) for p in work.precision]
                                       for c, r in zip(candidates, question.rates, strict=True)]),
                  fixed_gpus=limits.gpus, max_nodes=limits.max_nodes, partial_nodes=work.tokens is None,
                  whole_sequences=whole, frozen_layers=work.trained_layers is not None,
                  steps_in_backward=work.optimizer_in_backward)
    return Prepared(scenario, catalog, model, stack, question, facts, cheapest_per_candidate(offers), dropped,
                    tuple(offers))


def most_gpus(scenario: Scenario) -> int:
    """Return the most GPUs that are searched."""
    limits, most = scenario.limits, MOST_HOLDING if scenario.workload.tokens is None else MOST_GPUS
    return min(limits.max_gpus or most, limits.gpus or most)


def _whole_sequences(question: Question, space: Space) -> Ints:
    """Return the codes of what decides about sequence parallelism, where a layer is faster without."""
    if not question.stack.sequence_parallel:
        return np.zeros(0, np.int64)
    names = (*SPLIT_BY, "ep")
    rows = [dict(zip(names, values, strict=True)) for values in product(*(domain(n, space) for n in names))]
    table = from_rows([row | {"dp": row["ep"]} for row in rows if row["tp"] > 1], space.global_batch)
    if not len(table):
        return np.zeros(0, np.int64)
    return split_code(table.columns)[faster_whole(question, table)]


def _largest(nodes: list[str], catalog: Catalog) -> list[Node]:
    """Return for every GPU the node type with most of them: a model held by fewer uses a part of it."""
    largest: dict[str, Node] = {}
    for node in map(catalog.node, nodes):
        kept = largest.get(node.gpu)
        if kept is None or (node.gpus, kept.name) > (kept.gpus, node.name):
            largest[node.gpu] = node
    return sorted(largest.values(), key=lambda node: node.name)


def job_of(prepared: Prepared) -> Job:
    """Return what turns a step of this scenario into days and money, in the solver's quanta."""
    work, limits = prepared.scenario.workload, prepared.scenario.limits
    return Job(
        tokens=_processed(work, prepared.question.sequence_length), sequence_length=prepared.question.sequence_length,
        checkpoint_bytes=checkpoint_bytes(prepared.stack, work.precision[0], prepared.question),
        reliability=prepared.catalog.reliability, objective=prepared.scenario.objective,
        offers=tuple(FleetOffer(at, at, price(o.usd_per_node_hour), o.nodes, duration_limit(o.commitment), o.estate)
                     for at, o in enumerate(prepared.offers))
        or tuple(FleetOffer(at, at, 0) for at in range(len(prepared.question.candidates))),
        reclaims=tuple(o.node_hours_per_reclaim for o in prepared.offers),
        upper=_upper(prepared), deadline_us=duration_limit(limits.deadline.seconds) if limits.deadline else None,
        budget_cents=budget(limits.budget) if limits.budget else None,
        max_power_w=int(limits.max_power) if limits.max_power else None, timed=work.tokens is not None)


def checkpoint_bytes(stack: Stack, precision: str, question: Question) -> float:
    """Return the bytes of a checkpoint: what trains in 16 bits, a full copy and the optimizer's states."""
    states = stack.recipe(precision)
    return saved_parameters(question) * (2 + max(states.master, 4) + states.moments)


def _processed(work: Training, sequence_length: int) -> int:
    """Return the tokens that the GPUs work through: the job's, and the padding where samples are not packed."""
    tokens = work.tokens or 1
    if work.mean_length is None:
        return tokens
    return -(-tokens * sequence_length // min(work.mean_length, sequence_length))


def _upper(prepared: Prepared) -> tuple[float, ...]:
    """Return measured over predicted step time at the confidence of the deadline, by candidate."""
    deadline = prepared.scenario.limits.deadline
    if deadline is None or deadline.confidence is None:
        return (1.0,) * len(prepared.question.candidates)
    return tuple(quantile(r, deadline.confidence) for r in residuals_of(prepared))


def residuals_of(prepared: Prepared) -> list[Residual]:
    """Return the residuals of step time of each candidate's class of evidence."""
    return [prepared.catalog.step_residuals.match(stack=prepared.stack.family, architecture=c.gpu.architecture)
            for c in prepared.question.candidates]

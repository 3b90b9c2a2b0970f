"""The largest rate of a service that the limits admit: the plan for `objective: rate`.

By formula it is the largest rate at which some fleet keeps the limits, found by halving. That fleet is replayed; where
it misses a target, the rate is lowered until the fleet for it does not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

from planner.answer.schema import ByReplay, Objective, Plan
from planner.ask.account import finished, search_of, with_decided
from planner.ask.provenance import provenance_of
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.job import Replayed, Replaying
from planner.jobs.kinds import at_rate, question_of
from planner.jobs.reach import most as most_of
from planner.jobs.solved import Question, Solved, solve
from planner.scenario.default import Default
from planner.scenario.scenario import ServingScenario
from planner.solver.settings import Effort

DIGITS = 3
"""Of the rate that is answered with, rounded down."""
LOWER, TIMES = 0.9, 20
"""By what the rate is lowered after a miss, and how often at most."""
HALVINGS = 4
"""Between a rate that is held and one that is not."""


def most_served(scenario: ServingScenario, catalog: Catalog, defaults: Sequence[Default], effort: Effort,
                replaying: Replaying) -> Plan | None:
    """Return the plan for the largest rate, or none where nothing keeps the limits at any rate. Raises InputError."""
    started, question = time.monotonic(), question_of(at_rate(scenario, 1.0), catalog)
    limits, offers = scenario.limits, question.terms.market.offers
    bounds = (limits.gpus, limits.max_gpus, limits.max_nodes, limits.budget, limits.max_power)
    if all(bound is None for bound in bounds) and any(offer.nodes is None for offer in offers):
        raise InputError("objective: rate has no end without a limit: give gpus, such as --gpus 8, max_nodes, budget, "
                         "max_power or what you own")
    most = _floor(most_of(solve(question, effort, so_far=True).fleet))
    if not most:
        return None
    rate, solved, met = _held(question, most, effort, replaying)
    shown = at_rate(scenario, rate).model_copy(update={"objective": scenario.objective})
    plan = Plan(status="optimal" if met and rate == most else "feasible", notes=question.terms.market.notes,
                objective=Objective(name="requests_per_second", value=rate, bound=most, gap=most / rate - 1,
                                    by_replay=ByReplay(met=met, gap=most / rate - 1)),
                assignments=tuple(solved.assignments(replaying)),
                search=search_of(solved, time.monotonic() - started),
                provenance=provenance_of(shown, catalog, with_decided(defaults, solved)))
    return finished(plan, solved)


def _held(question: Question, most: float, effort: Effort, replaying: Replaying) -> tuple[float, Solved, bool]:
    """Return the largest rate found whose fleet replays within every target, the fleet, and whether it does; else the
    least tried.
    """

    def at(rate: float) -> tuple[Solved, bool]:
        (job,) = question.jobs
        assert isinstance(job, Replayed)
        mine = job.at_rate(rate)
        solved = solve(replace(question, jobs=(mine,)), effort, so_far=True)
        return solved, mine.tried(solved.replicas, 1.0, replaying.trace).meets

    low = high = most
    best, met = at(most)
    for _ in range(TIMES):
        if met or effort.is_over:
            break
        low, high = _floor(low * LOWER), low
        best, met = at(low)
    for _ in range(HALVINGS):
        middle = _floor((low + high) / 2)
        if not low < middle < high or effort.is_over:
            break
        found, holds = at(middle)
        if holds:
            low, best, met = middle, found, True
        else:
            high = middle
    return low, best, met


def _floor(rate: float) -> float:
    """Return a rate with few digits, not above it."""
    if rate <= 0:
        return 0.0
    unit = 10.0 ** (DIGITS - 1 - math.floor(math.log10(rate)))
    return math.floor(rate * unit * (1 + 1e-12)) / unit

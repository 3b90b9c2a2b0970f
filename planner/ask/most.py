"""The largest rate of a service that the limits admit, or the most users: the plan for `objective: rate` or `users`.

By formula it is the largest load at which some fleet keeps the limits, found by halving. That fleet is replayed; where
it misses a target, the load is lowered until the fleet for it does not; where it holds it, more is tried.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from planner.answer.schema import ByReplay, Objective, Plan
from planner.ask.account import finished, provenance_of, search_of, with_decided
from planner.ask.slow import slow
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.job import Replayable, Replaying
from planner.jobs.kinds import at_load, at_one, question_of
from planner.jobs.reach import most as most_of
from planner.jobs.settle import settle
from planner.jobs.shown import Trials
from planner.jobs.solved import ResolvedScenario, Solved, solve
from planner.scenario.default import Default
from planner.scenario.scenario import ServingScenario
from planner.scenario.serving import MOST_CONCURRENT
from planner.solver.settings import Effort

DIGITS = 3
"""Of the rate that is answered with, rounded down; users are whole."""
LOWER, TIMES = 0.9, 20
"""By what the load is lowered after a miss, and how often at most."""
TRIES, FURTHER, FINE = 8, 1.15, 0.02
"""Loads tried between one that is held and one that is not, at most; how many times what is held they are at most; and
the share that is near enough.
"""


def most_served(scenario: ServingScenario, catalog: Catalog, defaults: Sequence[Default], effort: Effort,
                replaying: Replaying) -> Plan | None:
    """Return the plan for the largest rate, or none where nothing keeps the limits at any rate. Raises InputError."""
    started, per_unit = time.monotonic(), at_one(scenario)
    question = question_of(per_unit, catalog)
    limits, offers = scenario.limits, question.terms.market.offers
    bounds = (limits.gpus, limits.max_gpus, limits.max_nodes, limits.budget, limits.max_power)
    if all(bound is None for bound in bounds) and any(offer.nodes is None for offer in offers):
        raise InputError(f"objective: {scenario.objective} has no end without a limit: give gpus, such as --gpus 8, "
                         "max_nodes, budget, max_power or what you own")
    people = per_unit.services[0].users is not None
    floor = math.floor if people else _floor
    computed = solve(question, effort, so_far=True)
    most = min(floor(most_of(computed.fleet)), MOST_CONCURRENT if people else math.inf)
    if not most:
        return None
    load, beyond, solved, met = _held(question, most, Trials(computed, None).further, floor, effort, replaying)
    shown = at_load(per_unit, load).model_copy(update={"objective": scenario.objective})
    # above what the formula admits nothing is proven: the least load that no replay held is known
    bound, gap = (most, most / load - 1) if load <= most else (None, beyond / load - 1)
    made = tuple(solved.assignments(replaying))
    plan = Plan(status="optimal" if met and load == most else "feasible",
                notes=(*question.terms.market.notes, *slow(made, catalog.recipes)),
                objective=Objective(name="users" if people else "requests_per_second", value=load, bound=bound,
                                    gap=gap if load <= most else None, by_replay=ByReplay(met=met, gap=gap)),
                assignments=made,
                search=search_of(solved, time.monotonic() - started),
                provenance=provenance_of(shown, catalog, with_decided(defaults, solved)))
    return finished(plan, solved)


def _held(question: ResolvedScenario, most: float, further: float, floor: Callable[[float], float], effort: Effort,
          replaying: Replaying) -> tuple[float, float, Solved, bool]:
    """Return the largest load found whose fleet replays within every target, the least one that none does, the fleet,
    and whether it does; else the least tried. `most` is the largest by formula, of which replays may hold `further`
    times as much.
    """

    def at(load: float, *, enough: float = math.inf) -> tuple[Solved, bool]:
        (job,) = question.jobs
        assert isinstance(job, Replayable)
        mine = job.at_load(load)
        solved = solve(replace(question, jobs=(mine,)), effort, so_far=True)
        settled = settle(solved, replaying.trace, enough=enough)
        if settled.interrupted:
            raise KeyboardInterrupt
        return settled.solved, settled.met and bool(settled.solved.picks)

    # beyond that no replica is tried
    low, high = most, floor(most * further * (1 + 10.0 ** (1 - DIGITS)) + (floor is math.floor))
    best, met = at(most)
    for _ in range(TIMES):
        if met or effort.is_over:
            break
        # users are whole, while a rate may be below one
        low, high = max(floor(low * LOWER), int(floor is math.floor)), low
        best, met = at(low)
    for _ in range(TRIES):
        middle = floor(min((low + high) / 2, low * FURTHER))
        if not low < middle < high or high - low <= FINE * low or effort.is_over:
            break
        result, holds = at(middle)
        if holds:
            low, best, met = middle, result, True
        else:
            high = middle
    if met:
        cheapest, holds = at(low, enough=0.0)
        best = cheapest if holds else best
    return low, high, best, met


def _floor(rate: float) -> float:
    """Return a rate with few digits, not above it."""
    if rate <= 0:
        return 0.0
    unit = 10.0 ** (DIGITS - 1 - math.floor(math.log10(rate)))
    return math.floor(rate * unit * (1 + 1e-12)) / unit

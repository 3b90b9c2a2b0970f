"""What would settle a close call: the chance that other hardware is better, the loss of choosing now, a measurement."""

from __future__ import annotations

import math
from collections.abc import Sequence

from planner.answer.assignment import Alternative, Assignment
from planner.answer.doubt import Doubt, Measurement
from planner.catalog.load import Catalog
from planner.money.doubt import Choices

LEAST = 0.05
"""Chance below which a choice is not open."""


def doubt_of(made: Sequence[Assignment], others: Sequence[Alternative], objective: str, catalog: Catalog
             ) -> Doubt | None:
    """Return the doubt about a plan of one job that ends; none where no other hardware may well be better.

    objective: cost_usd or duration_days, the one that the plan is best by.
    """
    if len(made) != 1 or objective not in ("cost_usd", "duration_days"):
        return None
    best = made[0]
    near = [(_choices(best, alternative, objective), alternative) for alternative in others
            if alternative.gpu != best.gpu and getattr(alternative, objective)]
    open_ = [(choices, alternative) for choices, alternative in near if choices is not None and choices.chance >= LEAST]
    if not open_:
        return None
    choices, other = max(open_, key=lambda pair: pair[0].loss)
    return Doubt(gpu=other.gpu, gpus=other.gpus, value=choices.theirs, chance=choices.chance, loss=choices.loss,
                 measurement=_measurement(best, other, choices, catalog) if objective == "cost_usd" else None)


def _choices(best: Assignment, other: Assignment, objective: str) -> Choices | None:
    ours, theirs = (dict(assignment.time.evidence.causes) if assignment.time.evidence else {}
                    for assignment in (best, other))
    values = getattr(best, objective), getattr(other, objective)
    if not ours or not theirs or not all(values):
        return None
    shared = math.fsum(min(ours[cause], theirs[cause]) for cause in sorted(ours.keys() & theirs.keys()))
    return Choices(*values, math.fsum(ours.values()), math.fsum(theirs.values()), shared)


def _measurement(best: Assignment, other: Assignment, choices: Choices, catalog: Catalog) -> Measurement | None:
    """Return the number of nodes that costs least together with the loss that measuring on them leaves."""
    measuring, steps = catalog.spreading.measuring, catalog.step_residuals
    by_size = steps.law.beyond.get("gpus", 0.0) * steps.stretch
    tried = []
    nodes = 1
    while nodes <= min(best.nodes, other.nodes):
        # what is measured on few nodes says the less of many the further away they are
        noise = [measuring.repeat**2 + (by_size * math.log2(assignment.nodes / nodes))**2
                 for assignment in (best, other)]
        price = sum(assignment.usd_per_node_hour or 0.0 for assignment in (best, other))
        tried.append(Measurement(nodes=nodes, hours=measuring.hours, cost_usd=nodes * measuring.hours * price,
                                 loss=max(0.0, choices.loss_after(*noise))))
        nodes *= 2
    cheapest = min(tried, key=lambda measurement: measurement.cost_usd + measurement.loss)
    return cheapest if cheapest.cost_usd + cheapest.loss < choices.loss else None

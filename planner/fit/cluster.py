"""A cluster's own constants from a few of its rows: the most likely under their priors, whichever rows there are.

What many published sources decide together, `solve.fit` fits one by one. Here a dozen rows share a cause that may lie
far off, such as a network four times slower than the node's usual one. What is hidden behind compute does not show in a
derivative, so the network's rate is first sought along a line; then Gauss-Newton steps that lower the misfit follow. No
constant is left out for what its rows say of it alone: priors keep those in place that they say little of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from planner.catalog.load import Catalog
from planner.fit.knobs import NETWORKS, FitConstant
from planner.fit.rows import Rows, TrainingRows, changed
from planner.fit.solve import Fit, Linearized, Progress, curvature_of, misfit, move_of, part_of, slopes_of
from planner.layouts.table import Floats, Ints, Mask

RATES = (-2.8, -2.1, -1.4, -0.7)
"""Logarithms of the network's rate over the prior at which the search begins too: to a sixteenth."""
ROUNDS = 8
SETTLED = 0.05
"""Gain of a round in the logarithm of likelihood that is none."""
SHORTEST = 0.1
"""Share of a step below which none is tried."""
NARROWED = 0.95
"""A constant is fitted where the rows narrow its spread to this share of its prior's; else they say nothing of it."""


def fit_cluster(given: TrainingRows, knobs: Sequence[FitConstant], catalog: Catalog,
                progress: Progress = lambda share: None) -> Fit:
    """Return the constants of the cluster that all rows are of; each row counts in full."""
    rows = TrainingRows(tuple(replace(row, weight=1.0) for row in given.rows))
    prior, spread = np.array([knob.start for knob in knobs]), np.array([knob.spread for knob in knobs])
    acts = [rows.acting(knob) for knob in knobs]
    before = rows.residuals(catalog)
    # a slow network and slow kernels may explain the same rows, so each is followed to its end
    begun = _begun(rows, knobs, catalog, prior, spread, before)
    ends = [_descended(rows, knobs, catalog, prior, spread, acts, point, partial(part_of, progress, turn, len(begun)))
            for turn, point in enumerate(begun)]
    (at, now, _), slopes, left = min(ends, key=lambda end: end[0][2])
    free: Mask = left < NARROWED * spread
    at = np.where(free, at, prior)
    now = rows.residuals(changed(catalog, knobs, at))
    linear = Linearized(rows, slopes, now, at - prior, spread, free)
    alone = np.array([linear.without(np.array([place]))[0] for place in range(len(now))])
    progress(1.0)
    return Fit(tuple(knobs), at, np.where(free, left, spread), free, tuple(rows.count(a) for a in acts), before, now,
               alone, linear)


def _nets(knobs: Sequence[FitConstant]) -> list[bool]:
    """Return which constants are the rate of a network."""
    return [knob.kind == NETWORKS and knob.field == "efficiency" for knob in knobs]


Point = tuple[Floats, Floats, float]
"""Coordinates, residuals there, and how unlikely both are."""


def _descended(rows: Rows, knobs: Sequence[FitConstant], catalog: Catalog, prior: Floats, spread: Floats,
               acts: Sequence[Ints], point: Point, progress: Progress) -> tuple[Point, Floats, Floats]:
    """Return the likeliest point that steps from one reach, with the slopes and the spreads that rows leave there."""
    at, now, best = point
    slopes, left, every = np.zeros((len(now), len(knobs))), np.zeros(len(knobs)), np.ones(len(knobs), bool)
    for turn in range(ROUNDS):
        # slopes on what the rows say nothing of are taken once; of a network they appear when it stops being hidden
        again = [is_net or narrow for is_net, narrow in zip(_nets(knobs), left < NARROWED * spread, strict=True)]
        some = [mine if on else mine[:0] for mine, on in zip(acts, again, strict=True)]
        fresh = slopes_of(rows, knobs, catalog, at, now, some, partial(part_of, progress, turn, ROUNDS))
        slopes = np.where(again, fresh, slopes)
        left = np.sqrt(np.diag(np.linalg.inv(curvature_of(slopes, now, rows, rows.weights, spread, every))))
        step = move_of(slopes, now, rows, rows.weights, at - prior, spread, every)
        lower = _stepped(rows, knobs, catalog, prior, spread, at, step, best)
        if lower is None:
            break
        gain, (at, now, best) = best - lower[2], lower
        if gain < SETTLED:
            break
    return (at, now, best), slopes, left


def _begun(rows: Rows, knobs: Sequence[FitConstant], catalog: Catalog, prior: Floats, spread: Floats,
           before: Floats) -> list[Point]:
    """Return the priors, and before them what is likelier with the network's rate at one of RATES."""
    nets = np.flatnonzero(_nets(knobs))
    points = [(prior, before, misfit(before, rows, prior - prior, spread))]
    for rate in RATES if len(nets) else ():
        at = prior.copy()
        at[nets] += rate
        now = rows.residuals(changed(catalog, knobs, at))
        points.append((at, now, misfit(now, rows, at - prior, spread)))
    likeliest = min(points, key=lambda point: point[2])
    return points[:1] if likeliest is points[0] else [likeliest, points[0]]


def _stepped(rows: Rows, knobs: Sequence[FitConstant], catalog: Catalog, prior: Floats, spread: Floats, at: Floats,
             step: Floats, best: float) -> Point | None:
    """Return the point after the longest of halved steps that is likelier; none where none is."""
    share = 1.0
    while share > SHORTEST:
        there = at + share * step
        now = rows.residuals(changed(catalog, knobs, there))
        value = misfit(now, rows, there - prior, spread)
        if value < best:
            return there, now, value
        share /= 2
    return None

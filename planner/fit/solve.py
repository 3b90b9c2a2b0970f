"""A robust fit: Student-t residuals of the logarithm of step time, and a normal prior on every constant.

Gauss-Newton with weights renewed each round; derivatives by differences, each over the rows that its constant acts on.
A constant whose spread the rows do not narrow is not fitted, but kept at its prior. Leave-one-source-out errors come
from the last linearization: every source is predicted with constants solved without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from planner.catalog.load import Catalog
from planner.fit.knobs import Knob
from planner.fit.rows import Measured, by_source, changed, residuals, weights
from planner.layouts.table import Floats, Ints, Mask

Progress = Callable[[float], None]
SCALE = 0.06
"""Typical residual of a well-described row: repeated runs and rounding."""
FREEDOM = 4.0
"""Degrees of freedom of the residuals: the smaller, the less an outlier pulls."""
STEP = 0.02
ROUNDS = 3
DECIDED = 0.7
"""A constant is fitted where the rows narrow its spread to this share of its prior's."""
TRUST = 1.5
"""Largest move of a round, in spreads of the prior."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Coordinates of all knobs, their spread after the fit, which the rows decide, and residuals before and after.

    `left_out` are residuals of every source under constants fitted without it.
    """

    knobs: tuple[Knob, ...]
    coordinates: Floats
    spreads: Floats
    decided: Mask
    acting: tuple[int, ...]
    """Rows that each knob acts on."""
    before: Floats
    after: Floats
    left_out: Floats


def fit(rows: Sequence[Measured], knobs: Sequence[Knob], catalog: Catalog,
        progress: Progress = lambda share: None) -> Fit:
    """Return the constants that the rows decide; `progress` is told the share of the work that is done."""
    prior = np.array([knob.start for knob in knobs])
    spread = np.array([knob.spread for knob in knobs])
    acts = [np.array([place for place, row in enumerate(rows) if knob.acts_on(row.outcome)]) for knob in knobs]
    at, before = prior.copy(), residuals(rows, catalog)
    now, free = before, np.ones(len(knobs), bool)
    for turn in range(ROUNDS):
        some = [mine if is_free else mine[:0] for mine, is_free in zip(acts, free, strict=True)]
        jacobian = _jacobian(rows, knobs, catalog, at, now, some, partial(_part, progress, turn))
        if turn == 0:
            free = _decided(jacobian, now, rows, spread)
        at = at + np.where(free, _move(jacobian, now, weights(rows), at - prior, spread, free), 0.0)
        now = residuals(rows, changed(catalog, knobs, at))
    left = np.sqrt(np.diag(np.linalg.inv(_curvature(jacobian, now, weights(rows), spread, free))))
    return Fit(tuple(knobs), at, np.where(free, left, spread), free, tuple(len(a) for a in acts), before, now,
               _left_out(rows, jacobian, now, at - prior, spread, free))


def _part(progress: Progress, turn: int, share: float) -> None:
    progress((turn + share) / ROUNDS)


def _jacobian(rows: Sequence[Measured], knobs: Sequence[Knob], catalog: Catalog, at: Floats, now: Floats,
              acts: Sequence[Ints], progress: Progress) -> Floats:
    """Return the change of every residual with every coordinate, over the rows in `acts`."""
    found = np.zeros((len(rows), len(knobs)))
    for place, mine in enumerate(acts):
        if len(mine):
            moved = at.copy()
            moved[place] += STEP
            some = residuals([rows[int(i)] for i in mine], changed(catalog, knobs, moved))
            found[mine, place] = (some - now[mine]) / STEP
        progress((place + 1) / len(knobs))
    return found


def _robust(now: Floats) -> Floats:
    """Return the weight of each residual under a Student-t distribution."""
    found: Floats = (FREEDOM + 1) / (FREEDOM + (now / SCALE) ** 2)
    return found


def _curvature(jacobian: Floats, now: Floats, weight: Floats, spread: Floats, free: Mask) -> Floats:
    scaled = np.where(free, jacobian, 0.0) / SCALE
    found: Floats = scaled.T @ (scaled * (weight * _robust(now))[:, None]) + np.diag(1 / spread**2)
    return found


def _move(jacobian: Floats, now: Floats, weight: Floats, offset: Floats, spread: Floats, free: Mask) -> Floats:
    """Return the step of one round, no larger than TRUST spreads in any coordinate."""
    scaled = np.where(free, jacobian, 0.0) / SCALE
    slope = scaled.T @ (weight * _robust(now) * now / SCALE) + offset / spread**2
    step = -np.linalg.solve(_curvature(jacobian, now, weight, spread, free), slope)
    found: Floats = np.clip(step, -TRUST * spread, TRUST * spread)
    return found


def _decided(jacobian: Floats, now: Floats, rows: Sequence[Measured], spread: Floats) -> Mask:
    every = np.ones(len(spread), bool)
    left = np.sqrt(np.diag(np.linalg.inv(_curvature(jacobian, now, weights(rows), spread, every))))
    found: Mask = left < DECIDED * spread
    return found


def _left_out(rows: Sequence[Measured], jacobian: Floats, now: Floats, offset: Floats, spread: Floats,
              free: Mask) -> Floats:
    found = now.copy()
    for mine in by_source(rows).values():
        weight = weights(rows)
        weight[mine] = 0.0
        found[mine] = now[mine] + jacobian[mine] @ np.where(free, _move(jacobian, now, weight, offset, spread, free), 0)
    return found

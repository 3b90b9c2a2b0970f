"""A robust fit: Student-t residuals of the logarithm of time, and a normal prior on every constant.

Gauss-Newton with weights renewed each round; derivatives by differences, each over what its constant acts on.
A constant whose spread the rows do not narrow is not fitted, but kept at its prior. Leave-one-source-out errors come
from the last linearization: every source is predicted with constants solved without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from planner.catalog.load import Catalog
from planner.fit.knobs import FitConstant
from planner.fit.rows import Rows, by_source, changed
from planner.layouts.table import Floats, Ints, Mask

Progress = Callable[[float], None]
FREEDOM = 4.0
"""Degrees of freedom of the residuals: the smaller, the less an outlier pulls."""
STEP = 0.02
ROUNDS = 3
DECIDED = 0.7
"""A constant is fitted where the rows narrow its spread to this share of its prior's."""
TRUST = 1.5
"""Largest move of a round, in spreads of the prior."""


@dataclass(frozen=True)
class Linearized:
    """The rows about the fitted constants, by which these are solved again without some of them."""

    rows: Rows
    jacobian: Floats
    now: Floats
    offset: Floats
    """Of the coordinates from their priors."""
    spread: Floats
    """Of the priors."""
    free: Mask

    def without(self, places: Ints) -> Floats:
        """Return the residuals of the figures at `places` under constants fitted without them."""
        scaled, certain, curvature, slope = self._whole
        mine, weight = scaled[places], certain[places, None]
        left = (self.now / self.rows.scales)[places]
        move = -np.linalg.solve(curvature - mine.T @ (mine * weight), slope - mine.T @ (weight[:, 0] * left))
        move = np.clip(move, -TRUST * self.spread, TRUST * self.spread)
        now: Floats = self.now[places] + self.jacobian[places] @ np.where(self.free, move, 0.0)
        return now

    def deciding(self, place: int) -> tuple[list[str], list[str]]:
        """Return the sources that a constant acts on, and those without which the rest would not decide it."""
        moved = np.flatnonzero(self.jacobian[:, place])
        acting = sorted({self.rows.sources[int(at)] for at in moved})
        scaled, certain, curvature, _ = self._whole
        needed = []
        for name in acting:
            mine = np.array([at for at, source in enumerate(self.rows.sources) if source == name])
            rest = curvature - scaled[mine].T @ (scaled[mine] * certain[mine, None])
            if math.sqrt(np.linalg.inv(rest)[place, place]) >= DECIDED * self.spread[place]:
                needed.append(name)
        return acting, needed

    @cached_property
    def _whole(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Jacobian in residual scales, weights, and curvature and slope of all rows."""
        scaled = np.where(self.free, self.jacobian, 0.0) / self.rows.scales[:, None]
        certain: Floats = self.rows.weights * _robust(self.now, self.rows)
        return (scaled, certain, scaled.T @ (scaled * certain[:, None]) + np.diag(1 / self.spread**2),
                scaled.T @ (certain * self.now / self.rows.scales) + self.offset / self.spread**2)


@dataclass(frozen=True, slots=True)
class Fit:
    """Coordinates of all knobs, their spread after the fit, which the rows decide, and residuals before and after.

    `left_out` are residuals of every source, or of every row of one cluster, under constants fitted without it.
    """

    knobs: tuple[FitConstant, ...]
    coordinates: Floats
    spreads: Floats
    decided: Mask
    acting: tuple[int, ...]
    """Rows that each knob acts on."""
    before: Floats
    after: Floats
    left_out: Floats
    linear: Linearized


def fit(rows: Rows, knobs: Sequence[FitConstant], catalog: Catalog, progress: Progress = lambda share: None) -> Fit:
    """Return the constants that the rows decide; `progress` is told the share of the work that is done."""
    prior = np.array([knob.start for knob in knobs])
    spread = np.array([knob.spread for knob in knobs])
    acts = [rows.acting(knob) for knob in knobs]
    at, before = prior.copy(), rows.residuals(catalog)
    now, free = before, np.ones(len(knobs), bool)
    for turn in range(ROUNDS):
        some = [mine if is_free else mine[:0] for mine, is_free in zip(acts, free, strict=True)]
        jacobian = slopes_of(rows, knobs, catalog, at, now, some, partial(part_of, progress, turn, ROUNDS))
        if turn == 0:
            free = _decided(jacobian, now, rows, spread)
        at = at + np.where(free, move_of(jacobian, now, rows, rows.weights, at - prior, spread, free), 0.0)
        now = rows.residuals(changed(catalog, knobs, at))
    left = np.sqrt(np.diag(np.linalg.inv(curvature_of(jacobian, now, rows, rows.weights, spread, free))))
    linear = Linearized(rows, jacobian, now, at - prior, spread, free)
    return Fit(tuple(knobs), at, np.where(free, left, spread), free, tuple(rows.count(a) for a in acts), before, now,
               _left_out(linear), linear)


def part_of(progress: Progress, turn: int, turns: int, share: float) -> None:
    """Tell the share of all turns that is done with a share of one."""
    progress((turn + share) / turns)


def slopes_of(rows: Rows, knobs: Sequence[FitConstant], catalog: Catalog, at: Floats, now: Floats, acts: Sequence[Ints],
              progress: Progress) -> Floats:
    """Return the change of every residual with every coordinate, over the figures in `acts`."""
    slopes = np.zeros((len(now), len(knobs)))
    for place, mine in enumerate(acts):
        if len(mine):
            moved = at.copy()
            moved[place] += STEP
            some = rows.residuals(changed(catalog, knobs, moved), mine)
            slopes[mine, place] = (some - now[mine]) / STEP
        progress((place + 1) / len(knobs))
    return slopes


def _robust(now: Floats, rows: Rows) -> Floats:
    """Return the weight of each residual under a Student-t distribution."""
    weights: Floats = (FREEDOM + 1) / (FREEDOM + (now / rows.scales) ** 2)
    return weights


def misfit(now: Floats, rows: Rows, offset: Floats, spread: Floats) -> float:
    """Return minus the logarithm of how likely residuals and constants `offset` from their priors are."""
    far = np.log1p((now / rows.scales) ** 2 / FREEDOM)
    return float((FREEDOM + 1) / 2 * (rows.weights @ far) + ((offset / spread) ** 2).sum() / 2)


def curvature_of(jacobian: Floats, now: Floats, rows: Rows, weight: Floats, spread: Floats, free: Mask) -> Floats:
    """Return the second derivative of the misfit by the coordinates, as Gauss and Newton take it."""
    scaled = np.where(free, jacobian, 0.0) / rows.scales[:, None]
    curvature: Floats = scaled.T @ (scaled * (weight * _robust(now, rows))[:, None]) + np.diag(1 / spread**2)
    return curvature


def move_of(jacobian: Floats, now: Floats, rows: Rows, weight: Floats, offset: Floats, spread: Floats,
          free: Mask) -> Floats:
    """Return the step of one round, no larger than TRUST spreads in any coordinate."""
    scaled = np.where(free, jacobian, 0.0) / rows.scales[:, None]
    slope = scaled.T @ (weight * _robust(now, rows) * now / rows.scales) + offset / spread**2
    step = -np.linalg.solve(curvature_of(jacobian, now, rows, weight, spread, free), slope)
    move: Floats = np.clip(step, -TRUST * spread, TRUST * spread)
    return move


def _decided(jacobian: Floats, now: Floats, rows: Rows, spread: Floats) -> Mask:
    every = np.ones(len(spread), bool)
    left = np.sqrt(np.diag(np.linalg.inv(curvature_of(jacobian, now, rows, rows.weights, spread, every))))
    decided: Mask = left < DECIDED * spread
    return decided


def _left_out(linear: Linearized) -> Floats:
    left = linear.now.copy()
    for mine in by_source(linear.rows.sources).values():
        left[mine] = linear.without(mine)
    return left

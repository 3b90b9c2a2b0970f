"""Whether intervals hold: each source, stack or GPU architecture left out of the constants, the cells and the law."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.catalog.residuals import Law, Residuals, Spreading
from planner.evidence.spread import (
    NONE,
    Left,
    LogRatio,
    as_they_are,
    cells_of,
    residuals_of,
    together,
    without_their_group,
)
from planner.layouts.table import Floats, Ints


@dataclass(frozen=True, slots=True)
class Check:
    """One sample against the interval that all others give."""

    place: int
    log: float
    """Logarithm of measured over predicted, by constants that the others decide."""
    inside: bool
    width: float
    """Upper end over lower."""
    seen: bool
    """Whether the others have rows of the same stack or engine."""
    backing: int = 0
    """Sources among the others that have rows of the same stack, method, kind of model and architecture."""
    first: Check | None = None
    """What it was predicted to be as it came in, against what earlier sources say of its distance."""


def held_out(samples: Sequence[LogRatio], prior: Law, how: Spreading, left: Left | None,
             key: Callable[[LogRatio], str]) -> list[Check]:
    """Return every sample against the interval from the samples of other keys alone, law and constants included."""
    left = left or as_they_are(samples)
    return [check for mine in together(samples, key) for check in _against_others(samples, mine, prior, how, left)]


def by_source(checks: Sequence[Check], samples: Sequence[LogRatio]) -> list[float]:
    """Return the share of the rows of each source that is inside."""
    found: dict[str, list[bool]] = {}
    for check in checks:
        found.setdefault(samples[check.place].source, []).append(check.inside)
    return [float(np.mean(inside)) for inside in found.values()]


def _against_others(samples: Sequence[LogRatio], mine: Ints, prior: Law, how: Spreading, left: Left) -> list[Check]:
    others = np.setdiff1d(np.arange(len(samples)), mine)
    rest = [samples[int(place)] for place in others]
    if all(sample.is_open for sample in rest):
        return []
    def without(places: Ints, beside: Ints = NONE, /) -> Floats:
        return left(others[places], np.concatenate([others[beside], mine]))

    grouped = without_their_group(rest, without)
    law, quantiles, cells, _ = residuals_of(rest, prior, how, without, grouped)
    found = Residuals(name="held-out", source="the other samples", as_of="2026", kind="fitted", law=law,
                      quantiles=quantiles, cells=tuple(cells))
    earlier: dict[int, Residuals] = {}
    for since in {one.since for place in mine.tolist() if (one := samples[place]).first is not None}:
        there = np.array([at for at, sample in enumerate(rest) if sample.since < since], np.int64)
        near = cells_of([rest[at] for at in there.tolist()], grouped[there], law, how)
        earlier[since] = Residuals.model_validate(dict(found) | {"cells": tuple(near)})
    return [replace(checked(found, one := samples[place], place, log), first=None if one.first is None else checked(
        earlier[one.since], replace(one, parts=one.first_parts), place, one.first))
            for place, log in zip(mine.tolist(), left(mine).tolist(), strict=True)]


def checked(residuals: Residuals, sample: LogRatio, place: int, log: float) -> Check:
    """Return a sample, with the logarithm of its measured over predicted figure, against the interval for its like."""
    at = residuals.at(sample.traits, sample.sizes, is_open=sample.is_open, guessed=sample.guessed)
    one = at.of_parts(sample.parts)
    return Check(place, log, one.q05 <= np.exp(log) <= one.q95, one.q95 / one.q05, one.rows > 0, one.backing)

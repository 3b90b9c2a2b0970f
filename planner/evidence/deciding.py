"""Which law of residuals whole sources that were left out decide: the most likely one, or the one that scores best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from planner.catalog.nearness import Distance
from planner.catalog.residuals import LEVELS, Law, Spreading
from planner.layouts.table import Floats

DIGITS = 4
FIRST, LAST = 0.4, 0.02
"""Steps of the search in logarithms of figures: precision beyond the last is none."""
OUTSIDE = 1 / LEVELS["q05"]
"""What an interval costs for how far a row lies outside of it, over its width: the score by which 90% are inside."""
WIDE = "wide"
"""The upper quantile as it is searched beside the figures of a law."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Samples that were left out together: how far each is from the others, its logarithm without them, its weight.

    Logarithms are those that parts which may be absent do not account for.
    """

    far: tuple[Distance, ...]
    is_open: tuple[bool, ...]
    guessed: tuple[tuple[str, ...], ...]
    logs: Floats
    weights: Floats


def decided(prior: Law, how: Spreading, held: Sequence[LeftOut]) -> Law:
    """Return the law whose 90% intervals score best where sources were held out, or the most likely one.

    The mean score is as much as how far figures are from their priors. One figure is searched after the other.
    """
    figures = _figures(prior) | {WIDE: how.quantiles.q95}
    shares, logs, weights = _shares(list(figures)[:-1], prior, held)
    spread = np.array([far.cell.spread**2 + prior.common**2 for part in held for far in part.far])
    start = np.log(np.array(list(figures.values())))
    off = np.abs(logs)

    def score(at: Floats) -> float:
        variance = spread + shares @ np.exp(2 * at[:-1])
        if not prior.scored:
            return float(weights @ (np.log(variance) / 2
                                    + (how.freedom + 1) / 2 * np.log1p(logs**2 / variance / how.freedom)))
        half = np.exp(at[-1]) * np.sqrt(variance)
        return float(weights @ (2 * half + OUTSIDE * np.maximum(off - half, 0)))

    unit = score(start) / weights.sum() if prior.scored else 1.0

    def misfit(at: Floats) -> float:
        return float(score(at) / unit + (((at - start) / how.doubt)**2).sum() / 2)

    at, best, step = start.copy(), misfit(start), FIRST
    while step > LAST:
        moved = False
        for place in (place for place, name in enumerate(figures) if name.removeprefix("unseen.") not in prior.fixed):
            for by in (step, -step):
                other = at.copy()
                other[place] += by
                if (now := misfit(other)) < best:
                    at, best, moved = other, now, True
                    break
        step = step if moved else step / 2
    return _changed(prior, dict(zip(figures, np.exp(at).tolist(), strict=True)))


def _shares(names: Sequence[str], law: Law, held: Sequence[LeftOut]) -> tuple[Floats, Floats, Floats]:
    """Return by how much each figure, squared, adds to each variance; and the logarithms and their weights."""
    rows = []
    for part in held:
        for far, is_open, guessed in zip(part.far, part.is_open, part.guessed, strict=True):
            parts = {"between": 1 + 1 / far.among, "thin": law.few(far), "open": float(is_open),
                     **{f"unseen.{n}": 1.0 for n in far.unseen},
                     **{f"beyond.{n}": by**2 for n, by in far.past.items()},
                     **{f"guessed.{n}": 1.0 for n in guessed}}
            rows.append([parts.get(name, 0.0) for name in names])
    return (np.array(rows), np.concatenate([other.logs for other in held]),
            np.concatenate([other.weights for other in held]))


def _figures(law: Law) -> dict[str, float]:
    return {"between": law.between, "open": law.open, **({"thin": law.thin} if law.thin else {}),
            **{f"unseen.{n}": sd for n, sd in law.unseen.items()},
            **{f"beyond.{n}": sd for n, sd in law.beyond.items()},
            **{f"guessed.{n}": sd for n, sd in law.guessed.items()}}


def _changed(law: Law, figures: Mapping[str, float]) -> Law:
    return law.model_copy(update={
        "between": short(figures["between"]), "open": short(figures["open"]),
        "thin": short(figures["thin"]) if law.thin else None,
        "unseen": {name: short(figures[f"unseen.{name}"]) for name in law.unseen},
        "beyond": {name: short(figures[f"beyond.{name}"]) for name in law.beyond},
        "guessed": {name: short(figures[f"guessed.{name}"]) for name in law.guessed}})


def short(value: float) -> float:
    """Return a figure as files have it."""
    return float(f"{value:.{DIGITS}g}")

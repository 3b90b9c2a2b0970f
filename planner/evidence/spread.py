"""The law of residuals from samples: spreads of what is alike, and what distance from the evidence adds.

Samples of one source are left out together, of the constants and of the cells; how far they then lie off, over what
the cells of the others say, decides what one source differs from the next and what each kind of novelty adds. Rows that
were predicted before anything of them was known lie off by that, over what the cells of earlier sources said. These few
figures have priors, as sources are few; of those about the priors they are the ones whose intervals score best, each
source counting as its effective number of rows. Rows of one model on one GPU of a source repeat each other, so that n
of them count as the root of n there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from planner.catalog.nearness import Cell, Nearness, alike
from planner.catalog.residuals import LEVELS, Law, Quantiles, Spreading, lacking
from planner.evidence.deciding import LeftOut, decided, short
from planner.layouts.table import Floats, Ints

ROUNDS, SETTLED = 40, 1e-3
"""Of the robust spread, at most, and its relative change that ends them."""
LEAST_FIRST = 4
"""Sources whose first predictions count in place of today's: which way fewer lie off is chance."""


@dataclass(frozen=True, slots=True)
class LogRatio:
    """The logarithm of measured over predicted of one figure, and what it is of."""

    source: str
    group: str
    """Rows of one model and GPU of a source."""
    traits: Mapping[str, str]
    sizes: Mapping[str, float]
    is_open: bool
    """Whether something important had to be assumed."""
    log: float
    guessed: tuple[str, ...] = ()
    """What of it the law knows by name."""
    parts: Mapping[str, float] = field(default_factory=dict)
    """Shares of what is predicted that the law knows by name."""
    first: float | None = None
    """The logarithm by what it was predicted to be before anything of it was known."""
    first_parts: Mapping[str, float] = field(default_factory=dict)
    """The same shares as they were then."""
    since: int = 0
    """The batch in which it was, of those that came in later; with `first`, earlier ones are all that there was."""


NONE = np.empty(0, np.int64)
class Left(Protocol):
    """Places of samples -> their logarithms under constants fitted without them, and without others beside them."""

    def __call__(self, places: Ints, beside: Ints = NONE, /) -> Floats:
        """Return the logarithms of the samples at `places`."""


def residuals_of(samples: Sequence[LogRatio], prior: Law, how: Spreading, left: Left | None = None,
                 grouped: Floats | None = None) -> tuple[Law, Quantiles, list[Cell], float | None]:
    """Return the law that samples decide from its prior, the quantiles of what is left, the cells, and the share
    of samples inside their interval with their source left out; none of a single source.

    left: constants without some samples; without it their logarithms are taken as they are. grouped: by
    `without_their_group`, where they are known.
    """
    left = left or as_they_are(samples)
    grouped = without_their_group(samples, left) if grouped is None else grouped
    if len({sample.source for sample in samples if sample.first is not None}) < LEAST_FIRST:
        samples = [replace(sample, first=None) for sample in samples]
    weights = weights_of(samples, prior.intraclass)
    held = [part for places in apart(samples) if (part := _held(samples, grouped, left, prior, how, places, weights))]
    if not held:
        return prior, how.quantiles, cells_of(samples, grouped, prior, how), None
    law = decided(prior, how, held)
    over = np.concatenate([_over_scale(law, part) for part in held])
    by_source = law.scored or not law.even or any(sample.first is not None for sample in samples)
    share = np.concatenate([part.weights for part in held]) if by_source else np.ones(len(over))
    quantiles = _quantiles(over, share, even=law.even)
    inside = np.mean((quantiles.q05 <= over) & (over <= quantiles.q95))
    return law, quantiles, cells_of(samples, grouped, law, how), short(float(inside))


def cells_of(samples: Sequence[LogRatio], logs: Floats, law: Law, how: Spreading, root: float | None = None
             ) -> list[Cell]:
    """Return the cells of samples, the most alike first, each drawn to the one that it is part of.

    logs: of the samples, with the constants fitted without their group. root: what that of all is drawn to, if any.
    What is open counts nowhere.
    """
    counts = Counter(sample.group for sample in samples)
    weights = np.array([counts[sample.group] ** -0.5 for sample in samples])
    places = np.array([place for place, sample in enumerate(samples) if not sample.is_open], np.int64)
    cells: dict[tuple[tuple[str, str], ...], Cell] = {}
    for names in dict.fromkeys(((), *reversed(alike(law.traits, law.head)))):
        for key, mine in _keyed(samples, places, names).items():
            parent = next((cells[key[:n]].spread for n in range(len(key) - 1, -1, -1) if key[:n] in cells), root)
            spread = _robust(logs[mine], weights[mine], parent, how)
            cells[key] = _cell(dict(key), [samples[int(place)] for place in mine], logs[mine], spread)
    return [cells[key] for key in sorted(cells, key=lambda key: (-len(key), key))]


def _cell(traits: Mapping[str, str], mine: Sequence[LogRatio], logs: Floats, spread: float) -> Cell:
    sizes = {name: [sample.sizes[name] for sample in mine if name in sample.sizes]
             for name in sorted({name for sample in mine for name in sample.sizes})}
    return Cell(traits=dict(traits), rows=len(mine), sources=tuple(sorted({sample.source for sample in mine})),
                spread=short(spread), error=short(float(np.median(np.abs(np.expm1(-logs))))),
                sizes={name: (min(held), max(held)) for name, held in sizes.items()})


def _keyed(samples: Sequence[LogRatio], places: Ints, names: Sequence[str]
           ) -> dict[tuple[tuple[str, str], ...], Ints]:
    cells: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for place in places.tolist():
        traits = samples[place].traits
        if all(name in traits for name in names):
            cells.setdefault(tuple((name, traits[name]) for name in names), []).append(place)
    return {key: np.array(mine, np.int64) for key, mine in cells.items()}


def _robust(logs: Floats, weights: Floats, parent: float | None, how: Spreading) -> float:
    """Return the scale of a Student-t distribution about zero, drawn to a parent's as by `pull` groups of rows."""
    pull, least, squares = 0.0 if parent is None else how.pull, how.least**2, logs**2
    whole, drawn = float(weights.sum()) + pull, pull * (parent or 0.0)**2
    square = float(weights @ squares / weights.sum()) if parent is None else parent**2
    for _ in range(ROUNDS):
        before = max(square, least)
        square = float((weights * squares) @ ((how.freedom + 1) / (how.freedom + squares / before)) + drawn) / whole
        if abs(square - before) < SETTLED * before:
            break
    return max(how.least, math.sqrt(square))


def without_their_group(samples: Sequence[LogRatio], left: Left) -> Floats:
    """Return the logarithms of samples under constants fitted without those of the same source, model and GPU."""
    spreads = np.empty(len(samples))
    for places in together(samples, lambda sample: sample.group):
        spreads[places] = left(places)
    return spreads


def as_they_are(samples: Sequence[LogRatio]) -> Left:
    """Return the logarithms of samples whose constants no fit decides."""
    logs = np.array([sample.log for sample in samples])

    def left(places: Ints, beside: Ints = NONE, /) -> Floats:
        rest: Floats = logs[places]
        return rest

    return left


def together(samples: Sequence[LogRatio], key: Callable[[LogRatio], str]) -> list[Ints]:
    """Return the places of the samples of each key."""
    groups: dict[str, list[int]] = {}
    for place, sample in enumerate(samples):
        groups.setdefault(key(sample), []).append(place)
    return [np.array(groups[name], np.int64) for name in sorted(groups)]


def apart(samples: Sequence[LogRatio]) -> list[Ints]:
    """Return the places of the samples that are held against others together: of a source, as they came in."""
    return together(samples, lambda sample: f"{sample.source} {sample.since if sample.first is not None else 0}")


def before(samples: Sequence[LogRatio], places: Ints) -> Ints:
    """Return the places of what some samples of one source were held against: of all other sources, or of earlier ones
    where they were predicted as they came in.
    """
    source, first, since = ((one := samples[int(places[0])]).source, one.first, one.since)
    return np.array([at for at, sample in enumerate(samples)
                     if sample.source != source and (first is None or sample.since < since)], np.int64)


def weights_of(samples: Sequence[LogRatio], intraclass: float | None) -> Floats:
    """Return what each sample counts: those of a source together as their effective number, or the root of its groups.

    intraclass: correlation of how far samples of one source lie off; of 1 a source counts as one, of 0 as its samples.
    """
    counts = Counter(sample.group for sample in samples)
    weights = np.array([counts[sample.group] ** -0.5 for sample in samples])
    for places in together(samples, lambda sample: sample.source):
        weights[places] /= (math.sqrt(len({samples[int(place)].group for place in places})) if intraclass is None else
                            1 + (weights[places].sum() - 1) * intraclass)
    return weights


def _held(samples: Sequence[LogRatio], grouped: Floats, left: Left, law: Law, how: Spreading, places: Ints,
          weights: Floats) -> LeftOut | None:
    """Return how some samples lie off with constants and cells of the others; none where no others are left."""
    others = before(samples, places)
    rest = [samples[int(place)] for place in others]
    if all(sample.is_open for sample in rest):
        return None
    near = Nearness(law.traits, law.head, tuple(cells_of(rest, grouped[others], law, how)), law.like)
    mine = [samples[int(place)] for place in places]
    firsts = [sample.first for sample in mine if sample.first is not None]
    shares = [sample.first_parts if firsts else sample.parts for sample in mine]
    return LeftOut(tuple(near.distance(sample.traits, sample.sizes) for sample in mine),
                   tuple(sample.is_open for sample in mine), tuple(sample.guessed for sample in mine),
                   _besides(law, np.array(firsts) if firsts else left(places), shares), weights[places])


def _besides(law: Law, logs: Floats, shares: Sequence[Mapping[str, float]]) -> Floats:
    """Return logarithms less what parts that may be absent take off, of those below the prediction, in quadrature."""
    fallen = np.array([lacking(law.parts, mine) for mine in shares])
    besides: Floats = np.where(logs < 0, -np.sqrt(np.maximum(0.0, logs**2 - fallen**2)), logs)
    return besides


def _over_scale(law: Law, held: LeftOut) -> Floats:
    """Return logarithms over the scale that the law gives each."""
    scales = np.array([law.scale(far, is_open=is_open, guessed=guessed)
                       for far, is_open, guessed in zip(held.far, held.is_open, held.guessed, strict=True)])
    ratios: Floats = held.logs / scales
    return ratios


def _quantiles(over: Floats, weights: Floats, *, even: bool) -> Quantiles:
    """Return quantiles of logarithms over their scales, which may lie farther on one side than on the other."""
    def at(level: float) -> float:
        off = np.abs(over) if even else over
        order = np.argsort(off)
        share = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
        return short(float(np.interp(abs(2 * level - 1) if even else level, share, off[order])))

    found = {name: at(level) for name, level in LEVELS.items()}
    if even:
        found |= {"q05": -found["q05"], "q10": -found["q10"], "q50": 0.0}
    return Quantiles(**found)

"""A fixed batch of answers drawn to the last one: how many sequences decode at each of its steps.

Lengths are lognormal and cut at the longest that is allowed. A replica takes the next sequence of the batch as soon as
one ends (continuous batching), so that its slots stay full until none waits; then it drains, and the step ends with the
longest answer of all replicas. What is counted here are decode steps; what each takes is the engine's.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist

import numpy as np

from planner.layouts.table import Floats

POINTS = 48
"""Intervals of decode steps that stand for all of them."""
_STANDARD = NormalDist()
_GOLDEN = (math.sqrt(5) - 1) / 2
_HALVINGS = 60
_MOST_SHARE = 1 - 1e-12


@dataclass(frozen=True, slots=True)
class AnswerLengths:
    """Tokens of answers: their mean as drawn, standard deviation over mean before the cut, and the longest allowed."""

    mean: float
    cv: float
    longest: float
    endless: float = 0.0
    """Share of them that do not end by themselves, and run to the longest."""

    def quantiles(self, shares: Floats) -> Floats:
        """Return the tokens that shares of the answers do not exceed."""
        sigma = math.sqrt(math.log1p(self.cv**2))
        if sigma == 0 or self.mean >= self.longest:
            return np.full(len(shares), min(self.mean, self.longest))
        # the others make up for those without an end
        endless = min(self.endless, max(0.0, (self.mean - 1) / (self.longest - 1)) / 2)
        mean = (self.mean - endless * self.longest) / (1 - endless)
        center = _center(mean, sigma, self.longest)
        within = np.minimum(shares / (1 - endless), _MOST_SHARE)
        drawn = np.exp(center + sigma * np.array([_STANDARD.inv_cdf(share) for share in within]))
        lengths: Floats = np.where(shares > 1 - endless, self.longest, np.clip(drawn, 1.0, self.longest))
        return lengths

    @property
    def weighted(self) -> float:
        """Mean tokens of the answer that a token is of: long ones have more of them."""
        return _weighted(self)


@cache
def _weighted(answers: AnswerLengths) -> float:
    lengths = answers.quantiles((np.arange(POINTS * 8) + 0.5) / (POINTS * 8))
    return float((lengths**2).sum() / lengths.sum())


@cache
def _center(mean: float, sigma: float, longest: float) -> float:
    """Return the mean logarithm with which lengths cut at the longest have the mean."""
    top = math.log(longest)
    low, high = math.log(mean) - 2 * sigma**2 - 1, top + 20 * sigma
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = math.exp(middle + sigma**2 / 2) * _STANDARD.cdf((top - middle) / sigma - sigma)
        if below + longest * _STANDARD.cdf((middle - top) / sigma) < mean:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@dataclass(frozen=True, slots=True)
class Drain:
    """Decode steps of one replica in intervals: how many, sequences at work, and tokens each has written on average."""

    steps: Floats
    active: Floats
    written: Floats

    @property
    def total(self) -> float:
        """Decode steps until the last answer ends."""
        return float(self.steps.sum())


@cache
def drain(answers: AnswerLengths, samples: int, replicas: int, slots: int) -> Drain:
    """Return how `samples` answers of one of so many replicas are drawn with `slots` at a time, the longest among them.

    Lengths come in no order: neighbors in the queue lie far apart among the quantiles.
    """
    shares = (np.arange(samples) + 0.5) / samples
    shares[-1] = max(shares[-1], 1 - 0.5 / (samples * replicas))
    lengths = answers.quantiles(shares)
    lengths = lengths[np.argsort((np.arange(samples) * _GOLDEN) % 1)]
    starts = _starts(lengths, min(slots, samples))
    ends = starts + lengths
    edges = np.linspace(0.0, ends.max(), POINTS + 1)
    at = (edges[1:] + edges[:-1]) / 2
    by_start, by_end = np.argsort(starts), np.argsort(ends)
    begun, over = (np.searchsorted(times, at, side="right") for times in (starts[by_start], ends[by_end]))
    since = (np.concatenate([[0.0], np.cumsum(starts[order])]) for order in (by_start, by_end))
    first, last = (sums[count] for sums, count in zip(since, (begun, over), strict=True))
    active = np.maximum(begun - over, 1.0)
    return Drain(np.diff(edges), active, np.maximum(at - (first - last) / active, 0.0))


def _starts(lengths: Floats, slots: int) -> Floats:
    """Return at which decode step each answer begins: at once, or when another ends."""
    starts = np.zeros(len(lengths))
    free = list(lengths[:slots])
    heapq.heapify(free)
    for at in range(slots, len(lengths)):
        starts[at] = free[0]
        heapq.heapreplace(free, free[0] + lengths[at])
    return starts


def steady(answers: AnswerLengths, samples: int, slots: int, ahead: int) -> Drain:
    """Return the same of replicas that never wait for the longest: answers of `ahead` steps are at work at once."""
    active = float(min(slots, samples * ahead))
    return Drain(np.array([samples * answers.mean / active]), np.array([active]), np.array([answers.weighted / 2]))

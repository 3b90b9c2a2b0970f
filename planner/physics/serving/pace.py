"""Time per output token: how it varies from answer to answer, with the prompts that come while one is decoded.

An answer of n tokens after its first is a delay cycle (Conway, Maxwell and Miller 1967): its own n steps, and the
prompts that are taken into them. Those are the ones that came while it waited and was prefilled itself, and those that
come meanwhile, which draw it out so that more come:
    mean       n b / (1 - r) - b r d / (1 - r) + c X (W + s) d
    variance   d^2 var(c X (W + s)) + d^3 X c^2 k (n b + c X (W + s))
b seconds of a token without prompts, X prompts/s, c seconds a prompt adds, r = X c, W and s seconds waited and
prefilled, k the spread of gaps and lengths; d = (1 - r^n) / (1 - r), as what comes in one step is taken into the next.
Some answers meet no prompt; what the others meet is taken as gamma distributed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.layouts.table import Floats
from planner.physics.serving.gamma import gamma_share, normal_share
from planner.physics.serving.points import least, over_all

EXPONENTIAL = 1e-6
FARTHEST = 20
"""Deviations beyond which no answer is looked for."""
BUSIEST = 0.98
"""Share of time for prompts beyond which no pace is steady."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between tokens, for each row, and for answers of several lengths, one column each."""

    alone: Floats
    """Of answers that meet no prompt."""
    deviation: Floats
    """Of that, as the number of sequences beside one varies."""
    later: Floats
    """Tokens after the first of an answer of each length; a row of its own."""
    added: Floats
    """Seconds that prompts add to the whole answer, on average."""
    variance: Floats
    untouched: Floats
    """Share of answers that meet none."""
    most: Floats
    """Seconds of a token whose step is full of prompts."""

    @property
    def mean(self) -> Floats:
        """Return the mean over all answers."""
        mean: Floats = np.minimum(self.alone + over_all(self.added / self.later), self.most)
        return mean

    @property
    def answer(self) -> tuple[Floats, Floats]:
        """Return mean and standard deviation of the seconds from first to last token, for answers of each length."""
        spread = np.maximum(self.variance, 0.0) + (self.deviation[:, None] * self.later) ** 2
        most = self.most[:, None] * self.later
        return np.minimum(self.alone[:, None] * self.later + self.added, most), np.sqrt(spread)

    def within(self, seconds: Floats) -> Floats:
        """Return the share of answers whose time per token is at most so many seconds."""
        past = (seconds - self.alone)[:, None]
        still = np.maximum(self.deviation, 1e-9 * np.maximum(self.alone, 1e-9))[:, None]
        met = np.maximum(1 - self.untouched, 1e-9)
        mean = self.added / met
        # of those that meet some: their second moment is that of all
        spread = np.maximum((self.variance + self.added**2) / met - mean**2, 0.0) + (still * self.later) ** 2
        touched = gamma_share(past * self.later, np.maximum(mean, 1e-12), np.maximum(spread, 1e-24))
        share = over_all(self.untouched * normal_share(past / still) + (1 - self.untouched) * touched)
        shares: Floats = np.where(seconds >= self.most, 1.0, share)
        return shares

    def at(self, quantile: float) -> Floats:
        """Return the seconds that a share of answers stay within."""
        return least(self.within, quantile, self.most)


def undisturbed(alone: Floats, deviation: Floats) -> Pace:
    """Return the pace of replicas that take no prompts."""
    none = np.zeros((len(alone), 1))
    return Pace(alone, deviation, np.ones(1), none, none, none + 1, alone + 10 * deviation + 1e-12)


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts that a replica takes, for each row: per second, seconds that each adds, and how they come."""

    rate: Floats
    cost: Floats
    after: Floats
    """Seconds that each adds of those that come while others are worked on, which share a step."""
    wait: Floats
    """Mean seconds that one waits in which others come that go after it."""
    waits: Floats
    """Share that waits at all."""
    work: Floats
    """Seconds it is worked on, with those of the step that it met."""
    full: Floats | None
    """Seconds of a token whose step is full of prompts; none where prompts go before all decoding."""
    gaps: float
    """Squared coefficient of variation of the gaps between them."""
    lengths: float
    """The same of their lengths."""


def disturbed(alone: Floats, deviation: Floats, later: Floats, prompts: Prompts) -> Pace:
    """Return the pace of answers of `later` tokens after the first (one column each) beside prompts."""
    rate, cost = prompts.rate[:, None], prompts.after[:, None]
    average, busy = (np.minimum(rate * seconds, BUSIEST) for seconds in (prompts.cost[:, None], cost))
    # what comes in one step is taken into the next: an answer of few tokens ends before all of that has its effect
    drawn = (1 - busy**later) / (1 - busy)
    own, wait, waits = alone[:, None] * later, prompts.wait[:, None], np.maximum(prompts.waits, 1e-9)[:, None]
    # over a short while arrivals vary as if at random, however their gaps do
    while_there = rate * (wait + prompts.work[:, None] + own)
    spread = 1 + (prompts.gaps - 1) * -np.expm1(-while_there) + prompts.lengths
    behind = rate * (wait + prompts.work[:, None])
    # who came in a burst has more of it behind
    behind = behind + max(prompts.gaps - 1, 0.0) / 2 * (1 - _no_arrival(behind, prompts.gaps))
    start = own + cost * behind
    # waits are none, or exponential
    uneven = cost**2 * (spread * behind + rate**2 * wait**2 * (2 / waits - 1))
    added = own * average / (1 - average) + cost * np.maximum(behind - rate * alone[:, None] / (1 - busy), 0.0) * drawn
    variance = uneven * drawn**2 + start * rate * cost**2 * spread * drawn**3
    alone_for = rate * (prompts.work[:, None] + own)
    untouched = _no_arrival(alone_for, prompts.gaps) * (1 - waits * (1 - 1 / (1 + rate * wait / waits)))
    most = alone + FARTHEST * (deviation + ((added + np.sqrt(variance)) / later).max(axis=1))
    if prompts.full is not None:
        most = np.minimum(most, np.maximum(prompts.full, alone + 4 * deviation))
    return Pace(alone, deviation, later, added, variance, untouched, most)


def _no_arrival(arrivals: Floats, gaps: float) -> Floats:
    """Return the share of arrivals that no other follows in the time of so many; gaps are gamma distributed."""
    if abs(gaps - 1) < EXPONENTIAL:
        return np.exp(-arrivals)
    return 1 - gamma_share(arrivals, np.ones_like(arrivals), np.full_like(arrivals, max(gaps, 1e-3)))

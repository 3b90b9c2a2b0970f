"""A replay that ends early is one that would have missed, and one that does not is the same as without hopes."""

import random

import numpy as np
import pytest

from planner.simulate.fleet import ReplicaGroup, _Fleet, simulate, simulate_hoping
from planner.simulate.hopes import Bar, Hopes, Hoping
from planner.simulate.steps import ReplicaKind
from planner.simulate.trace import Lengths, synthetic, thinking
from tests.simulate.naive import Affine

SLOW = ReplicaKind(Affine(), 600, 8, chunk=64, block=8)


def kept(outcome, bar, ends):
    """Say whether a whole replay keeps a bar."""
    column = getattr(outcome.within_ends(ends) if ends else outcome, bar.latency)
    values = column[~np.isnan(column)]
    seconds = values.mean() if bar.share is None else np.percentile(values, 100 * bar.share)
    return not len(values) or seconds <= bar.seconds


@pytest.mark.parametrize("seed", range(12))
def test_only_what_misses_ends_early(seed):
    draw = random.Random(seed)
    trace = synthetic(draw.choice((3, 8, 20)), (Lengths(60, 0.7), Lengths(draw.choice((1.5, 30)), 0.7)), count=150,
                      seed=seed)
    groups, users = [ReplicaGroup(SLOW, draw.randint(1, 4))], thinking(12, 0.5, 150) if draw.random() < 0.5 else None
    delay, ends = trace.input * draw.choice((0.0, 0.001)), 0 if users is None else 12
    whole = simulate(trace, groups, users=users).delayed(delay)
    found = set()
    for latency in ("ttft", "tpot", "e2e"):
        shown = whole.percentiles(latency)
        for share, typical in ((0.5, shown["p50"]), (0.95, shown["p95"]), (None, shown["mean"])):
            for factor in (0.2, 0.999, 1.001, 2.0):
                bars = ((Bar(latency, factor * typical, share),), (Bar("ttft", 0.3, 0.9), Bar("e2e", 5.0, None)))
                ended = simulate_hoping(Hopes(bars, delay, ends), trace, groups, users=users)
                missed = all(not all(kept(whole, bar, ends) for bar in group) for group in bars)
                assert ended is not None or missed
                assert ended is None or np.array_equal(ended.delayed(delay).e2e, whole.e2e)
                assert ended is None or not missed or factor > 0.9
                found.add(ended is None)
    assert False in found


def test_far_too_much_is_seen_early():
    trace = synthetic(50, (Lengths(60), Lengths(30)), count=2000, seed=1)
    groups = [ReplicaGroup(SLOW)]
    hopes = Hopes(((Bar("ttft", 0.5, 0.95),),), np.zeros(len(trace)))
    fleet = _Fleet(trace, groups, "least-outstanding", None, lambda share: None, None, (), Hoping(hopes, trace))
    assert not fleet.run()
    assert fleet.ended < 0.1 * len(trace)

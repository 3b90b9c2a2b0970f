"""The ideal autoscaler: against the best of all schedules of small cases, a day by hand, a trace by replay."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

import planner
from planner.errors import InputError
from planner.jobs.serving.autoscale import ReplicaSchedule, of_a_day, of_a_trace
from planner.simulate.trace import Trace
from tests.jobs.serving.cases import solved


def paid(needed, there, startup):
    """Return the replica-seconds of one replica by parts of one second, with those in which it starts."""
    if any(need > on for need, on in zip(needed, there, strict=True)):
        return None
    return sum(there) + startup * sum(on > before for before, on in pairwise(there))


@pytest.mark.parametrize("startup", [0.5, 1, 2, 3, 8])
def test_no_schedule_of_one_replica_takes_less(startup):
    for needed in product((0, 1), repeat=8):
        if not any(needed):
            continue
        made = ReplicaSchedule(np.array([needed]), 1.0).kept(startup)
        least = min(one for there in product((0, 1), repeat=8) if (one := paid(needed, there, startup)) is not None)
        found = made.summed([1], startup, None).mean_gpus * 8
        # what is there at the beginning did not start, so that being there from the first part on may be cheaper
        early = paid(needed, made.counts[0].tolist(), startup)
        assert found == pytest.approx(early)
        assert least <= found <= least + startup + 1e-9
        if needed[0]:
            assert found == pytest.approx(least)


def picks_of(*kinds):
    (pick,) = solved().picks
    return [replace(pick, hourly=hourly, replicas=max(hourly),
                    column=replace(pick.column, tp=gpus, rate=rate)) for gpus, rate, hourly in kinds]


def test_a_day_by_hand():
    """Two replicas of 4 GPUs in two hours, one in the others: one start, of a quarter of an hour."""
    picks = picks_of((4, 10.0, (1,) * 8 + (2, 2) + (1,) * 14))
    found = of_a_day(picks, 24, 900)
    assert (found.peak_gpus, found.starts) == (8, 1)
    assert found.mean_gpus == pytest.approx((22 * 4 + 2 * 8) / 24 + 4 * 0.25 / 24)


def test_midnight_starts_too():
    found = of_a_day(picks_of((1, 1.0, (2,) + (1,) * 22 + (1,))), 24, 3600)
    assert (found.starts, found.mean_gpus) == (1, pytest.approx((25 + 1) / 24))


def test_a_trace_by_hand():
    """A busy minute of ten asks for all three replicas and one does for the rest, which windows of a minute show."""
    arrival = np.sort(np.concatenate([np.arange(0, 600, 1.0), np.arange(240, 300, 0.05)]))
    trace = Trace(arrival, np.full(len(arrival), 10), np.full(len(arrival), 10))
    tried = []

    def within(phases):
        tried.append(phases)
        return max(phase.replicas for phase in phases) == (3,), 0.97

    found = of_a_trace(picks_of((1, 8.0, (3,))), trace, 30, within)
    assert [[phase.replicas for phase in one] for one in tried] == [[(1,)], [(2,), (1,)], [(1,), (3,), (1,)]]
    assert (found.peak_gpus, found.starts, found.share_within_level) == (3, 2, 0.97)
    assert found.mean_gpus == pytest.approx((540 + 60 * 3 + 2 * 30) / 600, rel=0.01)


def test_nothing_is_saved_where_no_schedule_meets_the_targets():
    trace = Trace(np.arange(0, 600, 1.0), np.full(600, 10), np.full(600, 10))
    found = of_a_trace(picks_of((2, 8.0, (3,))), trace, 30, lambda phases: (False, 0.1))
    assert (found.peak_gpus, found.mean_gpus, found.starts, found.share_within_level) == (6, 6.0, 0, None)


@pytest.mark.parametrize(("more", "said"), [
    ({}, "startup applies to a load that changes"),
    ({"trace": "none.csv", "rate": None, "input": None, "output": None, "length_classes": 2}, "answer all requests")])
def test_a_start_needs_a_load_that_changes(more, said):
    asked = {"input": 100, "output": 10, "rate": 1, **more}
    with pytest.raises(InputError, match=said):
        planner.plan(model="llama-3.1-8b", on="l40s-1x", startup="5 min", **asked)

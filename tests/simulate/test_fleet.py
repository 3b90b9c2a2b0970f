"""A fleet: each routing policy, groups of several kinds, prefill apart from decode, and the figures of an outcome."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from planner.errors import InputError, UnknownName
from planner.simulate.fleet import ReplicaGroup, simulate
from planner.simulate.router import POLICIES, SLACK
from planner.simulate.steps import ReplicaKind
from planner.simulate.trace import Lengths, Trace, synthetic
from tests.simulate.naive import Affine, naive_fleet
from tests.simulate.test_replica import Beat, requests

BEAT = ReplicaKind(Beat(), 10_000, 64)
PLAIN = ReplicaKind(Affine(), 600, 8, chunk=64, block=8)
BUSY = synthetic(12, (Lengths(60, 0.7), Lengths(40, 0.7)), cv=2, count=400, seed=6)


def test_round_robin_takes_each_replica_in_turn():
    outcome = simulate(requests(*[(i / 100, 10, 5) for i in range(6)]), [ReplicaGroup(BEAT, 3)], "round-robin")
    assert outcome.served_by.tolist() == [0, 1, 2, 0, 1, 2]


def test_least_outstanding_sees_what_has_ended_by_the_arrival():
    # the first runs until 0.215, the second until 0.115; both as of their ends
    trace = requests((0, 100, 12), (0, 100, 2), (0.10, 5, 1), (0.14, 5, 1), (0.30, 5, 1))
    assert simulate(trace, [ReplicaGroup(BEAT, 2)]).served_by.tolist() == [0, 1, 0, 1, 0]


def test_least_outstanding_agrees_with_the_plain_simulation():
    turn = -1

    def choose(replicas, request):
        nonlocal turn
        order = [*range(turn + 1, len(replicas)), *range(turn + 1)]
        turn = min(order, key=lambda at: replicas[at].outstanding)
        return replicas[turn]

    fast, plain = simulate(BUSY, [ReplicaGroup(PLAIN, 3)]), naive_fleet(BUSY, [PLAIN] * 3, choose)
    assert fast.preemptions.sum() > 0
    assert fast.arrival + fast.e2e == pytest.approx([one.last for one in plain], abs=1e-9)


def test_least_kv_agrees_with_the_plain_simulation():
    def used(replica):
        queued = sum(replica.blocks(one.input + one.generated) for one in replica.waiting)
        return queued - replica.free()

    fast = simulate(BUSY, [ReplicaGroup(PLAIN, 3)], "least-kv")
    plain = naive_fleet(BUSY, [PLAIN] * 3, lambda replicas, request: min(replicas, key=used))
    assert fast.arrival + fast.e2e == pytest.approx([one.last for one in plain], abs=1e-9)


def test_prefixes_draw_requests_to_the_replica_that_holds_them():
    hashes = [(1, 2), (3, 4), (1, 2), (3, 5), (6, 7), (1, 8)]
    trace = requests(*[(i, 16, 2) for i in range(6)], prefixes=tuple(hashes), prefix_block=8)
    outcome = simulate(trace, [ReplicaGroup(BEAT, 2)], "prefix-aware")
    assert outcome.served_by.tolist() == [0, 1, 0, 1, 0, 0]
    assert outcome.ttft.tolist() == pytest.approx([0.021, 0.021, 0.006, 0.013, 0.021, 0.013])


def test_an_overloaded_replica_draws_no_more_requests_by_its_prefixes():
    count = SLACK + 9
    trace = requests((0, 16, 1), *[(1, 16, 400)] * count, prefixes=((1, 2),) * (count + 1), prefix_block=8)
    assert Counter(simulate(trace, [ReplicaGroup(BEAT, 2)], "prefix-aware").served_by.tolist()) == {0: 38, 1: 4}


def test_weights_share_requests_among_kinds_of_replicas():
    trace = synthetic(100, (Lengths(10), Lengths(3)), count=600)
    outcome = simulate(trace, [ReplicaGroup(BEAT, 1, weight=3), ReplicaGroup(BEAT, 2, weight=1.5)], "weighted")
    assert Counter(outcome.served_by.tolist()) == {0: 300, 1: 150, 2: 150}
    assert max(Counter(outcome.served_by[:12].tolist()).values()) == 6


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_serves_every_request_once(policy):
    calls = []
    outcome = simulate(BUSY, [ReplicaGroup(PLAIN, 2), ReplicaGroup(BEAT, 1, weight=2)], policy, progress=calls.append)
    assert not outcome.rejected.any()
    assert outcome.output_tokens_per_second * outcome.seconds == pytest.approx(BUSY.output.sum())
    assert set(outcome.served_by) == {0, 1, 2}
    assert ((outcome.utilization > 0) & (outcome.utilization <= 1)).all()
    assert 90 <= len(calls) <= 101
    assert calls[-1] == 1
    assert all(a < b for a, b in pairwise(calls))


@pytest.mark.parametrize("policy", POLICIES)
def test_a_fleet_far_larger_than_its_trace_is_as_one_with_a_replica_for_each_request(policy):
    """Millions of replicas were made for 4,000 requests, and each request looked at all of them."""
    trace = synthetic(100, (Lengths(60, 0.7), Lengths(40, 0.7)), cv=2, count=50, seed=6)
    few, many = (simulate(trace, [ReplicaGroup(PLAIN, 1, weight=5), ReplicaGroup(BEAT, count, weight=3),
                                  ReplicaGroup(PLAIN, count)], policy)
                 for count in (70, 10**9))
    assert few.ttft.tolist() == many.ttft.tolist()
    assert few.e2e.tolist() == many.e2e.tolist()
    assert many.busy_share == pytest.approx(few.busy_share * (2 * 70 + 1) / (2 * 10**9 + 1))


def test_groups_serve_the_prompts_of_their_lengths_and_sizes():
    small, large = ReplicaGroup(ReplicaKind(Beat(), 200, 8), 2, lengths=(1, 99)), ReplicaGroup(BEAT, 1,
                                                                                               lengths=(50, 20_000))
    trace = requests(*[(i, tokens, answer) for i, (tokens, answer) in enumerate(
        [(10, 2), (20, 2), (300, 2), (60, 500), (10, 500), (12_000, 1)])])
    outcome = simulate(trace, [small, large], "round-robin")
    assert outcome.served_by.tolist() == [0, 1, 2, 2, -1, -1]


def test_prefill_and_decode_apart_with_a_transfer_between():
    groups = [ReplicaGroup(BEAT, role="prefill"), ReplicaGroup(BEAT, role="decode")]
    outcome = simulate(requests((0, 100, 11), (0, 50, 1)), groups, transfer=lambda tokens: tokens * 1e-4)
    assert outcome.ttft.tolist() == pytest.approx([0.155, 0.155])
    assert outcome.e2e.tolist() == pytest.approx([0.155 + 0.010 + 10 * 0.010, 0.155])
    assert outcome.served_by.tolist() == [1, 0]
    assert outcome.utilization.tolist() == pytest.approx([0.155 / 0.265, 0.100 / 0.265])


def test_a_transferred_cache_joins_the_next_step_and_waits_for_room():
    decode = ReplicaKind(Beat(), 115, 8)
    groups = [ReplicaGroup(BEAT, role="prefill"), ReplicaGroup(decode, role="decode")]
    outcome = simulate(requests((0, 100, 11), (0.2, 100, 6)), groups, transfer=lambda tokens: 0.0)
    assert outcome.queue.tolist() == pytest.approx([0, 0])
    outcome = simulate(requests((0, 60, 11), (0, 60, 6)), groups, transfer=lambda tokens: 0.0)
    assert outcome.e2e.tolist() == pytest.approx([0.225, 0.225 + 0.050])
    assert outcome.queue.tolist() == pytest.approx([0, 0.1])
    assert outcome.preemptions.tolist() == [0, 0]


def test_a_decode_replica_computes_what_it_preempted_again():
    groups = [ReplicaGroup(BEAT, role="prefill"), ReplicaGroup(ReplicaKind(Beat(), 25, 8), role="decode")]
    outcome = simulate(requests((0, 10, 11), (0, 10, 11)), groups, transfer=lambda tokens: 0.0)
    assert outcome.preemptions.tolist() == [0, 1]
    assert outcome.e2e.tolist() == pytest.approx([0.025 + 0.100, 0.125 + 0.005 + 0.013 + 0.070])


def test_a_prefill_replica_serves_only_what_decode_can_hold():
    groups = [ReplicaGroup(BEAT, role="prefill"), ReplicaGroup(ReplicaKind(Beat(), 50, 8), role="decode"),
              ReplicaGroup(ReplicaKind(Beat(), 80, 8))]
    rows = [(0, 40, 11), (1, 40, 12), (2, 70, 1), (3, 70, 1), (4, 70, 12)]
    outcome = simulate(requests(*rows), groups, "round-robin", lambda tokens: 0.0)
    assert outcome.served_by.tolist() == [1, 2, 2, 0, -1]


def test_the_figures_of_an_outcome():
    outcome = simulate(requests((0, 95, 11), (1, 95, 1), (2, 195, 11)), [ReplicaGroup(BEAT)])
    assert outcome.ttft.tolist() == pytest.approx([0.1, 0.1, 0.2])
    assert outcome.percentiles("ttft") == pytest.approx(
        {"p50": 0.1, "p90": 0.18, "p95": 0.19, "p99": 0.198, "mean": 0.4 / 3})
    assert outcome.percentiles("tpot")["mean"] == pytest.approx(0.01)
    assert outcome.share_meeting(ttft=0.15) == pytest.approx(2 / 3)
    assert outcome.share_meeting(tpot=0.005) == pytest.approx(1 / 3)
    assert outcome.share_meeting(0.15, 0.02) == pytest.approx(2 / 3)
    assert outcome.share_meeting() == 1


def test_nothing_served_has_no_latency_and_no_rate():
    outcome = simulate(requests((0, 20_000, 2)), [ReplicaGroup(BEAT)])
    assert np.isnan(outcome.percentiles("e2e")["p99"])
    assert (outcome.output_tokens_per_second, outcome.seconds, outcome.utilization.tolist()) == (0, 0, [0])


@pytest.mark.parametrize(("groups", "policy", "transfer", "error"), [
    ([], "weighted", None, InputError), ([ReplicaGroup(BEAT, 0)], "weighted", None, InputError),
    ([ReplicaGroup(BEAT, weight=0)], "weighted", None, InputError),
    ([ReplicaGroup(BEAT)], "least-outstandin", None, UnknownName),
    ([ReplicaGroup(BEAT, role="prefill")], "weighted", lambda t: 0.0, InputError),
    ([ReplicaGroup(BEAT, role="prefill"), ReplicaGroup(BEAT, role="decode")], "weighted", None, InputError),
    ([ReplicaGroup(BEAT)], "weighted", lambda t: 0.0, InputError),
    ([ReplicaGroup(BEAT, role="prefill"), ReplicaGroup(BEAT, role="decode")], "weighted", lambda t: -1.0, InputError),
])
def test_impossible_fleets_are_refused(groups, policy, transfer, error):
    with pytest.raises(error):
        simulate(requests((0, 10, 2)), groups, policy, transfer)


def test_a_replay_is_the_same_every_time():
    trace = Trace(BUSY.arrival, BUSY.input, BUSY.output)
    one, again = (simulate(trace, [ReplicaGroup(PLAIN, 3)]) for _ in range(2))
    assert one.e2e.tolist() == again.e2e.tolist()

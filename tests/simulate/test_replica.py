"""One replica: exact small cases, agreement with the plain step-by-step simulation, and queueing theory."""

import random
from dataclasses import replace

import numpy as np
import pytest

from planner.errors import InputError
from planner.simulate.fleet import ReplicaGroup, _Fleet, simulate
from planner.simulate.pool import CachePool
from planner.simulate.steps import ReplicaKind
from planner.simulate.trace import Lengths, Trace, synthetic
from tests.simulate.closed_loop import closed_loop
from tests.simulate.naive import Affine, naive_fleet

STEPS = Affine()


class Beat:
    """Every decode step takes 10 ms, every prompt token 1 ms, an empty step 5 ms."""

    def empty(self):
        return 0.005

    def fixed(self, sequences):
        return 0.010

    def per_token(self, sequences):
        return 0.0

    def prefill(self, tokens, context):
        return 0.001 * tokens


def requests(*rows, prefixes=None, prefix_block=512):
    """Return a trace of (arrival, input, output)."""
    arrival, prompts, answers = zip(*rows, strict=True)
    return Trace(np.array(arrival, float), np.array(prompts), np.array(answers), prefixes, prefix_block)


def run(trace, **facts):
    return simulate(trace, [ReplicaGroup(ReplicaKind(**{"steps": Beat(), "kv_tokens": 10_000,
                                                        "max_batch": 64} | facts))])


def test_a_request_alone_takes_its_prefill_and_a_step_for_every_further_token():
    outcome = run(requests((0, 100, 11)))
    assert outcome.ttft.tolist() == pytest.approx([0.105])
    assert outcome.e2e.tolist() == pytest.approx([0.105 + 10 * 0.010])
    assert outcome.tpot.tolist() == pytest.approx([0.010])
    assert outcome.queue.tolist() == [0]
    assert outcome.utilization.tolist() == pytest.approx([1.0])
    assert outcome.output_tokens_per_second == pytest.approx(11 / 0.205)


def test_context_makes_each_step_longer_by_the_tokens_cached_before_it():
    expected = STEPS.empty() + STEPS.prefill(50, 0) + sum(
        STEPS.fixed(1) + STEPS.per_token(1) * (50 + step) for step in range(7))
    assert run(requests((0, 50, 8)), steps=STEPS).e2e[0] == pytest.approx(expected, abs=1e-12)


def test_two_requests_at_once_share_their_steps():
    outcome = run(requests((0, 100, 11), (0, 40, 6)))
    assert outcome.ttft.tolist() == pytest.approx([0.145, 0.145])
    assert outcome.e2e.tolist() == pytest.approx([0.245, 0.195])


def test_a_prompt_rides_on_the_step_that_begins_after_it_arrives_or_stalls_it():
    trace = requests((0, 100, 11), (0.131, 40, 1))  # steps end at 0.105, 0.115, 0.125, 0.135
    mixed, alone = run(trace), run(trace, mode="prefill first")
    assert mixed.ttft[1] == pytest.approx(0.135 + 0.050 - 0.131)
    assert alone.ttft[1] == pytest.approx(0.135 + 0.045 - 0.131)
    assert mixed.e2e[0] == pytest.approx(0.205 + 0.040)
    assert alone.e2e[0] == pytest.approx(0.205 + 0.045)


def test_who_comes_when_the_next_batch_is_chosen_waits_for_one_step_more():
    rows = (0, 100, 11), (0.131, 40, 1)  # steps end at 0.105, 0.115, 0.125, 0.135, 0.145
    assert run(requests(*rows), ahead=True).ttft[1] == pytest.approx(0.145 + 0.050 - 0.131)
    # an engine with nothing to do begins at once, and what came meanwhile is not in the step behind its own
    lone = run(requests((0, 100, 1), (0.050, 40, 1)), ahead=True)
    assert lone.ttft.tolist() == pytest.approx([0.105, 0.105 + 0.045 - 0.050])
    behind = run(requests((0, 100, 11), (0.050, 40, 1)), ahead=True)
    assert behind.ttft.tolist() == pytest.approx([0.105, 0.115 + 0.050 - 0.050])


def test_a_long_prompt_is_cut_into_chunks_and_the_next_begins_in_the_rest_of_one():
    outcome = run(requests((0, 100, 1), (0, 60, 1)), chunk=64)
    assert outcome.ttft.tolist() == pytest.approx([0.069 * 2, 0.069 * 2 + 0.037])


def test_a_full_batch_makes_the_next_request_wait_for_a_slot():
    outcome = run(requests((0, 100, 11), (0.01, 100, 11)), max_batch=1)
    assert outcome.queue.tolist() == pytest.approx([0, 0.195])
    assert outcome.ttft[1] == pytest.approx(0.195 + 0.105)


def test_a_prompt_waits_until_the_cache_has_room_for_it():
    outcome = run(requests((0, 100, 11), (0.01, 100, 11)), kv_tokens=150)
    assert outcome.queue[1] == pytest.approx(0.195)
    assert outcome.preemptions.sum() == 0


def test_what_a_sequence_holds_beside_its_tokens_is_held_from_the_first():
    """Of cross attention: 3 of 10 prompts of 4 tokens have room for 300 tokens each, and none is dropped."""
    outcome = run(requests(*[(0, 4, 20)] * 10), kv_tokens=1000, apart=300)
    assert sorted(outcome.queue)[2] == 0 < sorted(outcome.queue)[3]
    assert outcome.preemptions.sum() == 0
    assert run(requests((0, 4, 20)), kv_tokens=1000, apart=980).rejected.tolist() == [True]


def test_the_youngest_is_preempted_when_the_cache_is_full_and_computed_again():
    outcome = run(requests((0, 10, 11), (0, 10, 11)), kv_tokens=25)
    # both cached 12 after 2 steps; the next has room for one, until the oldest ends: 8 more steps
    assert outcome.preemptions.tolist() == [0, 1]
    assert outcome.e2e[0] == pytest.approx(0.025 + 10 * 0.010)
    assert outcome.e2e[1] == pytest.approx(0.125 + 0.005 + 0.013 + 7 * 0.010)
    assert outcome.ttft.tolist() == pytest.approx([0.025, 0.025])


def test_a_request_that_can_never_fit_is_rejected_and_the_others_run():
    outcome = run(requests((0, 100, 51), (0, 100, 52)), kv_tokens=150)
    assert outcome.rejected.tolist() == [False, True]
    assert np.isnan(outcome.ttft[1])
    assert np.isnan(outcome.queue[1])
    assert outcome.served_by.tolist() == [0, -1]
    assert outcome.share_meeting(10, 10) == 0.5


def test_cached_prefixes_need_no_prefill_and_old_ones_leave():
    rows = [(i, 24, 1) for i in range(4)]
    prefixes = ((1, 2, 3), (1, 2, 4), (5, 6, 7), (1, 2, 3))
    trace = requests(*rows, prefixes=prefixes, prefix_block=8)
    assert run(trace).ttft.tolist() == pytest.approx([0.029, 0.013, 0.029, 0.006])
    assert run(trace, prefix_tokens=24).ttft.tolist() == pytest.approx([0.029, 0.013, 0.029, 0.029])
    assert run(trace, prefix_tokens=0).ttft.tolist() == pytest.approx([0.029] * 4)


def test_without_prefixes_a_constant_share_is_cached():
    assert run(requests((0, 100, 1)), hit_rate=0.3).ttft[0] == pytest.approx(0.075)
    assert run(requests((0, 100, 1)), hit_rate=1.0).ttft[0] == pytest.approx(0.006)


def random_case(seed):
    draw = random.Random(seed)
    count = draw.randint(1, 25)
    at = np.cumsum([draw.choice([0, draw.expovariate(draw.choice([2, 20]))]) for _ in range(count)])
    trace = requests(*[(at[i], draw.randint(1, 60), draw.randint(1, 40)) for i in range(count)])
    kind = ReplicaKind(STEPS, kv_tokens=draw.choice([100, 120, 200, 5000]), max_batch=draw.choice([1, 2, 5, 50]),
                       chunk=draw.choice([None, 7, 16, 64]), mode=draw.choice(["mixed", "prefill first"]),
                       block=draw.choice([1, 1, 3, 8]), hit_rate=draw.choice([0.0, 0.4]))
    kind = replace(kind, apart=draw.choice([0, 40]) if kind.kv_tokens >= 200 else 0)
    return trace, replace(kind, ahead=draw.choice([False, True]))


@pytest.mark.parametrize("block", range(10))
def test_jumping_over_steps_agrees_with_running_each_one(block):
    preempted = 0
    for seed in range(block * 40, block * 40 + 40):
        trace, kind = random_case(seed)
        replicas = 1 + seed % 3
        fast = simulate(trace, [ReplicaGroup(kind, replicas)])
        plain = naive_fleet(trace, [kind] * replicas, lambda among, i, served=fast.served_by: among[served[i]])
        assert fast.arrival + fast.e2e == pytest.approx([one.last for one in plain], abs=1e-9), seed
        assert fast.arrival + fast.ttft == pytest.approx([one.first for one in plain], abs=1e-9), seed
        assert fast.preemptions.tolist() == [one.preempted for one in plain], seed
        preempted += fast.preemptions.sum()
    assert preempted


def test_every_request_ends_once_and_leaves_nothing_behind():
    trace = synthetic(30, (Lengths(80, 1), Lengths(40, 1)), cv=3, count=3000, seed=4)
    fleet = _Fleet(trace, [ReplicaGroup(ReplicaKind(STEPS, 1500, 64, 128, block=16))], "round-robin",
                   None, lambda share: None,
                   None, ())
    fleet.run()
    outcome = fleet.outcome()
    ended = ~outcome.rejected
    assert fleet.ended == len(trace)
    assert ended.tolist() == [p + a - 1 <= 1488 for p, a in zip(trace.input, trace.output, strict=True)]
    assert np.isfinite(outcome.e2e[ended]).all()
    assert (outcome.ttft[ended] > 0).all()
    assert (outcome.e2e[ended] >= outcome.ttft[ended]).all()
    assert outcome.preemptions.sum() > 0
    assert outcome.output_tokens_per_second * outcome.seconds == pytest.approx(trace.output[ended].sum())
    replica = fleet.replicas[0]
    assert replica.pool.free == replica.pool.size
    assert not any([replica.context, replica.asked, replica.outstanding, replica.running, *replica.pool.phases])


def test_waiting_for_prefill_one_by_one_is_that_of_an_m_d_1_queue():
    seconds, load = 0.105, 0.7
    trace = synthetic(load / seconds, (Lengths(100), Lengths(1)), count=60_000, seed=1)
    outcome = run(trace, max_batch=1)
    assert outcome.percentiles("queue")["mean"] == pytest.approx(seconds * load / 2 / (1 - load), rel=0.03)
    assert outcome.utilization[0] == pytest.approx(load, rel=0.02)


@pytest.mark.parametrize("seed", range(20))
def test_what_the_pool_says_of_many_steps_is_the_sum_of_single_ones(seed):
    draw = random.Random(seed)
    pool, counter = CachePool(draw.randint(50, 400), draw.choice([1, 4, 16])), draw.randint(0, 30)
    held = [draw.randint(1, 40) for _ in range(draw.randint(1, 9))]
    for tokens in held:
        pool.join(tokens, counter)
    taken = [sum(pool.blocks(t + k) - pool.blocks(t) for t in held) for k in range(200)]
    assert [pool.growth(k, counter) for k in range(200)] == taken
    assert pool.lasting(150, counter) == max(k for k in range(151) if taken[k] <= pool.free)


def test_a_closed_loop_keeps_as_many_outstanding_as_asked():
    kind = ReplicaKind(Beat(), 10_000, 64)
    outcome = closed_loop(4, Lengths(10), Lengths(11), 12, kind)
    assert outcome.arrival.tolist() == pytest.approx([0] * 4 + [0.145] * 4 + [0.290] * 4)
    assert outcome.output_tokens_per_second == pytest.approx(12 * 11 / 0.435)
    varied = closed_loop(4, Lengths(10, 1), Lengths(11, 1), 50, kind)
    ends = varied.arrival + varied.e2e
    assert all(((varied.arrival <= t) & (ends > t)).sum() == 4 for t in np.linspace(0, varied.arrival.max(), 90)
               if t not in ends)


def test_impossible_replicas_and_loops_are_refused():
    kind = ReplicaKind(Beat(), 100, 4)
    for facts in ({"kv_tokens": 0}, {"chunk": 0}, {"block": 0}, {"hit_rate": 1.5}, {"prefix_tokens": -1}):
        with pytest.raises(InputError):
            replace(kind, **facts)
    with pytest.raises(InputError, match="never fits"):
        closed_loop(1, Lengths(100), Lengths(2), 3, kind)
    with pytest.raises(InputError, match="at least 1"):
        closed_loop(0, Lengths(10), Lengths(2), 3, kind)


def test_step_times_that_are_no_seconds_are_refused():
    class Broken(Beat):
        def prefill(self, tokens, context):
            return float("nan")

    with pytest.raises(InputError, match="seconds of 0 or more, got nan"):
        run(requests((0, 1, 1)), steps=Broken())

"""Users who wait and think, a target for the whole answer, batches of documents: against Little's law and a replay."""

import json

import numpy as np
import pytest

import planner
from planner.ask.simulate import simulate_plan
from planner.errors import InputError
from planner.simulate.fleet import ReplicaGroup, simulate
from planner.simulate.steps import ReplicaKind
from planner.simulate.trace import Lengths, synthetic, thinking
from tests.cli.conftest import planner as command  # noqa: F401 - the fixture that runs the command
from tests.jobs.serving.cases import CATALOG
from tests.simulate.test_replica import STEPS

CHAT = {"model": "llama-3.1-8b", "input": 1000, "output": 200, "engine": "vllm", "quantization": "bf16"}


@pytest.mark.parametrize(("asked", "on"), [
    ({"users": "20 users", "think": "5 s", "e2e": "20 s"}, "l4-1x"),
    ({"users": 64, "input": {"mean": 1000, "cv": 0.5}, "output": {"mean": 300, "cv": 0.5}}, "h100-sxm-1x"),
])
def test_users_are_served_as_a_replay_of_them_is(asked, on):
    plan = planner.plan(**CHAT | asked, on=on)
    served = plan.assignments[0].serving
    found = served.replayed
    output = asked["output"]["mean"] if "output" in asked else CHAT["output"]
    assert plan.status == "optimal"
    assert found.output_tokens_per_second / output == pytest.approx(served.requests_per_second, rel=0.1)
    assert found.tpot_seconds.p50 == pytest.approx(served.tpot_seconds.p50, rel=0.15)
    assert found.ttft_seconds.p50 == pytest.approx(served.ttft_seconds.p50, rel=0.2)
    assert found.share_within_level >= 0.94
    # N = X (R + Z)
    seconds = served.ttft_seconds.p50 + (output - 1) * served.tpot_seconds.p50
    think = float(asked.get("think", "0 s").split()[0])
    assert served.requests_per_second * (seconds + think) == pytest.approx(served.users, rel=0.12)
    assert (served.e2e_seconds is not None) == ("e2e" in asked)
    # who thinks is drawn by the seed, too, where lengths are the same for all
    seen = [simulate_plan(plan, CATALOG, seed=seed).latency_seconds["ttft"].mean for seed in (0, 7)]
    assert seen[0] != seen[1]


def test_more_users_and_less_thinking_cost_no_less():
    costs = [planner.plan(**CHAT, users=users, think=think, tpot="30 ms", on="h100-sxm-1x").assignments[0].nodes
             for users, think in ((50, "60 s"), (500, "9 s"))]
    assert costs == sorted(costs)
    assert costs[0] < costs[-1]


def test_users_by_hour_are_served_by_fewer_nodes_when_fewer_are_there():
    """Half the day with everybody and half with nobody costs half as much and what replicas take to start."""
    asked = {**CHAT, "users": 200, "ttft": "1 s", "on": "l40s-1x"}
    always, day = planner.plan(**asked), planner.plan(**asked, day="8h-20h")
    served = day.assignments[0].serving
    assert served.users * served.replicas_by_hour[8] / served.replicas == pytest.approx(200)
    assert [bool(nodes) for nodes in served.nodes_by_hour] == [8 <= hour < 20 for hour in range(24)]
    assert 0.5 < day.objective.value / always.objective.value < 0.52
    assert day.objective.by_replay.met


def test_a_closed_loop_never_has_more_requests_in_flight_than_users():
    trace = synthetic(1, (Lengths(80, 1), Lengths(40, 1)), count=500, seed=1)
    found = simulate(trace, [ReplicaGroup(ReplicaKind(STEPS, 3000, 64, 128, block=16))],
                     users=thinking(7, 0.5, len(trace)))
    ends = found.arrival + found.e2e
    there = [int(((found.arrival <= at) & (ends > at)).sum()) for at in found.arrival]
    assert max(there) <= 7
    assert np.all(np.diff(found.arrival) >= 0)


def test_a_batch_of_documents_takes_the_fewest_nodes_that_end_in_time():
    slow, fast = (planner.plan(**CHAT, documents="1M", deadline=deadline, on="h100-sxm-1x")
                  for deadline in ("1 d", "2 h"))
    one, many = (plan.assignments[0] for plan in (slow, fast))
    rate = one.serving.requests_per_second / one.serving.replicas
    assert one.duration_days * 86400 == pytest.approx(1e6 / rate, rel=1e-6)
    assert (one.nodes, many.nodes) == (1, int(np.ceil(1e6 / rate / 7200)))
    assert many.cost_usd == pytest.approx(one.cost_usd, abs=0.02)
    assert (one.serving.documents, slow.status) == (10**6, "optimal")
    assert planner.plan(**CHAT, documents="1M", deadline="10 min", max_gpus=8, on="h100-sxm-1x").status == "infeasible"
    quick = planner.plan(**CHAT, documents="1M", max_gpus=4, objective="fastest", on="h100-sxm-1x").assignments[0]
    assert quick.nodes == 4


def test_a_service_without_a_load_is_asked_what_holds_it():
    """16 GB of weights in 16 bits and room for one request: one GPU of 24 GB, two of 12 GB; in 4 bits one of 12."""
    small, tiny = planner.plan(model="llama-3.1-8b", max_model_len=4096, on="4090,rtx-3060", method="inference"), \
        planner.plan(model="llama-3.1-8b", quantization="int4", max_model_len=4096, on="rtx-3060")
    counts = {held.gpu: held.gpus for held in (*small.assignments, *small.alternatives)}
    assert counts == {"rtx-4090": 1, "rtx-3060": 2}
    assert [held.gpus for held in tiny.assignments] == [1]
    assert small.assignments[0].memory.components.weights == pytest.approx(16.06e9, rel=0.01)


def test_deepseek_goes_on_eight_h200_as_it_is_published():
    """671 GB in 8 bits: 8 x 141 GB hold them, 8 x 80 GB do not."""
    counts = {held.gpu: held.gpus for plan in [planner.plan(model="deepseek-v3", method="inference", on="h200,h100")]
              for held in (*plan.assignments, *plan.alternatives)}
    assert {gpu: counts[gpu] for gpu in ("h200-sxm", "h100-sxm")} == {"h200-sxm": 8, "h100-sxm": 16}


def test_a_service_has_no_deadline_and_no_time():
    for update, message in (({"rate": 5, "deadline": "1 d"}, "no deadline"),
                            ({"rate": 5, "objective": "time"}, "expected"),
                            ({"ttft": "1 s"}, "neither rate, users nor trace")):
        with pytest.raises(InputError, match=message):
            planner.plan(**CHAT, **update)


def test_a_few_users_get_no_more_replicas_than_their_replay_needs(request):
    # the formula counts on users of whom each may meet all others, and says five replicas
    asked = {"model": "llama-3.3-70b", "users": 5, "think": "20 s", "input": 500, "output": 128, "ttft": "5 s",
             "tpot": "100 ms"}
    (served,) = planner.plan(**asked, on="l4").assignments
    replicas = served.gpus // 8
    run = request.getfixturevalue("command")
    flags = [part for key, value in asked.items() for part in (f"--{key}", value)]
    late = []
    for many in (replicas, replicas - 1):
        ran = run("simulate", *flags, "--node", "l4-8x", "--gpus", 8 * many, "--layout", "tp=8",
                  "--seed", 7, "--json")
        late.append(json.loads(ran.out)["latency_seconds"]["tpot"]["p95"])
    assert served.serving.replicas == replicas == 2
    assert late[0] <= 0.1 * 1.02
    assert late[1] > 0.1


def test_users_who_do_not_think_are_said_to_ask_again_at_once():
    said = [{default.name: default.value for default in planner.plan(**CHAT, users=20, on="l4-1x", **more)
             .provenance.defaults} for more in ({}, {"think": "5 s"})]
    assert said[0]["think"] == "none: users ask again at once"
    assert "think" not in said[1]

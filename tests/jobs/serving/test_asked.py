"""Questions that people ask of services: the most users, tensor parallelism over nodes, replicas that only read."""

import pytest

import planner
from planner.cli.main import main
from planner.errors import InputError
from planner.simulate.fleet import ReplicaGroup, simulate
from planner.simulate.outcome import merged
from planner.simulate.steps import ReplicaKind
from planner.simulate.trace import Lengths, synthetic
from tests.simulate.test_replica import STEPS

CHAT = {"model": "llama-3.1-8b", "input": 1000, "output": 200, "ttft": "1 s", "tpot": "30 ms", "on": "l40s-1x",
        "engine": "vllm", "quantization": "bf16"}
BIG = {"model": "llama-3.1-405b", "engine": "vllm", "quantization": "bf16", "input": 2000, "output": 300}


def test_the_most_users_are_held_and_more_are_not():
    # by one engine and format: a plan falls back to others before it says no
    asked = {**CHAT, "engine": "vllm", "quantization": "bf16"}
    most = planner.plan(**asked, objective="users", gpus=1)
    users = most.objective.value
    assert (most.objective.name, users) == ("users", round(users))
    assert most.objective.by_replay.met
    assert most.assignments[0].serving.users == pytest.approx(users, rel=0.01)
    assert planner.plan(**asked, users=round(users), gpus=1).status == "optimal"
    more = planner.plan(**asked, users=round(users * (1 + most.objective.by_replay.gap) * 1.02) + 1, gpus=1)
    assert more.status == "infeasible"
    assert "users that must be met" in more.infeasible.nearest
    # who thinks between leaves room for others
    assert planner.plan(**asked, objective="rate", think="20 s", gpus=1).objective.value > 2 * users


@pytest.mark.parametrize(("asked", "said"), [
    ({"think": "5 s", "rate": 3}, "think applies to users, but rate is given"),
    ({"think": "5 s"}, "give users, or objective: users"),
    ({"objective": "users", "on": "any"}, "objective: users has no end without a limit"),
    ({"objective": "users", "gpus": 2, "users": 5}, "leave workload.users out"),
    ({"objective": "users", "gpus": 2, "arrivals": "cv=2"}, "arrivals"),
])
def test_users_are_asked_for_in_one_way(asked, said):
    with pytest.raises(InputError, match=said):
        planner.plan(**{**CHAT, **asked})


def test_the_most_of_a_machine_that_is_named_is_that_of_one():
    most = planner.plan(**CHAT, objective="users")
    assert most.assignments[0].gpus == 1
    assert ("max_gpus", "1") in {(default.name, default.value) for default in most.provenance.defaults}


@pytest.mark.parametrize("model", ["bge-m3", "qwen3-embedding-0.6b"])
def test_what_embeds_needs_no_answer(model):
    serving = planner.plan(model=model, rate=20, input=500, on="l4-1x").assignments[0].serving
    assert serving.requests_per_second == pytest.approx(20)


def test_tensor_parallelism_over_two_nodes_halves_the_weights_and_pays_the_network():
    one, two = (planner.estimate(**BIG, node="dgx-h100", layout=layout, gpus=16, concurrency=8) for layout in (
        {"tp": 8, "pp": 2}, {"tp": 16}))
    # embeddings and head are on the first and last stage; all else is a sixteenth
    assert two.memory.components.weights == pytest.approx(one.memory.components.weights, rel=0.02)
    inside = planner.estimate(**BIG | {"quantization": "fp8"}, node="dgx-h100", layout={"tp": 8}, concurrency=8)
    # two all-reduces a layer, each with two more hops of 5 us
    more = two.time.components.tensor_parallel - inside.time.components.tensor_parallel
    assert 126 * 2 * 2 * 5e-6 < more < 126 * 2 * 50e-6
    # one pass over a sixteenth of the weights against two over an eighth of a half each
    assert two.time.step_seconds < one.time.step_seconds


def test_a_plan_takes_it_where_no_stages_are_as_fast():
    plan = planner.plan(**BIG, rate=0.1, tpot="36 ms", on="dgx-h100")
    assert [(one.layout.tp, one.layout.pp, one.nodes) for one in plan.assignments] == [(16, 1, 2)]


def test_a_step_of_what_only_reads_is_a_prompts():
    """2 FLOPs a weight and token take longer than reading the weights, as a decode step would."""
    reads, writes = (planner.estimate("llama-3.1-8b", "h100-sxm-1x", {"tp": 1}, input=2000, output=output, rate=1)
                     for output in (0, 200))
    assert reads.time.step_seconds > 2 * 8.03e9 * 2000 / 989e12
    assert (reads.serving.decodes, writes.serving.decodes) == (False, True)


def test_an_encoder_has_no_cache_and_a_price_for_a_million(capsys):
    asked = ["--model", "bge-large", "--documents", "20M", "--input", "400", "--on", "l40s-1x", "--deadline", "24h"]
    assert main(["plan", *asked]) == 0
    said = " ".join(capsys.readouterr().out.split())
    made = planner.plan(model="bge-large", documents="20M", input=400, on="l40s-1x", deadline="24h").assignments[0]
    assert (made.serving.kv_tokens, made.memory.components.kv_cache) == (0, 0)
    assert "tokens per replica" not in said
    assert f"{made.cost_usd / 20:.2f} USD per million documents" in said


def test_nobody_is_busy_where_all_are_rejected():
    trace = synthetic(10, (Lengths(500), Lengths(5)), count=4)
    nobody = simulate(trace, [ReplicaGroup(ReplicaKind(STEPS, kv_tokens=100, max_batch=4))])
    assert nobody.rejected.all()
    assert merged([nobody, nobody]).busy_share == 0


def test_a_node_that_fails_takes_its_replicas_with_it():
    """Replicas of one GPU lie on a node of four: with a node gone another still has the rate."""
    asked = {"model": "llama-3.1-8b", "input": 1000, "output": 100, "rate": 5, "tpot": "40 ms", "on": "l40s-4x"}
    plain, replica, node = (planner.plan(**asked, **spares).assignments[0]
                            for spares in ({}, {"spare_replicas": 1}, {"spare_nodes": 1}))
    assert (plain.nodes, replica.nodes, node.nodes) == (1, 1, 2)
    need = plain.serving.replicas
    assert (replica.serving.replicas, node.serving.replicas) == (need + 1, need + 4)


def test_spares_are_of_one_kind():
    with pytest.raises(InputError, match="give one of them"):
        planner.plan(**CHAT, rate=1, spare_nodes=1, spare_replicas=1)


def test_more_than_is_answered_has_no_first_token_in_time(capsys):
    """1.1 requests/s are answered, by no more sequences than the cache holds, and the others wait ever longer."""
    asked = {"model": "qwen2.5-7b", "input": 2000, "output": 300, "node": "rtx-3090-1x", "quantization": "int4"}
    serving = planner.estimate(**asked, rate=2).serving
    assert (serving.overloaded, planner.estimate(**asked, rate=0.5).serving.overloaded) == (True, False)
    assert serving.requests_per_second * 299 * serving.tpot_seconds.p50 < serving.kv_tokens / 2150
    many = planner.estimate(**asked, concurrency=2000).serving
    assert serving.requests_per_second == pytest.approx(many.requests_per_second, rel=0.01)
    assert main(["estimate", *(f"--{key}={value}" for key, value in (asked | {"rate": 2}).items())]) == 0
    assert [line.split()[-2:] for line in capsys.readouterr().out.splitlines() if "(TTFT)" in line] == [["grows"] * 2]


@pytest.mark.parametrize(("asked", "each"), [
    # 63 layers of a stage, one head of 128 on a GPU, keys and values in two bytes
    ({"model": "llama-3.1-405b", "node": "2xdgx-h100", "layout": "tp=8,pp=2", "quantization": "bf16"}, 63 * 512),
    ({"model": "llama-3.3-70b", "node": "rtx-3090-2x", "quantization": "q4_k_m", "engine": "llama-cpp"}, None)])
def test_the_tokens_of_a_cache_are_its_bytes_and_what_fits_misses_none(asked, each):
    made = planner.estimate(**asked, concurrency=1, input=500, output=500)
    assert made.memory.peak_bytes <= made.memory.usable_bytes
    if each:
        # vLLM prints what its sequences of 1,000 tokens come to, which take 63 whole blocks of 16
        assert made.memory.components.kv_cache / each * 1000 / 1008 == pytest.approx(made.serving.kv_tokens, rel=1e-3)

"""Without a layout, an estimate is of the best one: none tried by hand is faster, and what is given is kept."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from planner import estimate
from planner.errors import InputError, PlannerError

JOB: dict[str, Any] = {"method": "full", "seq_len": 2048, "global_batch": 16}


def by_hand(model: str, node: str, gpus: int, **held: Any) -> float:
    """Return the least step time of layouts that fit, each estimated alone."""
    least = float("inf")
    axes = (1, 2, 4), (1, 2), (1, 2, 4), (0, 1), ("none", "selective", "full"), (0, 1)
    for tp, pp, mbs, zero, recompute, offload in product(*axes):
        layout = {"tp": tp, "pp": pp, "mbs": mbs, "zero": zero, "recompute": recompute, "offload_optimizer": offload}
        if gpus % (tp * pp) or any(layout[axis] != value for axis, value in held.items()):
            continue
        try:
            found = estimate(model, node, layout, gpus=gpus, **JOB)
        except PlannerError:
            continue
        if found.memory.fits == "fits":
            least = min(least, found.time.step_seconds)
    return least


@pytest.mark.parametrize(("model", "node", "held"), [
    ("llama-3.2-1b", "rtx-4090-4x", {}), ("llama-3.2-3b", "rtx-4090-4x", {"tp": 2})])
def test_nothing_tried_by_hand_is_faster(model: str, node: str, held: dict[str, int]) -> None:
    found = estimate(model, node, held, **JOB)
    assert found.gpus == 4
    assert found.memory.fits == "fits"
    assert found.time.step_seconds <= by_hand(model, node, 4, **held) * (1 + 1e-6)
    assert all(getattr(found.layout, axis) == value for axis, value in held.items())


def test_what_was_chosen_is_the_same_given_as_a_layout() -> None:
    found = estimate("llama-3.1-8b", "dgx-h100", seq_len=4096, global_batch=64)
    mine = found.layout
    assert mine.recompute == "none"
    again = estimate("llama-3.1-8b", "dgx-h100", {
        "tp": mine.tp, "pp": mine.pp, "cp": mine.cp, "dp": mine.dp, "vpp": mine.vpp, "mbs": mine.micro_batch,
        "zero": mine.zero}, seq_len=4096, global_batch=64)
    assert again.time.step_seconds == pytest.approx(found.time.step_seconds, rel=0.02)


def test_several_nodes_and_the_steps_of_a_job() -> None:
    found = estimate("llama-3.1-8b", "dgx-h100", gpus=16, tokens="1 G", seq_len=4096, global_batch=64)
    assert (found.gpus, found.nodes) == (16, 2)
    assert found == estimate("llama-3.1-8b", "dgx-h100", nodes=2, tokens="1 G", seq_len=4096, global_batch=64)
    assert found.time.steps == -(-10**9 // 4096 // 64)


def test_gpus_that_no_layout_can_use_stay_idle() -> None:
    """One sequence a step, on a stack without pipelines and tensor parallelism, works on one GPU."""
    found = estimate("llama-3.2-1b", "dgx-h100", method="lora", stack="hf-peft", seq_len=2048, global_batch=1)
    assert found.gpus == 1
    with pytest.raises(InputError, match=r"global_batch 8 sequences"):
        estimate("llama-3.2-1b", "dgx-h100", method="lora", stack="hf-peft", seq_len=2048, global_batch=1, gpus=8)


def test_what_fits_nowhere_is_an_answer_with_what_binds(planner: Any) -> None:
    ran = planner("estimate", "--model", "llama-3.1-70b", "--method", "qlora", "--seq-len", "4096",
                  "--global-batch", "16", "--node", "1x4090")
    assert ran.code == 0
    assert ran.out.startswith("Does not fit: 56.8 GiB of host memory per node, and 54.4 GiB are there for it")
    assert "host memory binds" in " ".join(ran.out.split())


@pytest.mark.parametrize("load", [{"rate": 20}, {"concurrency": 64}, {}])
def test_no_layout_of_replicas_is_better(load: dict[str, int]) -> None:
    work = {"input": 1000, "output": 200, **load}
    best = estimate("llama-3.1-8b", "rtx-4090-4x", **work).serving
    assert best is not None
    for tp, pp in ((1, 1), (2, 1), (4, 1), (1, 2), (2, 2)):
        other = estimate("llama-3.1-8b", "rtx-4090-4x", {"tp": tp, "pp": pp}, gpus=4, **work).serving
        assert other is not None
        assert other.requests_per_second <= best.requests_per_second * (1 + 1e-9) or "rate" in load
        soon = [one.ttft_seconds.p50 + 200 * one.tpot_seconds.p50 for one in (best, other)]
        assert soon[0] <= soon[1] * (1 + 1e-9) or "rate" not in load or other.requests_per_second < 0.99 * 20


def test_targets_are_met_or_missed_and_no_load_is_said(planner: Any) -> None:
    asked = ("estimate", "-q", "--model", "llama-3.1-8b", "--node", "8xh100", "--input", "1000", "--output", "200")
    at_rate = planner(*asked, "--rate", "5", "--ttft", "1 s", "--tpot", "1 ms").out
    assert " of 1 s at p95 met; TPOT " in at_rate
    assert " of 1 ms at p95 missed by " in at_rate
    assert "offline maximum" not in at_rate
    alone = planner(*asked).out
    assert "no load is given, so this is the offline maximum" in alone
    assert "--concurrency 1: one user alone" in " ".join(alone.split())


def test_users_are_a_load_and_the_last_token_has_its_verdict(planner: Any) -> None:
    asked = ("estimate", "--model", "llama-3.1-8b", "--node", "1xl4", "--input", "1000", "--output", "300")
    assert "offline maximum" not in planner(*asked, "--users", "20", "--think", "10s").out
    verdict = " of 9 s at p95 missed by "
    assert verdict in planner(*asked, "--concurrency", "20", "--e2e", "9s").out
    assert verdict in planner(*asked, "--rate", "0.6", "--e2e", "9s").out


def test_offload_that_only_some_stacks_have_is_answered_by_those(planner):
    asked = ["estimate", "--model", "gpt-oss-120b", "--method", "qlora", "--node", "h100", "--seq-len", "4096"]
    ran = planner(*asked, "--layout", "offload_parameters=0,offload_optimizer=1")
    # of the stacks, some move the weights with the optimizer states or not at all
    assert ran.code == 0
    assert "layouts with offload_parameters 0, offload_optimizer 1 none fits" in " ".join(ran.out.split())


def test_a_scenario_of_one_node_type_is_estimated_there(planner):
    assert planner("estimate", "gpt-oss-120b-one-h100", "-q").out.startswith("Fits: ")
    ran = planner("estimate", "llama-3.1-70b-pretrain")
    assert (ran.code, ran.err.strip()) == (2, "Error: --node: an estimate needs a node type, such as dgx-h100; the "
                                           "scenario has dgx-h100, dgx-h200, dgx-b200")

"""The search of placements and layouts against all of them, added up by hand."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import planner
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.posttraining.held import Held
from planner.jobs.posttraining.options import ways_on
from planner.jobs.posttraining.question import RlQuestion, questions
from planner.jobs.serving.rates import layouts as replica_layouts
from planner.money.rent import usual_candidate
from planner.physics.posttraining.generation import Drawing, Drawn, Engines, drawing_seconds, slots_of
from planner.physics.posttraining.passes import Trained
from planner.physics.serving.deployment import Replicas
from planner.physics.shapes import parameters
from planner.scenario.posttraining import PostTraining
from planner.scenario.resolve_posttraining import resolved_posttraining
from planner.units import show_bytes
from planner.yaml_io import Document
from tests.answered import shipped_answer

CATALOG = Catalog()
CASES = 12


def case(seed: int) -> tuple[PostTraining, str, int]:
    """Return a small question, a node type and a number of GPUs."""
    draw = random.Random(seed)
    method = draw.choice(["grpo", "ppo", "rloo"])
    work: dict[str, Any] = {
        "model": draw.choice(["qwen2.5-0.5b", "qwen2.5-1.5b", "llama-3.2-3b", "qwen2.5-7b"]), "method": method,
        "prompts": draw.choice([16, 64]), "samples_per_prompt": draw.choice([2, 8]), "input": draw.choice([100, 700]),
        "output": {"mean": draw.choice([150, 600]), "cv": draw.choice([0.4, 1.0])}, "max_model_len": 4096,
        "stack": draw.choice(["verl", "trl", "nemo-rl", "areal", "prime-rl", "deepspeed-chat"]),
        "reference": draw.choice(["initial", "none"]), "reward": draw.choice(["rule", "model", "9 s"]),
        "tuning": draw.choice(["full", "full", "lora"])}
    if work["stack"] in ("areal", "verl", "prime-rl") and draw.random() < 0.5:
        work |= {"policy_lag": draw.choice([1, 4])}
    asked, _ = resolved_posttraining(PostTraining.model_validate(work), CATALOG, Document({}, "", {}))
    return asked, draw.choice(["dgx-h100", "h100-sxm-2x", "rtx-4090-8x", "dgx-a100"]), draw.choice([1, 2, 4, 8])


def every(question: RlQuestion, gpus: int) -> list[float]:
    """Return the seconds of every way that fits, each phase and byte added up here."""
    placements, asked = question.framework.placements, question.asked
    found = list[float]()
    if "colocated" in placements and not asked.policy_lag:
        trained = list(layouts_of(question, gpus))
        for swaps in (False, True) if question.framework.stays else (True,):
            found += one_placement(question, trained, gpus, gpus, swaps=swaps, together=True)
    if "disaggregated" in placements:
        for trainer in range(1, gpus):
            trained = list(layouts_of(question, trainer))
            found += one_placement(question, trained, trainer, gpus - trainer, swaps=False, together=False)
    return found


def layouts_of(question: RlQuestion, trainer: int) -> Iterator[tuple[Trained, Any]]:
    """Yield the policy and the other models of every layout of a trainer."""
    rows_of = question.trained(trainer)
    for row in range(len(rows_of[0]) if rows_of else 0):
        yield rows_of[0].one(row), rows_of[1].each(lambda rows, row=row: rows.one(row))


def one_placement(question: RlQuestion, layouts: Sequence[tuple[Trained, Any]], trainer: int, rollouts: int, *,
                  swaps: bool, together: bool) -> list[float]:
    law, framework, asked, candidate = question.law, question.framework, question.asked, question.candidates[0]
    usable, found = candidate.gpu.usable_memory, list[float]()
    host = candidate.node.cpu.memory * CATALOG.kernels.host_memory_share
    table = replica_layouts(question.deployed(0).model, candidate, Counter())
    drawn = cache(partial(drawing, question, table, rollouts, ahead=0 if together or asked.policy_lag < 2 else
                          asked.policy_lag))
    for policy, models in layouts:
        adapted = policy.adapted
        readers = [other for other in (None if adapted else models.reference, models.reward) if other]
        frozen = [weights(other) for other in readers]
        trained = [policy, *([models.critic] if models.critic else [])]
        held = 0.0 if swaps else sum(each.states for each in trained) + sum(frozen)
        context = policy.peak.memory.components["framework"]
        if together:
            # an engine that shares the policy's weights counts them itself
            shared = weights(policy) if framework.shares and not swaps else 0.0
            room = min(usable * framework.memory_fraction, usable - held + shared - context - law.asleep)
        else:
            room = usable * CATALOG.engine(question.engine).memory_fraction
        for at in range(len(table)):
            made = drawn(at, room)
            if made is None:
                continue
            each = int(table.gpus[at])
            beside = law.asleep if together and framework.sleeps else (
                made.weights + made.cache + made.work if together else 0.0)
            peaks = [held - (0.0 if swaps else each_trained.states) + each_trained.peak.memory.peak + beside
                     for each_trained in trained]
            # what is fetched for a pass stands beside the engine and the trainer's context
            fetched = max([0.0, *frozen, *(weights(each_trained) for each_trained in trained)]) if swaps else 0.0
            peaks.append(held + beside + context + fetched)
            if swaps:
                peaks.append(weights(policy) + made.weights + law.asleep + context)
            waits = sum(each_trained.states for each_trained in trained) + sum(frozen) if swaps else 0.0
            copied = made.weights if together and framework.sleeps and not framework.shares else 0.0
            on_host = law.process * (2 if together else 1) + copied + waits
            on_host *= min(candidate.node.gpus, trainer)
            if not framework.in_process:
                on_host += 216 * asked.answers * asked.max_model_len
            on_host += sum(each_trained.peak.memory.host_per_node for each_trained in trained)
            if max(peaks) <= usable and on_host <= host:
                found.append(seconds(question, policy, models, made, rollouts // each, trainer, swaps=swaps,
                                     together=together))
    return found


def drawing(question: RlQuestion, table: Replicas, rollouts: int, at: int, room: float, *, ahead: int) -> Drawn | None:
    """Return what engines of a row of the table do in so much room each; none where there is none or too little."""
    rows, engine = table.take(np.array([at])), CATALOG.engine(question.engine)
    each = int(rows.gpus[0])
    if rollouts % each or room <= 0:
        return None
    if any(getattr(rows, axis)[0] > 1 and axis not in question.framework.engine_axes for axis in ("pp", "ep", "dp")):
        return None
    engines = Engines(question.deployed(0), rows, engine, None, room)
    (slots,) = slots_of(question.batch, engines)
    if slots is None:
        return None
    if question.framework.together:
        mean = question.asked.input.mean + question.asked.output.mean
        slots = replace(slots, count=min(slots.count, each * max(1, math.floor(question.framework.packed / mean))))
    ((decode, prefill),) = drawing_seconds(question.batch, engines, [Drawing(0, rollouts // each, slots.count)],
                                           question.host_layer, ahead=ahead)
    return Drawn(decode, prefill, slots.count, slots.weights, slots.cache, slots.work)


def weights(model: Trained) -> float:
    return model.peak.memory.components["weights"]


def seconds(question: RlQuestion, policy: Trained, models: Any, made: Drawn, replicas: int, trainer: int, *,
            swaps: bool, together: bool) -> float:
    law, framework, asked = question.law, question.framework, question.asked
    phase, wake = (0.0, 0.0) if framework.in_process else (law.phase, law.wake)
    tokens = asked.answers * asked.output.mean / replicas
    slow = law.eager_sequence if framework.eager and not framework.in_process else 0.0
    draw = law.generation * (made.seconds + slow * tokens) + phase
    draw += (2 * wake if together else 0.0)
    copy = 1 / law.pageable if swaps else 0.0  # over PCIe
    reward = asked.reward.seconds
    if models.reward:
        reward = framework.pace * law.forward * models.reward.forward_seconds + phase + weights(models.reward) * copy
    work = 0.0
    readers = [each for each in (models.reference, models.critic) if each]
    for other in ([policy] if framework.recomputes else []) + readers:
        work += framework.pace * law.forward * other.forward_seconds + phase + weights(other) * copy
    for other in [policy, *([models.critic] if models.critic else [])]:
        work += framework.pace * law.update * other.update_seconds + phase + 2 * other.states * copy
    moved = made.weights / (framework.reshard if together else framework.sync)
    if framework.broadcast is not None and not together:
        moved = 2 * parameters(CATALOG.model(asked.model)) / framework.broadcast
    sync = phase + (framework.adapter_sync * policy.layers if policy.adapted and framework.adapter_sync is not None
                    else moved)
    if framework.written is not None and not policy.adapted:
        assert framework.written == "all"
        sync += 4 * parameters(CATALOG.model(asked.model)) / law.pageable / trainer
    if together and framework.shares:
        sync = phase
    if not together and asked.policy_lag:
        return max(draw + reward, work) + sync
    return draw + reward + work + sync


@pytest.mark.parametrize("seed", range(CASES))
def test_the_search_finds_the_fastest_of_all_that_fit(seed: int) -> None:
    asked, node, gpus = case(seed)
    candidate = usual_candidate(CATALOG.node(node), CATALOG)
    gpus = min(gpus, candidate.node.gpus)
    for question in questions(asked, CATALOG, (candidate,), 0, 0.95):
        fitting = [way.step for way in ways_on(question, gpus, {}) if way.lacking <= 0]
        exhaustive = every(question, gpus) or every(question.lean, gpus)
        assert bool(fitting) == bool(exhaustive)
        if fitting:
            assert min(fitting) == pytest.approx(min(exhaustive), rel=1e-9)


def test_axes_are_held_by_name() -> None:
    held = Held({"tp": "2", "rollout_tp": "4", "recompute": "full"})
    assert held.keeps("rollout_tp", 4)
    assert not held.keeps_row({"tp": 1, "recompute": 2})
    assert held.keeps_row({"tp": 2, "recompute": 2})


@pytest.mark.parametrize(("on", "because"), [
    ("h100", "weights of qwen3-30b-a3b alone take 56.9 GiB, and rtx-4090-1x has 23.6 GiB on 1 GPU"),
    ("h100-sxm-8x", "no provider rents both what trains and rtx-4090-1x for the rollouts")])
def test_cards_that_draw_nothing_are_named_with_what_is_missing(on: str, because: str) -> None:
    plan = planner.plan(model="qwen3-30b-a3b", method="grpo", prompts=16, steps=9, output=600, on=on,
                        rollouts_on="rtx-4090-1x", placement="disaggregated")
    assert plan.infeasible is not None
    assert because in plan.infeasible.because[0]


def test_what_compares_no_answers_draws_one_to_a_prompt() -> None:
    drawn = {method: PostTraining.model_validate({"model": "llama-3.1-8b", "method": method}).samples_per_prompt
             for method in ("ppo", "reinforce", "rloo", "grpo")}
    assert drawn == {"ppo": 1, "reinforce": 1, "rloo": 8, "grpo": 8}


@pytest.mark.parametrize("name", ["qwen2.5-7b-grpo-8xh100", "32b-grpo-trainer-h100-rollouts-l40s"])
def test_shipped_scenarios_are_proven(name: str) -> None:
    plan = shipped_answer(name)
    assert (plan.status, plan.objective.gap) == ("optimal", 0)
    (made,) = plan.assignments
    assert made.memory.fits == "fits"
    assert made.kind == "posttraining"
    assert sum(each.gpus for each in made.kinds_of_nodes) == made.gpus
    assert sum(made.time.components.model_dump().values()) == pytest.approx(made.time.step_seconds)


def test_a_lag_hides_the_shorter_of_drawing_and_training() -> None:
    asked = {"method": "grpo", "prompts": 64, "input": 200, "output": {"mean": 500, "cv": 0.5}, "gpus": 8,
             "placement": "disaggregated"}
    waits, hides = (planner.estimate("qwen2.5-1.5b", "dgx-h100", **asked, policy_lag=lag) for lag in (0, 1))
    assert hides.time.step_seconds < waits.time.step_seconds
    drawn = {phase.phase: phase.seconds for phase in hides.phases}
    assert hides.time.components.generation < drawn["generation"]
    # both have GPUs of their own, and each side says what its fullest holds
    (trainer, trains), (rollouts, draws) = hides.sides
    most = {on: max((phase for phase in hides.phases if phase.on == on), key=lambda phase: phase.gpu_bytes)
            for on in ("trainer", "rollouts")}
    assert (trainer, rollouts) == ("trainer", "rollouts")
    for said, on in ((trains, "trainer"), (draws, "rollouts")):
        assert said.startswith(f"{show_bytes(most[on].gpu_bytes)} of {show_bytes(hides.memory.usable_bytes)} a GPU")
        assert all(part in said for part, size in most[on].parts.items() if size)
    assert max(phase.gpu_bytes for phase in most.values()) == hides.memory.peak_bytes


def test_what_needs_fewer_parts_has_them_left_out() -> None:
    asked = {"prompts": 64, "samples_per_prompt": 8, "input": 200, "output": {"mean": 500, "cv": 0.5}}
    whole, best, taught = (planner.estimate("qwen2.5-7b", "dgx-h100", **asked, **own) for own in (
        {"method": "grpo"}, {"method": "rejection-sampling"},
        {"method": "on-policy-distillation", "reward_model": "qwen2.5-14b"}))
    assert [phase.phase for phase in best.phases] == ["generation", "actor_update", "synchronization"]
    assert [phase.phase for phase in taught.phases] == ["generation", "reward", "actor_update", "synchronization"]
    seconds, fewer = ({phase.phase: phase.seconds for phase in made.phases} for made in (whole, best))
    # one answer of eight is learned from, beside what a phase takes whatever it works on
    assert 1 / 8 < fewer["actor_update"] / seconds["actor_update"] < 1 / 2
    with pytest.raises(planner.InputError, match="teacher"):
        planner.estimate("qwen2.5-7b", "dgx-h100", **asked, method="on-policy-distillation")


def test_experts_may_be_shared_over_more_gpus_than_copies() -> None:
    """Megatron keeps experts whole: ep divides tp x dp x cp, 8 here, and ep x tp, 16, need not."""
    made = planner.estimate(model="qwen3-30b-a3b", method="grpo", node="8xh200", prompts=16, samples_per_prompt=4,
                            input=200, output=300, layout="tp=2,ep=8")
    layout = made.layout
    assert (layout.tp, layout.ep, layout.tp * layout.dp * layout.cp, layout.expert_tp) == (2, 8, 8, 1)


def test_a_plan_on_an_offer_stays_within_the_memory_of_its_own_host():
    asked: dict[str, Any] = {"model": "qwen2.5-7b", "method": "grpo", "steps": 200, "on": "h100-sxm-1x"}
    made = planner.plan(**asked).assignments[0]  # Verda's host has 185 GiB, and those of AWS and Google have more
    alone = planner.plan(**asked, provider=str(made.offer).partition(" ")[0]).assignments[0]
    assert (alone.offer, alone.cost_usd) == (made.offer, made.cost_usd)


def test_adapters_beside_the_weights_take_their_products_in_each_step() -> None:
    """Of 28 layers, seven modules each; a framework that merges them into the weights draws as with full tuning."""
    asked: dict[str, Any] = {"model": "qwen2.5-7b", "node": "dgx-h100", "method": "grpo", "prompts": 16,
                             "samples_per_prompt": 4, "input": 128, "output": {"mean": 512, "cv": 0},
                             "max_model_len": 1024, "layout": {"rollout_tp": "1", "swap": "1"}}
    drawn = {(stack, tuning): planner.estimate(**asked, stack=stack, tuning=tuning).phases[0].seconds
             for stack in ("verl", "nemo-rl") for tuning in ("lora", "full")}
    steps = 512
    least = steps * 28 * 7 * CATALOG.serving_law.adapted
    assert least <= drawn["verl", "lora"] - drawn["verl", "full"] <= 2 * least
    assert drawn["nemo-rl", "lora"] == pytest.approx(drawn["nemo-rl", "full"], rel=0.02)


def test_states_come_back_over_the_link_that_a_gpu_has() -> None:
    """Weights for a pass: 3.5 GB/s over PCIe, a quarter of 225 GB/s over NVLink-C2C, beside the pass itself."""
    law = CATALOG.posttraining_law
    assert law.copied(CATALOG.gpu("h100-sxm").pcie_bandwidth) == law.pageable == 3.5e9
    assert law.copied(CATALOG.gpu("gb200").pcie_bandwidth) == 225e9 / 4
    asked: dict[str, Any] = {"model": "qwen2.5-7b", "node": "gb200-nvl72", "gpus": 4, "method": "grpo", "prompts": 16,
                             "samples_per_prompt": 4, "input": 128, "output": 512, "stack": "verl"}
    waits, stays = (planner.estimate(**asked, layout=f"dp=4,rollout_tp=1,swap={swap}").phases[1].seconds
                    for swap in (1, 0))
    assert 0 < waits - stays < 0.5


def held_ways(**held: str) -> list[Any]:
    asked, _ = resolved_posttraining(PostTraining.model_validate({
        "model": "qwen2.5-7b", "prompts": 64, "samples_per_prompt": 8, "input": 500, "output": 1000,
        "max_model_len": 4096, "stack": "nemo-rl", "placement": "colocated"}), CATALOG, Document({}, "", {}))
    (candidate,) = (usual_candidate(CATALOG.node("dgx-h100"), CATALOG),)
    return [way for question in questions(asked, CATALOG, (candidate,), 0, 0.95)
            for way in ways_on(question, 8, {"tp": "4", "recompute": "none", **held})]


def test_what_a_run_sets_over_the_defaults_of_its_framework_is_held():
    usual, small = held_ways(trainer="megatron"), held_ways(trainer="megatron", micro_batch_tokens="4096")
    assert {way.question.kind for way in usual} == {"megatron"}
    large = held_ways(trainer="megatron", micro_batch_tokens="32768")
    fullest = [min(way.made.phases[-2].bytes for way in ways) for ways in (small, large)]
    assert fullest[0] < fullest[1]
    less, more = (max(way.rollouts.drawn.cache for way in held_ways(trainer="megatron", memory_fraction=share))
                  for share in ("0.3", "0.6"))
    assert less < more
    halves = [min(way.rollouts.drawn.weights for way in held_ways(trainer="megatron", rollout_tp="1",
                                                                  rollout_format=name)) for name in ("bf16", "fp8")]
    assert halves[1] < 0.75 * halves[0]


def test_what_enters_recomputed_layers_waits_on_the_host_where_that_is_held():
    def fullest(away: str) -> tuple[float, float]:
        ways = held_ways(trainer="fsdp", tp="1", recompute="full", micro_batch_tokens="32768", offload_activations=away)
        way = min(ways, key=lambda each: each.made.phases[-2].bytes)
        return float(way.made.phases[-2].bytes), way.host

    (here, host), (there, more) = fullest("0"), fullest("1")
    assert there < here
    assert more > host


@pytest.mark.parametrize(("axis", "value"), [("trainer", "jax"), ("loss", "exact"), ("memory_fraction", "1.2"),
                                             ("memory_fraction", "0"), ("rollout_format", "int3")])
def test_a_word_or_share_that_is_none_is_refused(axis: str, value: str):
    with pytest.raises(InputError, match=axis):
        Held({axis: value})

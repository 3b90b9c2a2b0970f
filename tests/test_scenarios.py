"""Every shipped scenario is answered with a proof, and the answer is one an engineer would believe."""

from __future__ import annotations

import pytest

from planner.answer.schema import Plan
from planner.ask.plan import make_plan
from planner.catalog.load import Catalog
from planner.render.tables import render_plan
from planner.scenario.load import load_question, shipped
from planner.scenario.writing import to_yaml
from planner.yaml_io import parse, validate
from tests.answered import shipped_answer as answer
from tests.asked import load_scenario
from tests.render.golden import printed


@pytest.mark.parametrize("name", shipped("training"))
def test_is_proven(name: str) -> None:
    plan = answer(name)
    assert plan.status == "optimal"
    assert plan.objective.gap == 0
    assert plan.objective.value == plan.objective.bound
    for assignment in plan.assignments:
        assert assignment.memory.fits == "fits"
        assert 0 < assignment.time.mfu < 0.75


@pytest.mark.parametrize("name", shipped())
def test_resolved_scenario_round_trips(name: str) -> None:
    scenario, _ = load_question(name, {}, Catalog())
    again = validate(parse(to_yaml(scenario), "shown"), type(scenario))
    assert again.model_dump() == scenario.model_dump()


@pytest.mark.parametrize("name", [*shipped("training"), "405b-fp8-one-node"])
def test_the_default_answer_fits_a_screen(name: str) -> None:
    lines = printed(lambda console: render_plan(answer(name), console)).splitlines()
    assert len(lines) <= 45
    assert max(map(len, lines)) <= 80


def hours(plan: Plan) -> float:
    best = plan.assignments[0]
    assert best.duration_days is not None
    return best.gpus * best.duration_days * 24


def test_main_job_takes_what_published_runs_took() -> None:
    """Published runs of this very shape on H100: 3.7 to 4.1 million GPU-hours before failures, MFU 0.30 to 0.58."""
    plan = answer("llama-3.1-70b-pretrain")
    h100 = next(a for a in plan.alternatives if a.node == "dgx-h100")
    assert h100.duration_days is not None
    assert 3.5e6 < h100.gpus * h100.duration_days * 24 < 7e6
    assert 0.30 < h100.time.mfu < 0.58
    assert {a.node for a in (*plan.assignments, *plan.alternatives)} == {"dgx-h100", "dgx-h200", "dgx-b200"}


def test_405b_takes_what_llama_3_took() -> None:
    """Llama 3 405B: 54 days on 16,384 H100 with interruptions, 38 to 43% MFU (Llama 3 paper)."""
    best = answer("405b-on-16k-h100").assignments[0]
    assert best.gpus <= 16384
    assert best.duration_days is not None
    assert 40 < best.duration_days < 90
    assert 0.33 < best.time.mfu < 0.50


def test_deepseek_takes_its_published_hours_within_a_half() -> None:
    """DeepSeek-V3 technical report: 2.664 million H800-hours for 14.8 T tokens, with a schedule of its own."""
    plan = answer("deepseek-v3-on-2048-h800")
    assert plan.assignments[0].layout.ep > 1
    assert 2.664e6 * 0.8 < hours(plan) < 2.664e6 * 1.5


def test_offload_makes_the_4090_box_hold_8b() -> None:
    best = answer("8x4090-full-8b-offload").assignments[0]
    assert best.layout.offload.optimizer > 0
    assert best.memory.host_bytes_per_node > 0
    assert best.gpus == 8


def test_owned_nodes_cost_their_electricity_alone() -> None:
    best = answer("8xh100-70b-lora").assignments[0]
    assert best.usd_per_node_hour is not None
    assert best.usd_per_node_hour < 3
    assert best.nodes == 1


def test_mixture_uses_expert_parallelism() -> None:
    assert answer("mixtral-8x22b-pretrain").assignments[0].layout.ep > 1


def test_a_trillion_parameters_fit_512_v100_and_are_slow() -> None:
    """The ZeRO-Infinity case: feasible on 32 DGX-2 with the optimizer on the host, and years for usual tokens."""
    best = answer("1t-on-512-v100").assignments[0]
    assert best.gpus == 512
    assert best.layout.offload.optimizer == 1
    assert best.duration_days is not None
    assert best.duration_days > 20


def test_one_node_of_them_needs_its_flash() -> None:
    catalog = Catalog()
    scenario, _ = load_scenario("1t-on-512-v100", {"limits.gpus": "16"}, catalog)
    best = make_plan(scenario, catalog).assignments[0]
    assert best.layout.offload.to == "nvme"
    assert best.memory.nvme_bytes_per_node > 15e12

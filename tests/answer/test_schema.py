"""The Plan JSON: exactly the contract's keys, in its order; sums that do not hold are refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from planner.answer.assignment import TrainingAssignment
from planner.answer.breakdown import Memory, Time
from planner.answer.layout import Layout
from planner.answer.schema import Objective, Plan, to_json
from tests.answer.example_plan import (
    LAYOUT,
    assignment,
    estimate,
    example_plan,
    infeasible_plan,
    memory,
    serving_assignment,
    time,
)

PLAN_KEYS = ["schema", "status", "notes", "objective", "assignments", "alternatives", "search", "infeasible",
             "provenance"]
ASSIGNMENT_KEYS = ["workload", "kind", "node", "gpu", "nodes", "gpus", "spare_nodes", "offer",
                   "usd_per_node_hour", "stack", "layout", "memory", "time", "serving", "goodput",
                   "duration_days", "cost_usd", "energy_kwh", "model", "method", "sourcing"]
TRAINING_KEYS = [*ASSIGNMENT_KEYS, "sequence_length", "global_batch", "failures", "commitment"]
KEYS = {
    "layout": ["tp", "pp", "vpp", "cp", "ep", "dp", "shard", "zero", "micro_batch", "micro_batches",
               "recompute", "precision", "offload", "stages", "schedule", "sequence_parallel", "no_sync", "cp_method",
               "expert_tp"],
    "memory": ["fits", "usable_bytes", "peak_bytes", "components", "host_bytes_per_node",
               "nvme_bytes_per_node"],
    "time": ["step_seconds", "components", "steps", "tokens_per_second_per_gpu", "model_tflops_per_gpu",
             "mfu", "interval90_seconds"],
}
MEMORY_PARTS = ["weights", "gradients", "master_weights", "optimizer", "activations", "logits",
                "communication_buffers", "framework", "reserve", "kv_cache"]
TIME_PARTS = ["compute", "recompute", "tensor_parallel", "pipeline_bubble", "pipeline_p2p",
              "context_parallel", "expert_parallel", "data_parallel", "offload", "optimizer_step", "other"]
SERVING_KEYS = ["replicas", "requests_per_second", "ttft_seconds", "tpot_seconds",
                "output_tokens_per_second_per_gpu", "max_batch", "kv_tokens"]


def test_plan_keys_are_the_contracts_in_its_order() -> None:
    plan = json.loads(to_json(example_plan()))
    assert list(plan) == PLAN_KEYS
    assert plan["schema"] == "planner.plan/2"
    assert list(plan["objective"]) == ["name", "value", "bound", "gap"]
    assert list(plan["search"]) == ["layouts", "legal", "fit", "removed", "staged", "domains", "wall_seconds"]
    assert list(plan["provenance"]) == ["scenario", "defaults", "catalog_digest", "versions", "seed"]
    assert list(plan["assignments"][0]) == TRAINING_KEYS
    assert list(plan["alternatives"][0]) == [*TRAINING_KEYS, "why", "tied"]


def test_assignment_keys_are_the_contracts_in_its_order() -> None:
    data = json.loads(to_json(serving_assignment()))
    assert list(data) == ASSIGNMENT_KEYS
    for part, keys in KEYS.items():
        assert list(data[part]) == keys
    assert list(data["memory"]["components"]) == MEMORY_PARTS
    assert list(data["time"]["components"]) == TIME_PARTS
    assert list(data["layout"]["offload"]) == ["optimizer", "parameters", "activations", "to"]
    assert list(data["serving"]) == SERVING_KEYS
    assert data["serving"]["ttft_seconds"] == {"p50": 0.41, "p95": 1.32}


def test_stage_keys() -> None:
    stage = json.loads(to_json(estimate()))["layout"]["stages"][0]
    assert list(stage) == ["layers", "recompute_layers", "peak_bytes", "seconds"]
    assert stage["recompute_layers"] == {"none": 0, "selective": 10, "full": 0}


def test_infeasible_plan_says_why() -> None:
    plan = json.loads(to_json(infeasible_plan()))
    assert plan["assignments"] == []
    assert list(plan["infeasible"]) == ["because", "nearest", "relaxations"]
    assert plan["infeasible"]["relaxations"][0] == {"limit": "deadline", "from": "30 d", "to": "41.2 d"}


@pytest.mark.parametrize("plan", [example_plan(), infeasible_plan()], ids=["optimal", "infeasible"])
def test_json_round_trips_to_an_equal_plan(plan: Plan) -> None:
    text = to_json(plan)
    again = Plan.model_validate_json(text)
    assert again == plan
    assert to_json(again) == text


def test_domains_keep_their_types() -> None:
    domains = Plan.model_validate_json(to_json(example_plan())).search.domains
    assert domains["tp"] == (1, 2, 4, 8)
    assert all(type(v) is int for v in domains["tp"])
    assert all(type(v) is float for v in domains["offload"])
    assert domains["precision"] == ("bf16",)


def test_memory_must_add_up_within_a_byte_per_component() -> None:
    data = memory().model_dump()
    Memory.model_validate(data | {"peak_bytes": data["peak_bytes"] + 10})
    with pytest.raises(ValidationError, match="memory components add up"):
        Memory.model_validate(data | {"peak_bytes": data["peak_bytes"] + 11})


def test_time_must_add_up() -> None:
    data = time().model_dump()
    Time.model_validate(data | {"step_seconds": data["step_seconds"] * (1 + 5e-7)})
    with pytest.raises(ValidationError, match="time components add up"):
        Time.model_validate(data | {"step_seconds": data["step_seconds"] * (1 + 5e-6)})


def test_interval_must_rise() -> None:
    with pytest.raises(ValidationError, match="interval90_seconds must rise"):
        Time.model_validate(time().model_dump() | {"interval90_seconds": (5.0, 4.0)})


@pytest.mark.parametrize(("change", "message"), [
    ({"gpus": 3585}, "tp x pp x cp x dp = 3584, gpus is 3585"),
    ({"duration_days": 30.0, "cost_usd": None}, "duration_days is 30.0"),
    ({"spare_nodes": 3, "cost_usd": 1.0, "duration_days": assignment()["duration_days"]}, "rent of 451"),
])
def test_counts_duration_and_rent_must_agree(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        TrainingAssignment(**assignment(**change))


@pytest.mark.parametrize(("change", "message"), [
    ({"ep": 3}, "ep x expert_tp = 12 must divide tp x dp x cp = 512"),
    ({"pp": 6}, "7 stages are listed for pp 6"),
])
def test_layout_must_agree(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Layout.model_validate(LAYOUT.model_dump() | change)


@pytest.mark.parametrize(("change", "message"), [
    ({"objective": Objective(name="cost_usd", value=2.0, bound=1.0)}, "optimal needs value = bound"),
    ({"assignments": ()}, "status optimal with 0 assignments"),
    ({"infeasible": infeasible_plan().infeasible}, "exactly an infeasible plan says why"),
    ({"schema": "planner.plan/3"}, "planner.plan/2"),
])
def test_status_must_hold(change: dict[str, Any], message: str) -> None:
    fields = {name: getattr(example_plan(), name) for name in ("status", "objective", "assignments")}
    with pytest.raises(ValidationError, match=message):
        Plan(**(fields | change))


def test_unknown_key_is_refused_with_a_suggestion() -> None:
    data = json.loads(to_json(example_plan()))
    data["assignmets"] = []
    with pytest.raises(ValidationError, match="did you mean assignments"):
        Plan.model_validate(data)

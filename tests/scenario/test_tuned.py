"""What trains, said by the method, by `tuning`, by a key of adapters, or by several of them that agree."""

from __future__ import annotations

from typing import Any

import pytest

from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.scenario.load import load_any
from planner.scenario.scenario import Scenario
from planner.scenario.tuned import without_idle_rank
from planner.scenario.workload import Training
from planner.scenario.writing import to_yaml
from planner.yaml_io import parse

CATALOG = Catalog()
JOB = {"workload.model": "llama-3.1-8b", "workload.tokens": "1 G"}


def asked(**said: Any) -> Scenario:
    found, _ = load_any(None, JOB | {f"workload.{key}": value for key, value in said.items()}, CATALOG)
    assert isinstance(found, Scenario)
    return found


@pytest.mark.parametrize(("said", "method"), [
    ({}, "pretrain"), ({"lora_rank": 8}, "lora"), ({"lora_targets": "attention"}, "lora"), ({"tuning": "full"}, "full"),
    ({"tuning": "qlora", "lora_rank": 8}, "qlora"), ({"method": "lora", "tuning": "peft"}, "lora"),
    ({"method": "SFT LoRA"}, "lora"), ({"method": "qlora-sft"}, "qlora"), ({"method": "sft", "tuning": "full"}, "full"),
])
def test_what_trains_is_said_by_any_of_them(said: dict[str, object], method: str) -> None:
    work = asked(**said).workload
    assert (work.method, work.trains) == (method, method)


@pytest.mark.parametrize(("said", "why"), [
    ({"method": "full", "lora_rank": 16}, "lora_rank applies to adapters, and method full trains none: leave "
     "lora_rank out, or write lora or qlora as the method"),
    ({"lora_targets": "mlp", "method": "pretrain"}, "lora_targets applies to adapters, and method pretrain"),
    ({"method": "full", "tuning": "lora"}, "tuning lora contradicts method full"),
    ({"method": "pretrain", "tuning": "full"}, "tuning full contradicts method pretrain"),
    ({"method": "lora sft", "tuning": "qlora"}, "says lora, and tuning says 'qlora'"),
    ({"tuning": "dora"}, "tuning: expected 'full', 'lora' or 'qlora', got 'dora'"),
    ({"tuning": "qlora", "trained_layers": 2}, "qlora freezes every layer"),
])
def test_what_contradicts_is_refused_by_name(said: dict[str, object], why: str) -> None:
    with pytest.raises(InputError, match=why):
        asked(**said)


@pytest.mark.parametrize("said", [{"method": "full"}, {"method": "pretrain"}, {"method": "lora"}, {"lora_rank": 8}])
def test_a_question_reads_back_from_its_file(said: dict[str, object]) -> None:
    once = asked(**said)
    again, _ = load_any(parse(to_yaml(once), "x.yaml"), {}, CATALOG)
    assert again == once


def test_a_plan_from_before_tuning_keeps_no_rank_without_adapters() -> None:
    def trains(**said: object) -> str:
        job = {"kind": "training", "model": "gpt2", "lora_rank": 16, **said}
        return Training.model_validate(without_idle_rank({"workload": job})["workload"]).trains

    assert [trains(method=method) for method in ("full", "lora", None)] == ["full", "lora", "pretrain"]
    with pytest.raises(ValueError, match="lora_rank applies"):
        trains(method="full", tuning=None)

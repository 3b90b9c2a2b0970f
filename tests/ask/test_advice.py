"""What the tool advises is taken back exactly as it is printed, by flags and by files, and is enough."""

from __future__ import annotations

import json
import random

import pytest

from planner.ask.explain.wording import advised, asked_limit
from planner.scenario.flags import FLAGS
from planner.scenario.limits import Limits, ServingLimits
from planner.yaml_io import dump
from tests.fuzz.running import folder, run

FLAG = {path.split(".")[-1]: "--" + flag.replace("_", "-") for flag, path in FLAGS.items()}
WORK = {"model": "gpt2", "sequence_length": 1024, "global_batch": "64 sequences"}
SERVED = {"kind": "serving", "model": "llama-3.1-8b", "rate": "20", "input": 1000, "output": 200, "engine": "vllm",
          "quantization": ["bf16"]}
"""What is chosen is kept: the answer is no and what would be enough, not a plan with another engine or format."""


def training(chance: random.Random) -> dict[str, dict[str, object]]:
    """A training question with a limit or two that are hard to meet."""
    tight = {"deadline": lambda: f"{chance.randint(1, 4000)} {chance.choice(['s', 'min'])}"
             + chance.choice(["", " at 90%"]), "budget": lambda: f"{10 ** chance.uniform(-1, 3):.2f} USD",
             "max_gpus": lambda: chance.randint(1, 2), "max_nodes": lambda: 1,
             "max_power": lambda: f"{chance.randint(300, 2000)} W"}
    chosen = chance.sample(sorted(tight), chance.choice([1, 1, 2]))
    tokens = f"{chance.randint(1, 99)} {chance.choice('MG')}"
    return {"workload": {**WORK, "tokens": tokens}, "limits": {name: tight[name]() for name in chosen},
            "hardware": {"candidates": chance.choice([["dgx-h100"], ["h100-sxm-1x"], ["a100-sxm-80gb-1x"]])}}


def service(chance: random.Random) -> dict[str, dict[str, object]]:
    """A service with levels or limits that are hard to hold."""
    work = {**SERVED, "rate": chance.choice(["5", "40", "300 requests/min"])}
    for name, low, high in (("ttft", 5, 60), ("tpot", 1, 9)):
        if chance.random() < 0.5:
            work[name] = f"{chance.randint(low, high)} ms" + chance.choice(["", " at p99", " at mean"])
    tight = {"budget": lambda: f"{chance.uniform(0.5, 3):.3f} USD/h", "max_gpus": lambda: 1, "gpus": lambda: 1,
             "max_power": lambda: f"{chance.randint(300, 1500)} W"}
    chosen = chance.sample(sorted(tight), chance.choice([0, 1, 1]))
    return {"workload": work, "limits": {name: tight[name]() for name in chosen},
            "hardware": {"candidates": chance.choice([["h100-sxm-1x"], ["l40s-8x-pcie"]])}}


def advice_holds(question: dict[str, dict[str, object]]) -> int:
    """Ask; take every relaxation that is printed back as a flag and in the file. Returns how many there were."""
    with folder() as place:
        path = place / "scenario.yaml"
        path.write_text(dump(question), encoding="utf-8")
        code, out = run("plan", path, "--json")
        found = json.loads(out)["infeasible"]["relaxations"] if code == 3 else []
        # more memory per GPU is no limit that anyone can set
        found = [one for one in found if one["limit"] != "memory"]
        for one in found:
            parts = dict(zip(one["limit"].split(" and "), one["to"].split(", "), strict=True)
                         if " and " in one["limit"] else [(one["limit"], one["to"])])
            section = "workload" if parts.keys() <= {"ttft", "tpot", "quantization"} else "limits"
            flags = [f"{FLAG[name]}={text}" for name, text in parts.items()]
            asked = [f"{FLAG[name]}={text}" for name, text in zip(parts, one["from"].split(", ") if len(parts) > 1
                                                                  else [one["from"]], strict=True)]
            assert run("plan", path, *flags, "-q")[0] == 0, f"{question}: {one}"
            assert run("plan", path, *asked, "--show-scenario") == run("plan", path, "--show-scenario"), one
            changed = {**question, section: {**question.get(section, {}), **parts}}
            again = place / "changed.yaml"
            again.write_text(dump(changed), encoding="utf-8")
            shown = run("plan", path, *flags, "--show-scenario")
            assert run("plan", again, "--show-scenario") == shown
            assert one["to"] != one["from"]
    return len(found)


@pytest.mark.parametrize("seed", range(6))
def test_advice_on_training_is_taken_back_and_is_enough(seed: int) -> None:
    advice_holds(training(random.Random(seed)))


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 6])
def test_advice_on_services_is_taken_back_and_is_enough(seed: int) -> None:
    advice_holds(service(random.Random(seed)))


def test_a_rounded_budget_is_enough_and_is_not_what_was_asked() -> None:
    text, value = advised(Limits(budget="9841 USD"), "budget", 9841.37) or ("", 0)
    assert (text, value) == ("9,842 USD", 9842)
    assert Limits(budget=text).budget == value
    assert asked_limit(Limits(budget="9841.2 USD"), "budget") == "9,841.20 USD"
    assert asked_limit(ServingLimits(budget="0.1234 USD/h"), "budget") == "0.1234 USD/h"


@pytest.mark.parametrize("limits", [Limits(deadline="1 d", budget="1 USD"), ServingLimits(budget="1 USD/h")])
@pytest.mark.parametrize("name", ["deadline", "budget", "max_power", "max_gpus", "max_nodes"])
def test_any_advice_reads_back_to_no_less(limits: Limits, name: str) -> None:
    chance = random.Random(1)
    for _ in range(300):
        least = 10 ** chance.uniform(0, 7)
        advice = advised(limits, name, least)
        if not (isinstance(limits, ServingLimits) and name == "deadline"):
            assert advice is not None
            assert least <= advice[1] <= least + max(1.0, 0.1 * least)
            held = getattr(type(limits).model_validate({name: advice[0]}), name)
            assert getattr(held, "seconds", held) == advice[1]


def test_what_no_question_may_ask_is_no_advice() -> None:
    assert advised(Limits(deadline="1 d"), "deadline", 101 * 365.25 * 86400) is None
    assert advised(Limits(), "max_gpus", 2e7) is None

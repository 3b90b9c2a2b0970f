"""How much reinforcement learning is asked for: steps, passes over prompts, or nothing, which asks for one step."""

import pytest

import planner
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.scenario.load import load_question

ASKED = {"model": "qwen2.5-1.5b", "method": "grpo", "on": "2xh100", "prompts": 128, "input": 256, "output": 256}


def test_passes_over_prompts_are_steps():
    made = planner.plan(**ASKED, samples="40k", epochs=2)
    assert made.assignments[0].time.steps == 625
    assert made.provenance.scenario["workload"]["steps"] == 625
    (said,) = [default for default in made.provenance.defaults if default.name == "steps"]
    assert said.why == "2 x 40,000 prompts in steps of 128"


@pytest.mark.parametrize(("epochs", "steps"), [({}, 313), ({"epochs": 2}, 625)])
def test_more_prompts_than_a_step_has_are_a_data_set(epochs, steps):
    asked = {"model": "qwen2.5-1.5b", "method": "grpo", "prompts": "40k", **epochs}
    resolved, said = load_question(None, {f"workload.{key}": value for key, value in asked.items()}, Catalog())
    assert (resolved.workload.prompts, resolved.workload.steps) == (128, steps)
    assert "40,000 prompts" in [default.value for default in said]


def test_nothing_said_asks_for_the_fewest_gpus_and_one_step():
    asked = {**ASKED, "on": "l4"}
    made = planner.plan(**asked)
    assert (made.objective.name, made.assignments[0].time.steps) == ("gpus", 1)
    cheapest = planner.plan(**asked, objective="cost")
    assert cheapest.objective.name == "cost_usd"
    assert cheapest.assignments[0].gpus >= made.assignments[0].gpus


@pytest.mark.parametrize("machine", [{"on": "2xh100"}, {"on": "4xh100"}, {"own": "2xh100"}, {"on": "h100", "gpus": 2}])
def test_whoever_names_a_machine_asks_for_its_cheapest_step(machine):
    question = {key: value for key, value in ASKED.items() if key != "on"}
    made = planner.plan(**question, **machine)
    assert (made.objective.name, made.assignments[0].time.steps) == ("cost_usd", 1)
    fewest = planner.plan(**question, **machine, objective="gpus")
    assert fewest.objective.name == "gpus"
    assert made.assignments[0].cost_usd <= fewest.assignments[0].cost_usd


@pytest.mark.parametrize(("given", "message"), [
    ({"deadline": "2d"}, "deadline is of a whole job"), ({"budget": "500 USD"}, "budget is of a whole job"),
    ({"epochs": 2}, "epochs applies to samples"), ({"tokens": "1G"}, "write --steps, or --samples")])
def test_what_does_not_go_together_is_refused(given, message):
    with pytest.raises(InputError, match=message):
        planner.plan(**ASKED, **given)


def test_a_model_that_is_named_judges():
    made = planner.plan(**ASKED, reward_model="qwen2.5-0.5b")
    assert made.provenance.scenario["workload"]["reward"] == "model"


@pytest.mark.parametrize(("model", "output", "room", "why"), [
    # exp(7.471 + 3.090 x 0.5545): no answer is cut at the 4,096 tokens that pretraining is taken to use
    ("qwen2.5-7b", 2048, 10256, "99.9%"), ("qwen2.5-7b", {"mean": 2048, "max": 16384}, 512 + 16384, "99.9%"),
    # 512 answer tokens left: ln(512 / 343) / 0.5545 = 0.72 deviations, above which 24% of answers lie
    ("gpt2", 400, 1024, "gpt2 has no more positions; the 23.5% of answers")])
def test_the_longest_answer_is_the_models_limit_only_where_it_has_no_more_positions(model, output, room, why):
    asked = {"model": model, "method": "grpo", "input": 512, "output": output}
    resolved, said = load_question(None, {f"workload.{key}": value for key, value in asked.items()}, Catalog())
    (default,) = [default for default in said if default.name == "max_model_len"]
    assert (resolved.workload.max_model_len, default.value) == (room, str(room))
    assert why in default.why

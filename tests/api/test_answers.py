"""The public functions: every form of a question, typed frozen answers, and how they look."""

from __future__ import annotations

import json
import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import planner
from planner.answer.assignment import ServingAssignment, TrainingAssignment
from planner.answer.shown import flat
from planner.errors import InputError, Unsupported
from planner.render.sentence import plan_sentence

JOB: dict[str, Any] = {"model": "gpt2", "tokens": 1e9, "on": "h100-sxm-1x", "max_gpus": 2, "global_batch": 16,
                       "stack": "fsdp2"}
FILE = """workload: {model: gpt2, tokens: 1 G, global_batch: 16, stack: fsdp2}
hardware: {candidates: [h100-sxm-1x]}
limits: {max_gpus: 2}
"""
MAPPING = {"workload": {"model": "gpt2", "tokens": 10**9, "global_batch": 16, "stack": "fsdp2"},
           "hardware": {"candidates": ("h100-sxm-1x",)}, "limits": {"max_gpus": 2}}
EVIDENCE = """id,framework,model,gpu,gpus,gpus_per_node,seq_len,global_batch_seqs,micro_batch,tp,pp,dp,sharding,\
recompute,precision,tokens_per_s_per_gpu
a,Megatron-LM,llama-3.1-8b,h100-sxm,8,8,8192,128,1,2,1,4,zero1,none,bf16,9500
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    runs = tmp_path_factory.mktemp("evidence") / "<b>.csv"
    runs.write_text(EVIDENCE)
    return {"Plan": planner.plan(**JOB), "Comparison": planner.compare(**JOB), "Explanation": planner.explain(**JOB),
            "Sweep": planner.sweep(**JOB, vary={"seq_len": [512, 1024]}), "Validation": planner.validate(runs),
            "TrainingAssignment": planner.estimate("gpt2", "h100-sxm-1x"),
            "ServingAssignment": planner.estimate("gpt2", "h100-sxm-1x", input=500, output=100)}


NAMES = ["Plan", "Comparison", "Explanation", "Sweep", "Validation", "TrainingAssignment", "ServingAssignment"]


def test_dir_lists_the_public_names() -> None:
    assert dir(planner) == sorted(planner.__all__)
    assert {"plan", "estimate", "compare", "explain", "sweep", "validate"} <= set(dir(planner))
    assert all(getattr(planner, name) is not None for name in dir(planner))


def test_a_file_a_mapping_and_keywords_ask_the_same(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(FILE)
    asked = [planner.plan(path), planner.plan(str(path)), planner.plan(MAPPING), planner.plan(**JOB),
             planner.plan(**{**JOB, "tokens": "1 G", "on": ["h100-sxm-1x"]})]
    assert len({plan.objective for plan in asked}) == 1
    assert planner.plan(MAPPING, seq_len=512) != asked[0]
    lengths = [planner.plan(MAPPING, **{name: 512}).objective for name in ("seq_len", "sequence_length")]
    assert lengths[0] == lengths[1]


def test_a_shipped_name_is_a_scenario_and_another_word_a_model() -> None:
    shipped = planner.estimate("llama-3.1-70b-pretrain", "dgx-h100", "tp=8,pp=4", gpus=64)
    by_name = planner.estimate("llama-3.1-70b", "dgx-h100", {"tp": 8, "pp": 4}, gpus=64, global_batch=2048,
                               sequence_length=8192)
    assert shipped.memory == by_name.memory
    # what is in the scenario counts: 15 T tokens take so many steps of 16.8 M
    assert shipped.time.steps == -(-15 * 10**12 // (2048 * 8192))
    assert by_name.time.steps is None
    assert shipped.time.step_seconds == by_name.time.step_seconds
    with pytest.raises(InputError, match="no file and no shipped scenario is named 'no-such'"):
        planner.estimate("no-such", "dgx-h100", model="gpt2")
    with pytest.raises(InputError, match="no such file"):
        planner.estimate("no/such.yaml", "dgx-h100")


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_is_typed_frozen_and_short_on_one_line(answers: dict[str, Any], name: str) -> None:
    found = answers[name]
    assert repr(found) == str(found)
    assert repr(found).startswith(f"<{name} ")
    assert "\n" not in repr(found)
    assert len(repr(found)) < 250
    field = next(iter(type(found).model_fields))
    with pytest.raises(ValidationError):
        setattr(found, field, None)


def test_in_short_an_answer_says_the_time_that_the_command_line_says() -> None:
    """Rounded up in one place and to the nearest in the other, 4.744 h were 4.74 h in Python and 4.75 h elsewhere."""
    plan = planner.plan(model="llama-3.1-8b", method="lora", samples="50k", on="h100-sxm-1x", max_gpus=1)
    (said,) = re.findall(r"in ([\d.]+ (?:min|h|days)) for", plan_sentence(plan))
    assert f": {said}, " in repr(plan)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_shows_a_table_of_its_own_with_texts_escaped(answers: dict[str, Any], name: str) -> None:
    page = answers[name]._repr_html_()
    assert page.startswith("<div>")
    assert page.endswith("</div>")
    assert "<table" in page
    assert "<script" not in page
    assert len(page) < 40_000


def test_texts_are_escaped() -> None:
    found = planner.estimate({"workload": {"kind": "serving", "name": "<script>&", "model": "gpt2", "input": 5,
                                           "output": 5}}, "h100-sxm-1x")
    assert "&lt;script&gt;&amp;" in found._repr_html_()


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", NAMES)
def test_rows_become_a_frame_of_what_is_installed(answers: dict[str, Any], name: str, library: str,
                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, library)
    rows = answers[name].to_frame()
    assert rows
    assert all(isinstance(value, str | int | float | bool | None) for row in rows for value in row.values())


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_is_a_dictionary_as_json_has_it(answers: dict[str, Any], name: str) -> None:
    assert answers[name].to_dict() == json.loads(answers[name].model_dump_json(by_alias=True))


def test_without_a_library_the_extra_is_named(answers: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, None)
    with pytest.raises(Unsupported, match=r"pip install 'planner\[frame\]'"):
        answers["Plan"].to_frame()


def only(monkeypatch: pytest.MonkeyPatch, library: str | None) -> None:
    """Let one library of frames be there, whose frames are their rows."""
    monkeypatch.setattr("planner.answer.shown.find_spec", lambda name: name if name == library else None)
    if library is not None:
        stand_in = types.ModuleType(library)
        stand_in.DataFrame = list  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, library, stand_in)


def test_a_frame_has_nested_keys_with_dots(answers: dict[str, Any]) -> None:
    row = flat(answers["TrainingAssignment"])
    assert row["layout.tp"] == 1
    assert row["memory.components.weights"] == answers["TrainingAssignment"].memory.components.weights
    assert "layout.stages" not in row


@pytest.mark.parametrize("name", ["Plan", "Comparison", "Explanation"])
def test_what_is_read_back_equals_what_was_written(answers: dict[str, Any], name: str) -> None:
    answer = answers[name]
    again = type(answer).from_json(answer.to_json())
    assert again == answer
    assert hash(again) == hash(answer)
    assert answer != answers["Sweep"]


def test_a_plan_is_a_question_that_may_be_asked_again(answers: dict[str, Any], tmp_path: Path) -> None:
    plan, path = answers["Plan"], tmp_path / "plan.json"
    path.write_text(plan.to_json())
    for asked in (plan, path, plan.to_dict()):
        assert planner.plan(asked).assignments == plan.assignments
    assert planner.plan(path, seq_len=512).assignments == planner.plan(**JOB, seq_len=512).assignments
    assert planner.explain(plan).worth == answers["Explanation"].worth
    with pytest.raises(InputError, match=r"planner\.comparison/1\) without its question"):
        planner.plan({"schema": "planner.comparison/1", "provenance": {}})


def test_a_variant_has_the_figures_of_its_plan(answers: dict[str, Any]) -> None:
    line = answers["Sweep"][0]
    assert (line.status, line["cost"]) == ("optimal", line.plan.assignments[0].cost_usd)


def test_a_sweep_is_what_the_plans_are_one_by_one() -> None:
    found = planner.sweep(**JOB, vary={"deadline": ["1 s", "3 d"], "workload.sequence_length": [512, 1024]})
    assert [dict(line.variant) for line in found.lines][1] == {
        "limits.deadline": "1 s", "workload.sequence_length": "1024"}
    for line in found.lines:
        alone = planner.plan(**JOB, deadline=line.variant["limits.deadline"],
                             seq_len=int(line.variant["workload.sequence_length"]))
        assert line.plan is not None
        assert (line.plan.status, line.plan.objective) == (alone.status, alone.objective)
    both = planner.sweep(**JOB, vary={"precision": ["bf16", ["bf16", "fp8"]]})
    assert [line.variant["workload.precision"] for line in both.lines] == ["bf16", "bf16+fp8"]


def test_explain_takes_choices_as_text_or_mappings(answers: dict[str, Any]) -> None:
    found = planner.explain(**JOB, why_not=[{"dp": 1}, "tp=2"])
    assert [one.asked for one in found.why_not] == [{"dp": "1"}, {"tp": "2"}]
    assert planner.explain(**JOB, why_not={"dp": 1}).why_not == found.why_not[:1]


def test_the_kind_of_an_estimate_follows_its_values(answers: dict[str, Any]) -> None:
    assert isinstance(answers["TrainingAssignment"], TrainingAssignment)
    assert isinstance(answers["ServingAssignment"], ServingAssignment)
    with pytest.raises(InputError, match=r"max_model_len 512 is below the 600 tokens"):
        planner.estimate("gpt2", "h100-sxm-1x", input=500, output=100, seq_len=512)

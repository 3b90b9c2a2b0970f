"""Answers end to end: statuses become exit codes, JSON is alone on stdout, Python gives what the command prints."""

import json

import pytest

import planner as package
from planner.answer.exit_code import exit_code
from planner.cli.main import main
from planner.errors import InputError, UnknownName
from planner.layouts.axes import layout_text
from tests.answer.example_plan import example_plan

SMALL = {"model": "llama-3.1-8b", "tokens": "10G", "on": "dgx-h100", "gpus": "16", "global_batch": "64"}
FLAGS = [part for flag, value in SMALL.items() for part in ("--" + flag.replace("_", "-"), value)]
LAYOUT = "tp=2,pp=2,dp=4"


def test_every_status_has_its_exit_code():
    codes = {"optimal": 0, "feasible": 4, "undecided": 4, "infeasible": 3}
    assert {status: exit_code(example_plan().model_copy(update={"status": status})) for status in codes} == codes


def test_a_plan_is_answered_and_its_json_is_alone_on_stdout(planner):
    ran = planner("plan", *FLAGS, "--json", "-v")
    plan = json.loads(ran.out)
    assert (ran.code, plan["schema"], plan["status"]) == (0, "planner.plan/2", "optimal")
    assert plan["assignments"][0]["gpus"] == 16
    defaults = {one["name"]: one["value"] for one in plan["provenance"]["defaults"]}
    assert {"precision": "bf16", "terms": "on-demand", "stack": "megatron-core"}.items() <= defaults.items()


def test_the_answer_is_the_first_sentence_and_all_that_quiet_prints(planner):
    full, quiet = planner("plan", *FLAGS), planner("plan", *FLAGS, "-q")
    assert full.code == quiet.code == 0
    assert " ".join(full.out.split()).startswith(" ".join(quiet.out.split()))
    assert quiet.out.count("\n") == 1
    assert "16 h100-sxm GPUs" in quiet.out


def test_no_is_an_answer_with_exit_code_3(planner):
    ran = planner("plan", *FLAGS, "--stack", "megatron-core", "--deadline", "1 min", "--json")
    plan = json.loads(ran.out)
    assert (ran.code, ran.err, plan["status"], plan["assignments"]) == (3, "", "infeasible", [])
    assert plan["infeasible"]["because"]


def test_a_stop_before_the_proof_exits_4(planner):
    ran = planner("plan", *FLAGS, "--time-limit", "1 ms", "--json")
    assert (ran.code, json.loads(ran.out)["status"]) in {(4, "undecided"), (4, "feasible")}


def test_an_estimate_is_answered_whether_it_fits_or_not(planner):
    fits = planner("estimate", "--model", "llama-3.1-8b", "--node", "dgx-h100", "--layout", LAYOUT, "--json")
    no_fit = planner("estimate", "--model", "llama-3.1-405b", "--node", "dgx-h100", "--layout", "tp=8", "--json")
    assert (fits.code, json.loads(fits.out)["memory"]["fits"]) == (0, "fits")
    assert (no_fit.code, json.loads(no_fit.out)["memory"]["fits"]) == (0, "does not fit")
    text = planner("estimate", "--model", "llama-3.1-8b", "--node", "DGX-H100", "--layout", LAYOUT).out
    assert text.startswith("Fits")


@pytest.mark.parametrize("layout", ["tpp=8", "tp=x", "tp=0", "tp=3", "pp=999", "recompute=some"])
def test_a_wrong_layout_is_refused(planner, layout):
    ran = planner("estimate", "--model", "llama-3.1-8b", "--node", "dgx-h100", "--layout", layout)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Error: ")
    assert "bug" not in ran.err


def test_layout_text_is_axis_and_value():
    assert layout_text("tp=8, pp = 4,recompute=full,") == {"tp": "8", "pp": "4", "recompute": "full"}
    assert layout_text("") == {}
    for text in ("tp8pp2", "TP 8, PP 2", "tp=8 pp=2", "TP8-PP2", "tp:8/pp:2", "TP8 x PP2", "tp8×pp2"):
        assert layout_text(text) == {"tp": "8", "pp": "2"}, text
    assert layout_text("tp8,zero-3") == {"tp": "8", "zero": "3"}
    for text in ("tp", "tp=", "=8", "tp=1,tp=2"):
        with pytest.raises(InputError, match="--layout"):
            layout_text(text)


def test_python_returns_what_the_command_prints(planner):
    plan = package.plan(**SMALL)
    assert plan.search.wall_seconds > 0  # told on the page
    printed = json.loads(planner("plan", *FLAGS, "--json").out)
    assert json.loads(plan.model_dump_json(by_alias=True)) == printed
    estimate = package.estimate("llama-3.1-8b", "dgx-h100", {"tp": 2, "pp": 2, "dp": 4})
    assert estimate.gpus == 16
    with pytest.raises(UnknownName, match=r"'deadlin'; did you mean deadline"):
        package.plan(**SMALL, deadlin="3 d")
    with pytest.raises(InputError, match=r"^deadline: '3' has no unit"):
        package.plan(**SMALL, deadline="3")


def test_public_names_are_all_there_and_no_others():
    assert all(getattr(package, name) for name in package.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = package.nothing


def test_the_simplest_of_the_tied_layouts_says_its_price(capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["plan", "--model", "llama-3.1-8b", "--tokens", "100G", "--on", "dgx-h100", "--deadline", "30d",
           "--stack", "megatron-core", "--json"]
    assert main(ask) == 0
    best = json.loads(capsys.readouterr().out)
    assert main([*ask, "--prefer", "simple"]) == 0
    simple = json.loads(capsys.readouterr().out)
    assert simple["objective"] == best["objective"]  # the optimum stays the optimum
    price = simple["assignments"][0]["cost_usd"] / best["objective"]["value"] - 1
    assert 0 <= price <= 0.08
    said = simple["provenance"].get("prefer") == "simple"
    assert said == (simple["assignments"] != best["assignments"])
    if said:
        assert simple["alternatives"][0]["layout"] == best["assignments"][0]["layout"]

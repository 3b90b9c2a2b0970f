"""What --vary means: the product in order, lists joined by +, and every slip refused before anything is solved."""

import pytest

from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.scenario.load import paths_of
from planner.sweeping.task import tasks
from planner.sweeping.variants import overrides, variants, varied
from tests.sweep.conftest import no_offer


def test_the_last_path_varies_fastest():
    found = list(variants(varied(["workload.tokens=1G,2G", "limits.deadline=30d, 60d"], paths_of(None, Catalog()))))
    assert [tuple(variant.values()) for variant in found] == [
        ("1G", "30d"), ("1G", "60d"), ("2G", "30d"), ("2G", "60d")]
    assert list(found[0]) == ["workload.tokens", "limits.deadline"]


def test_plus_joins_the_values_of_a_list_and_means_nothing_elsewhere():
    variant = {"hardware.candidates": "dgx-h100 + dgx-b200", "workload.global_batch": "2048 sequences +- 2%"}
    axes = varied([f"{path}={value}" for path, value in variant.items()], paths_of(None, Catalog()))
    assert overrides(variant, axes) == {"hardware.candidates": ["dgx-h100", "dgx-b200"],
                                  "workload.global_batch": "2048 sequences +- 2%"}


def test_variants_are_resolved_scenarios(question):
    axes = varied(["hardware.candidates=dgx-h100,8xh100+dgx-a100", "workload.global_batch=64 sequences +- 2%,64"],
                  paths_of(None, Catalog()))
    found = tasks(str(question), axes, Catalog())
    assert [task.index for task in found] == [0, 1, 2, 3]
    assert found[0].scenario.hardware.candidates == ("dgx-h100",)
    assert {"dgx-h100", "dgx-a100"} <= set(found[3].scenario.hardware.candidates)
    assert found[2].scenario.workload.global_batch.tolerance == 0.02
    assert found[3].scenario.workload.global_batch.tolerance == 0


@pytest.mark.parametrize(("vary", "message"), [
    ([], "Missing option '--vary'"),
    (["limits.deadline"], "--vary 'limits.deadline': write PATH=V1,V2"),
    (["=30d"], "--vary '=30d': write PATH=V1,V2"),
    (["limits.dedline=30d"], "unknown scenario value in --vary 'limits.dedline'; did you mean limits.deadline"),
    (["limits=30d"], "unknown scenario value in --vary 'limits'"),
    (["limits.deadline="], "--vary limits.deadline: empty value"),
    (["limits.deadline=30d,"], "--vary limits.deadline: empty value"),
    (["hardware.candidates=dgx-h100+"], "--vary hardware.candidates: empty value"),
    (["limits.deadline=30d,60d,30d"], "--vary limits.deadline: duplicate value '30d'"),
    (["limits.deadline=1d,24 h"], "--vary limits.deadline: duplicate variant: '1d' and '24 h' ask the same question"),
    (["limits.deadline=1d", "limits.deadline=2d"], "--vary limits.deadline: given twice"),
    (["limits.deadline=1d,36"], "--vary limits.deadline: '36' has no unit"),
    (["workload.model=llama-3.1-8b,llama-9"], "--vary workload.model: unknown model 'llama-9'"),
    (["workload.precision=bf16,fp99"], "--vary workload.precision: expected 'fp32'"),
    (["sourcing.own=3"], "--vary sourcing.own: unknown node or GPU '3'"),
    ([f"limits.{name}={','.join(map(str, range(1, 400)))}" for name in ("max_gpus", "max_nodes")],
     "--vary: 159,201 variants; a sweep has at most 100,000"),
])
def test_a_wrong_variant_is_refused_before_any_is_solved(planner, question, search, tmp_path, vary, message):
    file = tmp_path / "out.jsonl"
    ran = planner("sweep", question, *(part for text in vary for part in ("--vary", text)), "-o", file)
    assert (ran.code, ran.out, search.asked, file.exists()) == (2, "", [], False)
    assert message in ran.err


def test_from_python_nothing_varied_is_refused_too():
    with pytest.raises(InputError, match="nothing is varied"):
        varied([], {})


def test_the_scenario_itself_may_be_wrong(planner, tmp_path):
    (tmp_path / "wrong.yaml").write_text("workload: {model: llama-3.1-8b, tokens: 1 X}\n")
    ran = planner("sweep", tmp_path / "wrong.yaml", "--vary", "limits.deadline=1d,2d")
    assert ran.code == 2
    assert "wrong.yaml:1: workload.tokens: unknown unit 'X'" in ran.err
    assert "no such file" in planner("sweep", tmp_path / "none.yaml", "--vary", "limits.deadline=1d").err


def test_an_error_is_a_line_and_does_not_lose_the_sweep(planner, question, search):
    search.fails = {"2 d": no_offer()}
    ran = planner("sweep", question, "--vary", "limits.deadline=1d,2d,3d", "--workers", "1")
    lines = ran.out.splitlines()
    assert (ran.code, len(lines)) == (2, 3)
    assert lines[1] == ('{"schema": "planner.sweep/1", "variant": {"limits.deadline": "2d"}, "plan": null, '
                        '"error": "no candidate has a usable offer"}')
    assert ran.err == ("warning: 1 of 3 variants ended with an error: limits.deadline=2d: "
                       "no candidate has a usable offer\n")

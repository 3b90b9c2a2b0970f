"""`planner launch` and `planner plan --launch`, as a user types them."""

import json
from functools import cache
from pathlib import Path

import pytest

import planner as package
from planner.answer.schema import to_json
from planner.errors import InputError
from planner.launch.checks.run import main
from planner.launch.written import write_all
from tests.cli.conftest import planner  # noqa: F401 - a fixture
from tests.launch.works import CATALOG, placed

SMALL = {"model": "llama-3.1-8b", "tokens": "1G", "on": "dgx-h100", "gpus": 16, "stack": "megatron-core"}


@cache
def small():
    return to_json(package.plan(**SMALL, launchable="megatron-lm"))


@pytest.fixture
def plan_file(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(small())
    return path


def test_a_plan_becomes_a_folder_that_starts_it(planner, plan_file, tmp_path):  # noqa: F811
    ran = planner("launch", plan_file, "-o", tmp_path / "run")
    assert ran.code == 0, ran.err
    assert "sbatch job.sbatch" in ran.out
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {"train.sh", "variables.sh", "install.sh", "job.sbatch", "README.md", "launch.json", "plan.json"}
    assert planner("launch", tmp_path / "run" / "plan.json", "-o", tmp_path / "again").code == 0, "its plan is one"
    page = (tmp_path / "run" / "README.md").read_text()
    for part in ("megatron-core 0.19.2", "90% interval", "tokens/s/GPU", "planner validate", "`DATA`"):
        assert part in page


def test_a_plan_of_the_stacks_own_target_is_not_said_to_be_anothers(planner, plan_file, tmp_path):  # noqa: F811
    assert planner("launch", plan_file, "-o", tmp_path / "run").code == 0
    assert "these figures are of" not in (tmp_path / "run" / "README.md").read_text()


def test_plan_writes_the_same_files(planner, plan_file, tmp_path):  # noqa: F811
    planner("launch", plan_file, "-o", tmp_path / "two")
    flags = [word for name, value in SMALL.items() for word in (f"--{name}", value)]
    ran = planner("plan", *flags, "--launchable", "megatron-lm", "--launch", tmp_path / "one")
    assert ran.code == 0, ran.err
    assert "Wrote" in ran.err
    assert (tmp_path / "one" / "train.sh").read_text() == (tmp_path / "two" / "train.sh").read_text()


def test_files_are_written_though_nobody_reads_on(planner, tmp_path, monkeypatch):  # noqa: F811
    def closed(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("planner.cli.plan.say_answer", closed)
    planner("plan", "--model", "llama-3.1-8b", "--method", "lora", "--tokens", "10M", "--on", "l40s", "--stack",
            "axolotl", "--launch", tmp_path / "run")
    assert (tmp_path / "run" / "plan.json").is_file()


@pytest.mark.parametrize(("model", "warned"), [("8b", True), ("llama-3.1-8b", False)])
def test_a_shape_without_a_checkpoint_is_to_be_filled_in(planner, tmp_path, model, warned):  # noqa: F811
    ran = planner("launch", "--model", model, "--users", 2, "--on", "h100-sxm-1x", "-o", tmp_path / "run")
    assert ran.code == 0, ran.err
    for text in (ran.out + ran.err, (tmp_path / "run" / "README.md").read_text()):
        assert ("MODEL is 8b, a shape without a published checkpoint" in text) == warned


def test_the_target_that_a_search_was_held_to_is_written(planner, tmp_path):  # noqa: F811
    ran = planner("plan", "--model", "gpt2", "--method", "lora", "--tokens", "10M", "--on", "2xh100", "--stack",
                  "hf-peft", "--launchable", "accelerate", "--launch", tmp_path / "one")
    assert ran.code == 0, ran.err
    assert json.loads((tmp_path / "one" / "launch.json").read_text())["target"] == "accelerate"


def test_the_first_target_of_a_stack_that_can_express_the_plan_is_written(planner, tmp_path):  # noqa: F811
    """Gradients that wait for the last micro-batch are not DeepSpeed's, which comes first."""
    ran = planner("plan", "--model", "gpt2", "--method", "lora", "--tokens", "10M", "--on", "2xh100", "--gpus", "2",
                  "--stack", "hf-peft", "--launch", tmp_path / "one")
    assert ran.code == 0, ran.err
    written = json.loads((tmp_path / "one" / "launch.json").read_text())["target"]
    refused = planner("launch", tmp_path / "one" / "plan.json", "-o", tmp_path / "two", "--for", "deepspeed")
    assert (written, refused.code) == ("accelerate", 2)


def test_a_default_tuning_plan_starts_on_every_gpu_it_has(planner, tmp_path):  # noqa: F811
    ran = planner("plan", "--model", "llama-3.1-8b", "--method", "lora", "--tokens", "100M", "--on", "dgx-h100",
                  "--launch", tmp_path / "one")
    assert ran.code == 0, ran.err
    assert "--nproc-per-node=8" in (tmp_path / "one" / "train.sh").read_text()


def test_an_estimate_is_launched_too(planner, tmp_path):  # noqa: F811
    ran = planner("estimate", "--model", "llama-3.1-8b", "--node", "dgx-h100", "--layout", "tp=2,dp=4", "--json")
    (tmp_path / "one.json").write_text(ran.out)
    ran = planner("launch", tmp_path / "one.json", "-o", tmp_path / "run", "--json")
    (made,) = json.loads(ran.out)
    assert made["target"] == "megatron-lm"
    assert made["start"].startswith("bash train.sh")


def test_an_estimate_keeps_what_was_asked_of_it(planner, tmp_path):  # noqa: F811
    ran = planner("estimate", "--model", "llama-3.1-8b", "--node", "h100-sxm-1x", "--method", "qlora", "--lora-rank",
                  "64", "--optimizer", "paged-adamw-8bit", "--json")
    (tmp_path / "one.json").write_text(ran.out)
    planner("launch", tmp_path / "one.json", "-o", tmp_path / "run", "--for", "axolotl")
    config = (tmp_path / "run" / "axolotl.yaml").read_text()
    assert "lora_r: 64" in config
    assert "optimizer: paged_adamw_8bit" in config
    broken = json.loads(ran.out)
    broken["asked"]["lora_rank"] = -1
    (tmp_path / "one.json").write_text(json.dumps(broken))
    refused = planner("launch", tmp_path / "one.json", "-o", tmp_path / "two", "--for", "axolotl")
    assert (refused.code, "asked" in refused.err and "lora_rank" in refused.err) == (2, True)


def test_a_plan_that_does_not_fit_says_so(planner, tmp_path):  # noqa: F811
    ran = planner("estimate", "--model", "llama-3.1-70b", "--node", "h100-sxm-1x", "--layout", "dp=1", "--json")
    (tmp_path / "one.json").write_text(ran.out)
    ran = planner("launch", tmp_path / "one.json", "-o", tmp_path / "run")
    assert "warning: the plan does not fit: it needs" in " ".join(ran.out.split())
    assert "**Before you start:** the plan does not fit" in (tmp_path / "run" / "README.md").read_text()


@pytest.mark.parametrize(("arguments", "said"), [
    ([], "launch needs the file of a plan"),
    (["{plan}", "-o", "{dir}", "--scheduler", "slum"], "did you mean slurm"),
    (["{plan}", "-o", "{dir}", "--scheduler", "dynamo"], "sglang); it can with --scheduler dstack, kubernetes"),
    (["{plan}", "-o", "{dir}", "--alternative", "99"], "--alternative 99: the plan has"),
    (["{dir}/none.json", "-o", "{dir}"], "No such file"),
    (["--check", "{dir}"], "launch.json"),
])
def test_what_is_wrong_is_said(planner, plan_file, tmp_path, arguments, said):  # noqa: F811
    ran = planner("launch", *(str(one).format(plan=plan_file, dir=tmp_path / "x") for one in arguments))
    assert ran.code == 2
    assert said in ran.err
    assert not (tmp_path / "x").exists()


def test_what_a_target_cannot_express_is_refused_with_the_nearest_that_it_can(planner, tmp_path):  # noqa: F811
    layout = "pp=2,dp=4,offload_optimizer=0,recompute=full"
    found = planner("estimate", "--model", "llama-3.1-8b", "--node", "dgx-h100", "--layout", layout, "--json")
    plan = json.loads(found.out)
    for stage, full in zip(plan["layout"]["stages"], (2, 0), strict=True):
        stage["recompute_layers"] = {"none": 16 - full, "selective": 0, "full": full}
    plan["layout"]["recompute"] = "mixed"
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    ran = planner("launch", tmp_path / "plan.json", "-o", tmp_path / "run")
    assert ran.code == 2
    for part in ("megatron-lm cannot express", "recompute", "2 full", "recompute=2", "--launchable megatron-lm"):
        assert part in ran.err
    assert not (tmp_path / "run").exists()


def test_a_model_that_a_target_does_not_have_names_the_targets_that_do(planner, tmp_path):  # noqa: F811
    found = planner("estimate", "--model", "gemma-3-12b", "--node", "dgx-h100", "--layout", "dp=8,zero=3", "--stack",
                    "accelerate-fsdp", "--method", "full", "--json")
    (tmp_path / "plan.json").write_text(found.out)
    said = planner("launch", tmp_path / "plan.json", "-o", tmp_path / "run", "--for", "megatron-bridge").err
    others = " ".join(said.split()).partition("best plan of another: ")[2]
    assert "accelerate" in others
    assert "megatron-lm" not in others


def test_the_search_can_be_held_to_what_is_launchable():
    asked = {**SMALL, "gpus": 8, "seq_len": 98304}
    free, held = package.plan(**asked), package.plan(**asked, launchable="megatron-lm")
    assert free.assignments[0].layout.recompute == "mixed"
    assert held.assignments[0].layout.recompute in ("none", "selective", "full")
    assert held.objective.value >= free.objective.value
    assert "per layer" not in held.search.domains["recompute"]
    with pytest.raises(package.InputError, match="fsdp2 is not what megatron-lm starts"):
        package.plan(**{**asked, "stack": "fsdp2"}, launchable="megatron-lm")
    with pytest.raises(package.InputError, match="did you mean megatron-lm"):
        package.plan(**asked, launchable="megatron")


def test_a_plan_that_its_stack_cannot_be_told_gives_way_to_the_best_that_it_can(planner, tmp_path):  # noqa: F811
    large = {**SMALL, "model": "llama-3.1-70b", "gpus": 64}
    flags = [word for name, value in large.items() for word in (f"--{name}", value)]
    ran = planner("plan", *flags, "--launch", tmp_path / "one", "--json")
    assert ran.code == 0, ran.err
    placed = json.loads(ran.out)
    held = package.plan(**large, launchable="megatron-lm")
    assert placed["objective"]["value"] == held.objective.value
    assert any("cannot be started" in note for note in placed["notes"])
    assert {"name": "launchable", "value": "auto"}.items() <= {
        key: value for one in placed["provenance"]["defaults"] if one["name"] == "launchable"
        for key, value in one.items()}.items()
    assert (tmp_path / "one" / "train.sh").exists()


def test_targets_are_listed(planner):  # noqa: F811
    listed = json.loads(planner("launch", "--for", "list", "--json").out)
    assert {one["target"] for one in listed} >= {"megatron-lm"}
    assert all(one["release"] and one["as_of"] for one in listed)
    assert "nothing is written" in planner("launch", "--for", "list").out


def test_a_stack_without_files_says_why(planner, plan_file, tmp_path):  # noqa: F811
    refused = planner("launch", plan_file, "-o", tmp_path / "run", "--for", "hai-llm")
    assert (refused.code, "nothing is written for hai-llm: it is not published" in refused.err) == (2, True)


def test_a_folder_is_checked_as_far_as_its_stack_is_installed(planner, plan_file, tmp_path):  # noqa: F811
    planner("launch", plan_file, "-o", tmp_path / "run")
    ran = planner("launch", "--check", tmp_path / "run")
    assert ran.code == 0
    assert "megatron-core is not installed" in ran.out or "accepts the files" in ran.out
    script = Path(tmp_path / "run" / "train.sh")
    script.write_text(script.read_text() + "if true; then\n")
    ran = planner("launch", "--check", tmp_path / "run")
    assert ran.code == 2
    assert "wrong: train.sh" in ran.out


def test_a_stack_that_is_not_installed_is_found_to_be_so_before_anything_is_imported(capsys, monkeypatch):
    imported = []
    monkeypatch.setattr("planner.launch.checks.run.import_module", imported.append)
    main("axolotl", "no-such-package", ["somewhere"])
    assert "no-such-package" in json.loads(capsys.readouterr().out)["missing"]
    assert imported == []


def test_what_was_refused_is_not_named_as_what_starts_another_plan(tmp_path):
    with pytest.raises(InputError, match="gemma-3-12b in litgpt") as refused:
        write_all(placed("dp=8,zero=3,recompute=full", model="gemma-3-12b", method="lora", stack="axolotl"), CATALOG,
                  tmp_path, "litgpt")
    assert "axolotl" in (others := str(refused.value).partition("best plan of another")[2])
    assert "litgpt" not in others


def test_what_is_heard_by_the_token_is_read_back(planner, tmp_path):  # noqa: F811
    """It comes as samples, which stand apart, though its amount is in tokens."""
    asked = ("--model", "whisper-tiny", "--method", "pretrain", "--tokens", "1G", "--own", "8xh100")
    (tmp_path / "plan.json").write_text(planner("plan", *asked, "--json").out)
    ran = planner("launch", tmp_path / "plan.json", "-o", tmp_path / "run")
    assert "packing" not in ran.err
    assert "targets train language models on text" in ran.err

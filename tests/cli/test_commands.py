"""Commands, flags and exit codes, as the contract has them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import planner.cli.main as cli
from planner.answer.validation import Validation
from planner.catalog.load import KINDS, Catalog
from planner.cli.progress import so_far
from planner.scenario.flags import FLAGS
from planner.scenario.limits import Deadline
from planner.scenario.scenario import Scenario, ServingScenario
from planner.solver.progress import SoFar
from planner.yaml_io import parse, validate

ROOT = Path(__file__).parents[2]
MAIN = "llama-3.1-70b-pretrain"
CHAT = "llama-3.3-70b-chat"
ONE = ["estimate", "--model", "gpt2", "--node", "dgx-h100", "--layout", "tp=2"]
CATALOG = Catalog()


def python(code):
    return subprocess.run([sys.executable, "-X", "importtime", "-c", code], cwd=ROOT, check=True,
                          capture_output=True, text=True)


@pytest.mark.parametrize("code", ["from planner.cli.main import main; main(['--help'])", "import planner"])
def test_help_and_import_are_quick_because_nothing_heavy_is_imported(code):
    imported = python(code).stderr
    assert not [name for name in ("numpy", "pydantic", "ortools", "yaml", "rich") if f" {name}\n" in imported]


@pytest.mark.parametrize("argv", [ONE, ["plan", "--model", "gpt2", "--tokens", "1G", "--on", "h100-sxm-1x", "-q"]])
def test_one_layout_and_one_run_are_answered_without_loading_cp_sat(argv):
    imported = python(f"from planner.cli.main import main; assert main({argv}) == 0").stderr
    assert " ortools\n" not in imported
    assert "planner.jobs.fleet\n" in imported


def test_help_is_quick_because_little_is_imported_at_all():
    """Wall clock is the machine's; what is imported is ours. Python with site-packages and click are most of it."""
    code = ("import runpy, sys\nbefore = set(sys.modules)\nsys.argv = ['planner', '--help']\n"
            "try:\n    runpy.run_module('planner', run_name='__main__')\n"
            "except SystemExit:\n    print(*sorted(set(sys.modules) - before), file=sys.stderr)")
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    imported = ran.stderr.split()
    assert "click" in imported
    assert {name for name in imported if name.partition(".")[0] == "planner"} == {
        "planner", "planner.cli", "planner.cli.main", "planner.cli.printing", "planner.errors", "planner.process",
        "planner.process.interrupts", "planner.process.version", "planner.text_io"}
    assert len(imported) < 150


def test_help_names_every_command_and_version_is_one_line(planner):
    ran = planner("--help")
    assert ran.code == 0
    assert all(f"  {name} " in ran.out for name in cli.COMMANDS)
    assert planner("--version").out.startswith("planner, version ")


def test_every_module_with_a_command_is_one_by_its_first_line():
    modules = {path.stem: path.read_text() for path in Path(cli.__file__).parent.glob("*.py")}
    assert {name for name, text in modules.items() if "\ndef command(" in text} == set(cli.COMMANDS)


@pytest.mark.parametrize("command", [(name,) for name in cli.COMMANDS] + [
    ("catalog", "list"), ("catalog", "show"), ("catalog", "check")])
def test_every_command_has_help_and_the_common_options(planner, command):
    ran = planner(*command, "--help")
    assert ran.code == 0
    if command != ("catalog",):
        assert all(option in ran.out for option in ("--json", "--catalogs", "-q", "-v"))


@pytest.mark.parametrize(("early", "late"), [
    (["-q", "catalog", "check"], ["catalog", "check", "-q"]),
    (["--json", "catalog", "list"], ["catalog", "list", "--json"]),
    (["catalog", "--json", "list"], ["catalog", "list", "--json"]),
    (["-v", "catalog", "list"], ["catalog", "list", "-v"]),
    (["-q", "--json", "plan", MAIN, "--show-scenario"], ["plan", MAIN, "--show-scenario", "-q", "--json"]),
    (["--catalogs", "/nowhere", "plan", MAIN], ["plan", MAIN, "--catalogs", "/nowhere"]),
])
def test_common_options_may_stand_before_the_command(planner, early, late):
    first, second = planner(*early), planner(*late)
    assert (first.code, first.out, first.err) == (second.code, second.out, second.err)
    assert first.err or first.out


def test_what_input_puts_into_a_message_stays_on_its_line(planner):
    ran = planner("plan", MAIN, "--on", "dgx\nh100\r\x1b[31m")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert ran.err.isascii() or "\x1b" not in ran.err
    assert "\r" not in ran.err


@pytest.mark.parametrize(("layout", "said"), [
    (["--gpus", "9" * 30], "--gpus: number of GPUs must be at most 1e+18"),
    (["--layout", "tp=999999,pp=999999,cp=999999,dp=999999"], "expected at most 10,000,000")])
def test_a_layout_beyond_all_clusters_is_refused(planner, layout, said):
    ran = planner("estimate", "--model", "gpt2", "--node", "dgx-h100", *layout)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_catalog_show_prints_nothing_of_a_node_whose_gpu_is_unknown(planner, tmp_path):
    (tmp_path / "nodes").mkdir()
    text = (ROOT / "catalogs/nodes/dgx-h100.yaml").read_text().replace("gpu: h100-sxm", "gpu: h1000")
    (tmp_path / "nodes" / "dgx-h100.yaml").write_text(text)
    ran = planner("catalog", "show", "nodes/dgx-h100", "--catalogs", tmp_path)
    assert (ran.code, ran.out) == (2, "")


def test_quiet_and_json_before_plan(planner):
    small = ["plan", "--model", "gpt2", "--tokens", "1G", "--on", "h100-sxm-1x", "--max-gpus", "1", "--stack", "fsdp2"]
    assert planner("-q", *small).out == planner(*small, "-q").out
    assert json.loads(planner("--json", *small).out)["schema"] == "planner.plan/2"


def test_catalogs_before_the_command_replace_those_of_the_environment(planner, monkeypatch, tmp_path):
    monkeypatch.setenv("PLANNER_CATALOGS", "/nowhere")
    assert cli.main(["catalog", "list", "stacks"]) == 2
    assert cli.main(["--catalogs", str(tmp_path), "catalog", "list", "stacks"]) == 0


def test_plan_has_exactly_the_flags_of_the_scenario(planner):
    shown = planner("plan", "--help").out
    assert all("--" + flag.replace("_", "-") in shown for flag in FLAGS)


@pytest.mark.parametrize(("args", "message"), [
    (["prices", "of", "h100"], "No such command 'prices': planner catalog answers that"),
    (["fit", "--model", "x", "--node", "y"], "note: planner plan answers that"),
    (["pln"], "No such command 'pln'; did you mean plan"), (["simulat"], "No such command 'simulat'"),
    (["plan", MAIN, "--dedline", "3d"], "--dedline"),
    (["plan", "--spots", "x"], "No such option"),
    (["plan", MAIN, "--objective", "beauty"], "--objective: expected 'cost', 'time', 'gpus' or 'energy', got 'beauty'"),
    (["plan", MAIN, "--time-limit", "nan"], "--time-limit"),
    (["plan", MAIN, "--time-limit", "-1"], "--time-limit"),
    (["plan", MAIN, "extra"], "extra argument"),
    (["launch"], "launch needs the file of a plan"), (["launch", "plan.json"], "plan.json: cannot read"),
    (["estimate", "--model", "gpt2", "--layout", "tp=2"], "--node: an estimate needs a node type"),
    (["estimate", "--model", "x", "--node", "y", "--seq-len", "8 x"], "unknown unit 'x'"),
    (["estimate", "--model", "x", "--node", "y", "--global-batch", "x"], "'x' is not a global batch"),
    (["estimate", "--model", "x", "--node", "y", "--layout", "tp"], "'tp' is not AXIS=VALUE"),
    (["estimate", "--model", "x", "--node", "y", "--layout", "tp=8,tp=4"], "'tp' is given twice"),
    (["estimate", "--model", "x", "--node", "y", "--confidence", "1"], "--confidence"),
    (["plan"], "nothing is asked: say which model"), (["plan", "--json"], "nothing is asked"),
    (["plan", MAIN, "--rate", "20"], "--rate: applies to a service"),
    (["plan", CHAT, "--tokens", "1T"], "--tokens: applies to training"),
    (["plan", "--model", "gpt2", "--rate", "20", "--tokens", "1T"], "--tokens: applies to training"),
    (["plan", CHAT, "--objective", "time"],
     "--objective: expected 'cost', 'gpus', 'energy', 'rate' or 'users', got 'time'"),
    (["plan", CHAT, "--ttft", "2"], "--ttft: '2' has no unit"),
    (["compare", CHAT, "--trace"], "compare --trace is for one training job"),
    (["explain", CHAT, "--why-not", "stack=fsdp"], "unknown choice in --why-not 'stack'"),
    ([*ONE, "--concurrency", "6", "--optimizer", "lion"], "--optimizer: applies to training"),
    ([*ONE, "--concurrency", "x", "--input", "8", "--output", "8"], "--concurrency: 'x' is not a number of users"),
    (["catalog", "list", "gpu"], "'gpu' is not one of"),
    (["catalog", "show", "h1000"], "unknown catalog entry"),
    (["catalog", "show", "h100-sxm", "--svg", "x.svg"], "--svg draws the topology of a node; h100-sxm is of gpus"),
    (["catalog", "show", "dgx-h100", "--svg", "no/such/x.svg"], "no/such/x.svg: cannot be written: No such file"),
])
def test_wrong_usage_exits_2_and_writes_to_stderr_alone(planner, args, message):
    ran = planner(*args)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_show_scenario_prints_a_file_that_means_the_same(planner, tmp_path):
    ran = planner("plan", MAIN, "--deadline", "30d", "--on", "h200", "--on", "dgx-b200,dgx-a100",
                  "--show-scenario")
    assert (ran.code, ran.err) == (0, "")
    scenario = validate(parse(ran.out, "shown"), Scenario)
    assert scenario.limits.deadline == Deadline(30 * 86400.0)
    assert {"dgx-h200", "dgx-b200", "dgx-a100"} <= set(scenario.hardware.candidates)
    path = tmp_path / "shown.yaml"
    path.write_text(ran.out)
    assert planner("plan", path, "--show-scenario").out == ran.out


def test_show_scenario_of_flags_for_a_service_is_a_file_that_means_the_same(planner, tmp_path):
    ran = planner("plan", "--model", "llama-3.3-70b", "--rate", "20", "--input", "2000", "--output", "300", "--ttft",
                  "2s", "--tpot", "50ms at p99", "--quantization", "bf16,fp8", "--engine", "sglang", "--on", "h200",
                  "--show-scenario")
    assert (ran.code, ran.err) == (0, "")
    (service,) = validate(parse(ran.out, "shown"), ServingScenario).services
    assert (service.tpot.percentile, service.quantization, service.engine) == (99.0, ("bf16", "fp8"), "sglang")
    path = tmp_path / "shown.yaml"
    path.write_text(ran.out)
    assert planner("plan", path, "--show-scenario").out == ran.out


def test_a_bug_exits_70_with_the_traceback_only_on_request(planner, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("boom")

    monkeypatch.setattr("planner.cli.plan.any_question", broken)
    ran = planner("plan", MAIN)
    assert (ran.code, ran.out) == (70, "")
    assert ran.err.startswith("Error: this is a bug in planner: RuntimeError: boom")
    assert "Traceback" not in ran.err
    assert "Traceback" in planner("plan", MAIN, "-v").err


def test_ctrl_c_exits_130(planner, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("planner.cli.plan.any_question", interrupted)
    ran = planner("plan", MAIN)
    assert ran.code == 130
    assert "interrupted" in ran.err
    assert "Traceback" not in ran.err


def test_a_closed_pipe_is_silent():
    command = f"{sys.executable} -m planner catalog list --json | head -1"
    done = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("{\n", "")


def test_validation_is_shown_as_a_table_or_as_json(planner, monkeypatch):
    result = {"schema": "planner.validation/1", "rows": [], "skipped": [{"id": "r7", "reason": "no batch size"}],
              "summary": {"step_time_s": {"n": 12, "median_abs_error": 0.051, "p90_abs_error": 0.15, "bias": -0.01,
                                          "interval90_coverage": None},
                          "fits": {"n": 3, "true_fit": 2, "false_fit": 0, "tight_fit": 0, "true_oom": 0,
                                   "false_oom": 0, "tight_oom": 1},
                          "rank": {"groups": 1, "median_spearman": 0.9, "mean_top1_regret": 0.02}}}
    fake = ModuleType("planner.ask.validate")
    fake.validate_file = lambda path, catalog, stated, started: Validation.model_validate(result)
    monkeypatch.setitem(sys.modules, "planner.ask.validate", fake)
    ran = planner("validate", "runs.csv")
    assert (ran.code, ran.err) == (0, "")
    assert all(text in ran.out for text in ("step_time_s", "5.1%", "15.0%", "-1.0%", "fits: 3 rows", "0.90", "2.0%",
                                            "skipped: 1 rows", "no batch size"))
    assert "r7" in planner("validate", "runs.csv", "-v").out
    assert "skipped" not in planner("validate", "runs.csv", "-q").out
    assert json.loads(planner("validate", "runs.csv", "--json").out) == result


@pytest.mark.parametrize("kind", [*KINDS, "calibration"])
def test_catalog_list_shows_every_entry(planner, kind):
    ran = planner("catalog", "list", kind)
    listed = json.loads(planner("catalog", "list", kind, "--json").out)[kind]
    assert ran.code == 0
    assert [entry["name"] for entry in listed] == CATALOG.names(kind)
    assert all(entry["name"] in ran.out for entry in listed)


def test_catalog_show_draws_a_node(planner, tmp_path):
    drawing = tmp_path / "node.svg"
    assert planner("catalog", "show", "dgx-h100", "--svg", drawing, "--json").code == 0
    assert "nvlink4-nvswitch</text>" in drawing.read_text()


@pytest.mark.parametrize("name", [
    "h100-sxm", "DGX-H100", "megatron-core", "kernels", "meta-llama/Llama-3.1-70B", "gpus/h100-sxm",
    *CATALOG.names("prices")[:1], *CATALOG.names("fabrics")[:1]])
def test_catalog_show_gives_every_figure_with_its_source(planner, name):
    ran = planner("catalog", "show", name)
    data = json.loads(planner("catalog", "show", name, "--json").out)
    assert ran.code == 0
    assert data["name"] in ran.out
    assert data["provenance"]
    for path, fact in data["provenance"].items():
        assert {"source", "as_of", "kind"} <= fact.keys()
        assert path.split(".")[0] in data


def test_a_model_is_shown_with_its_parameters(planner):
    data = json.loads(planner("catalog", "show", "Llama-3.1-70B-Instruct", "--json").out)
    assert data["parameters"] == data["active_parameters"] == 70_553_706_496


def test_catalog_check_counts_figures_by_kind_and_lists_the_assumed(planner):
    ran, data = planner("catalog", "check", "-v"), json.loads(planner("catalog", "check", "--json").out)
    assert (ran.code, ran.err) == (0, "")
    assert list(data["figures"]) == ["datasheet", "measured", "quoted", "assumed", "fitted"]
    assert len(data["assumed"]) == data["figures"]["assumed"] > 0
    assert data["assumed"][0] in ran.out
    assert "assumed" not in planner("catalog", "check", "-q").out


def test_user_catalogs_override_by_flag_and_by_environment(planner, tmp_path, monkeypatch):
    (tmp_path / "gpus").mkdir()
    text = (ROOT / "catalogs/gpus/h100-sxm.yaml").read_text().replace("name: h100-sxm", "name: h100-mine")
    (tmp_path / "gpus" / "h100-mine.yaml").write_text("\n".join(
        line for line in text.splitlines() if not line.startswith("aliases")))
    assert planner("catalog", "show", "h100-mine").code == 2
    assert planner("catalog", "show", "h100-mine", "--catalogs", tmp_path).code == 0
    monkeypatch.setenv("PLANNER_CATALOGS", os.pathsep.join([str(tmp_path)]))
    assert cli.main(["catalog", "show", "h100-mine"]) == 0


def test_a_search_says_how_far_it_is_on_stderr(planner, monkeypatch):
    monkeypatch.setattr("planner.cli.progress.APART", 0.01)
    asked = ["plan", "--model", "llama-3.1-8b", "--tokens", "1G", "--on", "dgx-h100,dgx-a100", "--provider", "nebius"]
    said = planner(*asked, "-v")
    assert said.code == 0
    assert re.search(r"s: by megatron-core \d+%, (best .* USD, )?bound .* USD", said.err), said.err
    assert "bound" not in planner(*asked).err
    assert so_far(SoFar("cost", 1.0, 300_000, 299_000, "schedules of all jobs")) == (
        "schedules of all jobs, best 3,000 USD, bound 2,990 USD, gap 0.3%")

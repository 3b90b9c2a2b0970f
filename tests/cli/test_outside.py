"""What fails outside of the planner (streams, files, folders): one line and exit code 74, or 2 for a wrong input."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from planner.catalog.load import Catalog
from planner.cli.main import main
from planner.errors import InputError
from tests.fuzz.tables import text_of
from tests.fuzz.test_foreign_files import SKYPILOT

ROOT = Path(__file__).parents[2]
SHOWN = ("plan", "llama-3.1-70b-pretrain", "--show-scenario")


class Full(io.TextIOBase):
    """A stream that takes nothing."""

    encoding = "utf-8"  # type: ignore[assignment]

    def __init__(self, error: int = errno.ENOSPC) -> None:
        self.error = error

    def write(self, text: object) -> int:
        raise OSError(self.error, os.strerror(self.error))

    def flush(self) -> None:
        """Nothing is kept."""


@pytest.mark.parametrize("command", [SHOWN, ("--help",), ("plan", "--help"), ("catalog", "list", "parts"),
                                     ("catalog", "list", "parts", "--json"), ("--version",)])
def test_a_full_stdout_is_74_on_one_line(command, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Full())
    assert main(list(command)) == 74
    assert capsys.readouterr().err == "Error: standard output: cannot be written: No space left on device\n"


def test_a_reader_that_has_gone_away_is_no_error(capsys, monkeypatch):
    for command in (SHOWN, ("--help",), ("catalog", "list", "parts")):
        monkeypatch.setattr(sys, "stdout", Full(errno.EPIPE))
        assert (main(list(command)), capsys.readouterr().err) == (0, "")


@pytest.mark.parametrize(("command", "code"), [
    (("plan", "no-such-scenario"), 2), (("plan", "--no-such-flag"), 2), (SHOWN, 0)])
def test_a_full_stderr_hides_no_exit_code(command, code, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Full())
    assert main(list(command)) == code


def test_a_message_that_did_not_arrive_is_74_after_the_answer(tmp_path, capsys, monkeypatch):
    (tmp_path / "aws").mkdir()
    (tmp_path / "aws" / "vms.csv").write_text(text_of(SKYPILOT))
    monkeypatch.setattr(sys, "stderr", Full())
    assert main(["catalog", "import", "skypilot", str(tmp_path / "aws" / "vms.csv")]) == 74
    assert capsys.readouterr().out.startswith("name: aws")


def test_closed_streams_of_a_process():
    shell = f"{sys.executable} -m planner --version"
    for redirection, code in ((">&-", 74), ("2>&-", 0), (">/dev/full", 74), ("<&- 2>&-", 0)):
        done = subprocess.run(["bash", "-c", f"{shell} {redirection}"], cwd=ROOT, check=False, capture_output=True,
                              text=True)
        assert done.returncode == code, redirection
        assert done.stderr.count("\n") == (code == 74)
        assert "Traceback" not in done.stderr


def test_foreign_text_reaches_no_terminal(planner, tmp_path):
    rows = [[cell.replace("xlarge", "\x1b[31m\x9b2J\u202e") for cell in row] for row in SKYPILOT]
    (tmp_path / "aws").mkdir()
    (tmp_path / "aws" / "vms.csv").write_text(text_of(rows), encoding="utf-8")
    ran = planner("catalog", "import", "skypilot", tmp_path / "aws" / "vms.csv", "-v", "-o", tmp_path / "mine")
    asked = ("--model", "gpt2", "--tokens", "1G", "--gpus", "8", "--provider", "aws", "--global-batch", "64")
    for mode in ((), ("--json",)):
        shown = planner("plan", *asked, *mode, "--catalogs", tmp_path / "mine")
        assert shown.code == 0
        for text in (ran.err, shown.out, shown.err):
            assert not set(text) & {"\x1b", "\x9b", "\u202e"}
        assert "48\\x1b[31m" in shown.out or "48\\u001b[31m" in shown.out
    for flag in ("--no-such\x1b[31m", "--objective=\x1b[31m"):
        assert "\x1b" not in planner("plan", flag).err


def test_a_library_s_warning_is_one_line_without_source(planner, monkeypatch):
    def warned(*_args, **_kwargs):
        warnings.warn("overflow encountered in multiply", RuntimeWarning, stacklevel=1)
        raise InputError("stop")

    monkeypatch.setattr("planner.cli.plan.hardware_alone", warned)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        ran = planner("plan", "x")
    assert ran.err == "warning: RuntimeWarning: overflow encountered in multiply\nError: stop\n"


def entry(folder, name):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("name: x\n")


@pytest.mark.parametrize(("name", "file", "message"), [
    ("price/x.yaml", "price", "no kind of catalog entry is called 'price', so that x.yaml would not be read; did you "
     "mean prices"), ("Prices/x.yml", "Prices", "did you mean prices"),
    ("prices/x.yml", "prices/x.yml", "would not be read; did you mean x.yaml?"),
    ("prices/aws/x.yaml", "prices/aws", "x.yaml would not be read: it belongs into"),
    ("prices/\udcff.yaml", "prices/\\udcff.yaml", "expected the name of an entry"),
    ("x.yaml", "", "no catalog folder: it has none of calibration, diffusion, engines"),
    ("notes/x.txt", "", "no catalog folder"),
])
def test_what_would_be_passed_over_in_silence_is_refused(planner, tmp_path, name, file, message):
    entry(tmp_path, name)
    ran = planner(*SHOWN, "--catalogs", tmp_path)
    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert ran.err.startswith(f"Error: {tmp_path / file}: ")
    assert message in ran.err


def test_the_folder_of_one_kind_is_not_a_catalog(planner, tmp_path):
    entry(tmp_path / "mine", "prices/x.yaml")
    ran = planner(*SHOWN, "--catalogs", tmp_path / "mine" / "prices")
    assert f"did you mean {tmp_path / 'mine'}?" in ran.err


def test_other_files_in_a_catalog_folder_are_no_matter(planner, tmp_path):
    for name in ("README.md", "docs/a.txt", ".git/x.yaml", "prices/notes.md", "scenario.yaml"):
        entry(tmp_path, name)
    assert planner(*SHOWN, "--catalogs", tmp_path).code == 0
    assert Catalog([tmp_path]).digest == Catalog().digest


def test_a_file_that_no_question_reads_has_to_be_readable(planner, tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "x.yaml").symlink_to("nowhere")
    ran = planner(*SHOWN, "--catalogs", tmp_path)
    assert (ran.code, ran.err) == (2, f"Error: {tmp_path}/models/x.yaml: cannot read: No such file or directory\n")


@pytest.mark.parametrize("name", ["n" * 300, "loop", "loop/x"])
def test_paths_that_cannot_be(planner, tmp_path, name):
    (tmp_path / "loop").symlink_to("loop")
    path = tmp_path / name
    for command in ((*SHOWN, "--catalogs", path), ("calibrate", ROOT / "tests/evidence/train_memory.csv", "-o", path),
                    ("sweep", "llama-3.1-70b-pretrain", "--vary", "limits.deadline=60d", "-o", path),
                    ("catalog", "show", "dgx-h100", "--svg", path), ("report", path, "-o", path)):
        ran = planner(*command)
        assert (ran.code, ran.out) == (2, ""), command
        assert ran.err.splitlines()[-1].startswith(f"Error: {path}"[:200])


def test_a_deleted_working_directory(planner, tmp_path, monkeypatch):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    ran = planner("sweep", "llama-3.1-70b-pretrain", "--vary", "limits.deadline=60d", "-o", "x.jsonl")
    assert (ran.code, ran.err) == (2, "Error: x.jsonl: cannot read: No such file or directory\n")


def test_no_descriptors_left(planner, monkeypatch):
    def none_left(*_args, **_kwargs):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("planner.cli.plan.hardware_alone", none_left)
    ran = planner("plan", "x")
    assert (ran.code, ran.err) == (74, "Error: Too many open files\n")


def test_a_date_that_no_entry_may_have_is_refused_before_the_fit(planner, tmp_path):
    runs = ROOT / "tests/evidence/train_throughput.csv"
    ran = planner("calibrate", runs, "-o", tmp_path / "x", "--as-of", "nonsense")
    assert (ran.code, ran.seconds < 1, (tmp_path / "x").exists()) == (2, True, False)
    assert "'--as-of': expected a month or a day such as 2026-11 or 2026-11-21, got 'nonsense'" in ran.err


def test_half_a_character_in_a_path_is_printed(planner, tmp_path):
    plan = planner("plan", "--model", "gpt2", "--tokens", "1G", "--on", "h100-sxm-1x", "--json").out
    (tmp_path / "plan.json").write_text(plan)
    ran = planner("report", tmp_path / "plan.json", "-o", tmp_path / "\udcff.html")
    assert (ran.code, ran.out) == (0, f"Wrote {tmp_path}/\\udcff.html\n")


@pytest.mark.parametrize(("part", "value"), [("workload", "text"), ("workload", [1]), ("workloads", {"a": 1}),
                                             ("limits", 3), ("name", None), ("sourcing", []), ("workload", {})])
def test_a_plan_whose_question_is_none_is_refused(planner, tmp_path, part, value):
    plan = json.loads(planner("plan", "--model", "gpt2", "--tokens", "1G", "--on", "h100-sxm-1x", "--json").out)
    plan["provenance"]["scenario"][part] = value
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    ran = planner("report", tmp_path / "plan.json", "-o", tmp_path / "x.html")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert ran.err.startswith(f"Error: {tmp_path}/plan.json: provenance.scenario.{part.removesuffix('s')}")

"""Ctrl-C at any moment of the process: exit code 130, at most one line, and the best plan so far where there is one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from planner.cli.main import main
from planner.solver.search.frontier import GridSearch
from tests.processes import PATIENCE

ROOT = Path(__file__).parents[1]
HOOK = """
import importlib.abc, os, signal, sys

class Interrupting(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {name!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
"""


def interrupted_at(tmp_path: Path, name: str) -> subprocess.CompletedProcess[str]:
    """Run a command that Ctrl-C interrupts at the moment when it imports a module."""
    (tmp_path / "sitecustomize.py").write_text(HOOK.format(name=name))
    command = [sys.executable, "-m", "planner", "plan", "--model", "gpt2", "--tokens", "1M", "--on", "h100-sxm-1x"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env={
        **os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"})


@pytest.mark.parametrize("name", ["planner.cli.main", "click", "planner.errors", "planner.cli.plan", "numpy",
                                  "pydantic_core", "numpy.linalg", "planner.ask.plan", "rich.table"])
def test_ctrl_c_while_modules_are_imported_is_one_line(tmp_path: Path, name: str) -> None:
    ran = interrupted_at(tmp_path, name)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "Error: interrupted\n")


AGAIN = """
import os, signal, sys, time
from planner.process.interrupts import leave_at_once, watched

class Loud:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(9):
            pass

def swallowed():
    Loud()
    time.sleep(600)

def remade():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(600)
    except KeyboardInterrupt:
        return 0

def executed():
    try:
        exec("os.kill(os.getpid(), signal.SIGINT); time.sleep(600)")
    except KeyboardInterrupt:
        return 130

def forwarded():
    try:
        remade() or os.kill(os.getpid(), signal.SIGINT)
        print("the best so far")
        return 130
    except KeyboardInterrupt:
        return 1

leave_at_once()
sys.exit(watched({name}))
"""


@pytest.mark.parametrize(("name", "out", "err"), [
    ("swallowed", "", "Error: interrupted\n"), ("remade", "", ""), ("executed", "", ""),
    ("forwarded", "the best so far\n", "")])
def test_ctrl_c_is_never_lost_nor_taken_for_two(name: str, out: str, err: str) -> None:
    """Python swallows it in a finalizer, a library may make something else of it, a wrapper passes it on once more."""
    ran = subprocess.run([sys.executable, "-c", AGAIN.format(name=name)], cwd=ROOT, capture_output=True, text=True,
                         check=False, timeout=PATIENCE)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, out, err)


PLAN = ["--model", "gpt2", "--tokens", "1G", "--on", "dgx-h100,dgx-a100", "--max-gpus", "16", "--global-batch", "64",
        "--stack", "megatron-core"]


@pytest.mark.parametrize("round_", [1, 2, 6])
@pytest.mark.parametrize("command", ["plan", "compare", "explain", "hold"])
def test_ctrl_c_in_a_search_says_what_is_known_and_claims_no_more(
        command: str, round_: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the first search of a command is interrupted: Ctrl-C is meant for all of it."""
    rounds = [0]
    real = GridSearch._round

    def interrupting(self: GridSearch, *args: object) -> None:
        rounds[0] += 1
        if rounds[0] == round_:
            signal.raise_signal(signal.SIGINT)
        real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(GridSearch, "_round", interrupting)
    asked = ["plan", "--model", "gpt2", "--on", "dgx-h100"] if command == "hold" else [command, *PLAN]
    code = main([*asked, "--json"])
    ran = capsys.readouterr()
    assert code == 130
    if command == "plan":
        assert ran.err == ""
        plan = json.loads(ran.out)
        assert plan["status"] == ("optimal" if plan["objective"]["value"] == plan["objective"]["bound"]
                                  and plan["assignments"] else "feasible" if plan["assignments"] else "undecided")
    else:
        assert (ran.out, ran.err) == ("", "Error: interrupted\n")

"""Processes ended at any moment, by any signal: none is left running, no line is lost or torn, there is no traceback.

Times are counted from the moment at which a process has begun with the planner: how Python itself starts is not ours.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from planner.cli.main import main
from tests.fit.test_calibrate import cluster
from tests.fuzz.running import TIMES
from tests.processes import PATIENCE, children, gone
from tests.sweep.conftest import QUESTION, SIX, timeless

ROOT = Path(__file__).parents[2]
START = """
import os, sys
from planner.__main__ import run
os.write(int(sys.argv[1]), b"begun")
os.close(int(sys.argv[1]))
del sys.argv[1]
sys.exit(run())
"""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
VARY = [part for text in SIX for part in ("--vary", text)]
PLAN = ("plan", "--model", "llama-3.1-8b", "--tokens", "100 G", "--on", "dgx-h100,dgx-a100,dgx-h200",
        "--max-gpus", "64", "--workers", "2", "--json")
LONGEST = 3.0
"""Seconds after the beginning within which a process is ended: each of the commands takes about that."""


@dataclass(frozen=True)
class Ended:
    """A process that was sent a signal, and what it had said."""

    number: signal.Signals
    code: int
    out: str
    err: str
    workers: list[int] = field(default_factory=list)

    def is_in_order(self) -> None:
        """Hold what must hold whatever was killed, and when."""
        assert "Traceback" not in self.err, self.err
        assert len(self.err.splitlines()) <= 1, self.err
        assert self.code in {0, 130 if self.number == signal.SIGINT else -self.number}, (self.code, self.err)
        assert gone(self.workers), "a process is left behind"


def killed(random: Random, *argv: str | Path) -> Ended:
    """Run a command, and end it at some moment by some signal: its process alone, or all of its terminal."""
    ours, theirs = os.pipe()
    process = subprocess.Popen([sys.executable, "-c", START, str(theirs), *map(str, argv)], cwd=ROOT, pass_fds=[theirs],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    os.close(theirs)
    with os.fdopen(ours, "rb") as begun:
        assert begun.read() == b"begun"
    number, whole = random.choice(SIGNALS), random.random() < 0.3
    # early moments are many: half of the kills fall within the imports
    until = time.monotonic() + random.choice([0.3, LONGEST]) * random.random()
    workers: set[int] = set()
    while time.monotonic() < until and process.poll() is None:
        workers.update(children(process.pid))
        time.sleep(0.02)
    workers.update(children(process.pid))
    with suppress(ProcessLookupError):  # a whole group that has ended before the signal
        (os.killpg if whole else os.kill)(process.pid, number)
    out, err = process.communicate(timeout=PATIENCE)  # which ends only when nobody holds its pipes
    return Ended(number, process.returncode, out, err, sorted(workers))


@lru_cache
def lines() -> list[str]:
    """Return the lines of the sweep that nobody ends."""
    with TemporaryDirectory() as folder:
        assert main(["sweep", str(question(Path(folder))), *VARY, "-o", f"{folder}/out.jsonl", "--workers", "1"]) == 0
        return Path(folder, "out.jsonl").read_text().splitlines()


def question(folder: Path) -> Path:
    path = folder / "question.yaml"
    path.write_text(QUESTION)
    return path


def plan(random: Random, folder: Path) -> None:
    ended = killed(random, *PLAN)
    ended.is_in_order()
    if ended.out and ended.number == signal.SIGINT:
        said = json.loads(ended.out)
        assert said["status"] in {"optimal", "feasible", "undecided"}
        assert (said["status"] == "optimal") >= (ended.code == 0)


def sweep(random: Random, folder: Path) -> None:
    """What is there stays, what comes is whole, and what is resumed is as if nothing had happened."""
    file, whole = folder / "out.jsonl", lines()
    expected = [timeless(line) for line in whole]
    before = sorted(random.sample(range(len(whole)), random.choice([0, 0, 2, 4])))
    if before or random.random() < 0.3:
        file.write_text("".join(f"{whole[at]}\n" for at in before))
    command = ["sweep", question(folder), *VARY, "-o", file]
    killed(random, *command, "--workers", random.choice("12")).is_in_order()
    if file.exists():
        *found, rest = file.read_text().split("\n")
        assert all(timeless(line) in expected for line in found)
        assert all(expected[at] in map(timeless, found) for at in before)
        assert any(line.startswith(rest[:40]) for line in whole)
    assert main([*map(str, command), "--workers", "1", "-q"]) == 0
    assert [timeless(line) for line in file.read_text().splitlines()] == expected
    assert {path.name for path in folder.iterdir()} == {"out.jsonl", "question.yaml"}


def calibrate(random: Random, folder: Path) -> None:
    """A file that is there is whole: as when nobody ends it."""
    command = ["calibrate", cluster(folder, None), "--as-of", "2026-11", "-q", "-o"]
    killed(random, *command, folder / "fitted").is_in_order()
    found = sorted((folder / "fitted").rglob("*.yaml"))
    if found:
        assert main([*map(str, command), str(folder / "whole")]) == 0
    for file in found:
        assert file.read_bytes() == (folder / "whole" / file.relative_to(folder / "fitted")).read_bytes()


COMMANDS: tuple[Callable[[Random, Path], None], ...] = (plan, sweep, calibrate, sweep)


@pytest.mark.parametrize("seed", range(4 * TIMES))
def test_a_process_that_is_ended_leaves_everything_in_order(seed: int, tmp_path: Path) -> None:
    COMMANDS[seed % len(COMMANDS)](Random(seed), tmp_path)

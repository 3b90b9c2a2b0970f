"""Worker processes: the same lines as without, none lost with a process, and none left after Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from planner.process.workers import MOST_LOSSES
from planner.sweeping.local import processes
from planner.sweeping.task import SweepTerms, VariantOutcome
from tests.processes import PATIENCE
from tests.sweep.conftest import SIX, timeless

ROOT = Path(__file__).parents[2]
VARY = [part for text in SIX for part in ("--vary", text)]


def lost_at_two(task, terms):
    """Stand in for `answer`: one variant ends its process each time."""
    if task.index == 2:
        os._exit(9)
    return VariantOutcome(task.index, None, "answered")


def test_two_workers_print_in_variant_order_what_one_process_answers(planner, question, expected):
    two = planner("sweep", question, *VARY, "--workers", "2", "--json")
    assert (two.code, two.err) == (0, "")
    lines = [timeless(line) for line in two.out.splitlines()]
    assert [line["plan"] for line in lines] == [one["plan"] for one in expected]
    assert [tuple(line["variant"].values()) for line in lines] == [
        (tokens, deadline) for tokens in ("1G", "2G", "3G") for deadline in ("3d", "1h")]
    assert [line["plan"]["status"] for line in lines] == ["optimal", "infeasible"] * 3


def test_a_line_has_the_plan_that_plan_prints(planner, question):
    line, = planner("sweep", question, "--vary", "workload.tokens=2G").out.splitlines()
    plan = json.loads(planner("plan", question, "--tokens", "2G", "--json").out)
    data = timeless(line)
    assert list(data) == ["schema", "variant", "plan"]
    assert data | {"plan": None} == {"schema": "planner.sweep/1", "variant": {"workload.tokens": "2G"}, "plan": None}
    assert data["plan"] == timeless(plan)["plan"]
    assert list(data["plan"]) == list(plan)


def test_warnings_are_told_once_and_not_in_quiet(planner, rented):
    args = ["sweep", rented, "--vary", "workload.tokens=1G,2G", "--vary", "hardware.candidates=dgx-h100+mi300x-1x",
            "--workers", "1"]
    ran = planner(*args)
    assert ran.code == 0
    assert ran.err == "warning: mi300x-1x is left out: no offer has terms on-demand, and none is owned or bought\n"
    assert planner(*args, "-q").err == ""


def test_a_lost_worker_loses_no_variant(six, expected):
    tasks, terms = six
    found, killed = {}, None
    with processes(terms, 2) as answers:
        for outcome in answers(tasks):
            found[outcome.index] = timeless(outcome.plan)
            if killed is None:
                crew, _ = answers.args
                killed = next(iter(crew.busy)).process
                killed.kill()
    assert killed.returncode == -signal.SIGKILL
    assert [found[index] for index in range(6)] == expected


def test_a_variant_that_ends_every_worker_is_given_up_alone(six, monkeypatch):
    monkeypatch.setattr("planner.sweeping.local.answer", lost_at_two)
    tasks, terms = six
    with processes(terms, 2) as answers:
        found = {outcome.index: outcome.error for outcome in answers(tasks[:4])}
    assert f"its worker process was lost {MOST_LOSSES} times" in found.pop(2)
    assert found == dict.fromkeys((0, 1, 3), "answered")


def test_another_catalog_in_a_worker_is_an_error_of_the_variant(six):
    tasks, terms = six
    with processes(SweepTerms((), "0" * 16), 1) as answers:
        outcome, = answers(tasks[:1])
    assert f"has digest {terms.digest}, not {'0' * 16}" in outcome.error


def test_ctrl_c_ends_all_processes_and_leaves_whole_lines(tmp_path, question):
    file = tmp_path / "out.jsonl"
    # more variants than can be done before the signal
    vary = "workload.tokens=" + ",".join(f"{count}M" for count in range(1000, 2000))
    command = [sys.executable, "-m", "planner", "sweep", question, "--vary", vary, "-o", file,
               "--workers", "2"]
    running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    until = time.monotonic() + PATIENCE
    while not (file.exists() and file.stat().st_size) and time.monotonic() < until:
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=PATIENCE)
    # its workers hold stderr open, so that communicate ends when they have
    assert (running.returncode, out, err.strip()) == (130, "", "Error: interrupted")
    text = file.read_text()
    assert text.endswith("}\n")
    assert all(json.loads(line)["plan"]["status"] == "optimal" for line in text.splitlines())

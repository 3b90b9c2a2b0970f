"""A file of lines: written as they are done, resumed without solving anything twice, never mixed with another's."""

import errno
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from planner.ask.account import Interrupted
from planner.errors import InputError
from planner.sweeping import output
from planner.sweeping.output import held
from tests.sweep.conftest import no_offer

ROOT = Path(__file__).parents[2]
DAYS = ("1d", "2d", "3d", "4d")


@pytest.fixture
def sweep(planner, question, tmp_path):
    """Return a function that sweeps over deadlines into one file, in this process."""
    def run(*args, days=DAYS, vary=()):
        others = [part for text in vary for part in ("--vary", text)]
        return planner("sweep", question, *others, "--vary", f"limits.deadline={','.join(days)}",
                       "-o", tmp_path / "out.jsonl", "--workers", "1", *args)

    run.file = tmp_path / "out.jsonl"
    return run


def days_in(file):
    return [json.loads(line)["variant"]["limits.deadline"] for line in file.read_text().splitlines()]


def test_a_finished_file_is_left_as_it_is(sweep, search):
    ran = sweep()
    text = sweep.file.read_text()
    assert (ran.code, ran.out, ran.err, days_in(sweep.file)) == (0, "", "", list(DAYS))
    assert (sweep().code, len(search.asked), sweep.file.read_text()) == (0, 4, text)
    assert sorted(path.name for path in sweep.file.parent.iterdir()) == ["out.jsonl"]


@pytest.mark.parametrize("cut", [1, 20, 300, -2])
def test_what_was_killed_while_writing_is_resumed(sweep, search, cut):
    sweep()
    whole = sweep.file.read_text()
    first, second, _, fourth = whole.splitlines(keepends=True)
    sweep.file.write_text(fourth + first + second[:cut])  # as two workers left it
    search.asked.clear()
    assert (sweep().code, search.asked) == (0, ["2 d", "3 d"])
    assert sweep.file.read_text() == whole


def test_a_last_line_that_lacks_only_its_end_is_kept(sweep, search):
    sweep()
    whole = sweep.file.read_text()
    sweep.file.write_text(whole.rstrip("\n"))
    assert (sweep().code, len(search.asked), sweep.file.read_text()) == (0, 4, whole)


def test_more_values_extend_a_file_and_an_empty_one_is_begun(sweep, search):
    sweep.file.touch()
    sweep(days=DAYS[1:3])
    assert sweep(days=DAYS).code == 0
    assert search.asked == ["2 d", "3 d", "1 d", "4 d"]
    assert days_in(sweep.file) == list(DAYS)


def test_lines_are_there_as_soon_as_they_are_done(sweep, search, monkeypatch):
    seen = []

    def spying(*args, **kwargs):
        seen.append(days_in(sweep.file))
        return search(*args, **kwargs)

    monkeypatch.setattr("planner.sweeping.answering.make_plan", spying)
    sweep()
    assert seen == [list(DAYS[:count]) for count in range(4)]


def test_errors_and_stopped_searches_are_redone(sweep, search):
    search.fails = {"2 d": no_offer()}
    assert sweep().code == 2
    assert sweep().code == 2
    search.fails = {}
    assert sweep("--time-limit", "5").code == 4
    assert "stopped at their time limit" in sweep("--time-limit", "5").err
    assert [json.loads(line)["plan"]["status"] for line in sweep.file.read_text().splitlines()] == [
        "infeasible", "undecided", "infeasible", "infeasible"]
    assert sweep().code == 0
    assert search.asked == ["1 d", "2 d", "3 d", "4 d", *["2 d"] * 4]


def test_a_redone_line_behind_the_old_one_counts(sweep, search):
    sweep()
    whole = sweep.file.read_text()
    line = whole.splitlines()[1]
    old = json.dumps({"schema": "planner.sweep/1", "variant": {"limits.deadline": "2d"}, "plan": None, "error": "x"})
    for text in (f"{old}\n{whole}", f"{whole}{old}\n", f"{old}\n{old}\n{line}\n{line}\n{whole}"):
        sweep.file.write_text(text)
        assert (sweep().code, sweep.file.read_text()) == (0, whole)
    assert len(search.asked) == 4


def test_the_order_of_the_options_is_no_other_question(sweep, search, planner, question):
    sweep(days=DAYS[:1], vary=["workload.tokens=1G,2G"])
    ran = planner("sweep", question, "--vary", "limits.deadline=1d", "--vary", "workload.tokens=2G,1G",
                  "-o", sweep.file, "--workers", "1")
    assert (ran.code, len(search.asked)) == (0, 2)
    assert [json.loads(line)["variant"] for line in sweep.file.read_text().splitlines()] == [
        {"limits.deadline": "1d", "workload.tokens": "2G"}, {"limits.deadline": "1d", "workload.tokens": "1G"}]


@pytest.mark.parametrize(("edit", "message"), [
    (lambda line: line.replace('"sequence_length": 2048', '"sequence_length": 4096'),
     "it answers another question: workload.sequence_length is 4096 there, 2048 here"),
    (lambda line: line.replace('"catalog_digest": "', '"catalog_digest": "0'), "it was answered with catalog 0"),
    (lambda line: line.replace('{"limits.deadline": "2d"}', '{"limits.deadline": "9d"}'),
     "its variant is not of this sweep"),
    (lambda line: line.replace('{"limits.deadline": "2d"}', '{"limits.deadline": ["2d"]}'),
     "its variant is not of this sweep"),
    (lambda line: line.replace("planner.sweep/1", "planner.sweep/2"), "not a line of planner.sweep/1"),
    (lambda line: line[:400], "not a line of planner.sweep/1"),
    (lambda line: '{"schema": "planner.sweep/1", "variant": {"limits.deadline": "2d"}, "plan": null}',
     "not a line of planner.sweep/1: it has neither plan nor error"),
    (lambda line: line.replace('"gap": null', '"gap": NaN'), "not a line of planner.sweep/1"),
    (lambda line: "", "not a line of planner.sweep/1"),
    (lambda line: "[" * 10_000, "not a line of planner.sweep/1"),
    (lambda line: "hello", "not a line of planner.sweep/1"),
], ids=range(11))
def test_lines_of_something_else_are_refused_and_left_alone(sweep, search, edit, message):
    sweep()
    first, second, *rest = sweep.file.read_text().splitlines()
    text = "\n".join([first, edit(second), *rest, ""])
    sweep.file.write_text(text)
    search.asked.clear()
    ran = sweep()
    assert (ran.code, ran.out, search.asked, sweep.file.read_text()) == (2, "", [], text)
    assert f"out.jsonl:2: {message}" in ran.err


@pytest.mark.parametrize("content", [b"my notes", b"\xff\xfe\n", b"{\"a\": 1}"])
def test_a_file_that_is_no_sweep_is_refused(sweep, search, content):
    sweep.file.write_bytes(content)
    assert (sweep().code, search.asked, sweep.file.read_bytes()) == (2, [], content)


def test_a_place_that_cannot_be_written_is_refused_before_solving(planner, question, search, tmp_path):
    for place, message in ((tmp_path / "no" / "x", "cannot be written"), (tmp_path, "not a file")):
        ran = planner("sweep", question, "--vary", "limits.deadline=1d", "-o", place)
        assert (ran.code, search.asked) == (2, [])
        assert message in ran.err


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), Interrupted(None)], ids=["before", "within"])
@pytest.mark.parametrize("to_file", [True, False], ids=["file", "stdout"])
def test_ctrl_c_keeps_what_is_done(sweep, search, planner, question, to_file, stop):
    search.fails = {"3 d": stop}
    vary = f"limits.deadline={','.join(DAYS)}"
    ran = sweep() if to_file else planner("sweep", question, "--vary", vary, "--workers", "1")
    assert (ran.code, ran.err.strip()) == (130, "Error: interrupted")
    assert [json.loads(line)["variant"]["limits.deadline"]
            for line in (sweep.file.read_text() if to_file else ran.out).splitlines()] == ["1d", "2d"]


def test_two_sweeps_at_once_to_one_file_are_refused_and_lose_nothing(sweep, search, question, monkeypatch):
    ran = []

    def meanwhile(*args, **kwargs):
        if not ran:  # from within the first variant of the first sweep, whose file was just replaced
            other = ["sweep", question, "--vary", "workload.tokens=5G,6G", "-o", sweep.file]
            ran.append(subprocess.run([sys.executable, "-m", "planner", *other], cwd=ROOT, capture_output=True,
                                      text=True, check=False))
        return search(*args, **kwargs)

    monkeypatch.setattr("planner.sweeping.answering.make_plan", meanwhile)
    assert (sweep().code, days_in(sweep.file)) == (0, list(DAYS))
    assert (ran[0].returncode, ran[0].stdout) == (2, "")
    assert ran[0].stderr == (f"Error: {sweep.file}: another sweep is writing it: wait for that one, or name another "
                             "file for -o\n")
    assert sorted(path.name for path in sweep.file.parent.iterdir()) == ["out.jsonl"]


KILLED = """
import os, sys
from pathlib import Path
from planner.sweeping.output import held
lock = held(Path(sys.argv[1]))
lock.__enter__()
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("before", [None, "", "whole"])
def test_the_lock_of_a_file_ends_with_its_holder_and_leaves_nothing(sweep, before):
    if before == "whole":
        sweep()
    elif before is not None:
        sweep.file.touch()
    text = sweep.file.read_text() if sweep.file.exists() else None
    killed = subprocess.run([sys.executable, "-c", KILLED, sweep.file], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    with held(sweep.file), pytest.raises(InputError, match="another sweep is writing it"), held(sweep.file):
        pass
    assert (sweep.file.read_text() if sweep.file.exists() else None) == (text or "" if before is None else text)


def test_a_lock_made_for_nothing_is_taken_away(tmp_path):
    with held(tmp_path / "none.jsonl"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_file_replaced_while_it_is_locked_is_not_written(tmp_path, monkeypatch):
    """Another sweep ends, and puts its file in place, between the opening and the locking of the old one."""
    path, real = tmp_path / "out.jsonl", output._lock
    path.write_text("old")

    def late(file):
        if path.read_text() == "old":
            (tmp_path / "new").write_text("new")
            (tmp_path / "new").replace(path)
        real(file)

    monkeypatch.setattr(output, "_lock", late)
    with held(path), path.open() as now, pytest.raises(BlockingIOError):
        real(now)


def test_a_place_without_locks_is_written_all_the_same(sweep, search, monkeypatch):
    def none(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(output.fcntl, "flock", none)
    assert (sweep().code, days_in(sweep.file)) == (0, list(DAYS))


def test_half_a_character_in_a_line_is_kept_as_it_is(sweep, search):
    sweep()
    line = json.loads(sweep.file.read_text().splitlines()[0])
    line["plan"]["provenance"]["versions"]["\ud800"] = "\udfff"
    text = json.dumps(line)
    sweep.file.write_text(text + "\n")
    ran = sweep()
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(sweep.file.read_text().splitlines()[0]) == line

"""Worker processes: answers and errors come back, none is lost with a process, and none outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from planner.errors import InputError, UnknownName
from planner.process import news
from planner.process.stopping import GRACE, only_to_be_told, told_to_stop
from planner.process.workers import MOST_LOSSES, LostWorker, Workers
from tests.processes import PATIENCE, gone

ROOT = Path(__file__).parents[1]
PARENT = """
import sys, time
from functools import partial
from planner.process import news
from planner.process.workers import Workers
with Workers(2) as workers:
    for key in range(2):
        workers.add(key, partial(time.sleep, 600))
    try:
        answers = workers.answers(0.0)
        next(answers, None)
        print(*[worker.process.pid for worker in workers.busy], flush=True)
        list(workers.answers())
    except KeyboardInterrupt:
        sys.exit(130)
"""


def told() -> str:
    """Work until told to stop."""
    while not told_to_stop():
        time.sleep(0.01)
    return "what there is"


def slow_to_tell() -> str:
    """Hear that it is to stop, and then take longer to write its answer than one that does not hear is given."""
    found = told()
    time.sleep(GRACE * 2)
    return found


def found_before() -> str:
    """Find the answer before anybody tells it to stop, and then take its time."""
    only_to_be_told()
    time.sleep(0.4 + GRACE * 2)
    return "all of it"


def unknown() -> None:
    raise UnknownName("model", "gtp2", ["gpt2"], file="x.yaml", line=3)


def telling() -> int:
    """Say how far it is: before anybody listens, to who does, and again at once."""
    for step in range(4):
        if step == 1:
            news.report_on()
        if step == 3:
            time.sleep(news.EVERY + 0.01)
        news.tell(partial(int, step))
    return 5


def unsendable() -> None:
    raise ValueError(lambda: None)


def test_answers_errors_and_losses_come_back() -> None:
    with Workers[str](2) as workers:
        for key, call in {"power": partial(pow, 2, 5), "unknown": unknown, "unsendable": unsendable,
                          "lost": partial(os._exit, 9), "more": partial(pow, 3, 2)}.items():
            workers.add(key, call)
        found = {answer.key: answer for answer in workers.answers()}
        processes = [worker.process for worker in workers.idle]
    assert (found["power"].result(), found["more"].result()) == (32, 9)
    with pytest.raises(UnknownName, match="unknown model 'gtp2'; did you mean gpt2") as raised:
        found["unknown"].result()
    assert (raised.value.file, raised.value.exit_code) == ("x.yaml", 2)
    with pytest.raises(RuntimeError, match="ValueError: <function"):
        found["unsendable"].result()
    with pytest.raises(LostWorker, match=f"lost {MOST_LOSSES} times"):
        found["lost"].result()
    assert [process.returncode for process in processes] == [-signal.SIGKILL] * len(processes)


def test_what_is_told_to_stop_answers_with_what_it_has_and_the_next_call_is_not_told() -> None:
    with Workers[int](1) as workers:
        workers.add(0, unknown)
        list(workers.answers())  # by now it has imported this file
        workers.add(0, told)
        assert list(workers.answers(0.2)) == []
        workers.stop()
        assert [answer.result() for answer in workers.answers(PATIENCE)] == ["what there is"]
        workers.add(1, told_to_stop)
        assert [answer.result() for answer in workers.answers()] == [False]


@pytest.mark.parametrize(("call", "answer"), [(slow_to_tell, "what there is"), (found_before, "all of it")])
def test_who_has_heard_that_it_is_to_stop_or_has_its_answer_is_not_interrupted_while_it_tells(
        call: Callable[[], str], answer: str) -> None:
    with Workers[int](1) as workers:
        workers.add(0, unknown)
        list(workers.answers())  # by now it has imported this file
        workers.add(0, call)
        assert list(workers.answers(0.2)) == []
        workers.stop()
        assert [found.result() for found in workers.answers(PATIENCE)] == [answer]
        workers.add(1, partial(time.sleep, PATIENCE))  # the next is interrupted again
        assert list(workers.answers(0.2)) == []
        workers.stop()
        assert [type(found.error) for found in workers.answers(PATIENCE)] == [KeyboardInterrupt]


def test_a_stop_does_not_end_a_worker_whose_call_has_ended() -> None:
    with Workers[int](1, most_losses=1) as workers:
        workers.add(0, told)
        assert list(workers.answers(0.2)) == []
        workers.stop()
        list(workers.answers(PATIENCE))
        (worker,) = workers.idle
        time.sleep(GRACE * 1.5)  # the interrupt of a call that had not heard would come now
        assert worker.process.poll() is None
        assert workers.ready()


def test_a_worker_lost_while_idle_costs_no_call() -> None:
    with Workers[int](1, most_losses=1) as workers:
        workers.add(0, partial(pow, 2, 3))
        list(workers.answers())
        workers.idle[0].process.kill()
        workers.idle[0].process.wait()
        workers.add(1, partial(pow, 2, 5))
        assert [answer.result() for answer in workers.answers()] == [32]
        workers.idle[0].process.kill()
        workers.idle[0].process.wait()
        assert not workers.ready()


def test_calls_that_report_are_heard_before_they_answer() -> None:
    heard: list[tuple[str, object]] = []
    with Workers[str](1, heard=lambda key, news: heard.append((key, news))) as workers:
        workers.add("told", telling)
        assert [answer.result() for answer in workers.answers()] == [5]
    assert heard == [("told", 1), ("told", 3)]


def test_an_interrupted_wait_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    with Workers[int](1) as workers:
        workers.add(0, partial(pow, 2, 3))
        monkeypatch.setattr("planner.process.workers.select.select", interrupted)
        with pytest.raises(KeyboardInterrupt):
            list(workers.answers())
        assert [answer.result() for answer in workers.answers()] == [8]


def test_a_process_that_cannot_be_started_is_an_error_of_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", full)
    with Workers[int](1) as workers:
        workers.add(0, told)
        with pytest.raises(InputError, match="cannot start a worker process"):
            list(workers.answers())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT], ids=lambda number: number.name)
def test_workers_end_with_their_parent_however_it_ends(number: signal.Signals) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    workers = [int(pid) for pid in parent.stdout.readline().split()]
    parent.send_signal(number)  # to the parent alone
    assert parent.wait(PATIENCE) == (130 if number == signal.SIGINT else -number)
    parent.stdout.close()
    assert len(workers) == 2
    assert gone(workers)

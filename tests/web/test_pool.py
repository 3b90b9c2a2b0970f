"""A server that is stopped, and processes that are lost: no finished answer goes, and nothing else goes with them."""

import os
import signal
from functools import partial

import pytest

from planner.web import pool as pools
from planner.web.answering import Answered, Refusal, answer
from planner.web.desk import Desk
from planner.web.kept import Kept
from planner.web.pool import Full, Job, Pool
from planner.web.question import question_of

HELD = question_of("estimate", {"model": "gpt2", "node": "l4-1x", "layout": "tp=1"})


def test_a_process_that_is_lost_or_hangs_fails_its_own_question_alone(monkeypatch):
    monkeypatch.setattr(pools, "LEAVE_SECONDS", 0.3)
    monkeypatch.setattr(pools, "prepare", print)  # what these calls need is little, and loads fast
    ended = []
    pool = Pool(1, 0, (), lambda job, result: ended.append(job))
    crashed, hangs, after = (Job(call, "") for call in (
        partial(os.kill, 0, signal.SIGKILL), partial(signal.sigwait, [signal.SIGUSR1]), partial(answer, HELD, ())))
    for job in (crashed, hangs, after):
        pool.add(job)
    assert "was lost, perhaps for memory" in crashed.result.result(60).message
    hangs.cancel()
    assert isinstance(hangs.result.result(60), Refusal)
    assert hangs.state == "canceled"
    assert isinstance(after.result.result(60), Answered)
    assert (crashed.state, after.state, ended) == ("failed", "done", [crashed, hangs, after])
    monkeypatch.setattr(pools, "MOST_WAITING", 0)
    with pytest.raises(Full, match="questions wait already"):
        pool.add(Job(partial(answer, HELD, ()), ""))
    pool.close()


def test_a_finished_answer_outlives_its_server(tmp_path, monkeypatch):
    for name in ("MOST_PLANS", "ESTIMATORS"):
        monkeypatch.setattr(f"planner.web.desk.{name}", 1)
    asked = question_of("plan", {"model": "gpt2", "tokens": "1 G", "on": "l4-1x", "max_gpus": 1, "stack": "fsdp2"})
    first = Desk((), tmp_path)
    found = first.ask(asked).result.result(120)
    waits = first.ask(question_of("plan", {"model": "deepseek-v3", "tokens": "14 T"}))
    first.close()
    assert isinstance(found, Answered)
    assert waits.result.done()
    monkeypatch.setattr(Pool, "add", None)
    second = Desk((), tmp_path)
    assert second.ask(asked).result.result(0) == found
    second.close()


def test_who_asks_the_same_waits_for_the_same_and_what_comes_beside_waits_behind_all(tmp_path, monkeypatch):
    monkeypatch.setattr("planner.web.desk.ESTIMATORS", 0)
    desk = Desk((), tmp_path)
    beside, first = desk.make(Job(partial(answer, HELD, ()), "")), desk.ask(HELD)
    assert desk.ask(HELD) is first
    assert [desk.estimates._next(), desk.estimates._next()] == [first, beside]
    first.cancel()
    assert desk.ask(HELD) is not first, "what was told to end is not waited for"
    desk.close()


def test_what_is_kept_is_bounded_and_a_damaged_file_is_no_answer(tmp_path, monkeypatch):
    monkeypatch.setattr("planner.web.kept.MOST_KEPT", 2)
    monkeypatch.setattr("planner.web.kept.MOST_REMEMBERED", 1)
    kept = Kept(tmp_path / "answers")
    for at, key in enumerate("abc"):
        kept.put(key, Answered(key, 0), on_disk=True)
        os.utime(tmp_path / "answers" / f"{key}.json", ns=(at, at))
    assert [kept.get(key) for key in "abc"] == [None, Answered("b", 0), Answered("c", 0)]
    (tmp_path / "answers" / "b.json").write_text("{")
    assert Kept(tmp_path / "answers").get("b") is None
    (tmp_path / "blocked").write_text("")
    Kept(tmp_path / "blocked" / "answers").put("d", Answered("d", 0), on_disk=True)

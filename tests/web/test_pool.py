"""A server that is stopped, and processes that are lost: no finished answer goes, and nothing else goes with them."""

import os
import signal
from datetime import date
from functools import partial

import pytest

from planner.solver.progress import SoFar
from planner.web import pool as pools
from planner.web.answering import Answered, answer
from planner.web.desk import Desk
from planner.web.kept import AnswerStore, code
from planner.web.limits import MOST_MEMORY
from planner.web.pool import Full, Processes, Queued
from planner.web.question import question_of
from planner.web.refusing import Refusal

HELD = question_of("estimate", {"model": "gpt2", "node": "l4-1x", "layout": "tp=1"})


def test_a_process_that_is_lost_or_hangs_fails_its_own_question_alone(monkeypatch):
    monkeypatch.setattr(pools, "LEAVE_SECONDS", 0.3)
    monkeypatch.setattr(pools, "prepare", print)  # what these calls need is little, and loads fast
    ended = []
    pool = Processes(1, 0, (), lambda job, result: ended.append(job))
    crashed, hangs, after = (Queued(call, "") for call in (
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
        pool.add(Queued(partial(answer, HELD, ()), ""))
    pool.close()


def test_no_question_is_answered_by_a_process_that_ended_before_it_had_its_limit(monkeypatch):
    monkeypatch.setattr(pools, "prepare", lost)
    pool = Processes(1, 0, (), lambda job, result: None)
    asked = Queued(partial(answer, HELD, ()), "")
    pool.add(asked)
    assert "ended as it began" in asked.result.result(60).message
    monkeypatch.setattr(pools, "prepare", print)
    again = Queued(partial(answer, HELD, ()), "")
    pool.add(again)
    assert isinstance(again.result.result(60), Answered)
    pool.close()


def lost(*_):
    """End the process as one that is killed does."""
    os.kill(os.getpid(), signal.SIGKILL)


def test_the_share_that_is_searched_does_not_fall():
    """What a part turns out to have beside is more than was thought: the bar stood at 16%, and then at 14%."""
    job = Queued(partial(answer, HELD, ()), "")
    for done, value in ((0.16, 7), (0.14, 6)):
        pools._hear({job.id: job}, job.id, SoFar("cost", done, value, None))
    assert job.so_far == SoFar("cost", 0.16, 6, None)


@pytest.mark.parametrize(("memory", "seconds", "said"), [
    (200 << 20, 900.0, "needs more than 0.2 GiB, the limit of this server"),
    (MOST_MEMORY, 0.0, "no answer within 0 us, the limit of this server")])
def test_a_search_is_limited_in_memory_and_in_time(monkeypatch, memory, seconds, said):
    """It is a real search, and the process answers the next question after it."""
    large, after = (Queued(partial(answer, question, ()), "") for question in (
        question_of("plan", {"model": "deepseek-v3", "tokens": "14 T"}), HELD))
    with monkeypatch.context() as tight:
        tight.setattr(pools, "MOST_MEMORY", memory)
        tight.setattr(pools, "HEARTBEAT", 0.001)  # it is told to end before it has a plan
        pool = Processes(1, 0, (), lambda job, result: None, most_seconds=seconds)
        pool.add(large)
        assert said in large.result.result(60).message
    assert large.state == "failed"
    pool.most_seconds = 900.0
    pool.add(after)
    assert isinstance(after.result.result(60), Answered)
    pool.close()


def test_another_planner_or_another_day_answers_anew(tmp_path, monkeypatch):
    dated, timeless = (question_of("plan", {"model": "gpt2", "tokens": "1 G"} | more) for more in (
        {"deadline": "2030-01-01"}, {}))
    before = [question.key(code()) for question in (dated, timeless)]

    class Later(date):
        @classmethod
        def today(cls):
            return date(2026, 1, 1)

    monkeypatch.setattr("planner.web.question.date", Later)
    assert dated.key(code()) != before[0]
    assert timeless.key(code()) == before[1]
    for name in ("MOST_PLANS", "ESTIMATORS"):
        monkeypatch.setattr(f"planner.web.desk.{name}", 0)
    desk = Desk((), tmp_path)
    assert code() in desk.digest
    desk.close()
    monkeypatch.setattr("planner.web.kept.__version__", "0.2.0")
    assert timeless.key(code()) != before[1]


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
    monkeypatch.setattr(Processes, "add", None)
    second = Desk((), tmp_path)
    assert second.ask(asked).result.result(0) == found
    second.close()


def test_who_asks_the_same_waits_for_the_same_and_what_comes_beside_waits_behind_all(tmp_path, monkeypatch):
    monkeypatch.setattr("planner.web.desk.ESTIMATORS", 0)
    desk = Desk((), tmp_path)
    beside, first = desk.make(Queued(partial(answer, HELD, ()), "")), desk.ask(HELD)
    assert desk.ask(HELD) is first
    assert [desk.estimates._next(), desk.estimates._next()] == [first, beside]
    first.cancel()
    assert desk.ask(HELD) is not first, "what was told to end is not waited for"
    desk.close()


def test_what_is_kept_is_bounded_and_a_damaged_file_is_no_answer(tmp_path, monkeypatch):
    monkeypatch.setattr("planner.web.kept.MOST_KEPT", 2)
    monkeypatch.setattr("planner.web.kept.MOST_REMEMBERED", 1)
    kept = AnswerStore(tmp_path / "answers")
    for at, key in enumerate("abc"):
        kept.put(key, Answered(key, 0), on_disk=True)
        os.utime(tmp_path / "answers" / f"{key}.json", ns=(at, at))
    assert [kept.get(key) for key in "abc"] == [None, Answered("b", 0), Answered("c", 0)]
    (tmp_path / "answers" / "b.json").write_text("{")
    assert AnswerStore(tmp_path / "answers").get("b") is None
    (tmp_path / "blocked").write_text("")
    AnswerStore(tmp_path / "blocked" / "answers").put("d", Answered("d", 0), on_disk=True)

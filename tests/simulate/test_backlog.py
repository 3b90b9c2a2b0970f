"""Logs of jobs replayed: against a plain scheduler that is written here, by hand, and by what no scheduler can do."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from planner.ask.sizing import Wait, _fewest, bound, wait_of
from planner.errors import InputError
from planner.simulate.backlog import replay
from planner.simulate.joblog import JobLog, read_jobs
from tests.cli.conftest import planner  # noqa: F401 - the fixture that runs the command


def log_of(rows) -> JobLog:
    submit, seconds, gpus = (np.array(each) for each in zip(*sorted(rows), strict=True))
    return JobLog(submit - submit[0], seconds.astype(float), seconds.astype(float), gpus)


def drawn(seed: int, jobs: int, most: int) -> JobLog:
    chance = random.Random(seed)
    return log_of([(float(chance.randrange(60)), float(chance.randrange(1, 25)), chance.randint(1, most))
                   for _ in range(jobs)])


class Plain:
    """EASY backfill on GPUs that are all alike, second by second."""

    def __init__(self, log: JobLog, gpus: int) -> None:
        self.log, self.gpus, self.now = log, gpus, 0.0
        self.todo, self.queue, self.running = list(range(len(log.submit))), [], []
        self.waits = [0.0] * len(log.submit)

    def begin(self, job: int) -> None:
        self.waits[job] = self.now - self.log.submit[job]
        self.running.append((self.now + self.log.seconds[job], int(self.log.gpus[job])))
        self.queue.remove(job)

    @property
    def free(self) -> int:
        return self.gpus - sum(wide for _, wide in self.running)

    def run(self) -> list[float]:
        while self.todo or self.queue:
            self.running = [(end, wide) for end, wide in self.running if end > self.now]
            while self.todo and self.log.submit[self.todo[0]] <= self.now:
                self.queue.append(self.todo.pop(0))
            while self.queue and self.log.gpus[self.queue[0]] <= self.free:
                self.begin(self.queue[0])
            if self.queue:
                self.backfill()
            self.now += 1.0
        return self.waits

    def backfill(self) -> None:
        wanted = int(self.log.gpus[self.queue[0]])
        ends = sorted({end for end, _ in self.running})
        shadow, room = next((end, room) for end in ends if (room := self.free + sum(
            wide for then, wide in self.running if then <= end)) >= wanted)
        spare = room - wanted
        for job in self.queue[1:]:
            wide, brief = int(self.log.gpus[job]), self.now + self.log.seconds[job] <= shadow
            if wide <= self.free and (brief or wide <= spare):
                spare -= 0 if brief else wide
                self.begin(job)


@pytest.mark.parametrize("seed", range(40))
def test_waits_are_those_of_a_plain_scheduler(seed):
    """On nodes of one GPU nothing is split up."""
    log = drawn(seed, 25, 4)
    assert list(replay(log, 6, 1).seconds) == Plain(log, 6).run()
    assert replay(log, int(log.gpus.sum()), 1).seconds.max() == 0


@pytest.mark.parametrize("seed", range(20))
def test_no_more_runs_at_once_than_there_is_and_the_first_is_never_passed_for_long(seed):
    log = drawn(seed, 40, 8)
    start = log.submit + replay(log, 3, 4).seconds
    for moment in start:
        inside = (start <= moment) & (moment < start + log.seconds)
        whole = np.where(log.gpus >= 4, -(-log.gpus // 4) * 4, log.gpus)
        assert whole[inside].sum() <= 12
        assert (whole[inside] >= 4).sum() <= 3
    without = np.array(plainly_in_order(log, 3, 4))
    assert start.max() <= (without + log.seconds).max()


def plainly_in_order(log: JobLog, nodes: int, gpus: int) -> list[float]:
    """Return starts where every job has the whole fleet to itself: a schedule that is always possible."""
    starts, free = [], 0.0
    for submit, seconds in zip(log.submit, log.seconds, strict=True):
        starts.append(max(free, submit))
        free = starts[-1] + seconds
    return starts


def test_backfill_fills_a_gap_and_does_not_delay_the_first():
    # 2 GPUs: a long job of one, then one that needs both, then short and long ones of one
    log = log_of([(0.0, 10.0, 1), (1.0, 5.0, 2), (2.0, 8.0, 1), (3.0, 9.0, 1)])
    waits = replay(log, 2, 1).seconds
    assert list(waits) == [0, 9, 0, 12]  # the third ends by 10, the fourth would not


def test_a_small_job_takes_the_fullest_node_and_a_large_one_whole_nodes():
    log = log_of([(0.0, 10.0, 2), (1.0, 10.0, 2), (2.0, 10.0, 4), (3.0, 10.0, 5)])
    assert list(replay(log, 2, 4).seconds) == [0, 0, 0, 9]  # the last takes two whole nodes, free at 12
    log = log_of([(0.0, 10.0, 3), (1.0, 10.0, 3), (2.0, 1.0, 2)])
    assert replay(log, 2, 4).seconds[2] == 8  # two GPUs are free, on two nodes


def test_what_waits_too_long_runs_elsewhere():
    log = log_of([(0.0, 100.0, 1), (1.0, 5.0, 1), (2.0, 5.0, 1)])
    found = replay(log, 1, 1, patience=10.0)
    assert list(found.seconds) == [0, 10, 10]
    assert list(found.burst) == [0, 5, 5]


@pytest.mark.parametrize("seed", range(25))
def test_no_fleet_below_the_bound_keeps_the_wait(seed):
    log, wait = drawn(seed, 30, 8), Wait(12.0, 0.9)
    late = wait.most_late(30)
    meets = {nodes: (replay(log, nodes, 4).seconds > wait.seconds).sum() <= late for nodes in range(1, 30)}
    fewest, missed = _fewest(bound(log, wait, 4), meets.__getitem__)
    assert fewest == min(nodes for nodes, kept in meets.items() if kept)
    assert missed == fewest - bound(log, wait, 4)


def test_a_bound_counts_work_that_cannot_be_put_off():
    """Ten jobs of an hour at once, none of which may wait an hour: five GPUs at least; one spared, still five."""
    log = log_of([(0.0, 86_400.0, 1)] * 10)
    assert bound(log, Wait(60.0, 1.0), 1) == 10
    assert bound(log, Wait(60.0, 0.9), 1) == 9


SACCT = """JobID|Submit|Start|End|Elapsed|Timelimit|AllocTRES|State
1|2027-01-04T00:00:00|2027-01-04T00:01:00|2027-01-04T01:01:00|01:00:00|02:00:00|cpu=8,gres/gpu=8,gres/gpu:h100=8|COMPLETED
1.batch|2027-01-04T00:00:00|2027-01-04T00:01:00|2027-01-04T01:01:00|01:00:00||cpu=8,gres/gpu=8|COMPLETED
2|2027-01-04T00:10:00|2027-01-04T01:01:00|2027-01-05T01:01:00|1-00:00:00|2-00:00:00|billing=4,gres/gpu:a100=4|FAILED
3|2027-01-04T00:20:00|2027-01-04T00:20:00|2027-01-04T00:20:30|00:00:30|00:10:00|cpu=4|COMPLETED
4|2027-01-04T00:30:00|Unknown|Unknown|00:00:00|00:10:00|gres/gpu=1|CANCELLED
5_[3-9%2]|2027-01-04T00:30:00|Unknown|Unknown|00:00:00|UNLIMITED||PENDING
"""


def test_logs_are_read_as_slurm_and_published_traces_write_them(tmp_path):
    file = tmp_path / "sacct.csv"
    file.write_text(SACCT)
    log = read_jobs(file)
    assert (list(log.submit), list(log.gpus)) == ([0, 600], [8, 4])
    assert (list(log.seconds), list(log.planned)) == ([3600, 86400], [7200, 172800])
    assert dict(log.left_out) == {"steps of jobs": 1, "jobs without a GPU": 1, "jobs that took no time": 1,
                                  "jobs that never started, or had not ended": 1}
    file.write_text("timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,x\n")
    assert list(read_jobs(file).seconds) == [66]
    file.write_text("submit,start,end,gpus\n0,10,70,1\n5,90,80,1\n")
    assert dict(read_jobs(file).left_out) == {"jobs that ended before they started": 1}
    file.write_text("num_gpu,creation_time,deletion_time,scheduled_time\n2,5,105,15\n")
    assert list(read_jobs(file).seconds) == [90]
    # as sacct writes without --parsable2, and as services log
    rows = [line.split("|") for line in SACCT.splitlines()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = [" ".join(value.rjust(width) for value, width in zip(row, widths, strict=True)) for row in rows]
    file.write_text("\n".join([table[0], " ".join("-" * width for width in widths), *table[1:]]))
    assert read_jobs(file).left_out == log.left_out
    assert list(read_jobs(file).seconds) == [3600, 86400]
    file.write_text('{"job_id": 1, "submit_time": 0, "start_time": 10, "end_time": 70, "num_gpus": 2}\n')
    assert (list(read_jobs(file).seconds), list(read_jobs(file).gpus)) == ([60], [2])


@pytest.mark.parametrize(("text", "message"), [
    ("", "the file is empty"), ("a,b\n1,2\n", "no column for submit"), ("{x}\n", "not JSON lines"),
    ("JobID|JobName|State\n1|a|FAILED\n", "; of Slurm: sacct --parsable2 --allocations --format JobID,Submit,"),
    ("submit,gpus\n1,2\n", "neither a column"),
    ("submit,seconds,gpus\nx,5,1\n", ":2: submit 'x': expected seconds, or a moment"),
    ("submit,seconds,gpus\n1,x,1\n", ":2: duration 'x'"), ("submit,seconds,gpus\n1,5,many\n", ":2: gpus 'many'"),
    ("submit,duration,gpus\n0,5000,1\n8640000000,5000,1\n", "in seconds the log spans 274 years, so that its times"),
    ("submit,seconds,gpus\n1,5\n", "2 values in a row of 3"), ("submit,seconds,gpus\n1,5,0\n", "no job in it"),
    (f"submit,seconds,gpus\n1,5,{'9' * 200_000}\n", "not CSV: field larger than")])
def test_a_wrong_log_is_refused_by_line_and_column(tmp_path, text, message):
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(InputError) as caught:
        read_jobs(tmp_path / "log.csv")
    assert message in str(caught.value)


def test_a_log_is_sized_by_the_command_and_its_answer_replayed(planner, tmp_path):  # noqa: F811
    rows = "\n".join(f"{at * 600},{3600 * (1 + at % 5)},{(1, 2, 8, 16)[at % 4]}" for at in range(200))
    (tmp_path / "log.csv").write_text(f"submit,seconds,gpus\n{rows}\n")
    ran = planner("plan", "--jobs", tmp_path / "log.csv", "--wait", "30 min at 90%", "--on", "dgx-h100", "--json")
    found = json.loads(ran.out)
    size = found["sizes"][0]
    assert (ran.code, found["schema"], size["status"]) == (0, "planner.sizing/1", "optimal")
    log = read_jobs(tmp_path / "log.csv")
    waits = {nodes: (replay(log, nodes, 8).seconds <= 1800).mean() for nodes in range(2, size["fewest"]["nodes"] + 1)}
    assert [nodes for nodes, kept in waits.items() if kept >= 0.9] == [size["fewest"]["nodes"]]
    if size["burst"]:
        assert size["burst"]["usd_per_year"] < size["usd_per_year"]
    (tmp_path / "found.json").write_text(ran.out)
    again = planner("simulate", tmp_path / "found.json", "--jobs", tmp_path / "log.csv", "--json")
    assert json.loads(again.out)["wait_seconds"] == size["fewest"]["wait_seconds"]
    by_hand = planner("simulate", "--node", "dgx-h100", "--gpus", size["fewest"]["nodes"] * 8, "--jobs",
                      tmp_path / "log.csv", "--json")
    assert by_hand.out == again.out


@pytest.mark.parametrize(("text", "share"), [
    ("4 h at 95%", 0.95), ("4h 95%", 0.95), ("p95 4h", 0.95), ("90% of jobs within 4 h", 0.9), ("4 h @ 99.5%", 0.995),
    ("4 h", 1.0), ("4h at 100%", 1.0)])
def test_a_wait_is_read_as_people_write_it(text, share):
    assert wait_of(text) == (4 * 3600, share)


def test_what_is_left_out_of_a_log_is_counted_in_words(planner, tmp_path):  # noqa: F811
    (tmp_path / "log.csv").write_text("submit,start,end,gpus\n0,0,5,1\n0,,,2\n0,5,1,2\n0,5,2,2\n")
    ran = planner("plan", "--jobs", tmp_path / "log.csv", "--wait", "4 h", "--on", "dgx-h100", "-q")
    assert "100.0% of 1 job waits at most 4 h" in ran.out
    ran = planner("plan", "--jobs", tmp_path / "log.csv", "--wait", "4 h", "--on", "dgx-h100")
    assert "1 job that never started, or had not ended is left out" in ran.err
    assert "2 jobs that ended before they started are left out" in ran.err


@pytest.mark.parametrize(("args", "message"), [
    (("--on", "dgx-h100"), "--jobs needs --wait"), (("--wait", "4 h"), "a log of jobs needs hardware"),
    (("--wait", "4 h", "--on", "dgx-h100", "--model", "llama-3.1-8b"), "--model has no effect"),
    (("--wait", "4 x", "--on", "dgx-h100"), "--wait: '4 x' is no time that jobs may wait"),
    (("--wait", "4 h at 195%", "--on", "dgx-h100"), "the share of jobs must be from 50% to 100%"),
    (("--wait", "4 h", "--on", "h100-sxm-1x"), "the largest job has 2 GPUs")])
def test_a_question_about_a_log_is_refused_by_flag(planner, tmp_path, args, message):  # noqa: F811
    (tmp_path / "log.csv").write_text("submit,seconds,gpus\n0,5,1\n1,5,2\n")
    ran = planner("plan", "--jobs", tmp_path / "log.csv", *args)
    assert (ran.code, message in ran.err) == (2, True), ran.err

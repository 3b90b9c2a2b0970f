"""Jobs with a speed of their own on each of several GPUs: makespan against a policy of Gavel.

Speeds are those of Gavel's public table (stanford-futuredata/gavel, `scheduler/simulation_throughputs.json`). Its
policy `min_total_duration` and its simulator's rounds are restated here in a few lines: a linear program shares the
time of every GPU out among the jobs so that all end by some time, found by halving as there; in every round of 6
minutes, what is furthest behind its share runs, whole; shares are computed again when a job ends. Nothing is charged
for changing GPUs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from numpy.typing import NDArray

from benchmarks.projects import PERIODS_A_DAY, makespan
from benchmarks.table import table
from planner.solver.check_schedule import check_schedule
from planner.solver.fleet.linear import LinearProgram
from planner.solver.fleet.program import MixedProgram
from planner.solver.fleet.schedule import HOUR_SECONDS, Option, Pool, Problem, Task
from planner.solver.fleet.scheduling import schedule
from planner.solver.settings import Settings

TYPES = ("k80", "p100", "v100")
GPUS = (8, 8, 8)
ROUND = 360
"""Seconds."""
SLACK = 1.05
"""At which the halving of the policy ends."""
JOBS, SEEDS = 60, range(2)
SCALES = (1,) * 14 + (2,) * 2 + (4,) * 3 + (8,)
"""GPUs of jobs, as often as in Gavel's own generator."""
SHORT, LONG, LONG_SHARE = (1.5, 3.0), (3.0, 4.0), 0.2
"""Powers of ten between which a job takes minutes on V100, and how many are long, as in Gavel's own generator."""
SHARE = 10**6
"""Parts in which speeds are whole numbers."""
LIMIT = Settings(deterministic_limit=4.0)
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Work:
    """A job: its GPUs, and the seconds that all of it takes on each type; endless where it does not run."""

    gpus: int
    seconds: tuple[float, ...]


def drawn(path: Path, seed: int) -> list[Work]:
    """Return jobs of kinds in the table."""
    speeds, random = json.loads(path.read_text(encoding="utf-8")), Random(seed)
    made = list[Work]()
    while len(made) < JOBS:
        gpus = random.choice(SCALES)
        kinds = sorted(kind for kind in speeds["v100"] if kind.endswith(f", {gpus})"))
        kind = random.choice(kinds)
        each = [speeds[one].get(kind, {}).get("null", 0.0) for one in TYPES]
        steps = 60 * 10 ** random.uniform(*(LONG if random.random() < LONG_SHARE else SHORT)) * each[-1]
        made.append(Work(gpus, tuple(steps / one if one else math.inf for one in each)))
    return made


def gavel(path: Path) -> Iterator[str]:
    """Yield what came of each draw. Raises RuntimeError where the check contradicts an answer."""
    rows = []
    for seed in SEEDS:
        jobs = drawn(path, seed)
        theirs, least = by_rounds(jobs), shares(jobs, [1.0] * len(jobs))[0]
        problem = question(jobs, math.ceil(theirs / ROUND) + 1)
        found = schedule(problem, LIMIT)
        if wrong := check_schedule(problem, found):
            raise RuntimeError(wrong[0])
        ours = (makespan(found.value) or 0) * ROUND
        rows.append([str(seed), f"{theirs / 3600:.1f} h", f"{ours / 3600:.1f} h", f"{ours / theirs - 1:+.1%}",
                     found.status, f"{least / 3600:.1f} h"])
    on = ", ".join(f"{count} {kind.upper()}" for count, kind in zip(GPUS, TYPES, strict=True))
    yield (f"{JOBS} jobs drawn from Gavel's table of measured speeds (1 to 8 GPUs each), there at the start, on {on}. "
           "Its policy `min_total_duration` may move a job to other GPUs every 6 minutes, at no cost; the planner's "
           "jobs stay where they start. Policy and rounds are restated in `benchmarks/gavel.py`.\n")
    yield from table(("seed", "Gavel's policy", "planner", "difference", "status", "the policy's own bound"), rows)


def question(jobs: Sequence[Work], periods: int) -> Problem:
    """Return the same jobs as tasks, with an end that is late from the start: what a schedule costs is its makespan."""
    tasks = [Task(tuple(Option(at, job.gpus, math.ceil(seconds)) for at, seconds in enumerate(job.seconds)
                        if seconds <= periods * ROUND)) for job in jobs]
    a_day = PERIODS_A_DAY * HOUR_SECONDS // ROUND
    end = Task((Option(len(TYPES), 0, 1),), due=1, late_cents_per_day=a_day, after=tuple(range(len(tasks))))
    pools = tuple(Pool((count,) * periods) for count in GPUS)
    return Problem(periods, ROUND, (*pools, Pool()), (*tasks, end))


def shares(jobs: Sequence[Work], left: Sequence[float]) -> tuple[float, Floats]:
    """Return about the least seconds in which all jobs can end, and the share of it that each runs on each type.

    left: part of each job that is still to be done.
    """
    low, high = 0.0, 2 * sum(part * min(job.seconds) for job, part in zip(jobs, left, strict=True))
    while (best := _within(jobs, left, high)) is None:
        low, high = high, 2 * high
    while high > SLACK * low:
        middle = (low + high) / 2
        found = _within(jobs, left, middle)
        low, high, best = (middle, high, best) if found is None else (low, middle, found)
    return high, best


def _within(jobs: Sequence[Work], left: Sequence[float], seconds: float) -> Floats | None:
    """Return shares by which all jobs end in time; none where there are none."""
    program, runs = MixedProgram(), {}
    for at, job in enumerate(jobs):
        for kind, whole in enumerate(job.seconds):
            if math.isfinite(whole):
                runs[at, kind] = program.variable(SHARE)
    for at, (job, part) in enumerate(zip(jobs, left, strict=True)):
        mine = [kind for kind in range(len(TYPES)) if (at, kind) in runs]
        program.row([(runs[at, kind], 1) for kind in mine], most=SHARE)
        # parts of the job in all the time
        program.row([(runs[at, kind], round(SHARE * seconds / job.seconds[kind])) for kind in mine],
                    least=math.ceil(part * SHARE) * SHARE)
    for kind, count in enumerate(GPUS):
        program.row([(one, jobs[at].gpus) for (at, on), one in runs.items() if on == kind], most=count * SHARE)
    found = LinearProgram(program, np.arange(len(program.least))).solve()
    if found is None:
        return None
    out = np.zeros((len(jobs), len(TYPES)))
    for (at, kind), one in runs.items():
        out[at, kind] = found.values[one] / SHARE
    return out


def by_rounds(jobs: Sequence[Work]) -> float:
    """Return the seconds until all jobs have ended, in rounds in which what is furthest behind its share runs."""
    left, ran, clock = np.ones(len(jobs)), np.zeros((len(jobs), len(TYPES))), 0.0
    share: Floats | None = None
    ends = 0.0
    while (left > 0).any():
        alive = np.flatnonzero(left > 0).tolist()
        if share is None:
            _, mine = shares([jobs[at] for at in alive], left[alive].tolist())
            share = np.zeros((len(jobs), len(TYPES)))
            share[alive], ran = mine, np.zeros((len(jobs), len(TYPES)))
        behind = share / (ran + 1.0)
        free, busy = list(GPUS), set[int]()
        for flat in np.argsort(-behind, axis=None, kind="stable"):
            at, kind = divmod(int(flat), len(TYPES))
            if left[at] <= 0 or at in busy or jobs[at].gpus > free[kind] or share[at, kind] <= 0:
                continue
            free[kind] -= jobs[at].gpus
            busy.add(at)
            ran[at, kind] += 1
            done = min(left[at], ROUND / jobs[at].seconds[kind])
            left[at] -= done
            if left[at] <= 0:
                ends = max(ends, clock + done * jobs[at].seconds[kind])
                left[at] = 0
        if (left[alive] <= 0).any():
            share = None
        clock += ROUND
    return ends

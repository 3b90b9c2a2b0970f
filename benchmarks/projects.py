"""Projects of the MMLIB library as questions of the fleet: activities that wait for each other, each in a mode.

A mode holds some of several renewable resources, which are pools here, and uses up what does not come back, which is a
stock. The last task of a project is late from the start, a cent a period: what a schedule costs is its makespan.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from benchmarks.table import table
from planner.solver.check_schedule import check_schedule
from planner.solver.fleet.schedule import CENT, HOUR_SECONDS, Option, Pool, Problem, Task
from planner.solver.fleet.scheduling import LIMITED, schedule

PERIODS_A_DAY = 24
"""So that a cent for each is a whole number of cents a day."""
SETS = ("50", "100")
SEED = 1
"""Of the sample."""
SECONDS_A_UNIT = 2.0
"""CPU seconds that a unit of CP-SAT's deterministic time takes on these questions, about."""


def project(path: Path) -> Problem:
    """Return the question of an instance file."""
    rows = [line.replace(":", " ").split() for line in path.read_text(encoding="ascii").splitlines()]
    links = [list(map(int, row)) for row in _after(rows, "jobnr.")]
    supplies = next(_after(rows, "RESOURCE"))
    kinds = [word for word in supplies if word.isalpha()]
    most = list(map(int, next(_after(rows, "RESOURCE", skip=1))))
    modes: dict[int, list[list[int]]] = {}
    job = 0
    for row in (list(map(int, row)) for row in _after(rows, "REQUESTS/DURATIONS", skip=2)):
        if len(row) == len(kinds) + 3:
            job = row.pop(0)
        modes.setdefault(job, []).append(row[1:])
    before: dict[int, list[int]] = {}
    for job, _, _, *following in links:
        for other in following:
            before.setdefault(other, []).append(job)
    return _stated(kinds, most, modes, before)


def _after(rows: Sequence[list[str]], word: str, skip: int = 0) -> Iterator[list[str]]:
    """Yield what follows the line that begins with a word, up to a line of stars or an empty one."""
    at = next(number for number, row in enumerate(rows) if row[:1] == [word]) + 1 + skip
    while at < len(rows) and rows[at] and not rows[at][0].startswith("*"):
        yield rows[at]
        at += 1


def _stated(kinds: Sequence[str], most: Sequence[int], modes: dict[int, list[list[int]]], before: dict[int, list[int]]
            ) -> Problem:
    """Return the question of so much of each kind of resource; the project's first and last activity take no time."""
    first, last = min(modes), max(modes)
    pools = [at for at, kind in enumerate(kinds) if kind == "R"]
    stocks = [at for at, kind in enumerate(kinds) if kind != "R"]
    periods = sum(max(mode[0] for mode in several) for several in modes.values()) + 1
    tasks = []
    for job in range(first + 1, last):
        options = []
        for seconds, *takes in modes[job]:
            held = [(place, takes[at]) for place, at in enumerate(pools) if takes[at]] or [(len(pools), 0)]
            options.append(Option(*held[0], seconds * HOUR_SECONDS, beside=tuple(held[1:]),
                                  uses=tuple(takes[at] for at in stocks)))
        tasks.append(Task(tuple(options), after=tuple(other - first - 1 for other in before[job] if other != first)))
    end = Task((Option(len(pools), 0, 1),), due=1, late_cents_per_day=PERIODS_A_DAY,
               after=tuple(other - first - 1 for other in before[last] if other != first))
    there = [Pool((most[at],) * periods) for at in pools]
    return Problem(periods, HOUR_SECONDS, (*there, Pool()), (*tasks, end), stocks=tuple(most[at] for at in stocks))


def makespan(value: int | None) -> int | None:
    """Return what a schedule or a bound costs as periods."""
    return None if value is None else -(-value // CENT)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one project ended: its makespan and bound, the best known, and whether that is known to be the least."""

    makespan: int | None
    bound: int
    best: int
    seconds: float

    @property
    def proven(self) -> bool:
        """Whether the makespan is proven to be the least."""
        return self.makespan == self.bound


def projects(folder: Path, count: int, seconds: float) -> Iterator[str]:
    """Yield what came of a sample of each set. Raises RuntimeError where the check contradicts an answer."""
    rows = []
    for name in SETS:
        known = best_known(folder / "data" / "bks" / f"MM{name}_0.csv")
        sample = Random(SEED).sample(sorted(known), count)
        ended = []
        for one in sample:
            ended.append(outcome(folder / "data" / "instances" / "MMRCPSP" / one, known[one], seconds))
            print(one, ended[-1], file=sys.stderr, flush=True)
        over = [one.makespan / one.best - 1 for one in ended if one.makespan is not None]
        rows.append([f"MMLIB{name}", str(count), f"{sum(one.proven for one in ended) / count:.0%}",
                     f"{sum(over) / max(1, len(over)):.2%}", str(count - len(over)),
                     f"{sum(one.seconds for one in ended) / count:.0f}"])
    yield (f"Projects of MMLIB (Van Peteghem and Vanhoucke, 2014, doi:10.1016/j.ejor.2013.10.012), instances and best "
           f"known makespans from PyJobShop/Experiments: a sample of {count} of the 540 of each set (Python's `Random"
           f"({SEED})` over their names in order), one worker, {seconds:g} CPU seconds each at most, about.\n")
    yield from table(("set", "projects", "proven", "mean above the best known", "without a schedule", "CPU s, mean"),
                     rows)


def best_known(path: Path) -> dict[str, int]:
    """Return the best known makespan of each instance, by its file's name."""
    # notes are in another encoding than figures
    rows = list(csv.reader(path.read_text(encoding="latin-1").splitlines(), delimiter=";"))
    head = next(at for at, row in enumerate(rows) if row[:1] == ["ID"])
    column = rows[head].index("UB value")
    return {row[1].replace(".mm", ".txt"): int(row[column]) for row in rows[head + 1:]
            if len(row) > column and row[column]}


def outcome(path: Path, best: int, seconds: float) -> Outcome:
    """Return how a project ended. Raises RuntimeError where the check contradicts an answer."""
    problem, began = project(path), time.process_time()
    found = schedule(problem, replace(LIMITED, deterministic_limit=seconds / SECONDS_A_UNIT))
    took = time.process_time() - began
    if wrong := check_schedule(problem, found):
        raise RuntimeError(f"{path.name}: {wrong[0]}")
    return Outcome(makespan(found.value), makespan(found.bound) or 0, best, took)

"""The fleet model of portfolios held against what others measured: write sections of docs/scheduling.md.

`python -m benchmarks.scheduling --drawn` portfolios that are drawn, at the sizes of the goals
`python -m benchmarks.scheduling --judged` 30 more, held against a greedy and a bound that the solver does not have
`python -m benchmarks.scheduling --brute` 5,000 small questions, of which every schedule is tried
`python -m benchmarks.scheduling --mmlib FOLDER` projects, from a checkout of PyJobShop/Experiments
`python -m benchmarks.scheduling --gavel FILE` a job's speed on several GPUs, from simulation_throughputs.json of Gavel
`python -m benchmarks.scheduling JOBS POOLS PERIODS [SEEDS]` one size, printed

Sections that are not asked for stay as they are, and so does what stands under a heading of its own in one that is:
what was run by hand. Every answer is checked without a solver.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from random import Random

from benchmarks.gavel import gavel
from benchmarks.judged import faults
from benchmarks.placed import apart, bound, listed
from benchmarks.placed import drawn as dealt
from benchmarks.portfolios import portfolio
from benchmarks.projects import projects
from benchmarks.table import table
from planner.solver.check_schedule import check_schedule
from planner.solver.fleet.greedy import greedy
from planner.solver.fleet.schedule import Problem
from planner.solver.fleet.scheduling import LIMITED, schedule
from planner.solver.settings import Settings
from tests.solver.schedules import by_night, cheapest, holding_more, paying, random_problem, turning

PAGE = Path(__file__).parents[1] / "docs" / "scheduling.md"
SIZES = ((40, 4, 52, 3), (100, 10, 182, 2), (300, 10, 182, 1), (1000, 10, 182, 1))
"""Jobs, pools, periods, and how many such portfolios."""
JUDGED = 30
"""Portfolios that are judged."""
SMALL = 1000
"""Small questions of each kind, of which every schedule is tried."""
KINDS: Mapping[str, Callable[[Problem, Random], Problem]] = {
    "up to three tasks and a service on pools that are owned, rented and bought": lambda problem, random: problem,
    "the same with budgets of two stretches of time": paying,
    "the same with a service that grows and needs more by day than by night, beside tasks that pause, on owned nodes "
    "with maintenance and on delivered ones": by_night,
    "nights and budgets both": lambda problem, random: paying(by_night(problem, random), random),
    "one task and a service whose hours turn into each other, on nodes that pay to start and to empty, with budgets":
        lambda problem, random: paying(turning(problem, random), random),
    "tasks on several pools at once, with stocks that they use up": holding_more,
}
"""What is asked of small questions -> how a drawn one is made so."""


def main(argv: Sequence[str]) -> int:
    """Print one line for each drawn question, or write sections of the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", nargs="*", type=int)
    parser.add_argument("--drawn", action="store_true")
    parser.add_argument("--judged", action="store_true")
    parser.add_argument("--brute", action="store_true")
    parser.add_argument("--mmlib", type=Path)
    parser.add_argument("--sample", type=int, default=20, help="instances of each set")
    parser.add_argument("--seconds", type=float, default=20.0, help="CPU seconds for each instance, about")
    parser.add_argument("--gavel", type=Path)
    asked = parser.parse_args(argv)
    if asked.size:
        for line in table(HEADS, drawn(((*asked.size, 3)[:4],))):
            print(line, flush=True)
    if asked.drawn:
        _write("Drawn portfolios", chain(DRAWN, table(HEADS, drawn(SIZES))))
    if asked.judged:
        _write("Judged apart", judged(range(JUDGED)))
    if asked.brute:
        _write("Every schedule tried", brute(range(SMALL)))
    if asked.mmlib:
        _write("Projects", projects(asked.mmlib, asked.sample, asked.seconds))
    if asked.gavel:
        _write("Jobs on several GPUs", gavel(asked.gavel))
    return 0


DRAWN = ("Jobs that all compete for few nodes, with purchases that cost less by the node the more they are, without a "
         "limit on time.", "")
HEADS = ("jobs, pools, periods", "seed", "status", "gap", "cheaper than job after job", "CPU s")


JUDGED_HEADS = ("seed", "jobs, pools, periods", "with", "status", "gap", "greedy", "apart", "bound", "CPU s")


def drawn(sizes: Sequence[tuple[int, int, int, int]]) -> Iterator[list[str]]:
    """Yield what came of each question. Raises RuntimeError where the check contradicts an answer."""
    for jobs, pools, periods, seeds in sizes:
        for seed in range(seeds):
            problem, began = portfolio(jobs, pools, periods, seed), time.process_time()
            found = schedule(problem, replace(LIMITED))
            took = time.process_time() - began
            if wrong := check_schedule(problem, found):
                raise RuntimeError(wrong[0])
            plain = greedy(problem)
            gap = "" if not found.value or found.bound is None else f"{1 - found.bound / found.value:.2%}"
            less = "-" if plain is None or not plain.value or found.value is None else (
                f"{1 - found.value / plain.value:.1%}")
            yield [f"{jobs}, {pools}, {periods}", str(seed), found.status, gap, less, f"{took:.0f}"]


def judged(seeds: Sequence[int]) -> Iterator[str]:
    """Yield what each answer is beside a greedy, the jobs apart and a bound, none of which share a predicate with the
    solver. Raises RuntimeError where one of them, or the check beside them, contradicts an answer.
    """
    rows = []
    for seed in seeds:
        problem, began = dealt(seed), time.process_time()
        found = schedule(problem, LIMITED)
        took, plain = time.process_time() - began, listed(problem)
        size = f"{len(problem.tasks)}, {len(problem.pools)}, {problem.periods}"
        more = ", ".join(said for said, there in (("service", problem.services), ("ceiling", problem.ceilings),
                                                  ("quarters", problem.purses)) if there)
        if found.value is None or found.bound is None:
            if plain is not None:
                raise RuntimeError(f"seed {seed}: {found.status}, and there is a schedule")
            rows.append((str(seed), size, more, found.status, "", "", "", "", f"{took:.0f}"))
            continue
        wrong = faults(problem, found)
        floor, alone = bound(problem), apart(problem)
        values = [usd for usd in (None if plain is None else plain.value, alone) if usd is not None]
        if wrong or not floor <= found.value <= min(values, default=found.value) or found.bound > found.value:
            raise RuntimeError(f"seed {seed}: {wrong[:1]} bounds {floor} {found.bound}, costs {found.value}, {values}")
        rows.append((str(seed), size, more, found.status, f"{1 - found.bound / found.value:.2%}", *(
            "-" if usd is None else f"{usd / found.value - 1:+.1%}" for usd in (
                None if plain is None else plain.value, alone)), f"{floor / found.value - 1:+.1%}", f"{took:.0f}"))
    yield "Drawn portfolios of 5 to 40 jobs, each checked, and held against others, by `benchmarks/judged.py` and"
    yield "`benchmarks/placed.py`, which share the question alone with the solver: a greedy that places job after job,"
    yield "all jobs apart on rented nodes, and a bound."
    yield ""
    yield from table(JUDGED_HEADS, rows)


def brute(seeds: Sequence[int]) -> Iterator[str]:
    """Yield how many answers are those of trying every schedule. Raises RuntimeError where one is not."""
    rows = []
    for asked, made in KINDS.items():
        infeasible = paused = rejected = 0
        for seed in seeds:
            problem = made(random_problem(Random(seed)), Random(seed + 1))
            best, found = cheapest(problem), schedule(problem, Settings())
            if (found.status, found.value) != ("infeasible" if best is None else "optimal", best):
                raise RuntimeError(f"{asked}, seed {seed}: {found.status} {found.value}, every schedule tried: {best}")
            if wrong := check_schedule(problem, found):
                raise RuntimeError(f"{asked}, seed {seed}: {wrong[0]}")
            infeasible += best is None
            paused += any(placed is not None and len(placed.runs) > 1 for placed in found.tasks)
            rejected += None in found.tasks
        rows.append((asked, f"{len(seeds):,}", f"{infeasible:,}", f"{paused:,}", f"{rejected:,}"))
    yield "On small questions over three to five periods, the answer is that of trying every schedule, in value and in"
    yield "feasibility."
    yield ""
    yield from table(("asked", "questions", "infeasible", "with a pause", "with a rejected task"), rows)


def _write(title: str, lines: Iterator[str]) -> None:
    """Put a section in its place on the page."""
    new = "\n".join(lines)
    PAGE.write_text(placed(PAGE.read_text(encoding="utf-8"), title, new), encoding="utf-8")


def placed(page: str, title: str, new: str) -> str:
    """Return a page with a section written anew, up to the next heading of any level."""
    begin = page.index(f"## {title}\n") + len(f"## {title}\n")
    end = page.find("\n##", begin)
    return f"{page[:begin]}\n{new}\n{page[end:] if end >= 0 else ''}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

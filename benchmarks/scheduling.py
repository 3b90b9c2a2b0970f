"""How near a proof portfolios of a size come: `python -m benchmarks.scheduling JOBS POOLS PERIODS [SEEDS]`.

The questions are drawn (`portfolios.py`); figures are CPU seconds of one core, and the gap between plan and bound.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence

from benchmarks.portfolios import portfolio
from planner.solver.check_schedule import check_schedule
from planner.solver.fleet.greedy import greedy
from planner.solver.fleet.scheduling import schedule


def main(argv: Sequence[str]) -> int:
    """Print one line for each drawn question."""
    jobs, pools, periods, seeds = map(int, [*argv, "3"][:4])
    print("| seed | status | gap | cheaper than job after job | CPU s |\n|---|---|---|---|---|")
    for line in lines(jobs, pools, periods, seeds):
        print(line, flush=True)
    return 0


def lines(jobs: int, pools: int, periods: int, seeds: int) -> Iterator[str]:
    """Yield what came of each question. Raises RuntimeError where the check contradicts an answer."""
    for seed in range(seeds):
        problem, began = portfolio(jobs, pools, periods, seed), time.process_time()
        found = schedule(problem)
        took = time.process_time() - began
        if wrong := check_schedule(problem, found):
            raise RuntimeError(wrong[0])
        plain = greedy(problem)
        gap = "" if not found.value or found.bound is None else f"{1 - found.bound / found.value:.2%}"
        less = "" if plain is None or not plain.value or found.value is None else f"{1 - found.value / plain.value:.1%}"
        yield f"| {seed} | {found.status} | {gap} | {less} | {took:.0f} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

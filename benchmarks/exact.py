"""The search held against trying every point of small random grids: write docs/exactness.md.

Run `python -m benchmarks.exact` at the top of the checkout. It ends with exit code 1 where any scenario differs.
"""

from __future__ import annotations

import math
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.metamorphic import Held, relations
from benchmarks.table import table
from planner.layouts.axes import SCHEDULES
from planner.layouts.enumerate import Grid
from planner.process.version import __version__
from planner.solver.search.found import Frontier
from planner.solver.search.parallel import UNGROWN
from tests.search_cases import Choice, choose
from tests.small_cases import OBJECTIVES, POINTS, STACKS, Small, Truth, small_case, truth

PAGE = Path(__file__).parents[1] / "docs" / "exactness.md"
SEEDS = range(5000)
RELATED, SERVED = range(1000), range(20)
"""Seeds of the scenarios whose relations are checked, of training and of services."""
SHOWN = 250
"""Scenarios between two lines of progress."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One scenario: what differs between search and brute force (empty where nothing does), and of what kind it is."""

    seed: int
    value: str
    """The status or the value of the objective."""
    ties: str
    """Cost, GPUs or nodes of the chosen plan, where the value is the same."""
    account: str
    """Grid points that the search accounts for."""
    kinds: frozenset[str]

    @property
    def differences(self) -> str:
        """All that differs, as one line."""
        return "; ".join(filter(None, (self.value, self.ties, self.account)))


ENDINGS: Mapping[str, Callable[[Truth], bool]] = {
    "optimal": lambda t: bool(t.best),
    "infeasible: no legal layout": lambda t: not t.legal,
    "infeasible: memory": lambda t: t.legal > 0 and not t.best and t.with_endless_memory is not None,
    "infeasible: limits": lambda t: t.legal > 0 and not t.best and t.with_endless_memory is None,
}
WON: Mapping[str, Callable[[Truth], bool]] = {
    "memory makes the optimum worse": lambda t: t.best[0].rank[0] != t.with_endless_memory,
    "nothing without offload is as good": lambda t: t.best[0].rank[0] != t.without_offload,
    "every best plan has an uneven split": lambda t: all(max(p.staged.layers) - min(p.staged.layers) > 1
                                                         for p in t.best),
    "every best plan recomputes some layers and not others": lambda t: all(_modes(p.staged.counts) > 1 for p in t.best),
    "every best plan has a pipeline": lambda t: all(p.point["pp"] > 1 for p in t.best),
    "every best plan interleaves": lambda t: all(p.point["vpp"] > 1 for p in t.best),
    "every best plan has a schedule other than 1F1B": lambda t: all(p.point["schedule"] for p in t.best),
    "every best plan runs DualPipe": lambda t: all(SCHEDULES[int(p.point["schedule"])] == "dualpipe" for p in t.best),
    "every best plan shards states": lambda t: all(p.point["zero"] for p in t.best),
    "every best plan has spare nodes": lambda t: all(p.spares for p in t.best),
    "every best plan has fewer than take the fewest node-hours": lambda t: all(p.spares < p.most for p in t.best),
}
ASKED: Mapping[str, Callable[[Small], object]] = {
    **{f"objective: {goal}": lambda c, goal=goal: c.job.objective == goal for goal in OBJECTIVES},
    **{f"stack: {name}": lambda c, name=name: c.question.stack.name == name for name in dict.fromkeys(STACKS)},
    "mixture of experts": lambda c: c.question.shape.experts,
    "mixture of experts behind dense layers": lambda c: c.question.shape.lead,
    "several node types": lambda c: len(c.question.candidates) > 1,
    "several precisions": lambda c: len(c.question.precisions) > 1,
    "tolerance of the batch": lambda c: c.space.tolerance,
    "deadline": lambda c: c.job.deadline_us,
    "deadline at an upper quantile": lambda c: c.job.deadline_us and set(c.job.upper) != {1.0},
    "budget": lambda c: c.job.budget_cents,
    "power limit": lambda c: c.job.max_power_w,
    "owned nodes": lambda c: any(offer.max_nodes is not None for offer in c.job.offers),
    "a commitment": lambda c: any(offer.least_us for offer in c.job.offers),
    "a price by count": lambda c: any(offer.by_count is not None for offer in c.job.offers),
    "spot nodes": lambda c: min(c.job.reclaims) < math.inf,
    "number of GPUs fixed": lambda c: c.facts.fixed_gpus,
    "number of nodes limited": lambda c: c.facts.max_nodes,
}


def _modes(counts: Iterable[Iterable[int]]) -> int:
    """Return how many recompute modes the layers of a plan are in."""
    return sum(any(layers) for layers in zip(*counts, strict=True))


def outcome(seed: int, searches: Sequence[bool] = (True, False), case: Small | None = None) -> Outcome:
    """Solve one scenario by every point, and by searching: for every candidate's best, or (False) for that of all.

    case: the scenario, where it is not that of the seed as it stands.
    """
    case = case or small_case(seed)
    exact = truth(case)
    both = zip(*(_searched(case, exact, each=each) for each in searches), strict=True)
    value, ties, account = ("; ".join(dict.fromkeys(filter(None, said))) for said in both)
    kinds = [name for name, is_so in ENDINGS.items() if is_so(exact)]
    kinds += [name for name, is_so in WON.items() if exact.best and is_so(exact)]
    kinds += [name for name, is_so in ASKED.items() if is_so(case)]
    return Outcome(seed, value, ties, account, frozenset(kinds))


def _searched(case: Small, exact: Truth, *, each: bool) -> tuple[str, str, str]:
    """Return what differs between one search and the brute force: value, ties, account."""
    grid = Grid(case.facts)
    found = choose(case.question, grid, case.job, each=each)
    return *_compared(found, exact), _account(grid, found.frontier)


def _compared(found: Choice, exact: Truth) -> tuple[str, str]:
    """Return what differs in status and value, and what in the tie-breaks."""
    rank = exact.best[0].rank if exact.best else None
    status, value = ("optimal", rank[0]) if rank else ("infeasible", None)
    if (found.status, found.value) != (status, value):
        return f"search {found.status} {found.value}, brute force {status} {value}", ""
    mine = found.best.key[:5] if found.best else None
    return "", "" if mine == rank else f"search {mine}, brute force {rank}"


def _account(grid: Grid, frontier: Frontier) -> str:
    """Return by how much the account of the grid's points is wrong."""
    points = grid.grown + grid.removed.total() + sum(frontier.removed.get(name, 0) for name in UNGROWN)
    return "" if points == grid.size else f"{points:,} grid points accounted for, of {grid.size:,}"


def page(outcomes: list[Outcome], held: Held, seconds: float) -> str:
    """Return docs/exactness.md."""
    counts = Counter(kind for one in outcomes for kind in one.kinds)
    wrong = [one for one in outcomes if one.differences]
    agree = {"feasibility and value of the objective": sum(not one.value for one in outcomes),
             "these, and cost, time, GPUs and nodes of the chosen plan":
             sum(not one.value + one.ties for one in outcomes),
             "account of the grid: every point is removed by a rule, by a bound, or grown":
             sum(not one.account for one in outcomes)}
    lines = ["# Exactness", "", "Generated by `python -m benchmarks.exact`; do not edit.", "",
             *_method(), "", "## Agreement", "",
             *table(("what agrees", "scenarios"), ((what, f"{count:,} of {len(outcomes):,}")
                                                   for what, count in agree.items())), "",
             f"Seeds {outcomes[0].seed} to {outcomes[-1].seed}; {seconds:,.0f} s of CPU time on one core, planner "
             f"{__version__}, Python {platform.python_version()}, numpy {np.__version__}."]
    if wrong:
        lines += ["", "## Differences", "", *table(("seed", "what differs"), (
            (str(one.seed), one.differences) for one in wrong))]
    for heading, kinds in (("How the scenarios end", ENDINGS), ("What wins", WON), ("What is asked", ASKED)):
        lines += ["", f"## {heading}", "",
                  *table(("kind", "scenarios"), ((kind, f"{counts[kind]:,}") for kind in kinds))]
    checked = sum(held.counts.values())
    lines += ["", "## Relations", "", "Between the answers to related questions, of the first scenarios above and of "
              "small services:", f"{checked - len(held.broken):,} of {checked:,} hold.", "",
              *table(("relation", "checked"), ((name.replace("_", " "), f"{count:,}")
                                               for name, count in held.counts.items())),
              *(["", *(f"- {line}" for line in held.broken)] if held.broken else ())]
    return "\n".join(lines) + "\n"


def _method() -> Iterator[str]:
    yield from (
        "Small random scenarios are solved twice: by the search, both as `planner plan` runs it, for the best of every",
        "node type, and as `planner explain` does, for the best of all alone; and by brute force, which tries every",
        f"point of the grid (at most {POINTS:,}, every level of offload among them).",
        "The brute force multiplies out all axes, applies each rule to every point, stages what is legal by plain",
        "enumeration of layers and recompute modes, and computes durations, costs, energy and limits from their",
        "definitions, with every number of spare nodes. It shares with the search the physics of a layout, goodput,",
        "waits for repairs, the most spare nodes, the predicates of the rules and the integers of the staging problem,",
        "and nothing else. The rule `sp_wins`, which removes what cannot win rather than what cannot run, it does not",
        "apply. The scenarios are those of `tests/small_cases.py`: toy models of 2 to 8 layers on one to three node",
        "types, with memory, prices and limits drawn so that they often decide.")


def main() -> int:
    """Solve all scenarios, print how far it is, and write the page."""
    outcomes, began = [], time.process_time()
    for seed in SEEDS:
        outcomes.append(outcome(seed))
        if outcomes[-1].differences:
            print(f"seed {seed}: {outcomes[-1].differences}", flush=True)
        if not len(outcomes) % SHOWN:
            print(f"{len(outcomes)} scenarios, {time.process_time() - began:.0f} s", flush=True)
    held = relations(RELATED, SERVED)
    PAGE.write_text(page(outcomes, held, time.process_time() - began), encoding="utf-8")
    return int(bool(held.broken) or any(one.differences for one in outcomes))


if __name__ == "__main__":
    raise SystemExit(main())

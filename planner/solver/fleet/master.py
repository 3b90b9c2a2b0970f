"""A linear program over a few of all ways, which grows by those that pay and drops those that do not."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

import numpy as np

from planner.solver.fleet.linear import Floats, LinearProgram, Optimum
from planner.solver.fleet.program import Ints
from planner.solver.fleet.rounded import Rounded, Used
from planner.solver.fleet.schedule import Placed, Problem
from planner.solver.fleet.scheduling_model import Scheduling
from planner.solver.fleet.ways import TaskWays, held_by

FIRST = 3
"""Ways of a task to start with, the cheapest."""
OUT_OF_REACH = 3
"""A task that has no place costs so many times the dearest of its ways at first; then more."""


class Master:
    """Ways that are looked at, by task, and the program of them."""

    def __init__(self, problem: Problem, ways: Sequence[TaskWays]) -> None:
        """Start with the cheapest ways."""
        self.problem, self.ways = problem, ways
        self.known = [set(np.argsort(mine.micro_usd, kind="stable")[:FIRST].tolist()) for mine in ways]
        self.paused: list[list[Placed]] = [[] for _ in ways]
        self.held = sorted({held for task in problem.tasks for option in task.options for held in option.held})
        self.rounded = Rounded(problem, self.held)
        self.dear = [OUT_OF_REACH * int(mine.micro_usd.max(initial=10**9)) for mine in ways]
        self.state()

    def state(self) -> None:
        """State the program of what is looked at now."""
        self.rows = [np.array(sorted(mine), dtype=np.intp) for mine in self.known]
        kept = [mine.take(rows) for mine, rows in zip(self.ways, self.rows, strict=True)]
        self.model = Scheduling(self.problem, kept, self.paused)
        program = self.model.program
        self.cuts = self.rounded.put(program, self.model.lots, self._running(kept)) if self.rounded.stated else range(0)
        own = np.ones(len(program.lower), dtype=bool)
        for mine in self.model.tasks:
            own[mine.whole.start:mine.whole.stop] = False
            own[[one for _, one in mine.patterns]] = False
        self.others = np.flatnonzero(own)
        """Variables that are no ways."""
        self._others()
        self.missing = [program.variable(price=dear) for dear in self.dear]
        for task, one in zip(self.model.tasks, self.missing, strict=True):
            program.put(task.choice, one, 1)

    def _others(self) -> None:
        """Look up what prices of rows are added up by."""
        model, program = self.model, self.model.program
        self.ends = np.array(program.least, dtype=np.float64), np.array(program.most, dtype=np.float64)
        self.price = np.array(program.price, dtype=np.float64)
        self.upper = np.array(program.upper, dtype=np.float64)[self.others]
        entries = program.entries()
        kept = np.isin(entries[1], self.others)
        self.other_entries = tuple(column[kept] for column in entries)
        """Rows, variables and factors of variables that are no ways."""
        self.choices = np.array([mine.choice for mine in model.tasks], dtype=np.intp)
        self.lot_rows = np.array([row for *_, rows in model.numbered for row in rows], dtype=np.intp)
        self.links = list[tuple[range, bool, list[range]]]()
        """Rows that say when a task has begun, or is done, whether from a period on, and what asks for it."""
        for at, mine in enumerate(model.tasks):
            for linked, back, rows in (
                    (mine.begun, True, [rows for one, _, rows in model.orders if one == at]),
                    (mine.open, False, [rows for _, other, rows in model.orders if other == at])):
                if linked:
                    self.links.append((range(linked[0], linked[0] + len(linked)), back, rows))

    def _running(self, kept: Sequence[TaskWays]) -> list[tuple[Ints, Ints, Ints, Ints, Ints]]:
        """Return pools, nodes, variables, start and end of all ways, those with pauses run by run."""
        found = list[tuple[Ints, ...]]()
        for task, ways, mine in zip(self.problem.tasks, kept, self.model.tasks, strict=True):
            variables = np.arange(mine.whole.start, mine.whole.stop, dtype=np.int64)
            found += [(pools, nodes, variables, ways.start, ways.end) for pools, nodes in held_by(task, ways)]
            runs = [(pool, nodes, one, start, end) for placed, one in mine.patterns for start, end in placed.runs
                    for pool, nodes in task.options[placed.option].held]
            if runs:
                found.append(tuple(np.array(column, dtype=np.int64) for column in zip(*runs, strict=True)))
        columns = [np.concatenate([one[at] for one in found]) for at in range(5)]
        return [(columns[0], columns[1], columns[2], columns[3], columns[4])]

    def solve(self, block: int, seconds: float | None) -> Optimum | None:
        """Return the optimum with so many neighboring periods as one; none where it is out of reach."""
        limit = None if seconds is None else timedelta(seconds=max(1.0, seconds))
        return LinearProgram(self.model.program, self._groups(block)).solve(limit)

    def _groups(self, block: int) -> Ints:
        """Return rows of neighboring periods as one: what they then cost is alike, and still a bound."""
        groups = np.arange(len(self.model.program.least))
        for rows in (*self.model.capacity.values(), *self.model.ceilings):
            for period, row in enumerate(rows):
                groups[row] = rows[period // block * block]
        return np.unique(groups, return_inverse=True)[1].astype(np.int64)

    def is_short(self, found: Optimum) -> bool:
        """Make what has no place dearer; say whether there is any."""
        short = [at for at, one in enumerate(self.missing) if found.values[one] > 1e-6]
        for at in short:
            self.dear[at] *= OUT_OF_REACH ** 2
        return bool(short)

    def round(self, found: Optimum) -> int:
        """State rows that whole nodes keep and this optimum does not; return how many."""
        periods = self.problem.periods
        used: Used = {held: np.zeros(periods + 1) for held in self.held}
        kept = [mine.take(rows) for mine, rows in zip(self.ways, self.rows, strict=True)]
        for pools, nodes, variables, start, end in self._running(kept):
            for at in np.flatnonzero(found.values[variables] > 1e-9):
                changes = used[int(pools[at]), int(nodes[at])]
                changes[start[at]] += found.values[variables[at]]
                changes[end[at]] -= found.values[variables[at]]
        there = {pool: np.zeros(periods) for pool in self.rounded.capacity}
        for pool, mine in there.items():
            for lot, (count, _) in zip(self.problem.pools[pool].lots, self.model.lots[pool], strict=True):
                mine[lot.start:lot.end] += found.values[count]
        return self.rounded.find({held: np.cumsum(mine)[:-1] for held, mine in used.items()}, there)

    def add(self, at: int, rows: Collection[int], paused: Sequence[Placed]) -> int:
        """Look at more ways of a task; return how many are new."""
        new = set(rows) - self.known[at]
        self.known[at] |= new
        more = [placed for placed in paused if placed not in self.paused[at]]
        self.paused[at] += more
        return len(new) + len(more)

    def drop(self, at: int, more: Floats, paused: Sequence[float], most: float) -> None:
        """Look no longer at ways of a task that cost so much more than the best; paused: what those with pauses do."""
        self.known[at] = {row for row in self.known[at] if more[row] <= most}
        self.paused[at] = [one for one, mine in zip(self.paused[at], paused, strict=True) if mine <= most]

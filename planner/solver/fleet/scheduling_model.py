"""The linear program of many jobs on one fleet: tasks, counts for services and lots, pools, ceilings and money."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

from planner.solver.fleet.schedule import Endless, Lot, Placed, Problem, Schedule
from planner.solver.fleet.scheduling_tasks import PURSE_UNIT, TaskModel
from planner.solver.fleet.ways import TaskWays


class Scheduling(TaskModel):
    """Variables and rows, in the order of the question."""

    def __init__(self, problem: Problem, ways: Sequence[TaskWays] | None = None,
                 paused: Sequence[Sequence[Placed]] = (), pausing: Sequence[Collection[int]] | None = None) -> None:
        """State the whole problem, with tasks in all ways or in those given, and with pauses in all options or in some.
        """
        super().__init__(problem, ways, paused, pausing)
        self.counts = [[[list(self.program.variables(len(service.blocks))) for _ in load.needs]
                        for load in service.loads] for service in problem.services]
        self.busiest: list[tuple[int, list[list[tuple[int, int]]]]] = []
        """Variables of the nodes that a service is on, and the terms of which each is the largest."""
        self.added: list[tuple[int, int, int]] = []
        """Variables of the blocks that a turn adds, and of those there are before and then."""
        self._services()
        self.numbered: list[tuple[int, range, tuple[int, int]]] = []
        """Variables of a lot's nodes and of each number of them, and the rows that one number holds, and that it is
        the nodes.
        """
        self.lots = [[self._lot(at, lot) for lot in pool.lots] for at, pool in enumerate(problem.pools)]
        if ways is None or pausing is not None:
            self._alike()

    def _services(self) -> None:
        program = self.program
        for service, counts in zip(self.problem.services, self.counts, strict=True):
            peak = max((need for load in service.loads for need, _ in load.needs), default=0)
            each = [block.nodes * self.problem.pools[block.pool].micro_usd_per_node_hour for block in service.blocks]
            for load, rows in zip(service.loads, counts, strict=True):
                for (need, hours), row in zip(load.needs, rows, strict=True):
                    program.row([(one, block.micro_rate) for block, one in zip(service.blocks, row, strict=True)], need)
                    for block, one, usd in zip(service.blocks, row, each, strict=True):
                        # more than are needed may stay through a short dip, where starting them again costs more
                        most = peak if service.turns and self.problem.change(service, block) else need
                        program.upper[one] = -(-most // max(1, block.micro_rate))
                        self._paid(one, hours * usd, load.periods)
                for pool in sorted({block.pool for block in service.blocks}):
                    self._busy(pool, load.periods, [[(one, block.nodes) for block, one in zip(
                        service.blocks, row, strict=True) if block.pool == pool] for row in rows])
            self._turns(service, counts)

    def _paid(self, one: int, usd: int, periods: Sequence[int]) -> None:
        """State what a variable costs in some periods, each time."""
        size = self.problem.period_seconds
        self.program.price[one] = len(periods) * usd
        if self.budget is not None:
            self.program.put(self.budget, one, len(periods) * usd)
        for purse, at in zip(self.problem.purses, self.purses, strict=True):
            inside = sum(max(0, min((period + 1) * size, purse.end) - max(period * size, purse.start))
                         for period in periods)
            self.program.put(at, one, -(-usd * inside // (size * PURSE_UNIT)))

    def _turns(self, service: Endless, counts: Sequence[Sequence[Sequence[int]]]) -> None:
        """State what the blocks that turns add cost."""
        for turn in service.turns:
            before, then = (counts[load][need] for load, need in (turn.before, turn.then))
            for block, had, has in zip(service.blocks, before, then, strict=True):
                if usd := self.problem.change(service, block):
                    more = self.program.variable(self.program.upper[has])
                    self._paid(more, usd, turn.periods)
                    self.program.row([(more, 1), (has, -1), (had, 1)], least=0)
                    self.added.append((more, had, has))

    def _busy(self, pool: int, periods: Sequence[int], needs: list[list[tuple[int, int]]]) -> None:
        """State that a service is on nodes of a pool, as many as in its busiest hour."""
        weights = [self.problem.in_use(one)[pool] for one in self.problem.ceilings]
        if pool not in self.capacity and not any(weights):
            return
        upper = self.program.upper
        most = self.program.variable(max(sum(upper[one] * nodes for one, nodes in terms) for terms in needs))
        self.busiest.append((most, needs))
        for terms in needs:
            self.program.row([(most, 1), *((one, -nodes) for one, nodes in terms)], least=0)
        for period in periods:
            if pool in self.capacity:
                self.program.put(self.capacity[pool][period], most, 1)
            for weight, rows in zip(weights, self.ceilings, strict=True):
                if weight:
                    self.program.put(rows[period], most, weight)

    def _lot(self, pool: int, lot: Lot) -> tuple[int, list[int]]:
        """Return the variables of a lot: its nodes, and where the price is not so much a node, one for each number."""
        program, each = self.program, lot.micro_usd[0] if len(lot.micro_usd) == 1 else 0
        nodes, by_number = program.variable(lot.most, each), list[int]()
        paid = [(nodes, each)]
        if len(lot.micro_usd) > 1:
            by_number = [program.variable(price=usd) for usd in lot.micro_usd[:lot.most + 1]]
            one_of = program.row([(one, 1) for one in by_number], 1, 1)
            same = program.row([(nodes, -1), *((one, count) for count, one in enumerate(by_number))], 0, 0)
            self.numbered.append((nodes, range(by_number[0], by_number[-1] + 1), (one_of, same)))
            paid = list(zip(by_number, lot.micro_usd, strict=False))
        for period in range(lot.start, min(lot.end, self.problem.periods)):
            program.put(self.capacity[pool][period], nodes, -1)
            for ceiling, rows in zip(self.problem.ceilings, self.ceilings, strict=True):
                if ceiling.held and ceiling.weights[pool]:
                    program.put(rows[period], nodes, ceiling.weights[pool])
        size = self.problem.period_seconds
        if self.budget is not None:
            program.put_each(self.budget, paid)
        for purse, row in zip(self.problem.purses, self.purses, strict=True):
            inside = min(lot.end * size, purse.end) - max(lot.start * size, purse.start)
            if inside > 0:
                whole = (lot.end - lot.start) * size * PURSE_UNIT
                program.put_each(row, [(one, -(-usd * inside // whole)) for one, usd in paid])
        return nodes, by_number

    def _alike(self) -> None:
        """Put tasks that cannot be told apart in order."""
        waiting = [{other for other, task in enumerate(self.problem.tasks) if at in task.after}
                   for at in range(len(self.tasks))]
        known = zip(self.problem.tasks, self.tasks, waiting, strict=True)
        for (one, mine, before), (other, theirs, then) in pairwise(known):
            if one != other or before != then:
                continue
            if mine.rejected is not None and theirs.rejected is not None:
                self.program.row([(mine.rejected, 1), (theirs.rejected, -1)], most=0)
            elif not one.may_pause:
                self.program.row([(number, sign * int(start)) for sign, task in ((1, mine), (-1, theirs))
                                  for number, start in zip(task.whole, task.ways.start, strict=True)], most=0)

    def point(self, known: Schedule) -> dict[int, int] | None:
        """Return a schedule as values of variables, those that are not 0; none where it uses a way that is not here."""
        values: dict[int, int] = {}
        for at, placed in enumerate(known.tasks):
            mine = self.tasks[at]
            if placed is None:
                if mine.rejected is None:
                    return None
                values[mine.rejected] = 1
                continue
            chosen = self.chosen(at, placed)
            if chosen is None:
                return None
            values.update(chosen)
        self._supplied(known, values)
        self._linked(known, values)
        return values

    def _supplied(self, known: Schedule, values: dict[int, int]) -> None:
        for service, counts in zip(self.counts, known.services, strict=True):
            for load, rows in zip(service, counts, strict=True):
                for variables, numbers in zip(load, rows, strict=True):
                    values.update(zip(variables, numbers, strict=True))
        for more, had, has in self.added:
            values[more] = max(0, values.get(has, 0) - values.get(had, 0))
        for most, needs in self.busiest:
            values[most] = max(sum(values.get(one, 0) * nodes for one, nodes in terms) for terms in needs)
        for lots, nodes in zip(self.lots, known.lots, strict=True):
            for (variable, by_number), count in zip(lots, nodes, strict=True):
                values[variable] = count
                if by_number:
                    values[by_number[count]] = 1

    def chosen(self, at: int, placed: Placed) -> dict[int, int] | None:
        """Return the values of a task's own variables; none where the way is not here."""
        mine = self.tasks[at]
        if len(placed.runs) == 1:
            found = mine.ways.find(placed.option, placed.runs[0][0])
            return None if found is None else {mine.whole[found]: 1}
        task, size = self.problem.tasks[at], self.problem.period_seconds
        for pattern, one in mine.patterns:
            if pattern == placed:
                return {one: 1}
        if placed.option not in mine.paused:
            return None
        active = mine.paused[placed.option]
        values = {mine.by_pauses[placed.option]: 1, mine.resumes[placed.option]: len(placed.runs) - 1}
        values.update({active[period]: 1 for start, end in placed.runs for period in range(start, end)})
        values.update({mine.resumed[placed.option][start]: 1 for start, _ in placed.runs})
        late = 0 if task.due is None else max(0, placed.runs[-1][1] * size - task.due) * task.late_cents_per_day
        if placed.option in mine.cents:
            values[mine.cents[placed.option]] = -(-late // (24 * 3600))
        return values

    def _linked(self, known: Schedule, values: dict[int, int]) -> None:
        for (at, what), variables in self.links.items():
            placed = known.tasks[at]
            for period, one in enumerate(variables):
                if what == "begun":
                    values[one] = int(placed is not None and placed.runs[0][0] <= period)
                else:
                    values[one] = int(placed is None or placed.runs[-1][1] > period)

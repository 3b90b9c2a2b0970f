"""The CP-SAT model of many jobs on one fleet: tasks, counts for services and lots, pools, ceilings and money.

A pool's nodes are a cumulative: what lots do not give is taken up by intervals in which they are absent.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from planner.solver.fleet.schedule import CENT, Problem
from planner.solver.fleet.scheduling_tasks import Expr, TaskModel

MOST_NODES = 10**7
"""That any service is on; no fleet comes near."""


class Model(TaskModel):
    """Variables and constraints, in the order of the question."""

    def __init__(self, problem: Problem) -> None:
        """State the whole problem."""
        super().__init__(problem)
        self.busy: list[tuple[int, int, int, Expr]] = []
        """Pool, first period and first after, and nodes that a service is on."""
        self.counts = [[[[self.model.new_int_var(0, self._most(at, block, need), "")
                          for block in range(len(service.blocks))] for need, _ in load.needs]
                        for load in service.loads] for at, service in enumerate(problem.services)]
        self._services()
        self.lots = [[self.model.new_int_var(0, lot.most, "") for lot in pool.lots] for pool in problem.pools]
        self._lots()
        self._pools()
        self._ceilings()
        self._money()

    def _most(self, at: int, block: int, need: int) -> int:
        return -(-need // max(1, self.problem.services[at].blocks[block].micro_rate))

    def _services(self) -> None:
        for service, counts in zip(self.problem.services, self.counts, strict=True):
            pools = sorted({block.pool for block in service.blocks})
            for load, rows in zip(service.loads, counts, strict=True):
                cost: Expr = 0
                for (need, hours), row in zip(load.needs, rows, strict=True):
                    rate = sum(block.micro_rate * count for block, count in zip(service.blocks, row, strict=True))
                    self.model.add(rate >= need)
                    cost += sum(hours * block.nodes * self.problem.pools[block.pool].micro_usd_per_node_hour * count
                                for block, count in zip(service.blocks, row, strict=True))
                self.paid.append(len(load.periods) * cost)
                size = self.problem.period_seconds
                self.spent += [
                    (hours * block.nodes * self.problem.pools[block.pool].micro_usd_per_node_hour, count,
                     period * size, (period + 1) * size)
                    for (_, hours), row in zip(load.needs, rows, strict=True)
                    for count, block in zip(row, service.blocks, strict=True) for period in load.periods]
                for pool in pools:
                    self._busy(pool, load.periods, [sum(
                        block.nodes * count for block, count in zip(service.blocks, row, strict=True)
                        if block.pool == pool) for row in rows])

    def _busy(self, pool: int, periods: tuple[int, ...], nodes: list[Expr]) -> None:
        """State that a service is on nodes of a pool, as many as in its busiest hour."""
        if self.problem.pools[pool].is_endless and not any(one.weights[pool] for one in self.problem.ceilings):
            return
        most = self.model.new_int_var(0, MOST_NODES, "busiest")
        for one in nodes:
            self.model.add(most >= one)
        self.busy += [(pool, start, end, most) for start, end in runs_of(periods)]

    def _lots(self) -> None:
        size = self.problem.period_seconds
        for pool, counts in zip(self.problem.pools, self.lots, strict=True):
            for lot, count in zip(pool.lots, counts, strict=True):
                each, times = lot.micro_usd[0], count
                if len(lot.micro_usd) > 1:
                    cents = [usd // CENT for usd in lot.micro_usd]
                    each, times = CENT, self.model.new_int_var(0, max(cents), "")
                    self.model.add_element(count, cents, times)
                self.paid.append(each * times)
                self.spent.append((each, times, lot.start * size, lot.end * size))

    def _pools(self) -> None:
        """State that no pool has more in use than there is."""
        for at, (pool, counts) in enumerate(zip(self.problem.pools, self.lots, strict=True)):
            if pool.is_endless:
                continue
            there = pool.capacity or (0,) * self.problem.periods
            steps = [(start, end, max(there) - nodes) for start, end, nodes in steps_of(there) if nodes < max(there)]
            taken: list[tuple[int, int, Expr, int]] = [(start, end, less, 0) for start, end, less in steps]
            served = [(start, end, nodes) for of, start, end, nodes in self.busy if of == at]
            taken += [(start, end, nodes, 1) for start, end, nodes in served]
            for lot, count in zip(pool.lots, counts, strict=True):
                end = min(lot.end, self.problem.periods)
                # what is not taken is absent while it could be there, and all of it before and after
                taken += [(lot.start, end, lot.most - count, 1), (0, lot.start, lot.most, 0),
                          (end, self.problem.periods, lot.most, 0)]
            mine = [use for use in self.uses if use.pool == at]
            self._cumulative([(use.interval, use.nodes) for use in mine], taken,
                             max(there) + sum(lot.most for lot in pool.lots))
            held = sum(there) + sum((min(lot.end, self.problem.periods) - lot.start) * count
                                    for lot, count in zip(pool.lots, counts, strict=True))
            self.model.add(sum(use.periods for use in mine)
                           + sum((end - start) * nodes for start, end, nodes in served) <= held)

    def _cumulative(self, uses: list[tuple[cp_model.IntervalVar, Expr]],
                    taken: list[tuple[int, int, Expr, int]], most: int) -> None:
        """State that uses and what is taken from period to period are at most so much together.

        What is taken is a number where its last part is 0, else it varies: CP-SAT 9.15 is wrong now and then where a
        varying demand may be zero, so that it has one more, and so has all the time besides.
        """
        intervals, demands = [interval for interval, _ in uses], [demand for _, demand in uses]
        for start, end, amount, varies in taken:
            if start < end:
                intervals.append(self.model.new_fixed_size_interval_var(start, end - start, ""))
                demands.append(amount + varies)
            for first, then in ((0, start), (end, self.problem.periods)) if varies else ():
                if first < then:
                    intervals.append(self.model.new_fixed_size_interval_var(first, then - first, ""))
                    demands.append(1)
            most += varies
        self.model.add_cumulative(intervals, demands, most)

    def _ceilings(self) -> None:
        for ceiling in self.problem.ceilings:
            mine = [(use.interval, ceiling.weights[use.pool] * use.nodes) for use in self.uses
                    if ceiling.weights[use.pool] and not (ceiling.held and self.problem.pools[use.pool].lots)]
            taken: list[tuple[int, int, Expr, int]] = [
                (lot.start, min(lot.end, self.problem.periods), weight * count, 1)
                for pool, weight, counts in zip(self.problem.pools, ceiling.weights, self.lots, strict=True)
                if ceiling.held and weight for lot, count in zip(pool.lots, counts, strict=True)]
            taken += [(start, end, ceiling.weights[pool] * nodes, 1) for pool, start, end, nodes in self.busy
                      if ceiling.weights[pool] and not (ceiling.held and self.problem.pools[pool].lots)]
            self._cumulative(mine, taken, ceiling.most)

    def _money(self) -> None:
        if self.problem.budget is not None:
            self.model.add(sum(self.paid) <= self.problem.budget)
        for purse in self.problem.purses:
            spent: list[Expr] = []
            for each, times, start, end in self.spent:
                inside = min(end, purse.end) - max(start, purse.start)
                if inside > 0 and each:
                    # in hundredths of a cent, up
                    spent.append(-(-each * inside // ((end - start) * (CENT // 100))) * times)
            self.model.add(sum(spent) <= purse.micro_usd // (CENT // 100))

    def objective(self) -> Expr:
        """Return micro-USD, with what is forgone and paid for being late."""
        forgone = sum((task.worth or 0) * mine.rejected
                      for task, mine in zip(self.problem.tasks, self.tasks, strict=True))
        return sum(self.paid) + forgone + CENT * sum(mine.late for mine in self.tasks)


def runs_of(periods: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return periods as stretches: first, and first after."""
    runs: list[tuple[int, int]] = []
    for period in periods:
        if runs and runs[-1][1] == period:
            runs[-1] = runs[-1][0], period + 1
        else:
            runs.append((period, period + 1))
    return runs


def steps_of(values: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Return stretches of equal values: first, first after, and the value."""
    steps: list[tuple[int, int, int]] = []
    for at, value in enumerate(values):
        if steps and steps[-1][2] == value:
            steps[-1] = steps[-1][0], at + 1, value
        else:
            steps.append((at, at + 1, value))
    return steps

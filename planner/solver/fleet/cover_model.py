"""Replicas of services on nodes that hold every service's rate in every hour, as a CP-SAT model.

Plain integers: micro-requests/s rounded against the plan, micro-USD per node-hour. Replicas of all services share the
nodes of a supply: the sizes of those within a node each divide the next, so that they pack without gaps.
With k spares the rate must hold without the k strongest replicas of each pool, or without k nodes full of the
strongest. Pools are those of a service that do all of a request, and those of a supply that prefill, or decode; the
two of one supply together answer what the weaker does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cached_property

from ortools.sat.python import cp_model

from planner.solver.engine import CpModel, Ending
from planner.solver.fleet.covering import Cover, Covered, NodeSupply, Supplied, nodes_of, packs, weights


class CoverModel:
    """The model of one cover: replicas and nodes by period, what must hold of them, and what can be minimized."""

    def __init__(self, problem: Cover) -> None:
        self.problem, self.model = problem, CpModel()
        self.periods = range(len(problem.hours))
        self.replicas = {c.key: self._replicas(c) for c in problem.columns}
        self.used = {c.key: self._used(c) for c in problem.columns}
        self.active, self.weights = self._active(), weights(problem)
        self.nodes = {supply.key: self._nodes(supply) for supply in problem.supplies}
        for at in range(len(problem.needs)):
            self._coverage(at)
        self.costs = self._costs()
        self.changes = self._changes()
        self._limits()

    def _most(self, column: Supplied) -> int:
        """Return replicas that no plan needs more of: the whole rate, with the spares."""
        peak = max(self.problem.needs[column.service])
        spares = self.problem.spares[column.service] * self.problem.fail_together(column)
        return -(-peak // column.micro_rate) + spares

    def _replicas(self, column: Supplied) -> list[cp_model.IntVar]:
        return [self.model.new_int_var(0, self._most(column), f"replicas[{column.key},{p}]") for p in self.periods]

    def _used(self, column: Supplied) -> cp_model.IntVar:
        used = self.model.new_bool_var(f"used[{column.key}]")
        for replicas in self.replicas[column.key]:
            self.model.add(replicas <= self._most(column) * used)
        return used

    def _active(self) -> list[cp_model.LinearExprT]:
        """Return which services answer: all, or of those with classes just one for each class."""
        if not self.problem.ranges:
            return [1] * len(self.problem.needs)
        active = [self.model.new_bool_var(f"active[{at}]") for at in range(len(self.problem.needs))]
        classes: dict[tuple[int, int], list[cp_model.IntVar]] = defaultdict(list)
        for variable, (of, first, last) in zip(active, self.problem.ranges, strict=True):
            for number in range(first, last + 1):
                classes[of, number].append(variable)
        for choice in classes.values():
            self.model.add_exactly_one(choice)
        for column in self.problem.columns:
            self.model.add(self.used[column.key] <= active[column.service])
        return list(active)

    def _nodes(self, supply: NodeSupply) -> list[cp_model.IntVar]:
        """Return the nodes of a supply in use in each period: the fewest that hold its replicas."""
        mine, gpus = [c for c in self.problem.columns if c.supply == supply.key], supply.node_gpus
        if not packs(supply, mine):
            raise ValueError(f"supply {supply.key}: replicas of {sorted({c.gpus for c in mine})} GPUs leave gaps on "
                             f"nodes of {gpus}")
        most = min(supply.most, nodes_of(supply, sum(c.gpus * self._most(c) for c in mine)))
        made = [self.model.new_int_var(0, most, f"nodes[{supply.key},{p}]") for p in self.periods]
        for period, nodes in enumerate(made):
            taken = sum(c.gpus * self.replicas[c.key][period] for c in mine)
            self.model.add(gpus * nodes >= taken)
            self.model.add(gpus * nodes < taken + gpus)
        return made

    def _answered(self, columns: list[Supplied], service: int, period: int) -> cp_model.LinearExprT:
        """Return micro-requests/s that a pool answers without its strongest spares: nothing, if it has no more."""
        spares, need = self.problem.spares[service], self.problem.needs[service][period]
        replicas = {c.key: self.replicas[c.key][period] for c in columns}
        if not spares or not columns:
            return sum(c.micro_rate * replicas[c.key] for c in columns)
        left, chosen = self.model.new_int_var(0, need, ""), []
        if self.problem.whole_nodes and self.problem.whole_nodes[service]:
            # replicas of several columns on a node have no more than a node of the strongest of them has
            lost = [(c.micro_rate * self.problem.fail_together(c), self.used[c.key]) for c in columns]
            strongest = self.model.new_int_var(0, max(rate for rate, _ in lost), "")
            for rate, used in lost:
                self.model.add(strongest >= rate * used)
            chosen.append(self.model.new_bool_var(""))
            total = sum(c.micro_rate * replicas[c.key] for c in columns)
            self.model.add(left + spares * strongest <= total).only_enforce_if(chosen[-1])
            self.model.add(left == 0).only_enforce_if(chosen[-1].negated())
            return left
        # k replicas that rate t or more are at most k t, and what the others of them have above t: the best t is exact
        for rate in sorted({c.micro_rate for c in columns}):
            chosen.append(self.model.new_bool_var(""))
            total = sum(min(c.micro_rate, rate) * replicas[c.key] for c in columns)
            self.model.add(left + spares * rate <= total).only_enforce_if(chosen[-1])
        nothing = self.model.new_bool_var("")
        self.model.add(left == 0).only_enforce_if(nothing)
        self.model.add_exactly_one([*chosen, nothing])
        return left

    def _coverage(self, service: int) -> None:
        """Every period's rate is answered, by whole replicas and by pairs of pools."""
        problem, spares = self.problem, self.problem.spares[service]
        pools: dict[tuple[int, str], list[Supplied]] = defaultdict(list)
        for column in problem.columns:
            if column.service == service:
                pools[column.supply if column.role != "whole" else -1, column.role].append(column)
        for period, need in enumerate(problem.needs[service]):
            answered = [self._answered(pools[-1, "whole"], service, period)]
            for supply in sorted({supply for supply, role in pools if role != "whole"}):
                both = self.model.new_int_var(0, need, f"apart[{service},{supply},{period}]")
                for role in ("prefill", "decode"):
                    self.model.add(both <= self._answered(pools[supply, role], service, period))
                answered.append(both)
            self.model.add(sum(answered) >= need * self.active[service])
            whole = pools[-1, "whole"]
            if need and spares and len(pools) == 1 and whole:
                # follows from the above; without it the bound of the relaxation is far off
                least = min(c.micro_rate * problem.fail_together(c) for c in whole)
                self.model.add(sum(c.micro_rate * self.replicas[c.key][period] for c in whole)
                               >= (need + spares * least) * self.active[service])

    def _paid(self, supply: NodeSupply) -> list[cp_model.LinearExprT]:
        """Return the nodes of a supply paid for in each period; one figure where all are alike."""
        mine = [c for c in self.problem.columns if c.supply == supply.key]
        needed: list[cp_model.LinearExprT] = list(self.nodes[supply.key])
        if not supply.always or not mine:
            return needed
        held = self.model.new_int_var(0, supply.most, f"held[{supply.key}]")
        for nodes in needed:
            self.model.add(held >= nodes)
        return [held]

    def _costs(self) -> list[cp_model.LinearExprT]:
        """Return micro-USD an hour of each period."""
        prices = [[self._price(supply, nodes) for nodes in self._paid(supply)] for supply in self.problem.supplies]
        return [sum(price[period % len(price)] for price in prices) for period in self.periods]

    def _price(self, supply: NodeSupply, nodes: cp_model.LinearExprT) -> cp_model.LinearExprT:
        if supply.linear or isinstance(nodes, int):
            return nodes * supply.micro_usd(1)
        table = [supply.micro_usd(count) if count else 0 for count in range(supply.most + 1)]
        price = self.model.new_int_var(0, max(table), f"price[{supply.key}]")
        at = self.model.new_int_var(0, supply.most, "")
        self.model.add(at == nodes)
        self.model.add_element(at, table, price)
        return price

    def _changes(self) -> cp_model.LinearExprT:
        """Return micro-USD a day of the nodes that periods add: those of two periods stand beside each other."""
        paid: list[cp_model.LinearExprT] = []
        for supply in self.problem.supplies if self.problem.changing else ():
            mine = [c for c in self.problem.columns if c.supply == supply.key]
            nodes, most = self.nodes[supply.key], self.model.new_int_var
            for period in self.periods:
                both = most(0, supply.most, f"both[{supply.key},{period}]")
                taken: list[cp_model.LinearExprT] = []
                for c in mine:
                    there = most(0, self._most(c), f"there[{c.key},{period}]")
                    for at in (period - 1, period):
                        self.model.add(there >= self.replicas[c.key][at])
                    taken.append(c.gpus * there)
                self.model.add(supply.node_gpus * both >= sum(taken))
                for at in (period - 1, period):
                    self.model.add(both >= nodes[at])
                paid.append(self.problem.change(supply) * (both - nodes[period]))
        return sum(paid)

    def cost(self, period: int) -> cp_model.LinearExprT:
        """Return micro-USD an hour of a period."""
        return self.costs[period]

    def gpus(self, period: int) -> cp_model.LinearExprT:
        """Return the GPUs of all replicas in a period."""
        return sum(c.gpus * self.replicas[c.key][period] for c in self.problem.columns)

    def _weight(self, period: int) -> cp_model.LinearExprT:
        return sum(self.weights[c.key] * self.replicas[c.key][period] for c in self.problem.columns)

    def held_gpus(self, period: int) -> cp_model.LinearExprT:
        """Return the GPUs of the nodes in use in a period, those that are idle included."""
        return sum(supply.node_gpus * self.nodes[supply.key][period] for supply in self.problem.supplies)

    def total_nodes(self, period: int) -> cp_model.LinearExprT:
        """Return the nodes in use in a period."""
        return sum(nodes[period] for nodes in self.nodes.values())

    def watts(self, period: int) -> cp_model.LinearExprT:
        """Return the power of the nodes in use."""
        return sum(supply.watts * self.nodes[supply.key][period] for supply in self.problem.supplies)

    def _limits(self) -> None:
        limits = ((self.gpus, self.problem.max_gpus), (self.total_nodes, self.problem.max_nodes),
                  (self.cost, self.problem.micro_budget), (self.watts, self.problem.max_watts))
        for amount, limit in limits:
            for period in self.periods if limit is not None else ():
                assert limit is not None
                self.model.add(amount(period) <= limit)

    def _daily(self, amount: Callable[[int], cp_model.LinearExprT]) -> cp_model.LinearExprT:
        """Return the sum over the hours of a day."""
        return sum(hours * amount(period) for period, hours in enumerate(self.problem.hours))

    @cached_property
    def money(self) -> cp_model.LinearExprT:
        """Micro-USD a day, with what changes cost."""
        return sum([self._daily(self.cost), self.changes])

    def _most_gpus(self) -> cp_model.LinearExprT:
        """Return the GPUs of the period that has the most."""
        if len(self.periods) == 1:
            return self.gpus(0)
        most = self.model.new_int_var(0, sum(c.gpus * self._most(c) for c in self.problem.columns), "gpus")
        for period in self.periods:
            self.model.add(most >= self.gpus(period))
        return most

    def start(self, goal: cp_model.LinearExprT, known: Covered) -> None:
        """Look for nothing worse than a known cover by some of the columns, from it on."""
        assert known.value is not None
        self.model.add(goal <= known.value)
        self.hint(known)

    def hint(self, known: Covered) -> None:
        """Search from a known cover on."""
        for found, values in ((self.replicas, known.replicas), (self.nodes, known.nodes)):
            for key, variables in found.items():
                for variable, count in zip(variables, values.get(key, (0,) * len(variables)), strict=True):
                    self.model.add_hint(variable, count)

    def hold(self, known: Covered) -> None:
        """Let no period take more than it does of a known cover, of what the question minimizes, money and GPUs."""
        amounts: list[Callable[[int], cp_model.LinearExprT]] = [self.cost, self.held_gpus]
        taken = [known.costs(self.problem), known.held_gpus(self.problem)]
        if self.problem.objective == "gpus":
            amounts.append(self.gpus)
            taken.append(known.gpus(self.problem))
        if self.problem.objective == "energy":
            amounts.append(self.watts)
            taken.append(known.watts(self.problem))
        for amount, most in zip(amounts, taken, strict=True):
            for period in self.periods:
                self.model.add(amount(period) <= most[period])
        if self.problem.changing:
            self.model.add(self.changes <= known.changes(self.problem))

    def objective(self) -> cp_model.LinearExprT:
        """Return what the question minimizes."""
        match self.problem.objective:
            case "cost":
                return self.money
            case "gpus":
                return self._most_gpus()
            case "energy":
                return self._daily(self.watts)

    def then(self) -> list[cp_model.LinearExprT]:
        """Return what is minimized among the best, in order: money, then the GPUs of the nodes in use.

        Where nodes of one kind at one price are all that is paid for, money stands for both.
        """
        supply, *others = self.problem.supplies
        one = not others and supply.linear and not supply.always and supply.micro_usd(1) and not self.problem.changing
        return [self.money, self.money if one else self._daily(self.held_gpus)]

    def tidy(self) -> list[cp_model.LinearExprT]:
        """Return what is minimized last: the number of columns in use, their `weights`, then columns listed late.

        A GPU that idles on a node in use saves nothing, so that fleets of fewer kinds of replicas come before it.
        """
        return [sum(self.used.values()), self._daily(self._weight),
                sum(at * self.used[c.key] for at, c in enumerate(self.problem.columns))]

    def tidy_at_once(self) -> cp_model.LinearExprT:
        """Return the same as one figure."""
        columns, hours = self.problem.columns, self.problem.hours
        after = len(columns) ** 2
        most = sum(c.gpus * self._most(c) for c in columns) * sum(hours) + 1
        return sum([*((after * most + at) * self.used[c.key] for at, c in enumerate(columns)),
                    *(after * many * self.weights[c.key] * self.replicas[c.key][p]
                      for c in columns for p, many in enumerate(hours))])

    def read(self, ending: Ending, first: Ending) -> Covered:
        """Return the cover that a solve found, with the proof of `first`, which minimized what the question does."""
        replicas, nodes = ({key: tuple(ending.read(v) for v in values) for key, values in variables.items()}
                           for variables in (self.replicas, self.nodes))
        return Covered(first.status, replicas, nodes, first.value, first.bound)

"""A question of replicas on nodes, and its answer, in plain integers: what `cover.py` solves.

Micro-requests/s are rounded against the plan; money is in micro-USD per node-hour.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from planner.solver.settings import Settings, Status
from planner.units import HOUR

Goal = Literal["cost", "gpus", "energy"]
LIMITED = Settings(deterministic_limit=60.0, linearization=2)
"""About a minute or two for each goal, far beyond what usual questions take."""


@dataclass(frozen=True, slots=True)
class NodeSupply:
    """Nodes of one kind from one source. `always` are paid at every hour, as what is bought or committed."""

    key: int
    micro_usd: Callable[[int], int]
    """Micro-USD an hour of so many nodes, all together."""
    most: int
    node_gpus: int
    watts: int
    always: bool = False
    linear: bool = True
    """Whether the price is the same for every node."""
    provider: str = ""
    node: str = ""
    """Whose it is, and of what type: what a cover may have one of."""


@dataclass(frozen=True, slots=True)
class Supplied:
    """Replicas of one layout for one service on one supply."""

    key: int
    service: int
    supply: int
    role: Literal["whole", "prefill", "decode"]
    micro_rate: int
    gpus: int


@dataclass(frozen=True, slots=True)
class Cover:
    """`needs` are micro-requests/s by service and period; `hours` of a day each period lasts."""

    needs: tuple[tuple[int, ...], ...]
    spares: tuple[int, ...]
    columns: tuple[Supplied, ...]
    supplies: tuple[NodeSupply, ...]
    hours: tuple[int, ...] = (24,)
    objective: Goal = "cost"
    micro_budget: int | None = None
    """Micro-USD an hour, in every period."""
    max_gpus: int | None = None
    max_nodes: int | None = None
    max_watts: int | None = None
    one_provider: bool = False
    """Whether replicas are on supplies of one provider only."""
    homogeneous: bool = False
    """Whether replicas are on supplies of one type of node only."""
    whole_nodes: tuple[bool, ...] = ()
    """Of each service whether its spares are nodes, which fail with all replicas on them; none is that none are."""
    ranges: tuple[tuple[int, int, int], ...] = ()
    """Of each service what it is of, and the first and last class of it that it answers: of those of one thing just one
    answers each class. None is that every service is needed."""
    changing: int = 0
    """Seconds for which a node that a period adds is paid besides, as it starts before and ends its requests after it.
    Replicas of two periods are then there together; periods are in their order, the first after the last.
    """

    def fail_together(self, column: Supplied) -> int:
        """Return how many replicas of a column one spare stands for: one, or as many as a node has room for."""
        if not (self.whole_nodes and self.whole_nodes[column.service]):
            return 1
        return max(1, next(one.node_gpus for one in self.supplies if one.key == column.supply) // column.gpus)

    def change(self, supply: NodeSupply) -> int:
        """Return micro-USD of a node that a period adds."""
        return 0 if supply.always else -(-supply.micro_usd(1) * self.changing // int(HOUR))

    def alike(self, supply: NodeSupply) -> tuple[str, str]:
        """Return what is the same of all supplies that replicas are on."""
        return supply.provider if self.one_provider else "", supply.node if self.homogeneous else ""


@dataclass(frozen=True, slots=True)
class Covered:
    """Replicas by column key, nodes by supply key, each by period; value and bound of the objective.

    That is micro-USD a day, GPUs in the hour that has the most, or W x h a day.
    """

    status: Status
    replicas: dict[int, tuple[int, ...]] = field(default_factory=dict)
    nodes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    value: int | None = None
    bound: int | None = None

    def costs(self, problem: Cover) -> list[int]:
        """Return micro-USD an hour of each period; what is always paid is paid as in the period that has most."""
        periods = range(len(problem.hours))
        paid = [(one, (max(self.nodes[one.key]),) * len(periods) if one.always else self.nodes[one.key])
                for one in problem.supplies]
        return [sum(one.micro_usd(nodes[p]) for one, nodes in paid if nodes[p]) for p in periods]

    def changes(self, problem: Cover) -> int:
        """Return micro-USD a day of the nodes that periods add."""
        both = {supply.key: nodes_while_changing(supply, [(c.gpus, self.replicas[c.key]) for c in problem.columns
                                                          if c.supply == supply.key])
                for supply in problem.supplies if problem.change(supply)}
        return sum(problem.change(supply) * (sum(both[supply.key]) - sum(self.nodes[supply.key]))
                   for supply in problem.supplies if supply.key in both)

    def gpus(self, problem: Cover) -> list[int]:
        """Return the GPUs of all replicas in each period."""
        return [sum(c.gpus * self.replicas[c.key][p] for c in problem.columns) for p in range(len(problem.hours))]

    def held_gpus(self, problem: Cover) -> list[int]:
        """Return the GPUs of the nodes in use in each period, those that are idle included."""
        return [sum(one.node_gpus * self.nodes[one.key][p] for one in problem.supplies)
                for p in range(len(problem.hours))]

    def watts(self, problem: Cover) -> list[int]:
        """Return the power of the nodes in use in each period."""
        return [sum(one.watts * self.nodes[one.key][p] for one in problem.supplies) for p in range(len(problem.hours))]

    def worth(self, problem: Cover) -> int:
        """Return the value of the objective, computed from replicas and nodes alone."""
        if problem.objective == "gpus":
            return max(self.gpus(problem))
        cost = problem.objective == "cost"
        amounts = self.costs(problem) if cost else self.watts(problem)
        total = sum(hours * amount for hours, amount in zip(problem.hours, amounts, strict=True))
        return total + (self.changes(problem) if cost else 0)


def nodes_of(supply: NodeSupply, gpus: int) -> int:
    """Return the nodes that replicas of so many GPUs in all fill."""
    return -(-gpus // supply.node_gpus)


def nodes_while_changing(supply: NodeSupply, replicas: Iterable[tuple[int, Sequence[int]]]) -> list[int]:
    """Return the nodes that hold the replicas of each period beside those of the one before.

    replicas: of each column the GPUs of one, and the count in each period.
    """
    gpus = [[size * max(pair) for pair in zip((*counts[-1:], *counts[:-1]), counts, strict=True)]
            for size, counts in replicas]
    return [nodes_of(supply, sum(of)) for of in zip(*gpus, strict=True)]


def moving(counts: Sequence[int]) -> int:
    """Return how many replicas the periods of a day add."""
    return sum(max(0, now - before) for before, now in zip((*counts[-1:], *counts[:-1]), counts, strict=True))


def packs(supply: NodeSupply, columns: Iterable[Supplied]) -> bool:
    """Say whether replicas fill nodes without gaps: within a node each size divides the next; beyond, whole nodes."""
    sizes = sorted({*(column.gpus for column in columns), supply.node_gpus})
    return all(not larger % smaller for smaller, larger in pairwise(sizes))


def weights(problem: Cover) -> dict[int, int]:
    """Return what a replica of each column counts for, of those equal in money: its GPUs, or where no GPU holds one
    alone the GPUs of whole nodes that it puts to work, as what else idles there is of no use.
    """
    whole = {supply.key: supply.node_gpus for supply in problem.supplies}
    least: dict[tuple[int, int], int] = {}
    for c in problem.columns:
        least[c.service, c.supply] = min(c.gpus, least.get((c.service, c.supply), c.gpus))
    return {c.key: -c.gpus if least[c.service, c.supply] > 1 and not c.gpus % whole[c.supply] else c.gpus
            for c in problem.columns}

"""The fleet question and its answer, in plain ints: cents, microseconds, and micro-USD per node-hour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from planner.solver.column import Column
from planner.solver.quantize import cost_cents
from planner.solver.settings import Status

Goal = Literal["cost", "time", "gpus", "energy"]


@dataclass(frozen=True, slots=True)
class FleetOffer:
    """Nodes of one hardware candidate at one price; `max_nodes` holds for all workloads together."""

    key: int
    candidate: int
    micro_usd_per_node_hour: int
    max_nodes: int | None = None
    least_us: int = 0
    """Paid for in any case: what a commitment lasts."""
    by_count: Callable[[int], int] | None = None
    """Micro-USD per node-hour by the number of nodes, where the price depends on it, as of nodes that are bought."""

    def price(self, nodes: int) -> int:
        """Return micro-USD per node-hour of so many nodes."""
        return self.micro_usd_per_node_hour if self.by_count is None else self.by_count(nodes)

    def cents(self, nodes: int, duration_us: int) -> int:
        """Return what so many nodes cost for so long."""
        return cost_cents(nodes, self.price(nodes), max(duration_us, self.least_us))


class Pick(NamedTuple):
    """One possible decision: this workload in this column on this offer, for `cents` over its duration."""

    workload: int
    column: Column
    offer: FleetOffer
    cents: int


class Choice(NamedTuple):
    """What was decided for one workload."""

    workload: int
    column: Column
    offer: FleetOffer


@dataclass(frozen=True, slots=True)
class FleetProblem:
    """Workloads run at the same time, each in one of its columns; limits are None where there is none.

    Nodes count with their spares everywhere; the deadline holds for each workload on its own.
    Raises ValueError for two columns of a workload, or two offers, with the same key.
    """

    workloads: tuple[tuple[Column, ...], ...]
    offers: tuple[FleetOffer, ...]
    objective: Goal = "cost"
    deadline_us: int | None = None
    budget_cents: int | None = None
    max_gpus: int | None = None
    max_nodes: int | None = None
    max_power_w: int | None = None

    def __post_init__(self) -> None:
        """Refuse keys that name two things: the last tie-break would not be unique."""
        named = [[column.key for column in columns] for columns in self.workloads]
        for keys in (*named, [offer.key for offer in self.offers]):
            twice = sorted(key for key, count in Counter(keys).items() if count > 1)
            if twice:
                raise ValueError(f"keys are not unique: {twice}")

    def picks(self) -> tuple[tuple[Pick, ...], ...]:
        """Return every decision open to each workload, by rising column key and then offer key."""
        return tuple(
            tuple(
                Pick(workload, column, offer, pick_cents(column, offer))
                for column in sorted(columns, key=_key)
                for offer in sorted(self.offers, key=_key)
                if offer.candidate == column.candidate
            )
            for workload, columns in enumerate(self.workloads)
        )


@dataclass(frozen=True, slots=True)
class Solution:
    """`value` and `bound` are of the objective (cents, us or GPUs), None without choices.

    "optimal" says that the exact value is the exact bound, tie-breaks included.
    """

    status: Status
    choices: tuple[Choice, ...]
    value: int | None
    bound: int | None


def pick_cents(column: Column, offer: FleetOffer) -> int:
    """Return what the nodes of `column`, spares included, cost on `offer` for its duration, in cents."""
    return offer.cents(column.rented_nodes, column.duration_us)


def _key(entry: Column | FleetOffer) -> int:
    return entry.key

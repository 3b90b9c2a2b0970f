"""The question which run one job takes, and its answer, in plain ints: cents, microseconds, micro-USD per node-hour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from planner.layouts.table import Ints
from planner.solver.column import Column
from planner.solver.quantize import cost_cents
from planner.solver.settings import Status

Goal = Literal["cost", "time", "gpus", "energy"]


@dataclass(frozen=True, slots=True)
class FleetOffer:
    """Nodes of one hardware candidate at one price."""

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

    def committed_cents(self, nodes: Ints) -> Ints:
        """Return what each number of nodes costs at least, however short it runs: `cents` of no duration."""
        if self.by_count is None:
            return cost_cents(nodes.astype(object), self.micro_usd_per_node_hour, self.least_us).astype(np.int64)
        counts, place = np.unique(nodes, return_inverse=True)
        return np.array([self.cents(count, 0) for count in counts.tolist()], np.int64)[place]


class Choice(NamedTuple):
    """A column on an offer."""

    column: Column
    offer: FleetOffer


@dataclass(frozen=True, slots=True)
class FleetLimits:
    """What a run must keep, in the solver's quanta; none is no limit. GPUs and nodes are limits of the columns."""

    deadline_us: int | None = None
    budget_cents: int | None = None
    max_power_w: int | None = None


@dataclass(frozen=True, slots=True)
class RunProblem:
    """One job runs in one of its columns, on an offer of the column's candidate. Nodes count with their spares.

    Raises ValueError for two columns, or two offers, with the same key.
    """

    columns: tuple[Column, ...]
    offers: tuple[FleetOffer, ...]
    objective: Goal = "cost"
    limits: FleetLimits = FleetLimits()

    def __post_init__(self) -> None:
        """Refuse keys that name two things: the last tie-break would not be unique."""
        for entries in (self.columns, self.offers):
            twice = sorted(key for key, count in Counter(entry.key for entry in entries).items() if count > 1)
            if twice:
                raise ValueError(f"keys are not unique: {twice}")


@dataclass(frozen=True, slots=True)
class Solution:
    """How it ended. `value` and `bound` are in the objective's quantum (cents, us, GPUs, W x h); none without a choice.

    "optimal" says that the exact value is the exact bound.
    """

    status: Status
    choice: Choice | None = None
    value: int | None = None
    bound: int | None = None

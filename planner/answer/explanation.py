"""What `planner explain` prints as JSON: schema planner.explanation/1."""

from __future__ import annotations

import operator
from typing import Literal

from pydantic import ConfigDict, Field

from planner.answer.assignment import Assignment
from planner.answer.schema import Infeasible, Objective, Status
from planner.yaml_io import Frozen

Verdict = Literal["is the plan", "tied", "worse", "better", "infeasible", "not offered", "undecided"]
"""better: the question leaves it out; tied: closer than the prediction can tell; not offered: neither the catalog nor
the sourcing has such hardware."""


class WhyNot(Frozen):
    """One choice that the plan does not make: the best that can be done with it, or what rules it out."""

    asked: dict[str, str]
    """The choice as it was asked: `{"tp": "4", "pp": "2"}`."""
    verdict: Verdict
    """better: the question leaves it out; tied: closer than the prediction can tell; not offered: neither the catalog
    nor the sourcing has such hardware."""
    because: str
    """One sentence with figures."""
    value: float | None = None
    """The objective at the best plan with that choice, in the objective's unit."""
    excess: float | None = None
    """That value over the plan's, minus one."""
    assignment: Assignment | None = None
    """The best plan with that choice."""
    infeasible: Infeasible | None = None
    """Why there is none with that choice."""


class Worth(Frozen):
    """What one limit costs: the objective with one unit more of it, and without it, each solved to proof."""

    limit: str
    """deadline, budget, ..., gpu_memory, nic_bandwidth."""
    given: str
    """The limit with its unit."""
    used: str
    """What the plan uses of it."""
    binds: bool
    """Whether the objective is better without it."""
    unit: str
    """One unit more: `1 d`, `1 GB per GPU`."""
    saves: float | None
    """By how much one unit more lowers the objective; none where nothing was proven in time."""
    without: float | None
    """By how much the objective would be lower without the limit."""
    pays_from: str | None = None
    """The least value of the limit that lowers the objective; only of a deadline that binds while cost is minimized."""


class Explanation(Frozen):
    """Why the plan is what it is, why not another choice, or why there is none."""

    model_config = ConfigDict(populate_by_name=True)

    schema_: Literal["planner.explanation/1"] = Field(default="planner.explanation/1", alias="schema")
    """Edition of this document."""
    status: Status
    """optimal: proven; feasible: a plan, no proof; infeasible: proven none; undecided: stopped with neither."""
    notes: tuple[str, ...] = Field(default=(), exclude_if=operator.not_)
    """What the user should know beside the answer; left out where there is nothing."""
    objective: Objective
    """What was minimized, and how far the proof goes."""
    assignments: tuple[Assignment, ...] = ()
    """Of the plan; empty where there is none."""
    why_not: tuple[WhyNot, ...] = ()
    """One for each choice asked about."""
    worth: tuple[Worth, ...] = ()
    """Limits and hardware, those that bind first; only where no choice is asked about."""
    infeasible: Infeasible | None = None
    """Why there is no plan; every reason is needed, and together they are enough."""

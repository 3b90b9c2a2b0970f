"""What `planner explain` prints as JSON: schema planner.explanation/1."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field

from planner.answer.assignment import Assignment
from planner.answer.doubt import Doubt
from planner.answer.schema import Infeasible, Objective, Status
from planner.answer.shown import Shown, Table, flat
from planner.yaml_io import Frozen, absent

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


class Explanation(Shown, Frozen):
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
    doubt: Doubt | None = Field(default=None, exclude_if=absent)
    """What not knowing is worth where other hardware comes close; only where no choice is asked about."""
    infeasible: Infeasible | None = None
    """Why there is no plan; every reason is needed, and together they are enough."""

    def headline(self) -> str:
        """Return the status, the objective, and what is explained."""
        if self.infeasible is not None:
            return f"infeasible: {'; '.join(self.infeasible.because)}"
        asked = [f"{_choice(why_not.asked)} {why_not.verdict}{f': {why_not.because}' if why_not.because else ''}"
                 for why_not in self.why_not]
        binding = [worth.limit for worth in self.worth if worth.binds]
        told = "; ".join(asked) or (f"binding: {', '.join(binding)}" if binding else "no limit binds")
        return f"{self.status}: {self.objective.shown()}; {told}"

    def table(self) -> Table:
        """Return the choices asked about, else what each limit is worth, else the reasons why there is no plan."""
        if self.why_not:
            return ("choice", "verdict", "because"), [(_choice(o.asked), o.verdict, o.because) for o in self.why_not]
        if self.infeasible is not None:
            return ("because",), [(reason,) for reason in self.infeasible.because]
        return (("limit", "given", "used", "binds", "one unit more", "saves"),
                [(o.limit, o.given, o.used, o.binds, o.unit, o.saves) for o in self.worth])

    def records(self) -> list[Mapping[str, object]]:
        """Return one row a choice asked about, else one a limit."""
        return [flat(why_not) for why_not in (self.why_not or self.worth)]


def _choice(asked: Mapping[str, str]) -> str:
    return ",".join(f"{axis}={value}" for axis, value in asked.items())

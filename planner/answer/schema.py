"""The Plan that `planner plan --json` prints: schema planner.plan/2, to the letter of the contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, PrivateAttr, field_serializer, field_validator, model_validator

from planner.answer.assignment import Alternative, Assignment
from planner.answer.doubt import Doubt
from planner.answer.first_edition import upgraded
from planner.answer.portfolio import Added, Cash, Period, Supply
from planner.answer.relaxation import Relaxation
from planner.answer.shown import Shown, Table, flat
from planner.scenario.default import Default
from planner.text_io import json_text
from planner.units import plural, show_days, show_kwh, show_usd
from planner.yaml_io import Frozen, absent, empty

Status = Literal["optimal", "feasible", "infeasible", "undecided"]
"""optimal: proven; feasible: a plan, no proof; infeasible: proven none; undecided: stopped with neither."""


Measure = Literal["cost_usd", "duration_days", "gpus", "energy_kwh", "requests_per_second", "users"]
"""Requests/s and users are maximized, the others minimized."""


class ByReplay(Frozen):
    """What replays say of a fleet of services, beside the proof by computed latencies."""

    met: bool
    """Whether the fleet meets every latency target."""
    gap: float | None = Field(ge=0)
    """By what share of the objective a fleet that no replay has refuted may be below it; none where no cheaper fleet
    was replayed, as of a portfolio, or hours with a replica less of one kind of hardware alone."""
    missed: tuple[str, ...] = ()
    """The targets that the fleet misses, with what the replay has: empty where it meets all."""


class Objective(Frozen):
    """What was minimized, or of requests/s and users maximized; value and bound are exact integers of the solved
    problem in the name's unit.
    """

    name: Measure
    """What, with its unit."""
    value: float | None = None
    """Value of the plan; none without a plan."""
    bound: float | None = None
    """No plan in the searched space is below it, or of requests/s and users above it; none if nothing is proven, as of
    loads above what the formula admits."""
    gap: float | None = None
    """(value - bound) / value, of requests/s (bound - value) / value; 0 when proven."""
    by_replay: ByReplay | None = Field(default=None, exclude_if=absent)
    """What replays say of the fleet; the key is left out where nothing is replayed."""

    @property
    def is_load(self) -> bool:
        """Whether it is what a service answers, which is maximized."""
        return self.name in ("requests_per_second", "users")

    def shown(self) -> str:
        """Return the value with its unit; empty without one."""
        if self.value is None:
            return ""
        return {"cost_usd": show_usd(self.value), "duration_days": show_days(self.value),
                "gpus": plural(round(self.value), "GPU"), "energy_kwh": show_kwh(self.value),
                "requests_per_second": f"{self.value:,.4g} requests/s", "users": f"{self.value:,.0f} users"}[self.name]


class Search(Frozen):
    """The search: layouts in the space, what each rule removed, what was solved."""

    layouts: int = Field(default=0, ge=0)
    """Rows of the whole space: the product of the domains."""
    legal: int = Field(default=0, ge=0)
    """Rows that no rule removed, and that no bound removed before they were made."""
    fit: int = Field(default=0, ge=0)
    """Legal rows and their offloaded variants that fit in memory under some staging."""
    removed: dict[str, int] = Field(default_factory=dict)
    """Rows by what removed them first: rules; `deadline`, `budget`, `power`, `owned`, `states` (beyond any memory),
    `bound` and `time` before the rows were made, so that these and the rules make up `layouts` with the legal ones; the
    rest of the names among legal ones and their offloaded variants. Most first."""
    staged: int = Field(default=0, ge=0)
    """Rows whose stages were solved exactly; the others were pruned by their bound."""
    domains: dict[str, tuple[int | float | str, ...]] = Field(default_factory=dict)
    """The values searched of each axis."""
    wall_seconds: float = Field(default=0.0, ge=0)
    """From the question to the plan, as a terminal tells it; 0 in JSON, so that one question gives the same bytes each
    time. A plan that is read keeps what it says."""
    _measured: bool = PrivateAttr(default=False)

    @field_serializer("wall_seconds", when_used="json")
    def _no_clock(self, seconds: float) -> float:
        return 0.0 if self._measured else seconds

    def took(self, seconds: float) -> Search:
        """Return it with the seconds that it took."""
        timed = self.model_copy(update={"wall_seconds": round(seconds, 3)})
        timed._measured = True
        return timed

    @field_validator("removed")
    @classmethod
    def _most_first(cls, removed: dict[str, int]) -> dict[str, int]:
        """Put the names in an order that does not depend on what was searched first, or by how many processes."""
        return dict(sorted(removed.items(), key=lambda item: (-item[1], item[0])))


class Infeasible(Frozen):
    """Why there is no plan, and what would change that."""

    because: tuple[str, ...] = Field(min_length=1)
    """The limits or rules that together exclude every plan."""
    nearest: str | None = None
    """The nearest miss, in the user's units."""
    relaxations: tuple[Relaxation, ...] = ()
    """Single changes that would be enough, the smallest relative change first."""


class Provenance(Frozen):
    """What decided the answer: the resolved question, defaults, facts, programs."""

    scenario: dict[str, Any] = Field(default_factory=dict)
    """The resolved scenario, with its units, as it could be written to a file."""
    defaults: tuple[Default, ...] = ()
    """Values that the question left open, and that decided the answer."""
    catalog_digest: str = ""
    """Hash of every fact in the catalogs used."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Versions of the planner and its libraries."""
    seed: int = 0
    """Random seed."""
    prefer: Literal["simple"] | None = Field(default=None, exclude_if=absent)
    """The plan is the simplest of those tied with the optimum, which is the first alternative; else left out."""
    pareto: tuple[Measure, ...] | None = Field(default=None, exclude_if=absent)
    """The measures whose frontier of trade-offs the plan and its alternatives are, exact where the status is optimal;
    elsewhere left out."""


class Counted(Frozen):
    """Whether the GPUs that the question counts hold the model, of a question what holds it."""

    gpu: str
    """Catalog name of the GPU, or the memory by which several kinds are asked about."""
    gpus: int = Field(gt=0)
    """How many the question names."""
    holds: dict[str, bool]
    """By workload: whether they, or some of them, hold it."""
    fastest: tuple[Annotated[Assignment, Field(discriminator="kind")], ...] = ()
    """Where one method is asked about, the fastest layout on all of them; empty where none uses all."""


class Plan(Shown, Frozen):
    """The whole answer. Exit code: 0 optimal, 3 infeasible, 4 feasible or undecided."""

    model_config = ConfigDict(populate_by_name=True)

    schema_: Literal["planner.plan/2"] = Field(default="planner.plan/2", alias="schema")
    """Edition of this document."""
    status: Status
    """optimal: proven; feasible: a plan, no proof; infeasible: proven none; undecided: stopped with neither."""
    notes: tuple[str, ...] = ()
    """Warnings, one sentence each."""
    objective: Objective
    """What was minimized, and how far the proof goes."""
    assignments: tuple[Annotated[Assignment, Field(discriminator="kind")], ...] = ()
    """The plan: one or more per workload; empty without a plan."""
    alternatives: tuple[Annotated[Alternative, Field(discriminator="kind")], ...] = ()
    """Next best, best first."""
    doubt: Doubt | None = Field(default=None, exclude_if=absent)
    """What not knowing is worth where other hardware comes close; left out where none does, and of services."""
    supply: tuple[Supply, ...] = Field(default=(), exclude_if=empty)
    """Of a portfolio: every node that is had, and what is paid for it."""
    periods: tuple[Period, ...] = Field(default=(), exclude_if=empty)
    """Of a portfolio: how full every pool is."""
    cash: tuple[Cash, ...] = Field(default=(), exclude_if=empty)
    """Of a portfolio: money by month."""
    added: Added | None = Field(default=None, exclude_if=absent)
    """Of a portfolio to which jobs were added: what that takes; elsewhere left out."""
    counted: Counted | None = Field(default=None, exclude_if=absent)
    """Of a question what holds a model that names so many GPUs: whether these do; else left out."""
    search: Search = Search()
    """What was looked at."""
    infeasible: Infeasible | None = None
    """Why there is no plan; none where there is one."""
    provenance: Provenance = Provenance()
    """What decided the answer."""

    @property
    def feasible(self) -> bool:
        """Whether there is a plan."""
        return bool(self.assignments)

    @property
    def usd_per_hour(self) -> float | None:
        """What an hour of all assignments costs; none without a plan, without prices, and of a portfolio."""
        hourly = [] if self.supply else [assignment.usd_per_hour for assignment in self.assignments]
        return sum(filter(None, hourly)) if hourly and None not in hourly else None

    @property
    def cost_usd(self) -> float | None:
        """What all assignments cost, and of a portfolio the whole; none without a plan, or without prices."""
        if self.supply:
            return self.objective.value
        costs = [assignment.cost_usd for assignment in self.assignments]
        return sum(filter(None, costs)) if costs and None not in costs else None

    @property
    def gpus(self) -> int | None:
        """GPUs of all assignments; none without a plan, and of a portfolio, whose jobs take turns."""
        return sum(assignment.gpus for assignment in self.assignments) if self.assignments and not self.supply else None

    @property
    def nodes(self) -> int | None:
        """Nodes of all assignments, likewise."""
        return sum(assignment.nodes for assignment in self.assignments
                   ) if self.assignments and not self.supply else None

    def headline(self) -> str:
        """Return the status, what was minimized, and the hardware; or why there is no plan."""
        if self.infeasible is not None:
            return f"infeasible: {'; '.join(self.infeasible.because)}"
        status = ": ".join(filter(None, (self.status, self.objective.shown())))
        held = self.objective.name == "gpus"  # what holds which model, by which method
        return "; ".join((status, *(": ".join(filter(None, (
            f"{assignment.workload} on {assignment.hardware}" if held else assignment.hardware, assignment.price)))
            for assignment in self.assignments)))

    def table(self) -> Table:
        """Return the assignments, then the alternatives."""
        rows = [("plan", a.workload, a.hardware, a.offer, a.split, a.speed, a.price, "") for a in self.assignments]
        others = [("alternative", a.workload, a.hardware, a.offer, a.split, a.speed, a.price, a.why)
                  for a in self.alternatives]
        return ("", "workload", "hardware", "offer", "layout", "speed", "price", "why it lost"), [*rows, *others]

    def records(self) -> list[Mapping[str, object]]:
        """Return one row an assignment or alternative, told apart by `role`."""
        return [*({"role": "plan", **flat(assignment)} for assignment in self.assignments),
                *({"role": "alternative", **flat(alternative)} for alternative in self.alternatives)]

    @model_validator(mode="before")
    @classmethod
    def _of_either_edition(cls, data: object) -> object:
        return upgraded(data)

    @model_validator(mode="after")
    def _status_holds(self) -> Self:
        if (self.status in ("optimal", "feasible")) != bool(self.assignments):
            raise ValueError(f"status {self.status} with {len(self.assignments)} assignments")
        if (self.status == "infeasible") != (self.infeasible is not None):
            raise ValueError("exactly an infeasible plan says why")
        value, bound = self.objective.value, self.objective.bound
        if self.status == "optimal" and (value is None or value != bound):
            raise ValueError(f"optimal needs value = bound, got {value} and {bound}")
        return self


def to_json(answer: Frozen) -> str:
    """Return the answer as JSON: keys in the contract's order, indented by two, the same bytes each time."""
    data = answer.model_dump(mode="json", by_alias=True)
    return json_text(data, indent=2)

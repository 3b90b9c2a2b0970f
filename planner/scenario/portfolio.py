"""Many jobs on one fleet over a year: what is asked, when each must be done, and what there is when."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import ConfigDict, Field, field_validator, model_validator

from planner.scenario.diffusion import DiffusionTraining
from planner.scenario.generation import Generation
from planner.scenario.horizon import USUAL, USUAL_START, Horizon
from planner.scenario.limits import MOST, Buy, Hardware, Rent, Sourcing, owned_entry, owned_in_words
from planner.scenario.moment import Growth, Moment, PerDay, Span, after, days_of, moment_of, written
from planner.scenario.posttraining import PostTraining
from planner.scenario.recurring import expect_in_time
from planner.scenario.scenario import AnyScenario
from planner.scenario.serving import LOADS, Serving
from planner.scenario.workload import Training
from planner.units import Gpus, Money, Nodes, Watts
from planner.yaml_io import Frozen

MOST_JOBS = 1000
AnyWork: TypeAlias = Training | Serving | DiffusionTraining | Generation | PostTraining
DATES = ("release", "deadline", "from")
"""Keys of a job that are dates."""
_FIRST_AND_LAST = {(first, last) for first in ("from", "start", "first", "begin")
                   for last in ("until", "end", "last", "to")}
_OF_SERVICES = ("from_", "growth")
_OF_RUNS = ("release", "deadline", "late", "worth", "after", "may_pause", "count", "every")


class PortfolioJob(Frozen):
    """One piece of work: a run that ends, or a service from a date on."""

    model_config = ConfigDict(populate_by_name=True)

    name: str = Field(min_length=1, max_length=80)
    """What it is called in the answer, and under `after`."""
    workload: Annotated[AnyWork, Field(discriminator="kind")]
    """What is done, as in a scenario of its own."""
    release: Moment | None = None
    """It starts no earlier; none is the start of the horizon."""
    deadline: Moment | None = None
    """It must have ended by then; with `late`, it is late from then on."""
    late: PerDay | None = None
    """Price of each day after the deadline, which is then not hard."""
    worth: Money | None = None
    """It may be rejected, which forgoes this much; none: it must be done."""
    after: tuple[str, ...] = ()
    """Jobs that must have ended before it starts."""
    may_pause: bool = False
    """Whether it may be interrupted and resumed, for a checkpoint and a restart each time, on nodes that are there."""
    count: Annotated[int, Field(gt=0, le=MOST_JOBS)] | None = None
    """How many alike; with `every`, at most so many."""
    every: Span | None = None
    """Released again after so long, as long as another such span ends within the horizon."""
    from_: Moment | None = Field(default=None, alias="from")
    """A service runs from then on; none is the start of the horizon."""
    growth: Growth | None = None
    """Of a service's rate, from month to month."""

    @property
    def ends(self) -> bool:
        """Whether it is a run, and not a service."""
        return not isinstance(self.workload, Serving) or self.workload.ends is not None

    @model_validator(mode="before")
    @classmethod
    def _trains_unless_said(cls, data: object) -> object:
        work = data.get("workload") if isinstance(data, dict) else None
        if not isinstance(work, dict):
            return data
        return {**data, "workload": {"kind": "training", **work}}  # type: ignore[dict-item]

    @field_validator("after", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @model_validator(mode="after")
    def _keys_have_an_effect(self) -> Self:
        other = _OF_SERVICES if self.ends else _OF_RUNS
        kind = "a service; this job ends" if self.ends else "a job that ends; this one is a service"
        for key in other:  # a plan states its question with what keys are by default
            if getattr(self, key) != type(self).model_fields[key].default:
                raise ValueError(f"{key.removesuffix('_')} applies to {kind}")
        if missing := _amount_missing(self.workload):
            raise ValueError(f"workload.{missing}")
        if self.late is not None and self.deadline is None:
            raise ValueError("late is the price of a day after the deadline, and there is none: give deadline")
        if self.deadline is not None and self.release is not None and self.deadline <= self.release:
            raise ValueError(f"deadline {written(self.deadline)} is not after the release {written(self.release)}")
        return self


def _amount_missing(work: AnyWork) -> str:
    """Return the key that must say how much work there is, and why; empty where some key does."""
    missing, ends = "", "required, but missing: a job of a portfolio ends"
    if isinstance(work, Training) and work.is_open:
        missing = f"tokens: {ends}"
    elif isinstance(work, DiffusionTraining | PostTraining) and work.total_steps is None:
        missing = f"steps: {ends}; or samples and epochs"
    elif isinstance(work, PostTraining) and work.rollouts_on:
        missing = "rollouts_on: a job of a portfolio runs on the nodes of one pool; plan it alone to have others"
    elif isinstance(work, Serving) and work.ends is None and all(getattr(work, load) is None for load in LOADS):
        missing = "rate: required, but missing: a service has a rate, and a batch documents or samples"
    return missing


class Owned(Frozen):
    """Nodes that you own."""

    model_config = ConfigDict(populate_by_name=True)

    node: str
    """Node type."""
    nodes: Annotated[Nodes, Field(gt=0, le=MOST)]
    """How many."""
    maintenance: tuple[Moment, ...] | None = Field(default=None, min_length=2, max_length=2)
    """First and last day on which none of them works."""
    from_: Moment | None = Field(default=None, alias="from")
    """They are there from then on."""
    until: Moment | None = None
    """They are gone from then on."""

    @field_validator("maintenance", mode="before")
    @classmethod
    def _first_and_last(cls, value: object) -> object:
        """Read a date alone, and {from: 2027-02-01, until: 2027-02-05}."""
        if isinstance(value, str):
            return (value, value)
        return tuple(value.values()) if isinstance(value, dict) and tuple(value) in _FIRST_AND_LAST else value

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.maintenance is not None and self.maintenance[1] < self.maintenance[0]:
            raise ValueError("maintenance: its last day is before its first")
        if self.from_ is not None and self.until is not None and self.until <= self.from_:
            raise ValueError("until is not after from")
        return self


class PortfolioRent(Rent):
    """Which offers may be rented, and how many nodes of a type at once."""

    quota: dict[str, Annotated[Nodes, Field(gt=0, le=MOST)]] = Field(default_factory=dict)
    """Most nodes of a node type that are rented at any time, over all its offers."""

    @field_validator("quota", mode="before")
    @classmethod
    def _by_node_type(cls, value: object) -> object:
        if isinstance(value, int | str):
            raise ValueError(f"a quota is of a node type: write for example {{dgx-h100: {value}}}")
        return value


class PortfolioBuy(Buy):
    """Nodes may be bought; they are there some time after they are ordered."""

    delivery: Span | None = None
    """From the order, which may be placed at the start, to the first use; none is at once."""


class PortfolioSourcing(Sourcing):
    """Where hardware comes from, and when."""

    rent: PortfolioRent | None = PortfolioRent()
    """On-demand by default; none if nodes are owned or bought and renting is not mentioned."""
    buy: PortfolioBuy | None = None
    """None means buy nothing."""
    own: tuple[Owned, ...] = Field(default=(), max_length=MOST_JOBS)  # type: ignore[assignment]
    """Nodes that you own: they cost their electricity while they work."""

    @field_validator("own", mode="before")
    @classmethod
    def _in_short(cls, value: object) -> object:
        """Read {dgx-h100: 8}, or 8xdgx-h100, as a list of one; a block may be one of several that differ in time."""
        blocks = isinstance(value, list | tuple) and any(isinstance(entry, dict) for entry in value)
        value = value if value == [] or blocks else owned_in_words(value)  # as a plan states none
        if isinstance(value, dict):
            return [{"node": node, "nodes": nodes} for node, nodes in value.items()]
        return [owned_entry(entry) if isinstance(entry, dict) else entry for entry in value] if isinstance(
            value, list | tuple) else value

    @property
    def undated(self) -> Sourcing:
        """The same without dates, quotas and delivery."""
        data: dict[str, Any] = {name: getattr(self, name) for name in self.model_fields_set - {"rent", "buy", "own"}}
        data["rent"] = None if self.rent is None else Rent(
            **{name: getattr(self.rent, name) for name in self.rent.model_fields_set - {"quota"}})
        data["buy"] = None if self.buy is None else Buy(
            **{name: getattr(self.buy, name) for name in self.buy.model_fields_set - {"delivery"}})
        own: dict[str, int] = {}
        for owned in self.own:
            own[owned.node] = own.get(owned.node, 0) + owned.nodes
        return Sourcing(**data, own=own)


class PortfolioLimits(Frozen):
    """Upper bounds on all jobs together; none means no bound."""

    budget: Money | None = None
    """Most money spent in all."""
    budget_by_quarter: Money | None = None
    """Most money spent in any calendar quarter."""
    max_gpus: Annotated[Gpus, Field(gt=0, le=MOST)] | None = None
    """Most GPUs at work at any time."""
    max_nodes: Annotated[Nodes, Field(gt=0, le=MOST)] | None = None
    """Most nodes at work at any time, spares included."""
    max_power: Watts | None = None
    """Maximum power of all nodes at work, under load."""
    site_power: Watts | None = None
    """The same of nodes at your site: owned and bought."""


class Portfolio(Frozen):
    """Many jobs, one fleet, over a horizon."""

    name: str = "unnamed"
    """A name for the question."""
    horizon: Horizon = USUAL
    """The time that is planned; a year unless said."""
    jobs: tuple[PortfolioJob, ...] = Field(min_length=1, max_length=MOST_JOBS)
    """What is to be done."""
    hardware: Hardware
    """Which nodes may be used; any by default."""
    sourcing: PortfolioSourcing = PortfolioSourcing()
    """Where hardware comes from."""
    limits: PortfolioLimits = PortfolioLimits()
    """What the plan must respect."""
    objective: Literal["cost"] = "cost"
    """Money, with lateness and what is rejected at their prices."""
    confidence: float = Field(default=0.95, ge=0.5, lt=1)
    """Confidence of the memory verdict."""

    @model_validator(mode="before")
    @classmethod
    def _from_the_start(cls, data: object) -> object:
        """Read `deadline: 3 d` of a job as so long after the start of the horizon."""
        horizon = data.get("horizon", {}) if isinstance(data, dict) else None
        if not isinstance(data, dict) or not isinstance(horizon, dict) or not isinstance(data.get("jobs"), list):
            return data
        try:
            start = moment_of(horizon.get("start", USUAL_START))
        except ValueError:
            return data
        dated = {**data, "jobs": [{key: after(start, value, begins=key != "deadline") if key in DATES else value
                                   for key, value in job.items()} if isinstance(job, dict) else job
                                  for job in data["jobs"]]}
        sourcing = data.get("sourcing")
        if not isinstance(sourcing, dict) or not isinstance(own := sourcing.get("own"), list):
            return dated
        return {**dated, "sourcing": {**sourcing, "own": [
            _dated(start, block) if isinstance(block, dict) else block for block in own]}}

    @model_validator(mode="after")
    def _names_and_dates_hold(self) -> Self:
        names = [job.name for job in self.jobs]
        runs = {job.name for job in self.jobs if job.ends}
        for at, job in enumerate(self.jobs):
            where = f"jobs.{at} ({job.name})"
            if job.name in names[:at]:
                raise ValueError(f"jobs.{at}.name: {job.name!r} is given twice")
            for other in job.after:
                if other not in runs:
                    known = "a service, which never ends" if other in names else f"not a job: {', '.join(names)}"
                    raise ValueError(f"{where}: after: {other!r} is {known}")
            for key, moment in (("release", job.release), ("deadline", job.deadline), ("from", job.from_)):
                if (moment is not None and not (self.horizon.start <= moment <= self.horizon.end)) or (
                        moment == self.horizon.start and key == "deadline"):
                    raise ValueError(f"{where}: {key} {written(moment)} is outside the horizon, "
                                     f"{written(self.horizon.start)} to {written(self.horizon.end)}: "
                                     "horizon.start says another first day, horizon.length how long")
            expect_in_time(where, self.horizon, job.release, job.every, job.count, job.deadline, job.late, job.worth)
        self._no_circle()
        return self

    def _no_circle(self) -> None:
        waits = {job.name: set(job.after) for job in self.jobs}
        while free := [name for name, others in waits.items() if not others & waits.keys()]:
            for name in free:
                del waits[name]
        if waits:
            circle = "wait for each other in a circle" if len(waits) > 1 else "waits for itself"
            raise ValueError(f"jobs: {', '.join(waits)} {circle} (after)")


def _dated(start: datetime, owned: dict[str, object]) -> dict[str, object]:
    """Return nodes that are owned with their dates as such, where a month is said without its year, or a span."""
    def read(key: str, value: object) -> object:
        if key == "maintenance":
            return [after(start, day) for day in value] if isinstance(value, list) else (
                {said: after(start, day) for said, day in value.items()} if isinstance(value, dict)
                else days_of(start, value))
        return after(start, value, begins=key == "from") if key in ("from", "until") else value
    return {key: read(key, value) for key, value in owned.items()}


AnyQuestion: TypeAlias = AnyScenario | Portfolio

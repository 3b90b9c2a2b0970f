"""One job of a portfolio: what is done, when it may be, and what it is worth."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Annotated, Self, TypeAlias

from pydantic import ConfigDict, Field, field_validator, model_validator

from planner.scenario.diffusion import DiffusionTraining
from planner.scenario.generation import Generation
from planner.scenario.horizon import Horizon
from planner.scenario.moment import Growth, Moment, PerDay, Span, written
from planner.scenario.posttraining import PostTraining
from planner.scenario.recurring import Due, releases
from planner.scenario.serving import LOADS, Serving
from planner.scenario.workload import Training
from planner.units import Money
from planner.yaml_io import Frozen

MOST_JOBS = 1000
AnyWork: TypeAlias = Training | Serving | DiffusionTraining | Generation | PostTraining
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
    deadline: Due | None = None
    """It must have ended by then; with `late`, it is late from then on. A span of time is each instance's, from its
    release.
    """
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

    def due(self, released: datetime) -> datetime | None:
        """Return by when an instance must have ended, or is late, that is released then; none where it need not."""
        return released + self.deadline if isinstance(self.deadline, timedelta) else self.deadline

    def time_given(self, horizon: Horizon) -> float:
        """Return the most seconds that an instance has: from the first period after its release, as it starts with one,
        to when it must have ended; at least one.
        """
        given = [1.0]
        for released in releases(horizon, self.release, self.every, self.count):
            due = None if self.late is not None else self.due(released)
            begin = math.ceil((released - horizon.start).total_seconds() / horizon.period) * horizon.period
            given.append((min(due or horizon.end, horizon.end) - horizon.start).total_seconds() - begin)
        return max(given)

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
        if isinstance(self.deadline, timedelta) and self.every is None:
            raise ValueError("deadline: a span of time is that of each instance, and every is not given: give a date")
        if isinstance(self.deadline, datetime) and self.release is not None and self.deadline <= self.release:
            raise ValueError(f"deadline {written(self.deadline)} is not after the release {written(self.release)}: a "
                             "span of time is from the start of the horizon, or as 3 d after release from there")
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

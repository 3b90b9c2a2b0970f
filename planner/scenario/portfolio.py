"""Many jobs on one fleet over a year: what is asked, and whether its names and dates hold."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, Self, TypeAlias

from pydantic import Field, model_validator

from planner.scenario.horizon import USUAL, USUAL_START, Horizon
from planner.scenario.limits import Hardware
from planner.scenario.moment import after, days_of, moment_of, written
from planner.scenario.portfolio_job import MOST_JOBS, PortfolioJob
from planner.scenario.portfolio_supply import PortfolioLimits, PortfolioSourcing
from planner.scenario.quarters import from_day, quarter_of
from planner.scenario.recurring import due_said, expect_in_time
from planner.scenario.scenario import AnyScenario
from planner.yaml_io import Frozen

DATES = ("release", "deadline", "from")
"""Keys of a job that are dates."""


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
        """Read `deadline: 3 d` of a job as so long after the start of the horizon, and a budget of Q2 as of its year.
        """
        horizon = data.get("horizon", {}) if isinstance(data, dict) else None
        if not isinstance(data, dict) or not isinstance(horizon, dict) or not isinstance(data.get("jobs"), list):
            return data
        try:
            start = moment_of(horizon.get("start", USUAL_START))
        except ValueError:
            return data
        dated = {**data, "jobs": [_job_dated(start, job) if isinstance(job, dict) else job for job in data["jobs"]]}
        limits = data.get("limits")
        if isinstance(limits, dict) and "budget_by_quarter" in limits:
            dated["limits"] = {**limits, "budget_by_quarter": from_day(limits["budget_by_quarter"], start)}
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
                if isinstance(moment, datetime) and (not self.horizon.start <= moment <= self.horizon.end or (
                        moment == self.horizon.start and key == "deadline")):
                    raise ValueError(f"{where}: {key} {written(moment)} is outside the horizon, "
                                     f"{written(self.horizon.start)} to {written(self.horizon.end)}: "
                                     "horizon.start says another first day, horizon.length how long")
            expect_in_time(where, self.horizon, job.release, job.every, job.count, job.deadline, job.late, job.worth)
        self._quarters_come()
        self._no_circle()
        return self

    def _quarters_come(self) -> None:
        by_quarter, horizon = self.limits.budget_by_quarter, self.horizon
        # what is reserved is paid for beyond the horizon too
        rented = self.sourcing.rent.terms if self.sourcing.rent is not None else ()
        last = None if any(term.startswith("reserved") for term in rented) else quarter_of(
            horizon.end - timedelta(seconds=1))
        for quarter in by_quarter if isinstance(by_quarter, dict) else ():
            if quarter < quarter_of(horizon.start) or (last is not None and quarter > last):
                raise ValueError(f"limits.budget_by_quarter: {quarter} is outside the horizon, "
                                 f"{written(horizon.start)} to {written(horizon.end)}")

    def _no_circle(self) -> None:
        waits = {job.name: set(job.after) for job in self.jobs}
        while free := [name for name, others in waits.items() if not others & waits.keys()]:
            for name in free:
                del waits[name]
        if waits:
            circle = "wait for each other in a circle" if len(waits) > 1 else "waits for itself"
            raise ValueError(f"jobs: {', '.join(waits)} {circle} (after)")


def _job_dated(start: datetime, job: dict[str, object]) -> dict[str, object]:
    """Return a job with its dates as such, where it says them by the calendar or as spans of time."""
    return {key: value if key not in DATES else due_said(start, job) if key == "deadline" else after(
        start, value, begins=True) for key, value in job.items()}


def _dated(start: datetime, owned: dict[str, object]) -> dict[str, object]:
    """Return nodes that are owned with their dates as such, where a month is said without its year, or a span."""
    def read(key: str, value: object) -> object:
        if key == "maintenance":
            several = isinstance(value, list) and any(isinstance(time, list | dict) for time in value)
            return [_days(start, time) for time in value] if isinstance(value, list) and several else (
                _days(start, value))
        return after(start, value, begins=key == "from") if key in ("from", "until") else value
    return {key: read(key, value) for key, value in owned.items()}


def _days(start: datetime, time: object) -> object:
    """Return the first and last day of one time of maintenance as dates."""
    if isinstance(time, dict):
        return {said: after(start, day) for said, day in time.items()}
    return [after(start, day) for day in time] if isinstance(time, list) else days_of(start, time)


AnyQuestion: TypeAlias = AnyScenario | Portfolio

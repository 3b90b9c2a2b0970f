"""The time that a portfolio plans, in periods."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Self

from pydantic import model_validator

from planner.scenario.moment import Moment, Span
from planner.units import DAY, HOUR
from planner.yaml_io import Frozen

MOST_PERIODS = 1500
USUAL_START = datetime(2027, 1, 4)  # a Monday


class Horizon(Frozen):
    """The time that is planned, in periods: jobs start with one, and capacity is counted in each."""

    start: Moment = USUAL_START
    """First day; 2027-01-04 unless said, as only calendar months and quarters depend on it."""
    length: Span
    """How long: 52 weeks."""
    period: Span = DAY
    """Hours or days, into which the length divides."""

    @property
    def end(self) -> datetime:
        """First moment after it."""
        return self.start + timedelta(seconds=self.length)

    @property
    def periods(self) -> int:
        """How many periods there are."""
        return round(self.length / self.period)

    @model_validator(mode="after")
    def _of_whole_periods(self) -> Self:
        if self.period % HOUR:
            raise ValueError("period: expected whole hours, such as 12 h or 1 d")
        if self.length % self.period or self.periods < 1:
            whole, days = int(self.length // self.period), self.period / DAY
            several = " or ".join(f"{max(1, whole + more) * days:.10g} d" for more in ((0, 1) if whole else (0,)))
            raise ValueError(f"length: {self.length / DAY:.10g} d is not a whole number of periods of {days:.10g} d: "
                             f"expected {several}, or another period")
        if self.periods > MOST_PERIODS:
            raise ValueError(f"{self.periods:,} periods, at most {MOST_PERIODS:,} are planned: take longer periods")
        return self


USUAL = Horizon.model_validate({"length": "52 weeks"})
"""A year."""

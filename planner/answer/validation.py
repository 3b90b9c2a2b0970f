"""What `planner validate` prints as JSON: schema planner.validation/1, to the letter of the contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field

from planner.answer.shown import Shown, Table, flat
from planner.yaml_io import Frozen, absent


class Entry(Frozen):
    """One quantity of one row."""

    id: str
    """Of the row."""
    quantity: str
    """Named as its column."""
    predicted: float | str
    """In the unit of the column; of `fits`: fits, tight or does not fit."""
    measured: float | str
    """In the unit of the column; of `fits`: yes or no."""
    error: float | None
    """Predicted over measured, less one; none for a verdict."""
    interval90: tuple[float, float] | None = Field(default=None, exclude_if=absent)
    """That 90% of comparable runs lie in; left out for a verdict."""
    is_new: bool = Field(default=False, exclude=True)
    """Whether the intervals stand on no row of its source; not part of the JSON."""
    assumed: tuple[str, ...] = ()
    """What the row leaves open, as name=value."""


class Skipped(Frozen):
    """A row without a prediction."""

    id: str
    """Of the row."""
    reason: str
    """Why there is none."""


class Errors(Frozen):
    """How good the predictions of one quantity are; shares of the measured value."""

    n: int
    """Entries."""
    median_abs_error: float
    """That half of them stay below."""
    p90_abs_error: float
    """That 90% of them stay below."""
    bias: float
    """Signed median."""
    interval90_coverage: float | None
    """Share of them that lie in their interval."""
    new_sources_n: int | None = Field(default=None, exclude_if=absent)
    """Entries whose source took no part in the intervals; left out where there are none."""
    new_sources_coverage: float | None = Field(default=None, exclude_if=absent)
    """Share of these that lie in their interval: the fair test."""


class Verdicts(Frozen):
    """How often each verdict met each outcome; `tight` is neither right nor wrong."""

    n: int
    """Entries."""
    true_fit: int = 0
    """Said to fit, and did."""
    false_fit: int = 0
    """Said to fit, and did not."""
    tight_fit: int = 0
    """Said to be tight, and fitted."""
    true_oom: int = 0
    """Said not to fit, and did not."""
    false_oom: int = 0
    """Said not to fit, and did."""
    tight_oom: int = 0
    """Said to be tight, and did not fit."""


class Rank(Frozen):
    """Whether layouts come out in the right order, where runs differ by their layout alone."""

    groups: int
    """Of such runs."""
    median_spearman: float | None
    """Rank correlation of predicted and measured time."""
    mean_top1_regret: float | None
    """How much slower the predicted best ran than the best."""


class Validation(Shown, Frozen):
    """Predicted against measured, for every row of a file."""

    model_config = ConfigDict(populate_by_name=True)

    schema_: Literal["planner.validation/1"] = Field(default="planner.validation/1", alias="schema")
    """Edition of this document."""
    rows: tuple[Entry, ...]
    """One for each quantity that a row states."""
    skipped: tuple[Skipped, ...]
    """Rows without a prediction."""
    summary: dict[str, Errors | Verdicts | Rank]
    """By quantity; `fits` are verdicts, `rank` the order of layouts."""

    held_out: tuple[str, ...] = Field(default=(), exclude=True)
    """What of the evidence behind the intervals they hold, with its source left out; not part of the JSON."""

    def headline(self) -> str:
        """Return how much was compared, and the median error of each quantity."""
        errors = [f"{name} {statistic.median_abs_error:.1%}" for name,
                  statistic in self.summary.items() if isinstance(statistic, Errors)]
        return (f"{len(self.rows):,} compared, {len(self.skipped):,} skipped"
                + (f"; median error of {', '.join(errors)}" if errors else ""))

    def table(self) -> Table:
        """Return the summary by quantity."""
        return (("quantity", "rows", "median error", "90% below", "bias"),
                [(name, errors.n,
                  *(f"{value:.1%}" for value in (errors.median_abs_error, errors.p90_abs_error, errors.bias)))
                 for name, errors in self.summary.items() if isinstance(errors, Errors)])

    def records(self) -> list[Mapping[str, object]]:
        """Return one row a quantity of a row of the file."""
        return [flat(row) for row in self.rows]

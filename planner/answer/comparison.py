"""What `planner compare` prints as JSON: schema planner.comparison/1, to the letter of the contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import ConfigDict, Field

from planner.answer.breakdown import Evidence
from planner.answer.meant import Meant
from planner.answer.objective import NAMES
from planner.answer.schema import Status
from planner.answer.shown import Shown, Table, flat
from planner.solver.fleet.problem import Goal
from planner.units import plural, show_days, show_usd
from planner.yaml_io import Frozen, absent


class ServedFigures(Frozen):
    """What a service's tokens take: the cost of prompts and answers by the time that each takes of the engines."""

    replicas: int
    """Over all services."""
    output_tokens_per_second_per_gpu: float
    """On average over the day."""
    usd_per_million_input_tokens: float
    """Of prompts."""
    usd_per_million_output_tokens: float
    """Of answers."""
    joules_per_token: float
    """Of prompts and answers together, drawn by the nodes."""


class Row(Meant, Frozen):
    """One hardware candidate with one offer, at its own best plan; without a plan only `why_not` is told."""

    node: str
    """Node type, by its catalog name."""
    gpu: str
    """GPU, by its catalog name."""
    model: str | None = Field(default=None, exclude_if=absent)
    """Where several models are compared, which; elsewhere left out."""
    offer: str | None = None
    """Provider, instance, region and terms; none where nothing is offered."""
    kind: Literal["rent", "buy", "owned"]
    """How the nodes are had."""
    status: Status
    """Of its plan."""
    gpus: int | None = None
    """GPUs in the layout."""
    duration_days: float | None = None
    """Of the job; for a service the month that its cost covers."""
    mfu: float | None = None
    """Model FLOP/s over the dense peak."""
    cost_usd: float | None = None
    """Cost of the whole duration, spares included."""
    cost_parts: dict[str, float] = Field(default_factory=dict)
    """USD by what they are paid for; they add up to `cost_usd`."""
    usd_per_gpu_hour: float | None = None
    """Of a GPU in the layout: spare nodes are in it."""
    usd_per_million_tokens: float | None = None
    """Of the tokens trained on, or read and written; none where images or clips are made."""
    usd_per_thousand_images: float | None = Field(default=None, exclude_if=absent)
    """Of the images or clips trained on or made; left out of what reads text."""
    energy_kwh: float | None = None
    """Drawn by the nodes, spares included, without the building's share."""
    co2_kg: float | None = None
    """With the building's share, at the site's grid; none where the site does not say."""
    break_even_months: float | None = None
    """Of nodes that are bought: when they have cost less than renting for the same work; none where they never do."""
    break_even_utilization: float | None = Field(default=None, exclude_if=absent)
    """Of hardware alone, rented or bought: from which share of time in use buying costs less; left out where it never
    does, and of work."""
    why_not: str | None = None
    """Why there is no plan."""
    serving: ServedFigures | None = Field(default=None, exclude_if=absent)
    """For a service; elsewhere the key is left out."""
    evidence: Evidence | None = Field(default=None, exclude_if=absent)
    """What the speed is held against; left out of a service, and without a plan."""
    late: int | None = Field(default=None, exclude_if=absent)
    """Of a portfolio: how many jobs end after their deadline, at its price; elsewhere left out."""
    rejected: int | None = Field(default=None, exclude_if=absent)
    """Of a portfolio: how many jobs are not done; elsewhere left out."""
    note: str | None = Field(default=None, exclude_if=absent)
    """What the user should know of the offer; left out where there is nothing."""

    @property
    def usd_per_hour(self) -> float | None:
        """What an hour costs; none without a plan, and of what ends at once."""
        return None if self.cost_usd is None or not self.duration_days else self.cost_usd / self.duration_days / 24

    def rank(self, goal: Goal) -> tuple[bool, float, float, str]:
        """Return what rows sort by, best first: those without a plan last, equal ones by cost, then by name."""
        value = getattr(self, NAMES[goal])
        return (value is None, value or 0.0, self.cost_usd or 0.0, self.offer or self.node)


class Comparison(Shown, Frozen):
    """All candidates, best by the objective first, those without a plan last."""

    model_config = ConfigDict(populate_by_name=True)

    schema_: Literal["planner.comparison/1"] = Field(default="planner.comparison/1", alias="schema")
    """Edition of this document."""
    rows: tuple[Row, ...]
    """One for each candidate and offer."""

    @property
    def best(self) -> Row | None:
        """The first row that has a plan."""
        return next((row for row in self.rows if row.gpus is not None), None)

    def headline(self) -> str:
        """Return how many have a plan, and the best."""
        rows = [row for row in self.rows if row.gpus is not None]
        best = f"; best {rows[0].offer or rows[0].node}: {', '.join(_figures(rows[0]))}" if rows else ""
        return f"{plural(len(self.rows), 'row')}, {len(rows):,} with a plan{best}"

    def table(self) -> Table:
        """Return one row a candidate and offer."""
        return (("hardware", "offer", "status", "GPUs", "days", "cost", "why not"),
                [(row.node, row.offer, row.status, *(_figures(row) if row.gpus is not None else ("", "", "")),
                  row.why_not) for row in self.rows])

    def records(self) -> list[Mapping[str, object]]:
        """Return one row a candidate and offer, with every field."""
        return [flat(row) for row in self.rows]


def _figures(row: Row) -> tuple[str, str, str]:
    return (plural(row.gpus or 0, "GPU"), show_days(row.duration_days or 0.0), show_usd(row.cost_usd or 0.0))

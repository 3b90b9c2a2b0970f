"""Where the nodes of a portfolio come from and when, and what bounds all its jobs together."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, PlainSerializer, field_validator, model_validator

from planner.scenario.limits import MOST, Buy, Rent, Sourcing, owned_entry, owned_in_words
from planner.scenario.moment import Moment, Span, written
from planner.scenario.portfolio_job import MOST_JOBS
from planner.scenario.quarters import ByQuarter
from planner.units import Gpus, Money, Nodes, Watts
from planner.yaml_io import Frozen

_FIRST_AND_LAST = {(first, last) for first in ("from", "start", "first", "begin")
                   for last in ("until", "end", "last", "to")}


def _first_and_last(value: object) -> object:
    if isinstance(value, str):
        return (value, value)
    return tuple(value.values()) if isinstance(value, dict) and tuple(value) in _FIRST_AND_LAST else value


def _flat(times: tuple[tuple[datetime, datetime], ...]) -> list[str] | list[list[str]]:
    """Write one time as its two days, and several as a list of such."""
    days = [[written(day) for day in time] for time in times]
    return days[0] if len(days) == 1 else days


Maintenance = Annotated[tuple[tuple[Moment, Moment], ...], Field(min_length=1, max_length=MOST_JOBS), PlainSerializer(
    _flat, return_type=list[str] | list[list[str]])]


class Owned(Frozen):
    """Nodes that you own."""

    model_config = ConfigDict(populate_by_name=True)

    node: str
    """Node type."""
    nodes: Annotated[Nodes, Field(gt=0, le=MOST)]
    """How many."""
    maintenance: Maintenance | None = None
    """First and last day on which none of them works; of several such times a list."""
    from_: Moment | None = Field(default=None, alias="from")
    """They are there from then on."""
    until: Moment | None = None
    """They are gone from then on."""

    @field_validator("maintenance", mode="before")
    @classmethod
    def _times(cls, value: object) -> object:
        """Read a date alone, two dates, {from: 2027-02-01, until: 2027-02-05}, and lists of the latter two."""
        several = isinstance(value, list | tuple) and any(isinstance(one, list | tuple | dict) for one in value)
        times = list(value) if several and isinstance(value, list | tuple) else [value]
        return None if value is None else [_first_and_last(one) for one in times]

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if any(last < first for first, last in self.maintenance or ()):
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
    budget_by_quarter: ByQuarter | None = None
    """Most money spent in any calendar quarter, or in those that are named: {2027-Q1: 4 MUSD, 2027-Q2: 3 MUSD}."""
    max_gpus: Annotated[Gpus, Field(gt=0, le=MOST)] | None = None
    """Most GPUs at work at any time."""
    max_nodes: Annotated[Nodes, Field(gt=0, le=MOST)] | None = None
    """Most nodes at work at any time, spares included."""
    max_power: Watts | None = None
    """Maximum power of all nodes at work, under load."""
    site_power: Watts | None = None
    """The same of nodes at your site: owned and bought."""

    @field_validator("max_nodes", "max_power", "site_power", mode="before")
    @classmethod
    def _of_all(cls, value: object) -> object:
        if isinstance(value, dict):
            raise ValueError("one figure holds for all nodes: those that are owned and bought are at one site, "
                             "sourcing.site, and rented ones of one type have sourcing.rent.quota")
        return value

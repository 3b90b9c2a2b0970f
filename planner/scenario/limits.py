"""What the plan must respect and what it should minimize."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from planner.catalog.price import Term
from planner.units import Seconds, Usd, Watts
from planner.yaml_io import Frozen

MOST = 10**7
"""Largest GPU or node count a limit may name; no cluster comes near."""
Objective = Literal["cost", "time", "gpus", "energy"]


class Limits(Frozen):
    """Upper bounds; none means no bound. `gpus` fixes the count, `max_gpus` and `max_nodes` cap it."""

    deadline: Seconds | None = None
    budget: Usd | None = None
    gpus: int | None = Field(default=None, gt=0, le=MOST)
    max_gpus: int | None = Field(default=None, gt=0, le=MOST)
    max_nodes: int | None = Field(default=None, gt=0, le=MOST)
    max_power: Watts | None = None


class Rent(Frozen):
    """Which offers may be rented."""

    terms: tuple[Term, ...] = Field(default=("on-demand",), min_length=1)
    providers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()


class Sourcing(Frozen):
    """Where hardware comes from."""

    rent: Rent = Rent()


class Hardware(Frozen):
    """Which nodes may be used."""

    candidates: tuple[str, ...] = Field(min_length=1)

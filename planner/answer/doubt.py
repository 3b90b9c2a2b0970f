"""What not knowing is worth where another choice of hardware comes close."""

from __future__ import annotations

from pydantic import Field

from planner.yaml_io import Frozen


class Measurement(Frozen):
    """The steps of both choices, measured on a few nodes of each before deciding."""

    nodes: int = Field(ge=1)
    """Of each choice."""
    hours: float = Field(gt=0)
    """For which they are paid."""
    cost_usd: float = Field(ge=0)
    """Of all of them."""
    loss: float = Field(ge=0)
    """Expected loss that remains, in USD."""


class Doubt(Frozen):
    """The chance that the nearest other hardware is better, and what choosing the plan now costs on average."""

    gpu: str
    """Of the other choice."""
    gpus: int = Field(ge=1)
    """Of the other choice."""
    value: float = Field(gt=0)
    """The objective of the other choice, in its unit."""
    chance: float = Field(ge=0, le=1)
    """That it is better: of what is not known, the causes that both predictions share count for neither."""
    loss: float = Field(ge=0)
    """Expected, in the objective's unit, of choosing the plan now instead of knowing which is better."""
    measurement: Measurement | None = None
    """The one that pays most; none where none pays, or cost is not the objective."""

"""What `planner compare` prints as JSON: schema planner.comparison/1, to the letter of the contract."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer

from planner.answer.objective import NAMES
from planner.answer.schema import Status
from planner.solver.fleet.problem import Goal
from planner.yaml_io import Frozen


class ServedFigures(Frozen):
    """What a service's tokens take: the cost of prompts and answers by the time that each takes of the engines."""

    replicas: int
    output_tokens_per_second_per_gpu: float
    usd_per_million_input_tokens: float
    usd_per_million_output_tokens: float
    joules_per_token: float
    """Of prompts and answers together, drawn by the nodes."""


class Row(Frozen):
    """One hardware candidate with one offer, at its own best plan; without a plan only `why_not` is told."""

    node: str
    gpu: str
    offer: str | None = None
    kind: Literal["rent", "buy", "owned"]
    status: Status
    gpus: int | None = None
    duration_days: float | None = None
    mfu: float | None = None
    cost_usd: float | None = None
    cost_parts: dict[str, float] = Field(default_factory=dict)
    """USD by what they are paid for; they add up to `cost_usd`."""
    usd_per_gpu_hour: float | None = None
    """Of a GPU in the layout: spare nodes are in it."""
    usd_per_million_tokens: float | None = None
    energy_kwh: float | None = None
    """Drawn by the nodes, spares included, without the building's share."""
    co2_kg: float | None = None
    """With the building's share, at the site's grid; none where the site does not say."""
    break_even_months: float | None = None
    """Of nodes that are bought: when they have cost less than renting for the same work; none where they never do."""
    why_not: str | None = None
    serving: ServedFigures | None = None
    """Of a service; elsewhere the key is left out."""

    @model_serializer(mode="wrap")
    def _without_serving(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out the figures of a service where there is none."""
        data: dict[str, Any] = write(self)
        if data.get("serving") is None:
            data.pop("serving", None)
        return data

    def rank(self, goal: Goal) -> tuple[bool, float, float, str]:
        """Return what rows sort by, best first: those without a plan last, equal ones by cost, then by name."""
        value = getattr(self, NAMES[goal])
        return (value is None, value or 0.0, self.cost_usd or 0.0, self.offer or self.node)


class Comparison(Frozen):
    """All candidates, best by the objective first, those without a plan last."""

    model_config = ConfigDict(populate_by_name=True)

    schema_: Literal["planner.comparison/1"] = Field(default="planner.comparison/1", alias="schema")
    rows: tuple[Row, ...]

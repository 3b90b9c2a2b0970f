"""Speculative decoding as a service asks for it."""

from __future__ import annotations

from pydantic import Field, model_validator

from planner.scenario.demand import Share
from planner.yaml_io import Frozen


class Speculative(Frozen):
    """Tokens drafted ahead in each step, and the share of them that the model accepts."""

    tokens: int = Field(gt=0, le=64)
    """Tokens drafted per step."""
    acceptance: Share | None = Field(default=None, ge=0, le=1)
    """Share that the model accepts; the usual one where it is left out."""

    @property
    def accepted(self) -> float:
        """The share of a resolved service."""
        assert self.acceptance is not None
        return self.acceptance

    @model_validator(mode="before")
    @classmethod
    def _in_short(cls, data: object) -> object:
        """Read 3:0.7 as three tokens of which 70% are accepted, and 3 as three of which the usual share is."""
        if isinstance(data, int) and not isinstance(data, bool):
            return {"tokens": data}
        if not isinstance(data, str):
            return data
        tokens, colon, acceptance = data.partition(":")
        if not colon and data.strip().isdecimal():
            return {"tokens": data.strip()}
        if not colon:
            raise ValueError(f"{data!r} is not a speculative setting: write tokens per step and the share accepted, "
                             "such as '3:0.7'")
        return {"tokens": tokens.strip(), "acceptance": acceptance.strip()}

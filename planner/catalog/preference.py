"""Training on preferences: its methods, and how a framework runs them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from planner.yaml_io import Frozen

Preference = Literal["dpo", "kto", "orpo", "simpo", "reward-model"]
"""Methods that train on preferences: pairs of answers, or answers that are labeled good or bad."""
Tuned = Literal["full", "lora", "qlora"]
"""What trains of a model that is trained already."""


class PreferenceSupport(Frozen):
    """How a framework trains on preferences."""

    methods: tuple[Preference, ...] = Field(min_length=1)
    """Those that it has."""
    tunings: tuple[Tuned, ...] = ("full", "lora", "qlora")
    """What it can train by them."""
    precomputed: tuple[Preference, ...] = ()
    """Those whose reference it can run on all samples before training, which leaves it out of the memory."""
    padding_free: bool = False
    """Whether the answers of a micro-batch stand end to end, and are not padded to the longest."""
    loss_bytes_per_logit: dict[Preference, Annotated[float, Field(ge=0, le=1000)]] = Field(default={})
    """Of methods whose loss is another than its own."""
    place: Annotated[int, Field(ge=1, le=100)] | None = None
    """Among the stacks that people use for it, which `stack: auto` searches; none where it is searched by name alone.
    """

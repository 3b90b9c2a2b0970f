"""Inference engines: how each shares out a GPU's memory, by release."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from planner.catalog.sourced import AsOf, Kind, Sourced
from planner.units import Bytes
from planner.yaml_io import Frozen


class Limits(Frozen):
    """What a step may hold at most unless the user says otherwise."""

    tokens: int = Field(gt=0)
    sequences: int = Field(gt=0)


class Release(Frozen):
    """Memory of an engine from one version on, until the next entry."""

    version: str = Field(pattern=r"^\d+(\.\d+)*$")
    small: Limits
    large: Limits
    """On GPUs of `large_from` and more."""
    large_from: Bytes = 70 * 2.0**30
    sampler_bytes: float = Field(default=0.0, ge=0)
    """Of each logit, while the profile run samples."""
    context: Bytes
    """What a GPU holds besides weights, activations and cache, alone."""
    communicators: Bytes
    """The same on top, where several GPUs share a layer."""
    source: str | None = None
    as_of: AsOf | None = None
    kind: Kind | None = None

    @property
    def order(self) -> tuple[int, ...]:
        """The version as numbers."""
        return tuple(map(int, self.version.split(".")))


class Engine(Sourced):
    """One inference engine. `fraction_of` says of what `memory_fraction` is a share."""

    fraction_of: Literal["memory", "what is free"]
    memory_fraction: float = Field(gt=0, le=1)
    block: int = Field(gt=0)
    """Tokens of a cache block."""
    releases: tuple[Release, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _releases_rise(self) -> Engine:
        orders = [release.order for release in self.releases]
        if orders != sorted(set(orders)):
            raise ValueError("releases must rise by version")
        return self

    def release(self, version: str | None) -> Release:
        """Return the entry that holds for a version; the newest without one, the oldest for what is older."""
        if version is None:
            return self.releases[-1]
        asked = tuple(int(part) for part in version.split(".") if part.isdigit())
        return next((one for one in reversed(self.releases) if one.order <= asked), self.releases[0])

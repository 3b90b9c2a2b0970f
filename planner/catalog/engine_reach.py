"""What an engine runs, and from which release to which: formats, models, prefill apart, prompts that wait."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import Field

from planner.catalog.architecture import Model
from planner.catalog.encoder import Sense
from planner.catalog.ranges import Few, Width
from planner.yaml_io import Frozen


def order_of(version: str) -> tuple[int, ...]:
    """Return a version as numbers."""
    return tuple(int(part) for part in version.split(".") if part.isdigit())


class Span(Frozen):
    """Releases from one on, up to another."""

    since: str = Field(default="0", pattern=r"^\d+(\.\d+)*$")
    until: str | None = Field(default=None, pattern=r"^\d+(\.\d+)*$")
    """The first release that it no longer holds for."""

    def holds(self, release: str) -> bool:
        """Say whether a release is among them."""
        return order_of(self.since) <= order_of(release) and (
            self.until is None or order_of(release) < order_of(self.until))


class Runs(Span):
    """Formats that an engine has kernels for on some GPU architectures."""

    on: tuple[str, ...] = Field(min_length=1)
    """Architectures of GPUs."""
    weights: tuple[str, ...] = Field(min_length=1)
    cache: tuple[str, ...] = ("bf16",)


class Crosses(Span):
    """Releases that run models whose layers attend to what an encoder has read."""

    of: Sense


class Without(Span):
    """Releases that have no code for some models of the catalog."""

    models: tuple[str, ...] = Field(min_length=1)
    """Their names, with * for any ending."""

    def lacks(self, engine: str, model: Model, release: str) -> str | None:
        """Return why a release does not run a model; none where it does."""
        if not self.holds(release) or not any(fnmatchcase(model.name, one) for one in self.models):
            return None
        when = [f"before {self.since}"] if self.since != "0" else []
        when += [f"from {self.until} on"] if self.until is not None else []
        others = f": releases {' or '.join(when)} do" if when else ""
        return f"{engine} {release} does not run {model.name}{others}"


class Delays(Frozen):
    """Releases that can have prompts wait until every copy of attention has one."""

    since: str = Field(pattern=r"^\d+(\.\d+)*$")
    steps: Width
    """That they wait at most, unless the user says otherwise."""
    all_decode: bool = False
    """Whether they wait only while every copy decodes, and not while any does."""
    in_turn: bool = False
    """Whether requests are dealt to the copies in turn, and not to the one with fewest."""


class Apart(Frozen):
    """Releases that can have prefill and decode of a request on different replicas."""

    since: str = Field(pattern=r"^\d+(\.\d+)*$")
    stages: tuple[Literal["prefill", "decode"], ...] = ()
    """Which of the two may be in pipeline stages."""


class StatePool(Frozen):
    """How an engine that does not hold layers by kind shares its pool out to recurrent states and to tokens."""

    per_token_byte: Annotated[float, Field(gt=0, le=100)]
    """Bytes that states have for each byte that tokens have."""
    slots: Few
    """States of a request: it runs on one, and others are kept so that requests with the same beginning can go on
    from them."""


def lacks_crossing(engine: str, crosses: Sequence[Crosses], model: Model, release: str) -> str | None:
    """Return why a release does not run a model whose layers attend to what an encoder has read; none where it does,
    and of any other model.
    """
    if (sense := model.attends_to) is None:
        return None
    what = f"models that attend to {sense}, such as {model.name}"
    having = [one for one in crosses if one.of == sense]
    if not having:
        return f"{engine} does not run {what}"
    if any(one.holds(release) for one in having):
        return None
    when = " or ".join(f"before {one.until}" if one.until else f"from {one.since} on" for one in having)
    return f"{engine} {release} does not run {what}: releases {when} do"

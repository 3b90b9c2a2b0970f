"""What a target says of each axis of a layout: its settings, or that it cannot be said. Nothing is left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from planner.errors import InputError
from planner.launch.work import Work

Settings = Mapping[str, object]
"""Key of a stack's config (dotted where it nests, with its file before a colon where there are several) -> value."""


@dataclass(frozen=True, slots=True)
class No:
    """What a target cannot be told, and the nearest that it can: values of `--layout`, or of a flag (`--optimizer`).

    Of a flag, nothing or no: that it is left out.
    """

    reason: str
    instead: Mapping[str, object] = field(default_factory=dict)


class PlannedWork(Protocol):
    """What a target is told of: a training job, or replicas of a service."""

    @property
    def target(self) -> str:
        """What starts it."""

    def value(self, axis: str) -> object:
        """Return the value of an axis."""


W = TypeVar("W", bound=PlannedWork)
SayOf = Callable[[W], Settings | No]
TableOf = Mapping[tuple[str, ...], SayOf[W]]
"""Names of axes that one setting holds together -> what is said of them."""
Say = SayOf[Work]
Table = TableOf[Work]


class CannotExpress(InputError):
    """A plan that a target has no words for; `refused` says which axes, and `instead` the nearest that it can."""

    def __init__(self, target: str, refused: Mapping[str, No]) -> None:
        self.target, self.refused = target, dict(refused)
        self.instead: dict[str, object] = {}
        for one in refused.values():
            self.instead |= one.instead
        said = "; ".join(f"{axis}: {one.reason}" for axis, one in refused.items())
        super().__init__(f"{target} cannot express this plan: {said}")


def only(axis: str, *values: object, reason: str, instead: Mapping[str, object] | None = None) -> Callable[
        [PlannedWork], Settings | No]:
    """Return what to say of an axis that has no key: nothing at the values that a target always has, else no.

    instead: the nearest that it can; the first of the values, where the axis is named as it is asked.
    """
    def say(work: PlannedWork) -> Settings | No:
        value = work.value(axis)
        return {} if value in values else No(f"{value} ({reason})", {axis: values[0]} if instead is None else instead)
    return say


def whole_layers(say: Callable[[W, bool], Settings | No]) -> SayOf[W]:
    """Return what to say of recompute where every layer recomputes whole or none does; `say` is told which."""
    def held(work: W) -> Settings | No:
        kept = work.value("recompute")
        if kept not in ("none", "full"):
            return No(f"{kept} (every layer whole, or none)", {"recompute": "full"})
        return say(work, kept == "full")
    return held


def in_part(work: Work) -> No:
    """Return the refusal of what FSDP cannot offload: it has all on the host, or nothing."""
    out = work.layout.offload
    return No(f"{out.optimizer:.0%} of the optimizer states and {out.parameters:.0%} of the weights on the host (all "
              "of both under FSDP, or none)", {"offload_optimizer": 1, "offload_parameters": 1})


WHOLE: Table = {
    ("preference", "reference"): only("preference", None, reason="it trains on texts, not on preferences",
                                      instead={"method": "full"}),
    ("trained_layers",): only("trained_layers", None, reason="all layers train"),
    ("lora_targets",): only("lora_targets", "all", reason="its adapters are on every linear layer",
                            instead={"lora_targets": "all"})}
"""What no target is told to leave out."""


def settings_of(work: W, table: TableOf[W]) -> dict[str, object]:
    """Return all settings of a plan. Raises CannotExpress, naming every axis that has none."""
    settings: dict[str, object] = {}
    refused: dict[str, No] = {}
    for names, say in table.items():
        said = say(work)
        if isinstance(said, No):
            refused[names[0]] = said
        else:
            settings |= said
    if refused:
        raise CannotExpress(work.target, refused)
    return settings

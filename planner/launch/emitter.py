"""What a target is to the command: a table of all axes, and a function that writes its program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Generic

from planner.launch import emitters
from planner.launch.axes import No, PlannedWork, Settings, TableOf, W
from planner.launch.diffused import Diffused
from planner.launch.generated import Generated
from planner.launch.program import Program
from planner.launch.registry import brought, named
from planner.launch.reinforced import Reinforced
from planner.launch.served import EngineGroup
from planner.launch.work import Work


@dataclass(frozen=True, slots=True)
class _Target(Generic[W]):
    target: str
    table: TableOf[W]
    """What it says of every axis."""


@dataclass(frozen=True, slots=True)
class Emitter(_Target[Work]):
    """One target of training."""

    emit: Callable[[Work], Program]
    """Raises CannotExpress for a plan that it has no words for."""


@dataclass(frozen=True, slots=True)
class ServiceEmitter(_Target[EngineGroup]):
    """One target of serving, told of every kind of replica that serves together."""

    emit: Callable[[Sequence[EngineGroup]], Program]
    """Raises CannotExpress likewise."""


@dataclass(frozen=True, slots=True)
class ReinforcedEmitter(_Target[Reinforced]):
    """One target of reinforcement learning."""

    emit: Callable[[Reinforced], Program]
    """Raises CannotExpress likewise."""


@dataclass(frozen=True, slots=True)
class DiffusionEmitter(_Target[Diffused]):
    """One target of training diffusion models."""

    emit: Callable[[Diffused], Program]
    """Raises CannotExpress likewise."""


@dataclass(frozen=True, slots=True)
class GenerationEmitter(_Target[Generated]):
    """One target of making images and clips, told of every kind of replica that makes them together."""

    emit: Callable[[Sequence[Generated]], Program]
    """Raises CannotExpress likewise."""


AnyEmitter = Emitter | ServiceEmitter | ReinforcedEmitter | DiffusionEmitter | GenerationEmitter


@cache
def all_targets() -> Mapping[str, AnyEmitter]:
    """Return every target that there is an emitter for, by name."""
    return {one.target: one for one in brought(emitters, "EMITTER")}


def emitter_of(target: str) -> AnyEmitter:
    """Return the emitter of a target. Raises UnknownName."""
    return named("target", target, all_targets())


def plain(axis: str, key: str, words: Mapping[str, object], asked: str = "") -> Callable[[PlannedWork], Settings | No]:
    """Return what to say of an axis whose values are words of the stack; one that means nothing to say is None.

    asked: the axis as a question names it, where that differs.
    """
    def say(work: PlannedWork) -> Settings | No:
        value = str(work.value(axis))
        if value not in words:
            return No(f"{value} (it has {', '.join(words)})", {asked or axis: next(iter(words))})
        return {} if words[value] is None else {key: words[value]}
    return say

"""What a target is to the command: a table of all axes, and a function that writes its program."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from planner.errors import UnknownName
from planner.launch import emitters
from planner.launch.axes import No, Say, Settings, Table
from planner.launch.program import Program
from planner.launch.work import Work


@dataclass(frozen=True, slots=True)
class Emitter:
    """One target of training."""

    target: str
    table: Table
    """What it says of every axis."""
    emit: Callable[[Work], Program]
    """Raises CannotExpress for a plan that it has no words for."""


@cache
def all_emitters() -> Mapping[str, Emitter]:
    """Return every target that there is an emitter for, by name."""
    found = [import_module(f"{emitters.__name__}.{module.name}") for module in pkgutil.iter_modules(emitters.__path__)]
    return {one.EMITTER.target: one.EMITTER for one in found}


def emitter_of(target: str) -> Emitter:
    """Return the emitter of a target. Raises UnknownName."""
    known = all_emitters()
    if target not in known:
        raise UnknownName("target", target, known)
    return known[target]


def plain(axis: str, key: str, words: Mapping[str, object]) -> Say:
    """Return what to say of an axis whose values are words of the stack; one that means nothing to say is None."""
    def say(work: Work) -> Settings | No:
        value = str(work.value(axis))
        if value not in words:
            return No(f"{value} (it has {', '.join(words)})", {axis: next(iter(words))})
        return {} if words[value] is None else {key: words[value]}
    return say

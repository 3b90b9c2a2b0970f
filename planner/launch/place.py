"""What a scheduler is to the command: a function that writes the job of a program."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from planner.answer.assignment import Assignment
from planner.errors import UnknownName
from planner.launch import places
from planner.launch.program import Job, Program


@dataclass(frozen=True, slots=True)
class Place:
    """One scheduler."""

    name: str
    job: Callable[[Program, Assignment], Job]
    check: str = ""
    """Module of `checks` that reads its files; none where only bash does."""
    package: str = ""
    """What it needs there."""


@cache
def all_places() -> Mapping[str, Place]:
    """Return every scheduler by name."""
    found = [import_module(f"{places.__name__}.{module.name}") for module in pkgutil.iter_modules(places.__path__)]
    return {one.PLACE.name: one.PLACE for one in found}


def place_of(name: str) -> Place:
    """Return a scheduler by name. Raises UnknownName."""
    known = all_places()
    if name not in known:
        raise UnknownName("scheduler", name, known)
    return known[name]


def usual_place(program: Program) -> Place:
    """Return the scheduler where none is named: Slurm for several nodes, none for one."""
    return place_of("slurm" if program.nodes > 1 else "torchrun")

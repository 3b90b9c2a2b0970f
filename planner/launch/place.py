"""What a scheduler is to the command: a function that writes the job of a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from planner.answer.assignment import Assignment
from planner.errors import Unsupported
from planner.launch import places
from planner.launch.program import Program, Start
from planner.launch.registry import brought, named


@dataclass(frozen=True, slots=True)
class Place:
    """One scheduler."""

    name: str
    job: Callable[[Program, Assignment], Start]
    check: str = ""
    """Module of `checks` that reads its files; none where only bash does."""
    package: str = ""
    """What it needs there."""


@cache
def all_places() -> Mapping[str, Place]:
    """Return every scheduler by name."""
    return {one.name: one for one in brought(places, "PLACE")}


def place_of(name: str) -> Place:
    """Return a scheduler by name. Raises UnknownName."""
    return named("scheduler", name, all_places())


def asked_job(name: str, program: Program, assignment: Assignment) -> tuple[Place, Start]:
    """Return the place of a name, and the job there. Raises UnknownName, Unsupported."""
    place = place_of(name)
    return place, place.job(program, assignment)


def usual_job(program: Program, assignment: Assignment) -> tuple[Place, Start]:
    """Return the place where none is named, by where the offer is, and the job there.

    What needs no fabric, a service or one node, and is rented from a cloud that SkyPilot knows is rented by that. All
    else is under Slurm, or on one node under nothing.
    """
    own = place_of("slurm" if program.nodes > 1 else "torchrun")
    if program.offer is not None and (program.serves or program.nodes == 1):
        with suppress(Unsupported):
            rented = place_of("skypilot")
            return rented, rented.job(program, assignment)
    return own, own.job(program, assignment)

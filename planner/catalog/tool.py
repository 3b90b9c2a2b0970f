"""Flags of other programs that no answer depends on, so that command lines of theirs can be asked about as they are."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from planner.catalog.sourced import Sourced


def _words(value: object) -> object:
    return tuple(value.split()) if isinstance(value, str) else value


class Tool(Sourced):
    """A program with the flags of its command line, without their dashes."""

    called: str
    """As people write it."""
    idle: Annotated[tuple[str, ...], BeforeValidator(_words)]
    """Flags of logs, addresses, files, formats of answers: neither time, memory nor money follow from them."""
    otherwise: dict[str, str] = Field(default_factory=dict)
    """Flags that the answer counts in another way than the program, with how, to follow "is left out: "."""
    unmodeled: dict[str, str] = Field(default_factory=dict)
    """Flags whose effect would be missing from the answer, with what to write."""

"""A value of a key with the places of the words that it was read from, which stay with it wherever it is moved."""

from __future__ import annotations

from collections.abc import Collection, Set


class ReadFrom(str):
    """The text of a value; each number of a sentence belongs to one key, so each value knows whose words it has."""

    __slots__ = ("places",)

    places: set[int]
    """Of the words in the sentence; none of a value that follows from others."""

    def __new__(cls, text: str, places: Collection[int] = ()) -> ReadFrom:
        """Take a text and the places of its words, those that it has already among them."""
        made = super().__new__(cls, text)
        made.places = {*places, *places_of(text)}
        return made


def places_of(value: str) -> Set[int]:
    """Return the places of the words that a value was read from; none of one that follows from others."""
    return value.places if isinstance(value, ReadFrom) else frozenset()

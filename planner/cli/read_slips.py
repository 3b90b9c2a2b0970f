"""Names of models that the catalog does not have: slips (quen 2.5 72b), and those whose size is all that is known."""

from __future__ import annotations

import difflib
import re
from functools import lru_cache
from typing import TYPE_CHECKING

from planner.catalog.sized import size_of
from planner.cli.read_from import ReadFrom, places_of
from planner.cli.read_models import letters, model

if TYPE_CHECKING:
    from planner.catalog.load import Catalog
    from planner.cli.read_words import Sentence

_ENDS = re.compile(r"-(\d{1,4}(?:\.\d{1,3})?b)(?:-[a-z]{2,8})?$", re.ASCII)
"""A size at the end of a name."""
_SLIP = 0.9
"""From which likeness a name is a known one with a slip."""
_LEAST = 4
"""Letters of a word that may have a slip in it."""
_ALIKE = 0.75
"""From which likeness one word is another with a slip."""
_REACH = 3
"""Words behind a name in which its size stands."""


def slip(said: Sentence) -> int:
    """Read a model whose family is named with a slip in it."""
    word, behind = said.words[said.at], said.words[said.at + 1:said.at + 1 + _REACH]
    stem = word.rstrip("0123456789.-")
    if len(stem) < _LEAST or not stem.isalpha() or not any(size_of(each) for each in behind):
        return 0
    if stem == word and not any(map(str.isdigit, behind[0])):
        return 0
    like = [name for name in difflib.get_close_matches(stem, _families(said.catalog), 3, _ALIKE) if name[0] == stem[0]]
    if not like or stem in like:
        return 0
    meant = word.replace(stem, like[0], 1)
    said.assumed.append(f"{word} is read as {meant}")
    said.words = [*said.words[:said.at], meant, *said.words[said.at + 1:]]
    return model(said)


def of_a_size(flags: dict[str, list[str]], catalog: Catalog) -> list[str]:
    """Take a model that the catalog does not know and whose name ends with its size for one of that size, and return
    what was taken for what; one that is called as a known one with a slip is left to be asked back.
    """
    named, notes = flags.get("model", []), list[str]()
    for at, name in enumerate(named):
        size = _ENDS.search(name)
        if size is None or size_of(name) or catalog.known_model(name) or catalog.known_diffusion(name) or (
                size[1] not in named and difflib.get_close_matches(name, catalog.names("models"), 1, _SLIP)):
            continue
        named[at] = ReadFrom(size[1], places_of(name))
        notes.append(f"{name} is not in the catalog: planned for as any {size[1]}; planner catalog import hf reads its "
                     "config.json")
    if named:
        flags["model"] = list({str(name): name for name in named}.values())
    return notes


@lru_cache(maxsize=8)
def _families(catalog: Catalog) -> tuple[str, ...]:
    return tuple(sorted({letters(name) for name in catalog.names("models")} - {""}))

"""Slips in the names of models: quen 2.5 72b is qwen, where a version or a size stands behind."""

from __future__ import annotations

import difflib
from functools import lru_cache
from typing import TYPE_CHECKING

from planner.catalog.sized import size_of
from planner.cli.read_models import letters, model

if TYPE_CHECKING:
    from planner.catalog.load import Catalog
    from planner.cli.read_words import Sentence

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


@lru_cache(maxsize=8)
def _families(catalog: Catalog) -> tuple[str, ...]:
    return tuple(sorted({letters(name) for name in catalog.names("models")} - {""}))

"""Names in a sentence of what is known and not modeled: hardware, models and methods."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.catalog.spelling import joined
from planner.cli.phrases import SILENT, noun_of
from planner.errors import InputError
from planner.scenario.unmodeled import METHODS, TASKS, family_of, seeing

if TYPE_CHECKING:
    from planner.cli.read_words import Sentence

_VERSIONS = ("tiny", "base", "small", "medium", "large", "turbo", "xl", "xxl")
"""Words behind the name of a model that is not modeled."""
_MACHINE = ("studio", "mini", "pro", "book", "ultra", "air", "max", "chip", "pod", "slice")


def unmodeled(said: Sentence) -> int:
    """Read what is known and not modeled, for the question to be refused by what it is: whisper, RLHF, a TPU."""
    word = said.words[said.at]
    if word in SILENT or noun_of(word):
        return 0
    for many, text in said.phrase(said.at, 3):
        if (why := TASKS.get("".join(filter(str.isalnum, text)))) is not None:
            raise InputError(f"{' '.join(said.words[said.at:said.at + many])}: {why}")
    if seeing(word) is not None:
        behind = said.at + 1
        while behind < len(said.words) and (said.words[behind] in _VERSIONS or said.words[behind][:1] == "v"):
            behind += 1
        said.put("model", "-".join(said.words[said.at:behind]))
        return behind - said.at
    if joined(word) in METHODS:
        said.put("method", word)
    elif family_of(word) is not None:
        said.put("on", word)
        return _whole_machine(said)
    else:
        return 0
    return 1


def _whole_machine(said: Sentence) -> int:
    """Return how many words name a machine that is not modeled: mac studio m3 ultra with 512gb."""
    words, behind = said.words, said.at + 1
    while behind < len(words) and (words[behind] in _MACHINE or family_of(words[behind]) is not None):
        behind += 1
    memory = behind + (words[behind:behind + 1] in (["with"], ["of"]))
    if words[memory:memory + 1] and re.fullmatch(r"\d+gb", words[memory]):
        behind = memory + 1
    return behind - said.at

"""Bytes in the words of a sentence that are no GPU's: how much data there is, the RAM of a machine, and the memory of
hardware that is named already.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.cli.amounts import Amount
from planner.cli.plain_words import figure
from planner.cli.read_from import places_of
from planner.scenario.hardware_names import is_hardware

if TYPE_CHECKING:
    from planner.cli.read_words import Sentence

_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>(?:[kmgt]i?)?b)", re.ASCII)
_UNIT = re.compile(r"[kmgt]i?b", re.ASCII)
_BYTES = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_MEMORY = re.compile(r"(?:\d{1,3} ?x ?)?\d{1,4}g(?:i?b)?", re.ASCII)
"""96gb, 40g, and 8x40g of a whole machine."""
_DATA = frozenset(("text", "texts", "data", "dataset", "datasets", "corpus", "corpora", "jsonl", "code", "wikipedia",
                   "documents", "docs", "logs", "html", "books", "transcripts", "parquet"))
_RAM = frozenset(("ram", "dram", "ddr4", "ddr5"))
_HOST = frozenset(("cpu", "system", "host", "main", "server"))
_SAYS = frozenset((",", "each", "with", "of", "and", "having", "has", "a", "per", "total", "in", "all", "the", "gpu",
                   "gpus", "card", "cards", "which", "have", "or"))
"""Words between hardware and the memory that it has."""
_OF_MEMORY = frozenset(("vram", "memory", "gpu", "each", "total", "of", "in", "all", "per", "card", "combined", "hbm",
                        "graphic", "graphics"))
_NEEDED = frozenset(("requirement", "requirements", "requires", "required", "needs", "need", "needed"))
"""Words around memory that somebody says is needed."""
_REACH = 3


def of_host(words: Sequence[str], at: int) -> int:
    """Return how many words from `at` on say that the size before them is of the host's memory: ram, of system memory.
    """
    behind = at + (words[at:at + 1] == ["of"])
    if words[behind:behind + 1] and words[behind] in _RAM:
        return behind + 1 - at
    hosts = words[behind:behind + 1] and words[behind] in _HOST
    return behind + 2 - at if hosts and words[behind + 1:behind + 2] in (["memory"], ["ram"]) else 0


def of_data(said: Sentence) -> int:
    """Read how much text there is to train on, by its bytes: 20GB of text, a 5 GB jsonl."""
    words, at = said.words, said.at
    joined = words[at] + words[at + 1] if words[at + 1:at + 2] and _UNIT.fullmatch(words[at + 1]) else words[at]
    match = _SIZE.fullmatch(joined)
    behind = at + 1 + (joined != words[at])
    if match is None or match["unit"] == "b":
        return 0
    ahead = next((place for place in range(behind, min(len(words), behind + 1 + _REACH)) if words[place] in _DATA
                  or words[place] == ","), len(words))
    before = {*words[max(0, at - _REACH):at]} & _DATA
    behind_it = ahead < len(words) and words[ahead] in _DATA
    if not before and not behind_it:
        return 0
    letters = said.catalog.recipes.text.characters_per_token
    tokens = figure(float(f"{float(match['number']) * _BYTES[match['unit'][0]] / letters:.3g}"))
    said.assumed.append(f"{joined} of text are about {tokens} tokens, {letters:g} bytes each: --tokens says how many "
                        "yours are")
    ends = ahead + 1 if behind_it else behind
    said.heard.update(range(at, ends))
    said.amounts.append(Amount(tokens, "tokens", "", frozenset(), " ".join(words[at:ends]), places=frozenset(
        range(at, ends))))
    return ends - at


def of_named(said: Sentence) -> int:
    """Read memory behind hardware that is named already, whose it is: 4 gpus (3090, each with 24gb gpu memory)."""
    words, at = said.words, said.at
    last = max((value for flag in ("on", "own") for value in said.flags.get(flag, []) if places_of(value)),
               key=lambda value: max(places_of(value)), default="")
    if not last or not _MEMORY.fullmatch(words[at]) or not any(map(str.isdigit, last)):
        return 0
    between = words[max(places_of(last)) + 1:at]
    if not _NEEDED.isdisjoint(words[max(0, at - _REACH):at + _REACH]):
        said.assumed.append(f"{words[at]} is left out: what {last} holds is computed")
        return 1
    if not _SAYS.issuperset(between) or (between[-1:] == ["or"]) or _MEMORY.fullmatch(last):
        return 0
    ends = at + 1
    while words[ends:ends + 1] and words[ends] in _OF_MEMORY:
        ends += 1
    if is_hardware(" ".join(words[at:ends + 1]), said.catalog) and ends == at + 1 and ends < len(words):
        return 0  # a100 or 24gb 4090
    said.assumed.append(f"{' '.join(words[at:ends])} is left out: {last} has the memory that the catalog says")
    return ends - at

"""Bytes in the words of a sentence that are no GPU's: how much data there is, the RAM of a machine, and the memory of
hardware that is named already.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.cli.amounts import Amount
from planner.cli.plain_words import figure
from planner.cli.read_from import ReadFrom, places_of
from planner.scenario.hardware_names import candidate_nodes, is_hardware
from planner.scenario.unmodeled import family_of

if TYPE_CHECKING:
    from planner.catalog.load import Catalog
    from planner.cli.read_words import Sentence

_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>(?:[kmgt]i?)?b)", re.ASCII)
_UNIT = re.compile(r"[kmgt]i?b", re.ASCII)
_BYTES = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_MEMORY = re.compile(r"(?:\d{1,3} ?x ?)?\d{1,4}g(?:i?b)?", re.ASCII)
"""96gb, 40g, and 8x40g of a whole machine."""
_ALONE = re.compile(r"\d{1,3} ?g(?:i?b)?(?: v?ram)?", re.ASCII)
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


def of_no_card(said: Sentence) -> int:
    """Read memory of a host or of what is not modeled: cpu 50GB ram, a 128GB Mac."""
    words, at = said.words, said.at
    if _MEMORY.fullmatch(words[at]) is None:
        return 0
    if host := of_host(words, at + 1):
        said.assumed.append(f"{words[at]} of RAM is left out: host memory is that of the node type")
        return host + 1
    return int(family_of(next(iter(words[at + 1:at + 2]), "")) is not None)


def told_twice(flags: dict[str, list[str]], catalog: Catalog) -> None:
    """Take memory that is named beside the card that has it for that card's: 12GB VRAM (RTX 4070 Ti), T4, 16 GB."""
    for flag in ("on", "own"):
        sizes = [value for value in flags.get(flag, ()) if _ALONE.fullmatch(value)]
        cards = [value for value in flags.get(flag, ()) if value not in sizes]
        if len(sizes) == len(cards) == 1 and is_hardware(f"{cards[0].removesuffix('s')} {sizes[0]}", catalog):
            whole = f"{cards[0].removesuffix('s')} {sizes[0]}"
            flags[flag] = [ReadFrom(whole, places_of(cards[0]) | places_of(sizes[0]))]


def _with_memory(name: str, size: str, said: Sentence) -> int:
    """Take a name of hardware with the memory behind it where that is another card, and return how many words it took.
    """
    whole = f"{name.removesuffix('s')} {size}"
    if not is_hardware(whole, said.catalog) or set(candidate_nodes([whole], said.catalog)) == set(
            candidate_nodes([name], said.catalog)):
        return 0
    flag = next(flag for flag in ("on", "own") if name in said.flags.get(flag, []))
    at = said.flags[flag].index(name)
    said.flags[flag][at] = ReadFrom(whole, places_of(name) | {said.at})
    return 1


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
    # 16 x 23g of 16 cards
    spread = words[at].isdigit() and at + 1 < len(words) and 1 + (words[at + 1] == "x")
    size = next(iter(words[at + spread:at + spread + 1]), "")
    if not last or not _MEMORY.fullmatch(size) or not any(map(str.isdigit, last)):
        return 0
    between = words[max(places_of(last)) + 1:at]
    if not _NEEDED.isdisjoint(words[max(0, at - _REACH):at + _REACH + 1]):
        said.assumed.append(f"{words[at]} is left out: what {last} holds is computed")
        return 1
    if not _SAYS.issuperset(between) or (between[-1:] == ["or"]) or _MEMORY.fullmatch(last):
        return 0
    ends = at + 1 + spread
    if not spread and not between and (of_that := _with_memory(last, size, said)):
        return of_that  # 4 A100s (40GB)
    while words[ends:ends + 1] and words[ends] in _OF_MEMORY:
        ends += 1
    if is_hardware(" ".join(words[at:ends + 1]), said.catalog) and ends == at + 1 and ends < len(words):
        return 0  # a100 or 24gb 4090
    said.assumed.append(f"{' '.join(words[at:ends])} is left out: {last} has the memory that the catalog says")
    return ends - at

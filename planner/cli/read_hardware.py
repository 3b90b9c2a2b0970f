"""Hardware in the words of a sentence: rented or owned, with its count, and other forms of the card named last."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

from planner.catalog.hardware import Gpu
from planner.catalog.load import Catalog
from planner.cli.phrases import DRAWS, FOLLOW, ONES, REINFORCED, SILENT, TRAINS, noun_of
from planner.cli.read_sizes import of_host
from planner.scenario.hardware_names import is_hardware
from planner.scenario.unmodeled import family_of
from planner.scenario.words import SYNONYMS
from planner.scenario.words import named as named_as

if TYPE_CHECKING:
    from planner.cli.read_words import Sentence

_APART = frozenset(("or", "vs", "versus", "rent", "renting", "pay", "paying", "cloud"))
"""Words between hardware that is owned and other hardware that is not."""
MONEYED = frozenset(("grand", "bucks", "usd", "dollars", "euros", "mil", "k"))
"""Words behind a number that is one of money: 8 grand is no Grand Teton."""
_LINKS = frozenset(("on", "with", "using", "run", "runs", "running", "happen", "are", "is", "the", "its", "a"))
"""Words between what is done and the hardware that does it."""
VENDORS: tuple[str, ...] = get_args(Gpu.model_fields["vendor"].annotation)
_OWN = frozenset(("own", "owned"))
_SAID_OF_CARDS = frozenset(("used", "old", "older", "new", "idle", "spare", "free", "unused", "existing", "available",
                            "refurbished", "dedicated", "rented", "cloud", "second-hand", "secondhand", "bare-metal",
                            "whole", "full", "leftover", "more", "of", "our", "my", "these", "nvidia"))
"""Words between how many cards there are and their name."""
_TIMES = re.compile(r"\d{1,2}(\.\d)?x")
_COMPARED = frozenset(("faster", "cheaper", "slower", "quicker", "as", "more", "less", "the", "better"))
_SIZE = re.compile(r"\d{1,3}gb?", re.ASCII)
_OTHERWISE = ("or", "vs", "versus", "of", "than", "and", "to")
"""Words between a card and the other memory that it may have: 40GB instead of 80GB."""
_CHOICES = (["or"], ["vs"], ["versus"])
"""Words between cards, of which the second stands before the pace that is asked: a 4090 or 3090 tok/s."""
_FAR = 4
"""Words of a name of hardware at most."""
_CARDS = re.compile(r"\d+ ?x? ?(?P<card>[a-z]{0,4}\d.*)")
_FORMS = ("sxm", "pcie", "nvl", "40gb", "80gb", "40g", "80g")
"""Forms of a card, by the word behind its name."""


def hardware(said: Sentence) -> int:
    """Read hardware, with its count."""
    for many, text in said.phrase(said.at):
        if not _may_be_hardware(said, text, said.words[said.at:said.at + many]):
            continue
        name = next((each for each in (text, text.removesuffix("s")) if is_hardware(each, said.catalog)), "")
        if name:
            if text.endswith(("gb", "gib", "g", "tb")) and (more := of_host(said.words, said.at + many)):
                said.assumed.append(f"{text} of RAM is left out: host memory is that of the node type")
                return many + more
            if said.words[said.at + many:said.at + many + 1] in (["hours"], ["hour"], ["hrs"]) and any(
                    map(str.isdigit, text.split()[0])) and many > 1:
                said.denied.append(f"{text} hours (the answer's GPUs times its hours are to stay below)")
                said.put("own" if "own" in said.asks else "on", " ".join(text.split()[1:]))
                return many + 1
            one = text.split()[0] in ("a", "an")  # our A100, or an H200
            apart = said.flags.get("own") and (one or _APART.intersection(said.words[max(0, said.at - 4):said.at]))
            owned = "own" in said.asks and not apart
            name = _other_memory(said, name)
            said.put("rollouts-on" if _draws(said) else "own" if owned else "on", name)
            return many
    return _described(said) or _of_a_form(said) or _so_many(said) or _another_count(said)


def _other_memory(said: Sentence, name: str) -> str:
    """Return what a name is that is a memory alone, behind a card of another: 4x A100 40GB or 80GB."""
    last = next(iter([*said.flags.get("own", ()), *said.flags.get("on", ())][-1:]), "")
    front, _, size = last.rpartition(" ")
    other = f"{front} {name}"
    joins = said.at and said.words[said.at - 1] in _OTHERWISE
    return other if joins and _SIZE.fullmatch(name) and _SIZE.fullmatch(size) and is_hardware(
        other, said.catalog) else name


def _draws(said: Sentence) -> bool:
    """Say whether hardware is that on which answers are drawn to learn from: rollouts on L40S, the trainer on H100."""
    at = said.at
    while at and said.words[at - 1] in _LINKS:
        at -= 1
    does, before = said.words[at - 1:at], said.words[max(0, at - 2):max(0, at - 1)]
    drawn = DRAWS.intersection(does) and not any(word[:1].isdigit() for word in before)
    if not REINFORCED.intersection(said.words) or not (drawn or TRAINS.intersection(does)):
        return False
    if does[0] in said.unread:
        said.unread.remove(does[0])
    return bool(drawn)


def _described(said: Sentence) -> int:
    """Read hardware with words between its number and its name that change nothing: 8 used RTX 3090, four own A100."""
    words, at = said.words, said.at
    behind = at + 1
    while behind < len(words) and (words[behind] in _SAID_OF_CARDS or words[behind] in _OWN):
        behind += 1
    if behind == at + 1 or not (words[at].rstrip("x").isdigit() or words[at] in ONES):
        return 0
    for many in range(min(_FAR, len(words) - behind), 0, -1):
        text = " ".join(words[behind:behind + many])
        name = next((f"{words[at]} {each}" for each in (text, text.removesuffix("s")) if is_hardware(
            f"{words[at]} {each}", said.catalog)), "")
        if name and any(map(str.isdigit, text)) and words[behind + many - 1] not in SILENT:
            owned = "own" in said.asks or not _OWN.isdisjoint(words[at:behind])
            said.put("own" if owned else "on", name)
            return behind + many - at
    return 0


def _another_count(said: Sentence) -> int:
    """Read another number of the cards that were named last: on 256 H100 or on 128."""
    words, at = said.words, said.at
    flag = "on" if said.flags.get("on") else "own"
    last = (said.flags.get(flag) or [""])[-1]
    counted = _CARDS.fullmatch(last)
    ends = at + 1 == len(words) or words[at + 1] in (",", "or", "vs", "versus", "and", "for", "gpus", "of", "cards")
    if counted is None or not words[at].isdigit() or not ends or words[at - 1] not in ("on", "with", "or", "vs", "to",
                                                                                      "versus"):
        return 0
    if words[at - 1] not in ("on", "with") and words[at - 2] not in counted["card"].split():
        return 0  # 256 H100 or 128
    name = f"{words[at]} {counted['card']}"
    if not is_hardware(name, said.catalog):
        return 0
    said.put(flag, name)
    return 1 + (words[at + 1:at + 2] in (["gpus"], ["cards"])) + 2 * (words[at + 1:at + 3] in (
        ["of", "them"], ["of", "those"]))


def _so_many(said: Sentence) -> int:
    """Read a number of GPUs that no nodes of theirs have: 128 GB200, of which 72 are a rack."""
    if not said.words[said.at].isdigit() or said.at + 1 == len(said.words):
        return 0
    for many, text in said.phrase(said.at + 1, 3):
        if any(map(str.isalpha, text)) and any(map(str.isdigit, text)) and text not in SILENT and noun_of(
                text) is None and is_hardware(text, said.catalog) and not text[:1].isdigit():
            said.put("gpus", said.words[said.at])
            said.put("own" if "own" in said.asks else "on", text)
            return many + 1
    return 0


def _of_a_form(said: Sentence) -> int:
    """Read another form of the card that was named last: H100 PCIe or SXM."""
    last = (said.flags.get("on") or [""])[-1].split()
    word = said.words[said.at]
    if len(last) < 2 or word not in _FORMS or not is_hardware(name := " ".join((*last[:-1], word)), said.catalog):
        return 0
    said.put("on", name)
    return 1


def _may_be_hardware(said: Sentence, text: str, words: Sequence[str]) -> bool:
    """Say whether words have a number of a card or of cards in them, or the name of a family of nodes."""
    last, behind = words[-1], said.words[said.at + len(words):][:1]
    if _TIMES.fullmatch(last) and behind and behind[0] in _COMPARED:
        return False  # an H100 is 2x faster
    if behind and _SIZE.fullmatch(last) and family_of(behind[0]) is not None:
        return False  # a 128GB Mac
    paced = behind in (["tok"], ["tokens"]) and said.words[max(0, said.at - 1):said.at] in _CHOICES
    counts = len(words) == 1 and text.isdigit() and any(noun_of(word) is not None for word in behind) and not paced
    silent = text in SILENT or last in SILENT or last in ONES or last in MONEYED or (len(words) > 1 and last in FOLLOW)
    silent |= len(words) > 1 and not last.isdigit() and named_as("workload.quantization",
                                                                 last) in SYNONYMS["workload.quantization"][0]
    named = any(map(str.isdigit, text)) or any(_is_family(word, said.catalog) for word in words)
    return named and not silent and not counts


def _is_family(word: str, catalog: Catalog) -> bool:
    """Say whether the names of node types begin with a word: DGX."""
    return any(name.startswith(f"{word}-") for name in catalog.names("nodes"))


def vendor(said: Sentence) -> int:
    """Read who makes the hardware that is wanted: AMD GPUs."""
    if said.words[said.at] not in VENDORS:
        return 0
    said.put("vendor", said.words[said.at])
    return 1

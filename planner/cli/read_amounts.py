"""Numbers in the words of a sentence with what they count: how many, of what, of how much each, in which time.

quantity = number [scale] [modifier ...] [measure] noun [of each | in a time]: "2000 five second 720p clips a day".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planner.cli.amounts import Amount
from planner.cli.phrases import (
    EACH,
    FOLLOW,
    LEADING,
    MEASURES,
    ONES,
    PARAMETER,
    PER_THING,
    SIDES,
    SILENT,
    SOUNDS,
    STOPS,
    noun_of,
)
from planner.cli.read_shapes import comes_within
from planner.scenario.flag_names import LENGTHS
from planner.units import SECONDS

if TYPE_CHECKING:
    from planner.cli.read_words import Sentence

SCALES = {"thousand": "k", "million": "M", "billion": "B", "trillion": "T", "mn": "M", "bn": "B", "k": "k", "m": "M",
          "mil": "M", "b": "B", "t": "T", "g": "G", "grand": "k"}
NUMBER = re.compile(r"(?P<sign>[$]?)(?P<number>\d[\d.,_]*)-?(?P<unit>[^\d.,_-]*)")
_LISTED = frozenset(("users", "requests", "rate", "streams", "documents", "images", "clips", "samples", "epochs",
                     "steps"))
"""Kinds of what a list of values names before its number."""
_EACH_OF = frozenset(("document", *PER_THING, *PARAMETER))
"""What a number may be of each of."""
_LENGTHENED = ("in", "within", "for", "under", "over", "than", "once", "takes", "take", "about", "only", "have", "next",
               "is", "after", "needs", "of", "every", "lasts", "around", "roughly", "like", "inside", "by", "be", "got",
               "deadline", "just", "at", "most", "and", "with")
"""Words before a time that is a length."""
_METHODS = frozenset(("sft", "dpo", "grpo", "ppo", "kto", "orpo", "simpo"))
"""Methods before what they train on: 100k SFT samples."""
_HEADS = ("user", "person", "head")
_LEAD = 4
"""Words before a number in which "each" may stand."""
_AROUND = 5
"""Words before and behind a number that may say what it is."""
_FAR = 3
"""Words between a number and its noun at most that nobody knows: "12 angry product reviews"."""
_THEM, _SETS = (["them"], ["these"], ["those"]), ("dataset", "corpus", "log")
_MACHINES = frozenset(("server", "machine", "node", "box", "workstation", "cluster", "instance"))
_WHOSE = frozenset(("of", "our", "my", "their", "your", "the", "these", "those", "his", "her"))
"""Words before a noun that say whose things are counted: 20k of our photos."""
PIXELS = re.compile(r"\d{3,4}p|\d{3,4}x\d{3,4}", re.ASCII)


def amount(said: Sentence) -> int:
    """Read a number with what it counts, and per what time."""
    words, behind = said.words, said.at + 1
    if PIXELS.fullmatch(words[said.at]):
        return 0  # how large, and not how many
    match = NUMBER.fullmatch(words[said.at])
    number, unit = (match["number"], match["unit"]) if match else (ONES.get(words[said.at], ""), "")
    scale = SCALES.get(unit, "") or ("" if noun_of(unit) else SCALES.get(unit[:1], ""))
    unit = "" if unit in SCALES else unit[1:] if scale else unit
    if words[said.at] in ("a", "an") and _is_denominator(words, said.at):
        comes_within(said)
        return 2
    money = bool(match and match["sign"])
    if not scale and not unit and words[behind:behind + 1] and words[behind] in SCALES:
        scale, money, behind = SCALES[words[behind]], money or words[behind] == "grand", behind + 1
    if not number or (unit and not noun_of(unit)):
        return 0
    beside = _beside(words, said.at)
    if "each" in _clause(words[max(0, said.at - _LEAD):said.at]):
        beside.add("each")
    counted = len(said.amounts)
    noun, behind = _noun(said, "usd" if money else unit, behind, beside, bare=not scale and not match)
    behind += 2 * (not noun and words[behind:behind + 1] == ["of"] and words[behind + 1:behind + 2] in _THEM)
    if not scale and not match and (not noun or _is_no_one(noun, next(iter(words[behind:behind + 1]), ""))):
        return 0
    if not noun and match:
        noun = _noun_before(said)
    per, behind = _behind(words, behind, noun, beside)
    if words[behind:behind + 1] == ["every"] and (every := _every(words, behind + 1)):
        said.assumed.append(f"{' '.join(words[said.at:behind + 3])} is {float(number.replace(',', '')) / every:.6g} "
                            f"in {words[behind + 2]}")
        number = f"{float(number.replace(',', '')) / every:.6g}"
        per, behind = words[behind + 2], behind + 3
    unknown = words[behind] if not noun and behind < len(words) and said.is_unknown(words[behind]) else ""
    text = " ".join(filter(None, (*words[said.at:behind], unknown)))
    near = _near(words, said.at, behind)
    measures = frozenset[int]().union(*(each.places for each in said.amounts[counted:]))
    said.amounts.append(Amount(number + scale, noun or unknown, per, frozenset(beside), text, near, frozenset(
        range(said.at, behind)) - measures))
    return behind - said.at


def _is_no_one(noun: str, behind: str) -> bool:
    """Say whether a noun behind "a" or "one" is no one thing: a sequence length of 16k, a chunk size, a GPU server."""
    return noun_of(noun) == "context" or behind in LENGTHS or behind in _SETS or (
        noun_of(noun) == "gpus" and behind in _MACHINES)


def _noun_before(said: Sentence) -> str:
    """Return the noun that stands right before a number and is counted by no other: users: 400."""
    before, behind = said.words[said.at - 1:said.at], said.words[said.at + 1:said.at + 2]
    counted = any(said.at - 1 in each.places for each in said.amounts)
    of_a_side = behind and behind[0] in SIDES
    return before[0] if before and noun_of(before[0]) in _LISTED and not counted and not of_a_side else ""


def _near(words: Sequence[str], at: int, behind: int) -> Mapping[str, int]:
    """Return the words around a number, up to a comma or another number, with how far off each stands."""
    near: dict[str, int] = {}
    before = [] if _is_taken(words, at) else words[max(0, at - _AROUND):at][::-1]
    for run in (before, words[at + 1:behind], words[behind:behind + _AROUND]):
        for far, word in enumerate(run, 1):
            if word == "," or (NUMBER.fullmatch(word) and not PIXELS.fullmatch(word)):
                break
            near[word] = min(far, near.get(word, far))
    return near


def _beside(words: Sequence[str], at: int) -> set[str]:
    """Return the words right before a number, but for those of another."""
    before = words[max(0, at - 2):at]
    at_another = before[:1] == ["at"] and before[-1] not in {"at", *STOPS, *SILENT}  # at int4, 1000 tokens
    return {*before} - {"in", "out", "daily", "monthly", *(["at"] if at_another else []), *(
        SIDES if _is_taken(words, at) else [])}


def _is_taken(words: Sequence[str], at: int) -> bool:
    """Say whether the side before a number is that of another number: 8k input 1k output."""
    return 1 < at < len(words) - 1 and NUMBER.fullmatch(words[at - 2]) is not None and {
        words[at - 1], words[at + 1]} <= SIDES - {"in", "out", "each"}


def _clause(words: Sequence[str]) -> Sequence[str]:
    """Return the words behind the last comma or number: each of them sends 12 messages."""
    cut = max((at + 1 for at, word in enumerate(words) if word == "," or NUMBER.fullmatch(word)), default=0)
    return words[cut:]


def _noun(said: Sentence, noun: str, behind: int, beside: set[str], *, bare: bool) -> tuple[str, int]:
    """Return the noun of a number, as it stands or behind words that say more of it, and where the words behind it
    begin; measures of what is counted are noted as numbers of each.

    bare: whether the number is a word that may be none, such as a or one.
    """
    words = said.words
    if noun:
        return noun, behind + (noun == "usd" and words[behind:behind + 1] != [] and noun_of(words[behind]) == "money")
    if not bare and words[behind:behind + 1] and words[behind] in SIDES and words[behind + 1:behind + 2] and (
            words[behind + 1] in LENGTHS):
        beside.add(words[behind])
        return "tokens", behind + 2
    read = _Before(behind)
    while read.at < len(words) and not (noun_of(words[read.at]) and not _of_another(words, read.at) and _measure(
            words, read.at) is None):
        if not read.word(said, bare=bare):
            return "", behind
    if read.at == len(words):
        return "", behind
    beside |= read.leading
    said.amounts += read.found
    said.unread += read.skipped
    for method in read.methods:
        said.put("method", method)
    for place in read.models:
        said.name_at(place)
    if read.pixels:
        said.put("resolution", read.pixels)
    return words[read.at], read.at + 1


def _of_another(words: Sequence[str], at: int) -> bool:
    """Say whether a noun says what kind the next one is of: chat samples, call recordings."""
    return noun_of(words[at]) in ("requests", "images", "clips", "users", "documents") and noun_of(
        next(iter(words[at + 1:at + 2]), "")) in ("samples", "recordings", "documents", "images", "clips", "requests")


@dataclass(slots=True)
class _Before:
    """What stands between a number and its noun."""

    at: int
    skipped: list[str] = field(default_factory=list)
    """Words that nobody knows."""
    found: list[Amount] = field(default_factory=list)
    """How much each thing is."""
    models: list[int] = field(default_factory=list)
    """Where models are named."""
    methods: list[str] = field(default_factory=list)
    leading: set[str] = field(default_factory=set)
    pixels: str = ""

    def word(self, said: Sentence, *, bare: bool) -> bool:
        """Read what stands here, and say whether it may stand there."""
        word = said.words[self.at]
        if PIXELS.fullmatch(word):
            self.pixels = word
        elif word in _WHOSE and not bare:
            pass
        elif (measure := _measure(said.words, self.at)) is not None:
            self.found.append(measure[0])
            self.at = measure[1] - 1
        elif word == "lora" and noun_of(next(iter(said.words[self.at + 1:self.at + 2]), "")) != "adapters":
            self.methods.append(word)  # a LoRA epoch
        elif word in LEADING or (not bare and word in _METHODS) or _of_another(said.words, self.at):
            self.leading.add(word)
            if word in _METHODS - {"sft"} and word not in said.flags.get("method", ()):
                said.put("method", word)  # 1000 grpo steps
        elif not bare and (many := said.model_at(self.at)):
            self.models.append(self.at)
            self.at += many - 1
        elif len(self.skipped) < _FAR and not bare and said.is_unknown(word):
            self.skipped.append(word)
        else:
            return False
        self.at += 1
        return True


def _measure(words: Sequence[str], at: int) -> tuple[Amount, int] | None:
    """Return how much each thing is that is counted, where that stands before the thing, and where it ends: 512 token
    chunks, five second clips, 10 page documents.
    """
    match = NUMBER.fullmatch(words[at])
    number, unit = (match["number"], match["unit"]) if match else (
        ONES.get(words[at], "") if words[at] not in ("a", "an", "one", "single") else "", "")
    scale = SCALES.get(unit, "") if unit and not noun_of(unit) else ""
    behind = at + 1
    if number and unit and not scale and noun_of(unit) is None:
        return None
    if number and (not unit or scale):
        unit, behind = next(iter(words[behind:behind + 1]), ""), behind + 1
    ahead = next((word for word in words[behind:behind + 2] if noun_of(word)), "")
    measured = number and noun_of(unit) in MEASURES and ahead and noun_of(ahead) not in (None, "time")
    return (Amount(number + scale, unit, "", frozenset(("each", "of")), " ".join(words[at:behind]), places=frozenset(
        range(at, behind))), behind) if measured else None


def _every(words: Sequence[str], at: int) -> float:
    """Return of how many times of a unit each has one: 1 image every 2 seconds; zero of other words."""
    number = ONES.get(words[at], words[at]) if words[at + 1:at + 2] and SECONDS.factor(words[at + 1]) else ""
    return float(number) if re.fullmatch(r"\d+(\.\d+)?", number) else 0.0


def _behind(words: Sequence[str], behind: int, noun: str, beside: set[str]) -> tuple[str, int]:
    """Return in which time, or of what each, a number is, and where the words behind it end; they are put `beside` it.
    """
    per = ""
    sound = next((at for at, word in enumerate(words[behind:behind + 2 + _FAR], behind) if word in SOUNDS), 0)
    if noun_of(noun) == "time" and words[behind:behind + 1] == ["of"] and sound and "," not in words[behind:sound]:
        beside.add("sound")
        behind = sound + 1
    while behind < len(words) and words[behind] in FOLLOW:
        each = words[behind] in ("per", "a", "an", "each", "every")
        time = words[behind + 1] if each and behind + 1 < len(words) else ""
        if time in _HEADS and (words[behind + 2:behind + 3] or per):
            beside.add("each")
        if time in _HEADS and per:
            behind += 2
        elif time and (SECONDS.factor(time) or time in _EACH_OF):
            per, behind = time, behind + 2
            behind += time == "gpu" and words[behind:behind + 1] in (["hour"], ["hr"], ["h"])
        elif words[behind] in EACH and noun_of(noun) != "tokens":
            beside.add("each")
            behind += 1
        elif (each and words[behind] not in EACH) or (
                words[behind] in SIDES and noun and noun_of(noun) not in ("tokens", "words")) or (
                words[behind] in ("in", "at") and _is_number(words, behind + 1) and not _goes_out(words, behind)):
            break
        else:
            beside.add(words[behind])
            behind += 1
    return per, behind


def _goes_out(words: Sequence[str], at: int) -> bool:
    """Say whether "in" stands between a number of prompt tokens and one of answer tokens: 1.5k in 300 out."""
    return words[at] == "in" and bool({"out", "output"} & set(words[at + 2:at + 4]))


def _is_number(words: Sequence[str], at: int) -> bool:
    """Say whether a number stands here, so that the word before it is of that one."""
    return at < len(words) and (words[at] in ONES or bool(NUMBER.fullmatch(words[at])))


def _is_denominator(words: Sequence[str], at: int) -> bool:
    """Say whether a time is one in which something is, and no length: what do I pay a month, images an hour."""
    return bool(words[at + 1:at + 2] and SECONDS.factor(words[at + 1])) and not (
        at and words[at - 1] in _LENGTHENED) and words[at + 2:at + 3] not in (["and"], ["long"], ["deadline"])

"""What a sentence asks by its shape: how many of what, what of each, twice as much."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.cli.amounts import TOGETHER
from planner.cli.phrases import EACH, LEADING, PER, PHRASES, SILENT, noun_of
from planner.cli.read_past import faster
from planner.units import SECONDS

if TYPE_CHECKING:
    from planner.cli.read_words import Sentence

_FAR = 3
"""Words at most between how many and what is counted."""
_ASKED = {
    **dict.fromkeys(("users", "streams"), "--objective=users serve"),
    **dict.fromkeys(("requests", "documents", "pages", "recordings"), "--objective=rate serve"),
    "images": "makes", "clips": "makes", "tokens": "tokens", "time": "duration", "money": "cost", "size": "largest",
    "context": "longest", "gpus": "gpus", "epochs": "passes", "steps": "tokens", "samples": "tokens"}
"""Kind of what is asked for by its number -> what the question is about."""
_GROWN = {"doubles": 2.0, "doubled": 2.0, "double": 2.0, "doubling": 2.0, "twice": 2.0, "triples": 3.0, "tripled": 3.0,
          "triple": 3.0, "quadruples": 4.0, "halves": 0.5, "halved": 0.5}
_COME = ("documents", "images", "clips", "requests", "recordings")
"""Kinds of what comes in a time, where that stands apart from it."""
_PAYS = frozenset(word for phrase, what in PHRASES.items() if what.startswith("cost") for word in phrase.split()) | {
    "pay", "paid", "train", "tune"}
_NO_LOAD = frozenset(("tokens", "samples", "size", "epochs", "context", "gpus", "steps"))
_TIMES = re.compile(r"(\d{1,3}(?:\.\d+)?)x", re.ASCII)
_GROWS = ("grows", "grow", "goes", "rises", "increases", "jumps", "gets", "scales")


def how_many(said: Sentence) -> int:
    """Read what is asked for by its number: how many images an hour."""
    words, at = said.words, said.at
    if words[at:at + 1] != ["how"] or words[at + 1:at + 2] not in (["many"], ["much"]):
        return 0
    for here in range(at + 2, min(len(words), at + 3 + _FAR)):
        if (kind := noun_of(words[here])) in _ASKED:
            asked = _ASKED[kind]
            rated, behind = _per(said, here + 1)
            if asked.startswith("--objective=rate") and TOGETHER.intersection(words[at + 2:here]):
                asked = _ASKED["users"]
            if kind == "tokens" and rated:
                asked = "duration serve"
            if words[here:here + 1] == ["model"]:
                return 0
            said.nouns.add(kind or "")
            said.ask(asked)
            return behind - at
        if words[here] not in LEADING and not said.is_unknown(words[here]):
            return 0
    return 0


def _per(said: Sentence, at: int) -> tuple[bool, int]:
    """Say whether a time stands here in which something is, and where it ends."""
    words = said.words
    rated = words[at:at + 1] != [] and words[at] in PER and words[at + 1:at + 2] != [] and bool(
        SECONDS.factor(words[at + 1]))
    return rated, at + 2 * rated


def of_each(said: Sentence) -> int:
    """Read what something is asked of each of, which every answer says: per month, each clip."""
    words, at = said.words, said.at
    each = words[at] in PER and words[at + 1:at + 2] != [] and (noun_of(words[at + 1]) or words[at + 1] in SILENT)
    if not each or words[at] in ("a", "an"):
        return 0
    comes_within(said)
    return 2


def comes_within(said: Sentence) -> None:
    """Take a time that stands apart for the one in which what was counted last comes: 1000 clips of 5 seconds a day."""
    words, unit = said.words, said.words[said.at + 1]
    last = next((at for at in range(len(said.amounts) - 1, -1, -1) if said.amounts[at].kind in _COME), None)
    if last is None or not SECONDS.factor(unit) or said.amounts[last].per or not said.amounts[last].beside.isdisjoint(
            EACH):
        return
    between = words[max(said.amounts[last].places, default=0) + 1:said.at]
    beside = noun_of(between[-1]) if between else None  # of "tok per s" it is the pace
    paid = any(noun_of(word) == "money" or word in _PAYS for word in between)
    if "," not in between and beside in (None, "time", *_COME) and not paid:
        said.amounts[last] = said.amounts[last]._replace(per=unit)


def sooner(said: Sentence) -> int:
    """Read how many times as fast as what is there it is to be: 1.5x faster than our 10 days."""
    times = faster(said.words, said.at)
    if times is None or said.at + times[1] not in said.before_now:
        return 0
    said.faster = times[0]
    said.heard.update(range(said.at, said.at + times[1]))
    return times[1]


def grown(said: Sentence) -> int:
    """Read how many times as much is asked about too: what if traffic doubles, grows 3x."""
    words, at = said.words, said.at
    ahead = words[at + 1:at + 1 + _FAR]
    if words[at] in _GROWN and any(noun_of(word) in _NO_LOAD or word == "batch" for word in ahead):
        said.denied.append(" ".join(words[at:at + 1 + _FAR]))  # twice the tokens: how many is said, or is not known
        return 1
    if (times := _GROWN.get(words[at])) is not None and (words[at] != "double" or "if" in words[:at]):
        said.times = times
        return 1
    more = words[at + 1:at + 2] in (["growth"], ["more"]) or words[at + 1:at + 3] in (
        ["the", "traffic"], ["the", "load"])
    if more and (match := _TIMES.fullmatch(words[at])):
        said.times = float(match[1])
        return 3 if words[at + 1] == "the" else 2
    here = at + 1 + (words[at + 1:at + 2] in (["to"], ["by"], ["up"]))
    if words[at] in _GROWS and here < len(words) and (match := _TIMES.fullmatch(words[here])):
        said.times = float(match[1])
        return here + 1 - at
    return 0

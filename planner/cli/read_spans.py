"""Numbers that a sentence says two of where one is meant: ranges, hours of the day, and what corrects itself."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.cli.phrases import ONES, noun_of
from planner.cli.read_amounts import NUMBER
from planner.scenario.hardware_names import is_counted

if TYPE_CHECKING:
    from planner.cli.amounts import Amount
    from planner.cli.read_words import Sentence

_CLOCK = re.compile(r"(?P<hour>\d{1,2})(?:[:.h](?P<minute>\d{2})?)?(?P<half>am|pm|a\.m|p\.m)?", re.ASCII)
_HYPHENED = re.compile(r"(\d{1,2}(?::\d{2})?(?:am|pm|h)?)-(\d{1,2}(?::\d{2})?(?:am|pm|h)?)", re.ASCII)
_HOURS = 24
_NOON = 12
_MARKS = ("no wait", "wait no", "no sorry", "sorry", "i mean", "i meant", "make that", "make it", "scratch that",
          "correction", "or rather", "no actually", "actually no", "wait", "oops", "rather")
"""Words behind which a sentence says anew what it has said; of `make it` and `rather` a number."""
_NUMBERED = ("make it", "rather", "wait")
_REACH = 6
"""Words behind such a mark that may correct."""
_SPAN = 3
_GPUS = frozenset(("gpu", "gpus", "cards"))


def clock(said: Sentence) -> int:
    """Read the hours of a day in which a service is asked: between 9 and 5, from 8am to 6pm, 9-5."""
    words, at = said.words, said.at
    led = words[at] in ("between", "from")
    joined = _HYPHENED.fullmatch(words[at + led]) if at + led < len(words) else None
    first, last, taken = (joined[1], joined[2], 1) if joined else (
        words[at + led], words[at + led + 2], _SPAN) if words[at + led + 1:at + led + 2] in (
            ["and"], ["to"], ["until"], ["till"]) and at + led + 2 < len(words) else ("", "", 0)
    first, last = ONES.get(first, first), ONES.get(last, last)
    begin, end = _CLOCK.fullmatch(first), _CLOCK.fullmatch(last)
    if begin is None or end is None:
        return 0
    behind = at + led + taken
    halves = any(match["half"] or match["minute"] for match in (begin, end))
    if words[behind:behind + 1] in (["am"], ["pm"], ["oclock"], ["o'clock"]):
        halves, behind = True, behind + 1
    start, stop = _hour(begin, ""), _hour(end, words[behind - 1])
    bare = noun_of(next(iter(words[behind:behind + 1]), "")) is None
    # "9 to 5" can be no range, and "from 9 to 17" is none of what is not said
    spans = stop < start <= _NOON or ((start <= _NOON < stop or stop < _NOON < start) and (joined or led))
    if not halves and not (spans and (bare or joined)):
        return 0
    late = start > _NOON and not any(match["half"] for match in (begin, end))  # from 22 to 6
    stop = stop if stop > start or stop > _NOON or end["half"] or late else stop + _NOON
    if not (start < _HOURS and 0 < stop <= _HOURS and start != stop):
        return 0
    said.put("day", f"{start}h-{stop}h")
    said.heard.update(range(at, behind))
    return behind - at


def _hour(match: re.Match[str], behind: str) -> int:
    half = match["half"] or (behind if behind in ("am", "pm") else "")
    hour = int(match["hour"])
    return hour + _NOON if half[:1] == "p" and hour < _NOON else hour % _NOON if half[:1] == "a" else hour


def ranged(said: Sentence) -> int:
    """Read the lower number of a range past, and note that the greater is taken: 10 to 20 users, between 5 and 10k."""
    words, at = said.words, said.at
    led = words[at] in ("between", "from")
    join = at + led + 1
    if join + 1 >= len(words):
        return 0
    if words[at] == "from" and words[join:join + 1] == ["to"] and _GPUS.intersection(words[max(0, at - 4):at + 5]):
        counts = [word for word in (words[at + 1], *words[join + 1:join + 2]) if word.isdigit()]
        if len(counts) == 2:  # twice as many GPUs
            said.put("gpus", *counts)
            return 4
    if words[join:join + 1] != ["to"] and not (led and words[join:join + 1] == ["and"]):
        return 0
    low, high = NUMBER.fullmatch(words[at + led]), NUMBER.fullmatch(next(iter(words[join + 1:join + 2]), ""))
    if low is None or high is None or (low["unit"] and low["unit"] != high["unit"] and (
            len(low["unit"]) > 1 or not high["unit"])):
        return 0
    if not low["unit"] and not high["unit"] and float(_plain(low)) >= float(_plain(high)):
        return 0
    said.assumed.append(f"{words[at + led]} to {' '.join(words[join + 1:join + _SPAN])}".rstrip(" ,")
                        + f" is read as the greater, {words[join + 1]}")
    return led + 2


def _plain(match: re.Match[str]) -> str:
    return match["number"].replace(",", "").replace("_", "").rstrip(".") or "0"


def marked(said: Sentence) -> int:
    """Read a mark that what follows is said instead of what was said: no wait, sorry, make that."""
    for many, text in said.phrase(said.at, 2):
        if text in _MARKS and said.at and (text not in _NUMBERED or NUMBER.fullmatch(
                next((word for word in said.words[said.at + many:said.at + many + 2] if word != ","), ""))):
            said.corrects = min(len(said.words), said.at + many + _REACH)
            said.before = {flag: list(values) for flag, values in said.flags.items()}
            said.counted = len(said.amounts)
            return many
    return 0


def corrected(said: Sentence, amount: Amount) -> bool:
    """Put an amount in the place of the one that it corrects, and say whether there is one."""
    earlier = said.amounts[:said.counted]
    sized = not amount.kind and amount.value[-1:] == "B"  # of a model
    alike = [at for at, each in enumerate(earlier) if (not amount.kind and not sized) or each.kind == amount.kind]
    at = alike[-1] if alike else None
    named = (said.flags.get("on") or said.flags.get("own") or [""])[-1]
    if not amount.kind and not sized and is_counted(named) and named.split()[0].rstrip("x").isdigit():
        flag = "on" if said.flags.get("on") else "own"  # 8 h100, make that 16
        said.flags[flag][-1] = re.sub(r"^\d+", amount.value, named)
        said.assumed.append(f"{amount.value} takes the place of {named}")
        return True
    if at is None:
        return False
    old = said.amounts[at]
    said.assumed.append(f"{amount.text} takes the place of {old.text}")
    said.amounts[at] = amount._replace(noun=amount.noun or old.noun, per=amount.per or old.per,
                                       beside=amount.beside | old.beside)
    return True

"""Which key a number of a sentence is of, where its kind has several: each key has words that stand near its numbers.

A key scores by the nearest of its words, and by what the question is about; the highest takes the number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

PATIENCE = 300.0
"""Seconds up to which a time is one that a user waits, and no deadline."""
KEPT = 90 * 86400.0
"""Seconds from which a time is one that hardware is kept."""


@dataclass(frozen=True, slots=True)
class Unit:
    """What a number is said in."""

    asks: frozenset[str]
    serves: bool
    tunes: bool
    whole: bool
    """Whether things are counted in all, and not by a time."""
    seconds: float = 0.0
    """Of a time."""
    makes: str = ""
    """What a diffusion model makes."""
    hears: bool = False


class NumberPlace(NamedTuple):
    """A key, the words that stand near its numbers, and how much speaks for it without them."""

    flag: str
    words: frozenset[str]
    alone: Callable[[Unit], float] = lambda asked: 0.0


def _place(flag: str, words: str, alone: Callable[[Unit], float] = lambda asked: 0.0) -> NumberPlace:
    return NumberPlace(flag, frozenset(words.split()), alone)


def _waits(asked: Unit) -> float:
    return 3.0 * (asked.serves and asked.seconds < PATIENCE and not asked.whole)


def _keeps(asked: Unit) -> float:
    return 9.0 * ("rent" in asked.asks or (bool(asked.asks & {"buys", "rents"}) and asked.seconds >= KEPT))


def _films(asked: Unit) -> float:
    return 1.0 if asked.makes == "video" and asked.seconds <= PATIENCE else _NEVER


def _sounds(asked: Unit) -> float:
    return 1.0 if (asked.makes == "audio" or asked.hears) and asked.seconds <= _SONG else _NEVER


_NEVER = -99.0
_SONG = 3600.0
PLACES: Mapping[str, Sequence[NumberPlace]] = {
    "time": (
        _place("deadline", "deadline done finish finished complete completed ready", lambda asked: 1.5 + 2.0 * (
            asked.seconds >= PATIENCE)),
        _place("ttft", "first ttft start starts starting begin begins streaming",
               lambda asked: 4.0 * ("first" in asked.asks)),
        _place("e2e", "reply replies respond responds response responses answer answers answered wait waits waiting "
               "e2e end-to-end round-trip", _waits),
        _place("tpot", "tpot itl between", lambda asked: 4.0 * ("each-token" in asked.asks)),
        _place("think", "think thinks thinking pause pauses typing"),
        _place("startup", "startup start-up boot boots cold spin-up"),
        _place("frames", "clip clips video videos long footage", _films),
        _place("audio", "audio long song songs track tracks recordings recording clips", _sounds),
        _place("years", "amortize amortized amortise depreciate depreciation lifetime lifespan", _keeps)),
    "share": (
        _place("utilization", "use used utilization utilisation utilized busy load time day",
               lambda asked: 3.0 * bool(asked.asks & {"rent", "buys", "rents"})),
        _place("prefix-hits", "cache cached hit hits prefix prefixes shared same reused repeated identical common"),
        _place("acceptance", "acceptance accepted accept accepts accepting"),
        _place("headroom", "headroom margin buffer growth extra reserve slack spike spikes"),
        _place("confidence", "sure confidence confident certain certainty probability")),
    "": (
        _place("input", "prompt prompts input inputs chunk chunks prefill"),
        _place("output", "answer answers output outputs response responses reply replies completion completions"),
        _place("prefix", "same shared cached identical constant fixed common repeated prefix system always"),
        _place("concurrency", "concurrent concurrently simultaneous simultaneously parallel"))}
"""Kind of what is counted -> the keys that may have it; of a number alone those that its words name."""
PREFIX = next(place for place in PLACES[""] if place.flag == "prefix")


def placed(kind: str, near: Mapping[str, int], asked: Unit) -> tuple[str, frozenset[str]]:
    """Return the key that a number of a kind is of, and the words that say so; no key where none does."""
    best: tuple[float, str, frozenset[str]] = (0.0, "", frozenset())
    for place in PLACES[kind]:
        said = place.words & near.keys()
        score = place.alone(asked) + (_NEAR / min(near[word] for word in said) if said else 0.0)
        if score > best[0]:
            best = (score, place.flag, said)
    return best[1], best[2]


_NEAR = 6.0
"""What a word speaks for its key that stands beside the number; of one that stands farther off, so many times less."""

"""Words of a sentence as one writes them in full: numbers as figures, what is contracted apart, units of one word.

"a quarter million" is 250k, "five-second clips" are clips of 5 second, "80 gig" is 80gb, "4-bit" is int4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from planner.cli.phrases import noun_of

_CONTRACTED: Mapping[str, str] = {
    contracted: whole for whole, said in {
        "can not": "can't cant cannot", "does not": "doesn't doesnt", "do not": "don't dont", "will not": "won't wont",
        "is not": "isn't isnt", "what is": "what's whats", "i have": "i've ive", "we have": "we've weve",
        "how is": "how's hows", "it is": "it's", "that is": "that's thats", "i am": "i'm im", "we are": "we're",
        "there is": "there's theres", "i would": "i'd", "we would": "we'd", "i will": "i'll", "we will": "we'll",
        "could not": "couldn't couldnt", "would not": "wouldn't wouldnt", "did not": "didn't didnt",
        "let us": "let's lets", "who is": "who's", "want to": "wanna", "going to": "gonna",
        "got to": "gotta", "daily users": "dau daus", "monthly users": "mau "
                "maus"}.items() for contracted in said.split()}
_UNITS = {word: value for value, word in enumerate((
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"))}
_TENS = {word: 10 * value for value, word in enumerate((
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), 2)}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_MILLIONS = ("million", "billion", "trillion")
"""Scales that stay as they are said behind a figure."""
_GROUPS = {"hundred": 100, "dozen": 12}
_PARTS = {"half": 0.5, "quarter": 0.25}
_FIGURE = re.compile(r"\d[\d,_]*(?:\.\d+)?", re.ASCII)
_BITS = re.compile(r"(?P<bits>4|8|16)-?bits?", re.ASCII)
_FORMATS = {"4": "int4", "8": "int8", "16": "bf16"}
_WHOLE = 10**5
"""Numbers below which are written out, as of GPUs they may be."""
_GIGABYTES = ("gig", "gigs", "gigabyte", "gigabytes", "gbs")
_OPTIMIZERS = ("adam", "adamw", "optimizer", "paged", "lora")
"""Words beside bits that are of no weights: 8-bit Adam."""
_OF_DAYS = ("day's", "today's", "tonight's", "tomorrow's")
_APART = re.compile(r"(?P<number>[a-z]+|\d+(?:\.\d+)?[kmbt]?)-(?P<noun>[a-z]+)", re.ASCII)


def plain_words(words: Sequence[str]) -> list[str]:
    """Return words of small letters with their numbers in figures, and nothing contracted."""
    whole = [each for word in words for each in _CONTRACTED.get(word, word).split()]
    parted = [each for word in whole for each in _compound(word)]
    return list(_in_figures(_in_formats(parted)))


def _compound(word: str) -> Iterator[str]:
    """Yield a word, and of what counts its own unit the parts: five-second, 2k-token, twenty-five."""
    match = _APART.fullmatch(word)
    number = match["number"] if match else ""
    counts = number in _UNITS or number in _TENS or number in _PARTS or number[:1].isdigit()
    if match and counts and (noun_of(match["noun"]) or (number in _TENS and match["noun"] in _UNITS)):
        yield from (number, match["noun"])
    else:
        yield word if word in _OF_DAYS else word.removesuffix("'s")


def _in_formats(words: Sequence[str]) -> list[str]:
    """Return words with bits as the format of weights of that many, and gigabytes joined to their number."""
    said: list[str] = []
    at = 0
    while at < len(words):
        behind = words[at + 1:at + 2]
        number = str(_UNITS.get(words[at], words[at]))
        bits = _BITS.fullmatch(f"{number}{behind[0]}" if behind and behind[0] in ("bit", "bits") else words[at])
        taken = 2 if bits and words[at] != bits[0] else 1
        beside = {*words[at + taken:at + taken + 1], *words[max(0, at - 1):at]}
        if bits and beside.isdisjoint(_OPTIMIZERS):
            said.append(_FORMATS[bits["bits"]])
            at += taken
        elif words[at].isdigit() and behind and behind[0] in _GIGABYTES:
            said.append(f"{words[at]}gb")
            at += 2
        else:
            said.append(words[at])
            at += 1
    return said


def _in_figures(words: Sequence[str]) -> Iterator[str]:
    """Yield words with numbers of several words as one in figures."""
    at = 0
    while at < len(words):
        taken, value = _number(words, at)
        if taken > 1:
            yield figure(value)
            at += taken
            continue
        whole = "1" if words[at] in ("a", "an") else str(_UNITS.get(words[at], words[at]))
        if words[at + 2:at + 5] == ["and", "a", "half"] and noun_of(words[at + 1]) == "time" and whole.isdigit():
            yield from (f"{whole}.5", words[at + 1])  # an hour and a half
            at += 5
            continue
        yield words[at]
        at += 1


def _number(words: Sequence[str], at: int) -> tuple[int, float]:
    """Return how many words from `at` on are a number, and it: two hundred fifty thousand, half a million."""
    if (part := _part(words, at)) is not None:
        return part
    count = _Count(article=words[at] in ("a", "an"))
    if count.article and words[at + 1:at + 2] == ["couple"]:
        count, here = _Count(group=2.0, begun=True), at + 2 + (words[at + 2:at + 3] == ["of"])
    else:
        here = at + count.article
    while here < len(words) and (taken := count.take(words, here, first=here == at)):
        here += taken
    plain = not count.article and here - at == 2 and _FIGURE.fullmatch(words[at]) and words[at + 1] in _MILLIONS
    return (0, 0.0) if not count.whole or plain else (here - at, count.total + count.group)


@dataclass(slots=True)
class _Count:
    """A number as its words come."""

    article: bool = False
    """Whether it begins with a: a hundred."""
    group: float = 0.0
    """Below the next scale: two hundred of two hundred thousand."""
    total: float = 0.0
    begun: bool = False
    scaled: bool = False

    @property
    def whole(self) -> bool:
        """Whether it is a number so far; a alone is none."""
        return self.scaled or (self.begun and not self.article)

    def take(self, words: Sequence[str], at: int, *, first: bool) -> int:
        """Take the next word, and return how many words that were; none where it is not of the number."""
        word, begun = words[at], self.begun or self.article
        if word in _UNITS or word in _TENS:
            return self._digits(float(_UNITS.get(word, _TENS.get(word, 0))))
        if _FIGURE.fullmatch(word) and first:
            self.group, self.begun = float(word.replace(",", "").replace("_", "")), True
        elif word in _GROUPS and begun:
            self.group, self.scaled = max(1.0, self.group) * _GROUPS[word], True
        elif word in _SCALES and begun:
            self.total, self.group, self.scaled = self.total + max(1.0, self.group) * _SCALES[word], 0.0, True
        elif word == "and" and self.scaled:
            return int(words[at + 1:at + 2] != [] and (words[at + 1] in _UNITS or words[at + 1] in _TENS))
        elif words[at:at + 3] == ["and", "a", "half"] and self.begun and not self.scaled:
            self.group += 0.5
            return 3
        else:
            return 0
        return 1

    def _digits(self, value: float) -> int:
        """Take a number below a hundred, where it fills what is there: neither "eight four" nor "2000 five" is one."""
        low = self.group % 100
        if (self.article and not self.scaled) or (low and not (value < 10 <= low and low % 10 == 0)):
            return 0
        if self.begun and not self.scaled and not low:
            return 0
        self.group, self.begun = self.group + value, True
        return 1


def _part(words: Sequence[str], at: int) -> tuple[int, float] | None:
    """Return a part of a scale or of a time: half a million, a quarter of a million, half an hour, three quarters of a
    million; none of other words.
    """
    here = at + (words[at] in ("a", "an", "three"))
    if words[here:here + 1] == [] or (part := _PARTS.get(words[here].rstrip("s"))) is None:
        return None
    many = 3.0 if words[at] == "three" else 1.0
    here += 1
    here += words[here:here + 1] == ["of"]
    here += words[here:here + 1] in (["a"], ["an"])
    if words[here:here + 1] and words[here] in _SCALES:
        return here + 1 - at, many * part * _SCALES[words[here]]
    if words[here:here + 1] and noun_of(words[here]) == "time" and (here > at + 1 or words[at] == "half"):
        return here - at, many * part
    return None


def figure(value: float) -> str:
    """Return a number as one types it: 250k, 1.5m, 0.5."""
    if value < _WHOLE and value == int(value):
        return str(int(value))
    for scale, letter in ((1e12, "t"), (1e9, "b"), (1e6, "m"), (1e3, "k")):
        if value >= scale and f"{value / scale:g}".replace(".", "").isdigit() and len(f"{value / scale:g}") < 7:
            return f"{value / scale:g}{letter}"
    return f"{value:g}"

"""What of a sentence is in no command and in no note: each number and name that nothing carries is said.

Every word has been read by then; but what it was read as may have been put aside, changed or lost on the way. So this
looks at what is answered and told, and not at how it came about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from planner.catalog.spelling import joined
from planner.cli.phrases import ONES
from planner.cli.read_amounts import SCALES
from planner.cli.read_words import Sentence
from planner.units.reading import parse_count

_NUMBER = re.compile(r"(?<![\d.])\d[\d._]*", re.ASCII)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d\d\d(?!\d))", re.ASCII)
_LETTERS = re.compile(r"[a-z]*")
_FEW = ("a", "an", "one", "single")
"""Words of one, which are mostly an article."""
_ABOUT = 1e-6


def unheard(sentence: Sentence, told: str) -> list[str]:
    """Return the numbers and names of a sentence which nothing that is `told`, commands and notes, carries."""
    words = sentence.words
    said = [value for word, behind in _pairs(told.lower().split()) for value in _values(word, behind)]
    counts: dict[float, set[tuple[str, str]]] = {}
    lost: list[str] = []
    for at, (word, behind) in enumerate(_pairs(words)):
        if at in sentence.heard:
            continue
        for value in _values(word, behind):
            alike = counts.setdefault(value, set())
            alike.add((word, behind) if word[:1].isdigit() else (word, ""))
            as_money = value / 100 if behind.startswith("cent") else value
            if sum(abs(each - wanted) <= _ABOUT * wanted for each in said for wanted in {value, as_money}) < len(alike):
                lost.append(_text(sentence, at))
    letters = joined(told.lower())
    lost += [value for _, value in sentence.named if not any(map(str.isdigit, value)) and (
        joined(value) not in letters)]
    return [*dict.fromkeys(lost)]


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each word with the one behind it."""
    plain = [word.strip("'\"(),;:") for word in words]
    yield from zip(plain, [*plain[1:], ""], strict=True)


def _values(word: str, behind: str) -> Iterator[float]:
    """Yield the numbers in a word, each with its scale: 2M, 2 million, h100, two."""
    if word in ONES and word not in _FEW:
        yield float(ONES[word])
        return
    word = _THOUSANDS.sub("", word)
    for match in _NUMBER.finditer(word):
        unit = _LETTERS.match(word[match.end():])
        letters = unit[0] if unit else ""
        last = match.end() + len(letters) == len(word)
        scale = SCALES.get(letters, "") if letters or not last else SCALES.get(behind, "")
        whole, _, part = match[0].replace("_", "").partition(".")
        yield float(f"{whole}.{part.split('.')[0]}") * (parse_count(f"1{scale}") if scale else 1)


def _text(sentence: Sentence, at: int) -> str:
    """Return the number that stands at a word, with what it counts."""
    word = sentence.words[at]
    return next((amount.text for amount in sentence.amounts if word in amount.text.split()),
                " ".join(sentence.words[at:at + 2]))

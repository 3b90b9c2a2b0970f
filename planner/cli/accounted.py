"""What of a sentence is in no command and in no note: each number and name that nothing carries is said.

Every word has been read by then; but what it was read as may have been put aside, changed or lost on the way. So each
number is looked for in the key that took its words, and one that no key has in what is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set

from planner.catalog.spelling import joined
from planner.cli.completed import GENERAL
from planner.cli.phrases import ONES
from planner.cli.read_amounts import SCALES
from planner.cli.read_from import places_of
from planner.cli.read_words import Sentence
from planner.units.reading import parse_count

_NUMBER = re.compile(r"(?<![\d.])\d{1,18}(?:[._]\d{1,18}){0,6}", re.ASCII)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d\d\d(?!\d))", re.ASCII)
_LETTERS = re.compile(r"[a-z]*")
_FEW = ("a", "an", "one", "single")
"""Words of one, which are mostly an article."""
_ABOUT = 1e-6


def unheard(sentence: Sentence, flags: Mapping[str, Sequence[str]], notes: str) -> list[str]:
    """Return the numbers and names of a sentence which neither a key nor a note carries, and numbers that two keys do.

    flags: what is answered, each value with the words that it was read from. notes: all that is told beside.
    """
    words = sentence.words
    said = [value for word, behind in _pairs(notes.lower().split()) for value in _values(word, behind)]
    counts: dict[float, set[tuple[str, str]]] = {}
    lost: list[str] = []
    for at, (word, behind) in enumerate(_pairs(words)):
        if at in sentence.heard:
            continue
        for value in _values(word, behind):
            wanted = {value, value / 100 if behind.startswith("cent") else value}
            keys = _keys(flags, at, wanted)
            if len(keys) > 1:
                lost.append(f"{_text(sentence, at)} (read as --{' and as --'.join(keys)}: which?)")
            if keys:
                continue
            alike = counts.setdefault(value, set())
            alike.add((word, behind) if word[:1].isdigit() else (word, ""))
            if sum(_is_of(each, wanted) for each in said) < len(alike):
                lost.append(_text(sentence, at))
    letters = joined(" ".join((notes, *(f"{flag} {' '.join(values)}" for flag, values in flags.items()))).lower())
    lost += [value for _, value in sentence.named if not any(map(str.isdigit, value)) and value not in GENERAL and (
        joined(value) not in letters)]
    return [*dict.fromkeys(lost)]


def _keys(flags: Mapping[str, Sequence[str]], at: int, wanted: Set[float]) -> list[str]:
    """Return the keys that have a number of the word at a place; a copy is of the key that it was made from."""
    found: dict[int, str] = {}
    for flag, values in flags.items():
        for value in values:
            if at in places_of(value) and any(
                    _is_of(each, wanted) for word, behind in _pairs(value.lower().split())
                    for each in _values(word, behind)):
                found.setdefault(id(value), flag)
    return [*dict.fromkeys(found.values())]


def _is_of(value: float, wanted: Set[float]) -> bool:
    return any(abs(value - each) <= _ABOUT * each for each in wanted)


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each word with the one behind it."""
    plain = [word.strip("'\"(),;:") for word in words]
    yield from zip(plain, [*plain, ""][1:], strict=True)


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

"""Words of a sentence read one by one: hardware, models, numbers with what they count, methods, formats, providers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date

from planner.catalog.engine import Engine
from planner.catalog.load import Catalog
from planner.catalog.spelling import joined
from planner.catalog.stack import Stack
from planner.cli.meaning import Amount
from planner.cli.phrases import FOLLOW, LEADING, ONES, PARAMETER, PHRASES, SIDES, SILENT, noun_of
from planner.cli.read_hardware import hardware
from planner.cli.read_models import mixture, model
from planner.scenario.dates import days_until
from planner.scenario.flag_names import CALLED, LENGTHS, SWITCHES
from planner.scenario.flags import TABLE
from planner.scenario.said import own_name
from planner.scenario.unmodeled import METHODS, family_of, seeing
from planner.scenario.words import SYNONYMS, method_named, named
from planner.units import SECONDS

_MOST = 6
"""Words of a name at most."""
_SCALES = {"thousand": "k", "million": "M", "billion": "B", "trillion": "T", "mn": "M", "bn": "B", "k": "k", "m": "M",
           "b": "B", "t": "T", "g": "G"}
_EACH = ("user", "person", "request", "document", "step", "prompt", *PARAMETER)
"""What a number may be of each of."""
_VERSIONS = ("tiny", "base", "small", "medium", "large", "turbo", "xl", "xxl")
"""Words behind the name of a model that is not modeled."""
_NUMBER = re.compile(r"(?P<sign>[$]?)(?P<number>\d[\d.,_]*)-?(?P<unit>[^\d.,_-]*)")


@dataclass(slots=True)
class Sentence:
    """Words, and what has been read of them."""

    words: Sequence[str]
    catalog: Catalog
    flags: dict[str, list[str]] = field(default_factory=dict)
    """Flags with their values; a switch has none."""
    asks: set[str] = field(default_factory=set)
    """What the question is about: see `phrases`."""
    amounts: list[Amount] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    at: int = 0

    def put(self, flag: str, *values: str) -> None:
        """Note a flag with a value more."""
        self.flags.setdefault(flag, []).extend(values)

    def phrase(self, at: int, most: int = _MOST) -> Iterator[tuple[int, str]]:
        """Yield how many words from `at` on are a phrase, and it, the longest first."""
        for many in range(min(most, len(self.words) - at), 0, -1):
            yield many, " ".join(self.words[at:at + many])

    def read(self) -> Sentence:
        """Read all words."""
        while self.at < len(self.words):
            taken = next(filter(None, (rule(self) for rule in _RULES)), 0)
            if not taken:
                self.unread.append(self.words[self.at])
            self.at += taken or 1
        return self


def _phrase(said: Sentence) -> int:
    for many, text in said.phrase(said.at):
        if text in PHRASES:
            for what in PHRASES[text].split():
                if what.startswith("--"):
                    flag, _, value = what[2:].partition("=")
                    said.put(flag, *filter(None, [value]))
                else:
                    said.asks.add(what)
            return many
    return 0


def _percentile(said: Sentence) -> int:
    """Read at which percentile what is said of latencies is meant: p95."""
    if not re.fullmatch(r"p\d{2}(?:\.\d)?", said.words[said.at], re.ASCII):
        return 0
    said.put("percentile", said.words[said.at])
    return 1


def _resolution(said: Sentence) -> int:
    """Read pixels: 480p, 1024x1024."""
    if not re.fullmatch(r"\d{3,4}p|\d{3,4}x\d{3,4}", said.words[said.at], re.ASCII):
        return 0
    said.put("resolution", said.words[said.at])
    return 1


def _date(said: Sentence) -> int:
    """Read a day of the calendar by which it is done: by March, this year."""
    by = said.words[said.at] in ("by", "before", "until", "till")
    if not by and said.words[said.at] not in ("this", "end"):
        return 0
    for many, text in said.phrase(said.at + by, 4):
        if (by or many > 1) and days_until(text, date.today()) is not None:
            said.put("deadline", text)
            return many + by
    return 0


def _amount(said: Sentence) -> int:
    """Read a number with what it counts, and per what time."""
    words, behind = said.words, said.at + 1
    match = _NUMBER.fullmatch(words[said.at])
    number, unit = (match["number"], match["unit"]) if match else (ONES.get(words[said.at], ""), "")
    scale = _SCALES.get(unit, "") or ("" if noun_of(unit) else _SCALES.get(unit[:1], ""))
    unit = "" if unit in _SCALES else unit[1:] if scale else unit
    if not scale and not unit and words[behind:behind + 1] and words[behind] in _SCALES:
        scale, behind = _SCALES[words[behind]], behind + 1
    if not number or (unit and not noun_of(unit)):
        return 0
    beside = set(words[max(0, said.at - 2):said.at]) - {"in", "out", "daily", "monthly"}
    while not unit and behind < len(words) and words[behind] in LEADING and not noun_of(words[behind]):
        beside.add(words[behind])
        behind += 1
    noun = "usd" if match and match["sign"] else unit
    if not noun and words[behind:behind + 1] and words[behind] in SIDES and words[behind + 1:behind + 2] and (
            words[behind + 1] in LENGTHS):
        beside.add(words[behind])
        noun, behind = "tokens", behind + 2
    if not noun and behind < len(words) and noun_of(words[behind]):
        noun, behind = words[behind], behind + 1
    if not noun and not scale and not match:
        return 0
    per, behind = _behind(words, behind, noun, beside)
    unknown = words[behind] if not noun and behind < len(words) and _is_unknown(said, words[behind]) else ""
    text = " ".join(filter(None, (*words[said.at:behind], unknown)))
    said.amounts.append(Amount(number + scale, noun or unknown, per, frozenset(beside), text))
    return behind - said.at


def _behind(words: Sequence[str], behind: int, noun: str, beside: set[str]) -> tuple[str, int]:
    """Return in which time, or of what each, a number is, and where the words behind it end; they are put `beside` it.
    """
    per = ""
    while behind < len(words) and words[behind] in FOLLOW:
        each = words[behind] in ("per", "a", "an", "each", "every")
        time = words[behind + 1] if each and behind + 1 < len(words) else ""
        if time in ("user", "person", "head") and words[behind + 2:behind + 3]:
            beside.add("each")
        if time and (SECONDS.factor(time) or time in _EACH):
            per, behind = time, behind + 2
        elif words[behind] == "each" and noun_of(noun) != "tokens":
            beside.add("each")
            behind += 1
        elif (each and words[behind] != "each") or (words[behind] in SIDES and noun and noun_of(noun) != "tokens") or (
                words[behind] in ("in", "at") and _is_number(words, behind + 1) and not _goes_out(words, behind)):
            break
        else:
            beside.add(words[behind])
            behind += 1
    return per, behind


def _goes_out(words: Sequence[str], at: int) -> bool:
    """Say whether "in" stands between a number of prompt tokens and one of answer tokens: 1.5k in 300 out."""
    return words[at] == "in" and bool({"out", "output"} & set(words[at + 2:at + 4]))


def _is_unknown(said: Sentence, word: str) -> bool:
    """Say whether a word behind a number may be what it counts, and is nothing that is known."""
    known = word in SILENT or word in FOLLOW or word in LEADING or word in PHRASES or word in ONES or word in _BESIDE
    ahead = Sentence([word], said.catalog)
    return word.isalpha() and not known and not any(rule(ahead) for rule in (model, _word, _unmodeled))


def _is_number(words: Sequence[str], at: int) -> bool:
    """Say whether a number stands here, so that the word before it is of that one."""
    return at < len(words) and (words[at] in ONES or bool(_NUMBER.fullmatch(words[at])))


def _keyed(said: Sentence) -> int:
    """Read the name of a flag with a number behind it: context 32k, lora rank 16."""
    for many, text in said.phrase(said.at, 3):
        if text in PHRASES or (text in SIDES and text not in OPTIONS and text not in CALLED):
            continue
        flag = own_name(text.replace(" ", "-"), OPTIONS) or ""
        behind = said.at + many
        while behind < len(said.words) - 1 and said.words[behind] in ("of", "is", "=", "length", "size"):
            behind += 1
        if flag in OPTIONS and _counts_no_other(said.words, behind) and (
                match := _NUMBER.fullmatch(said.words[behind])):
            ends = behind + 1
            plain = match["unit"] == "" or match["unit"] in _SCALES
            while plain and ends < len(said.words) and (
                    said.words[ends] in _SCALES or noun_of(said.words[ends]) in ("time", "money", "tokens")):
                ends += 1
            value, taken = " ".join(said.words[behind:ends]), ends - said.at
            said.put(flag, value)
            return taken
    return 0


def _counts_no_other(words: Sequence[str], at: int) -> bool:
    """Say whether a number has no noun behind it of its own: in "length, 500 steps" it is none of a length."""
    return at < len(words) and (at + 1 >= len(words) or noun_of(words[at + 1]) in (
        None, "time", "money", "tokens", "context"))


OPTIONS = {name.replace("_", "-") for name in TABLE} - {"on", "own", "model", "method", "deadline", "users", "requests"}


def _word(said: Sentence) -> int:
    """Read a method, a format, a provider, terms, an engine or a stack."""
    for many, text in said.phrase(said.at, 3):
        method = method_named(text)
        if method in SYNONYMS["workload.method"][0] and joined(text) not in ("infer", "reward", "preference"):
            said.put("method", text.replace(" ", "-"))
            return many
        for flag, path in (("quantization", "workload.quantization"), ("provider", "sourcing.rent.providers"),
                           ("terms", "sourcing.rent.terms"), ("region", "sourcing.rent.regions")):
            if (name := named(path, text)) in SYNONYMS[path][0] and text not in ("block", "standard", "none"):
                said.put(flag, str(name))
                return many
        if (switch := SWITCHES.get(text.replace(" ", "-"))) is not None:
            flag, _, value = switch[2:].partition("=")
            said.put(flag, value)
            return many
        for flag, entries in (("engine", said.catalog.all("engines", Engine)), (
                "stack", said.catalog.all("stacks", Stack)), ("provider", said.catalog.price_lists)):
            if joined(text) in {joined(entry.name) for entry in entries}:
                said.put(flag, text.replace(" ", "-"))
                return many
    return 0


def _unmodeled(said: Sentence) -> int:
    """Read what is known and not modeled, for the question to be refused by what it is: whisper, RLHF, a TPU."""
    word = said.words[said.at]
    if word in SILENT:
        return 0
    if seeing(word) is not None:
        behind = said.at + 1
        while behind < len(said.words) and (said.words[behind] in _VERSIONS or said.words[behind][:1] == "v"):
            behind += 1
        said.put("model", "-".join(said.words[said.at:behind]))
        return behind - said.at
    if joined(word) in METHODS:
        said.put("method", word)
    elif family_of(word) is not None:
        said.put("on", word)
    else:
        return 0
    return 1


def _silent(said: Sentence) -> int:
    return 1 if said.words[said.at] in SILENT else 0


_BESIDE = frozenset(("each", "apiece", "and", "or", "vs", "with", "for", "on"))
_RULES: tuple[Callable[[Sentence], int], ...] = (
    _keyed, _phrase, _percentile, _resolution, _date, hardware, mixture, model, _amount, _word, _unmodeled, _silent)

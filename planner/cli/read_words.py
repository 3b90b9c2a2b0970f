"""Words of a sentence read one by one: hardware, models, numbers with what they count, methods, formats, providers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import takewhile

from planner.catalog.load import Catalog
from planner.catalog.sized import size_of
from planner.cli.amounts import Amount
from planner.cli.phrases import COMPARES, FOLLOW, LEADING, ONES, PHRASES, SILENT, STOPS, noun_of
from planner.cli.read_amounts import amount
from planner.cli.read_from import ReadFrom
from planner.cli.read_hardware import VENDORS, hardware, vendor
from planner.cli.read_keys import axis, idle, network, percentile, resolution
from planner.cli.read_models import mixture, model
from planner.cli.read_named import valued
from planner.cli.read_other import unmodeled
from planner.cli.read_past import give_way, is_as_it_is, past
from planner.cli.read_shapes import grown, how_many, of_each, sooner
from planner.cli.read_sizes import of_data, of_named, of_no_card
from planner.cli.read_slips import slip
from planner.cli.read_spans import clock, corrected, marked, ranged
from planner.cli.read_values import keyed
from planner.cli.read_without import bounded, excluded
from planner.scenario.dates import days_until
from planner.scenario.unmodeled import family_of

_MOST = 6
"""Words of a name at most."""


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
    assumed: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """Words right behind the name of a model that are not understood and may be of it."""
    places: list[str] = field(default_factory=list)
    """Words behind "on" that are not understood and may be of hardware."""
    named_until: int = 0
    usual: dict[str, str] = field(default_factory=dict)
    """Flags that a word stands for where no number says so: overnight is 12 hours."""
    faster: float = 1.0
    """How many times as fast as what was it is to be."""
    times: float = 1.0
    """How many times the load is asked about too."""
    at: int = 0
    corrects: int = 0
    """Up to which word what is said takes the place of what was said before it."""
    before: dict[str, list[str]] = field(default_factory=dict)
    """Flags as they were before that."""
    counted: int = 0
    """Amounts before that."""
    excluded: dict[str, list[str]] = field(default_factory=dict)
    """Flags with the values that are not wanted."""
    denied: list[str] = field(default_factory=list)
    """What is denied and is nothing that a plan knows."""
    refused: list[str] = field(default_factory=list)
    """Why the question cannot be answered as it is asked."""
    earlier: dict[str, list[str]] = field(default_factory=dict)
    """Flags with the values that what was has."""
    barred: list[str] = field(default_factory=list)
    """The words that say so."""
    before_now: frozenset[int] = frozenset()
    """Places of the words that tell what was."""
    named: list[tuple[str, str]] = field(default_factory=list)
    """All that was ever put, with its flag."""
    heard: set[int] = field(default_factory=set)
    """Places of words that another takes the place of."""
    nouns: set[str] = field(default_factory=set)
    """Kinds of things that are named without a number."""
    fresh: list[ReadFrom] = field(default_factory=list)
    """Values that the words give which are read right now."""

    def put(self, flag: str, *values: str) -> None:
        """Note a flag with a value more, or another one where the sentence corrects itself."""
        was = self.at in self.before_now
        said = (self.earlier if was else self.flags).setdefault(flag, [])
        if self.at < self.corrects and self.before.get(flag) and self.before.pop(flag)[-1:] == said[-1:]:
            self.assumed.append(f"{', '.join(values)} takes the place of {said.pop()}")
        for value in values:
            read = ReadFrom(value)
            if value in said:  # said twice, it is of all these words
                at = said.index(value)
                read = said[at] = ReadFrom(said[at], read.places)
            else:
                said.append(read)
            self.fresh.append(read)
            self.named.append((flag, value))

    def ask(self, what: str) -> None:
        """Note what the question is about, in words of `phrases`: a flag with its value is put."""
        for each in what.split():
            flag, _, value = each.removeprefix("--").partition("=")
            if not each.startswith("--"):
                self.asks.add(each)
            elif flag == "deadline":
                self.usual[flag] = value
            else:
                self.asks.add(each)
                self.put(flag, *filter(None, [value]))

    def phrase(self, at: int, most: int = _MOST) -> Iterator[tuple[int, str]]:
        """Yield how many words from `at` on, up to a comma, are a phrase, and it, the longest first."""
        words = [*takewhile(lambda word: word != ",", self.words[at:at + most])] or self.words[at:at + 1]
        for many in range(len(words), 0, -1):
            yield many, " ".join(words[:many])

    def model_at(self, at: int) -> int:
        """Return how many words from `at` on name a model."""
        return model(Sentence(self.words, self.catalog, at=at)) if self.words[at][:1].isalpha() else 0

    def name_at(self, at: int) -> None:
        """Note the model that is named from `at` on."""
        ahead = Sentence(self.words, self.catalog, at=at)
        model(ahead)
        self.put("model", *ahead.flags["model"])

    def named_at(self, words: Sequence[str], at: int) -> tuple[str, list[str], int] | None:
        """Return what words from `at` on name that may be wanted or not: the flag, its values, and how many words it
        takes; none of others.
        """
        word = words[at]
        if word in VENDORS:
            return "vendor", [word], 1
        if family_of(word.removesuffix("s")) is not None and not any(map(str.isdigit, word)):
            return "unmodeled", [word], 1
        ahead = Sentence(words, self.catalog, at=at)
        for many, text in ahead.phrase(at, 3):
            flag, _, value = PHRASES.get(text, "").removeprefix("--").partition("=")
            if flag in ("terms", "stack"):
                return flag, value.split(","), many
        rules = (hardware, valued, model) if any(map(str.isdigit, word)) else (valued,)
        taken = 0 if word.isdigit() else next(filter(None, (rule(ahead) for rule in rules)), 0)
        flag, values = next(iter(ahead.flags.items()), ("", []))
        return (flag, values, taken) if taken and flag else None

    def _names_a_part(self, word: str) -> bool:
        """Say whether a word is a part of the name of some model."""
        return any(word in name.split("-") for kind in ("models", "diffusion") for name in self.catalog.names(kind))

    def is_unknown(self, word: str) -> bool:
        """Say whether a word behind a number may be what it counts, and is nothing that is known."""
        known = word in STOPS or word in FOLLOW or word in LEADING or word in PHRASES or word in ONES or (
            word in _BESIDE)
        ahead = Sentence([word], self.catalog)
        return word.replace("-", "").isalpha() and not known and not any(
            rule(ahead) for rule in (model, valued, unmodeled))

    def read(self) -> Sentence:
        """Read all words."""
        models, was = 0, list[Amount]()
        self.before_now = past(self.words)
        while self.at < len(self.words):
            counted, self.fresh = len(self.amounts), []
            taken = next(filter(None, (rule(self) for rule in _RULES)), 0)
            for value in self.fresh:
                value.places.update(range(self.at, self.at + taken))
            if self.at < self.corrects and counted == len(self.amounts) - 1 and corrected(self, self.amounts[-1]):
                self.amounts.pop()
            new = self.amounts[counted:]
            if new and self.at in self.before_now:
                was += new
                del self.amounts[counted:]
            elif len(new) == 1 and new[0].kind == "time" and is_as_it_is(self.words, self.at):
                self.denied.append(f"{self.amounts.pop().text} (as it is)")
            if not taken:
                self.unread.append(self.words[self.at])
                if "on" in self.words[max(0, self.at - 2):self.at]:
                    self.places.append(self.words[self.at])
                if self.at == self.named_until and self.at and self._names_a_part(self.words[self.at]):
                    self.names.append(self.words[self.at])
            self.at += taken or 1
            if taken and len(self.flags.get("model", ())) > models:
                self.named_until, models = self.at, len(self.flags["model"])
        give_way(self, was)
        return self


def _phrase(said: Sentence) -> int:
    for many, text in said.phrase(said.at):
        if text in ("my", "our") and not _owns(said):
            return many  # our 13B is no machine
        if text in PHRASES:
            said.ask(PHRASES[text])
            said.heard.update(range(said.at, said.at + many))
            return many
    return 0


def _owns(said: Sentence) -> bool:
    """Say whether what is ours is hardware: no model is named before any."""
    words = said.words[said.at + 1:said.at + 1 + _MOST]
    for at, word in enumerate(words):
        if size_of(word) or word == ",":
            return False
        if noun_of(word) == "gpus" or (at == 0 and word in _WE) or word in _MACHINES:
            return True
        if many := hardware(Sentence(words, said.catalog, at=at)):
            return words[at + many:at + many + 1] == [] or words[at + many] not in _PRICES
    return False


def _date(said: Sentence) -> int:
    """Read a day of the calendar by which it is done: by March, this year."""
    by = said.words[said.at] in ("by", "before", "until", "till")
    if not by and said.words[said.at] not in ("this", "end"):
        return 0
    for many, text in said.phrase(said.at + by, 4):
        if (by or many > 1) and days_until(text, date.today()) is not None:
            said.put("deadline", text)
            return many + by
    ahead = said.words[said.at + 1:said.at + 2]
    if by and ahead and said.is_unknown(ahead[0]) and ahead[0] not in SILENT:
        said.assumed.append(f"'{said.words[said.at]} {ahead[0]}' is no date that is known: --deadline says until when")
        return 2
    return 0


def _silent(said: Sentence) -> int:
    if said.words[said.at] == "full":
        return 1  # at full load
    word, before = said.words[said.at], said.words[said.at - 1] if said.at else ""
    said.nouns.add(noun_of(word) or "")
    return 1 if word in SILENT or (noun_of(word) and before not in COMPARES) else 0


_MACHINES = frozenset(("cluster", "node", "nodes", "machine", "machines", "server", "servers", "box", "boxes",
                       "hardware", "workstation", "rack", "gpu"))
_PRICES = frozenset(("price", "prices", "pricing", "quote", "offer", "bill", "rate", "cost", "costs"))
_WE = frozenset(("team", "company", "lab", "group", "startup", "university"))
"""Words behind "our" that are of whoever has what is named behind them."""
_BESIDE = frozenset(("takes", "took", "take", "each", "apiece", "and", "or", "vs", "with", "for", "on", "without",
                     "not", "but"))
_RULES: tuple[Callable[[Sentence], int], ...] = (
    marked, clock, sooner, ranged, bounded, axis, idle, network, keyed, how_many, _phrase, excluded, grown, percentile,
    resolution, _date, of_data, of_no_card, of_named, hardware, mixture, model, amount, of_each, valued, vendor,
    unmodeled, _silent, slip)

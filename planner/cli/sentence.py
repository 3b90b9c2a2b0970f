"""A question in a sentence, `planner does mixtral 8x7b fit on 2x a100 80gb`, as the words of a command with flags.

Every word is read as something, is one of those that say nothing, or is refused by name: none is left out unsaid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from planner.catalog.architecture import Model
from planner.catalog.engine import Engine
from planner.catalog.load import Catalog
from planner.catalog.spelling import canonical, joined
from planner.catalog.stack import Stack
from planner.cli.meaning import Amount, asked_of
from planner.cli.phrases import FOLLOW, LEADING, PHRASES, SIDES, SILENT, noun_of
from planner.errors import InputError
from planner.scenario.flag_names import SWITCHES
from planner.scenario.flags import TABLE
from planner.scenario.hardware_names import candidate_nodes
from planner.scenario.said import own_name
from planner.scenario.words import SYNONYMS, method_named, named
from planner.units import SECONDS

_MOST = 6
"""Words of a name at most."""
_SCALES = {"thousand": "k", "million": "M", "billion": "B", "trillion": "T", "mn": "M", "bn": "B", "k": "k", "m": "M",
           "b": "B", "t": "T", "g": "G"}
_ONES = {word: str(count) for count, words in enumerate((
    "zero", "a an one single", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")) for word in
         words.split()} | {"twelve": "12", "sixteen": "16", "twenty": "20", "thirty": "30", "fifty": "50",
                           "hundred": "100", "hundreds": "100", "thousands": "1000", "dozen": "12"}
_NUMBER = re.compile(r"(?P<sign>[$]?)(?P<number>\d[\d.,_]*)-?(?P<unit>[^\d.,_-]*)")
BARE = frozenset(("model", "on", "own", "gpus", "seq-len", "users", "rate"))
"""Flags that leave open what a model is to do: whether it fits is answered for every method, or by the load."""
PRICED = frozenset(("model", "on", "own", "method", "quantization", "provider"))
"""Flags that leave the load open: what a million tokens cost is then told of a batch, which keeps the GPUs busy."""
_EDGES = "?!;:\"'()[]"


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


def words_of(args: Sequence[str]) -> list[str]:
    """Return the words of a sentence in small letters, apart from the signs between them."""
    text = " ".join(args).replace("\N{MULTIPLICATION SIGN}", "x").replace(" & ", " and ").lower()
    words = (word.strip(_EDGES).rstrip(".,") for word in text.replace(", ", " , ").split())
    return [each for word in words if word for each in _parted(word)]


def _parted(word: str) -> Iterator[str]:
    """Yield a word, and of 5/s or tokens/day its parts."""
    front, stroke, per = word.rpartition("/")
    if stroke and front and (per in ("month", "user", "request") or SECONDS.factor(per)):
        yield from (front, "per", per)
    else:
        yield word


def spoken(args: Sequence[str], catalog: Catalog, verb: str | None = None, beside: Collection[str] = ()
           ) -> list[str] | None:
    """Return a command with flags that asks what the words ask, `verb` first where it is given; none of no question.

    beside: the flags that are given too.

    Raises InputError with the words that were not understood.
    """
    sentence = Sentence(words_of(args), catalog).read()
    asked_of(sentence.amounts, sentence.asks, sentence.put, sentence.flags, sentence.unread)
    if not sentence.flags and not sentence.asks:
        return None
    asks, flags = sentence.asks, sentence.flags
    given = flags.keys() | set(beside)
    chosen = verb or _verb(asks, flags, given)
    if "why-not" in asks and "on" in flags:
        flags["why-not"] = [f"gpu={name}" for name in flags.pop("on")]
    makes = "model" in flags and catalog.known_diffusion(flags["model"][0]) and "tune" not in asks
    if (asks & {"serve", "hold"} or makes) and not given & {"method", "documents"}:
        flags["method"] = ["inference"]
    if "tune" in asks and "method" not in given and given & {"tokens", "samples", "epochs"}:
        flags["method"] = ["full"]
    if "cost" in asks and "model" in given and given <= PRICED and flags.get("method") in (None, ["inference"]):
        flags.pop("method", None)
        flags["documents"] = ["1M"]
    if "longest" in asks and not given & {"method", "tokens"}:
        flags["method"] = ["inference"]
    elif "longest" in asks:
        flags["max"] = ["sequence"]
    command = [chosen]
    for flag, values in flags.items():
        command += [f"--{flag}", ",".join(values)] if values else [f"--{flag}"]
    if sentence.unread:
        raise InputError(f"not understood: {', '.join(map(repr, sentence.unread))}; the rest reads as: planner "
                         f"{shown(command)}")
    return command


def shown(command: Sequence[str]) -> str:
    """Return a command as it is typed."""
    return " ".join(f"'{word}'" if set(word) & set(" $(;&|*") else word for word in command)


def _verb(asks: set[str], flags: Mapping[str, list[str]], given: Collection[str]) -> str:
    if "why-not" in asks:
        return "explain"
    if "rent" in asks or ("versus" in asks and "model" in given):
        return "compare"
    several = sum(len(flags.get(flag, ())) for flag in ("on", "own")) > 1
    return "estimate" if asks & {"fit", "longest"} and not several and not BARE.issuperset(given) else "plan"


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


def _hardware(said: Sentence) -> int:
    """Read hardware, with its count."""
    for many, text in said.phrase(said.at):
        last = said.words[said.at + many - 1]
        if (text in SILENT or last in SILENT or last in _ONES or (many > 1 and last in FOLLOW) or not any(
                map(str.isdigit, text)) or (many == 1 and text.isdigit() and (
                    said.at + 1 < len(said.words) and noun_of(said.words[said.at + 1]) is not None))):
            continue
        if _knows(text, said.catalog):
            owned = "own" in said.asks
            said.put("own" if owned else "on", text)
            return many
    return 0


def _knows(text: str, catalog: Catalog) -> bool:
    try:
        return bool(candidate_nodes([text], catalog))
    except InputError:
        return False


def _amount(said: Sentence) -> int:
    """Read a number with what it counts, and per what time."""
    words, behind = said.words, said.at + 1
    match = _NUMBER.fullmatch(words[said.at])
    number, unit = (match["number"], match["unit"]) if match else (_ONES.get(words[said.at], ""), "")
    scale = _SCALES.get(unit, "") or ("" if noun_of(unit) else _SCALES.get(unit[:1], ""))
    unit = "" if unit in _SCALES else unit[1:] if scale else unit
    if not scale and not unit and words[behind:behind + 1] and words[behind] in _SCALES:
        scale, behind = _SCALES[words[behind]], behind + 1
    if not number or (unit and not noun_of(unit)):
        return 0
    beside = set(words[max(0, said.at - 2):said.at])
    while not unit and behind < len(words) and words[behind] in LEADING and not noun_of(words[behind]):
        beside.add(words[behind])
        behind += 1
    noun = "usd" if match and match["sign"] else unit
    if not noun and behind < len(words) and noun_of(words[behind]):
        noun, behind = words[behind], behind + 1
    if not noun and not scale and not match:
        return 0
    per = ""
    while behind < len(words) and words[behind] in FOLLOW:
        each = words[behind] in ("per", "a", "an", "each", "every")
        time = words[behind + 1] if each and behind + 1 < len(words) else ""
        if time and (SECONDS.factor(time) or time in ("user", "request", "document")):
            per, behind = time, behind + 2
        elif (each and words[behind] != "each") or (words[behind] in SIDES and noun and noun_of(noun) != "tokens") or (
                words[behind] in ("in", "at") and _is_number(words, behind + 1)):
            break
        else:
            beside.add(words[behind])
            behind += 1
    said.amounts.append(Amount(number + scale, noun, per, frozenset(beside), " ".join(words[said.at:behind])))
    return behind - said.at


def _is_number(words: Sequence[str], at: int) -> bool:
    """Say whether a number stands here, so that the word before it is of that one."""
    return at < len(words) and (words[at] in _ONES or bool(_NUMBER.fullmatch(words[at])))


def _keyed(said: Sentence) -> int:
    """Read the name of a flag with a number behind it: context 32k, lora rank 16."""
    for many, text in said.phrase(said.at, 3):
        flag = own_name(text.replace(" ", "-"), OPTIONS) or ""
        behind = said.at + many
        while behind < len(said.words) - 1 and said.words[behind] in ("of", "is", "=", "length", "size"):
            behind += 1
        if flag in OPTIONS and behind < len(said.words) and (match := _NUMBER.fullmatch(said.words[behind])):
            value, taken = said.words[behind], behind + 1 - said.at
            if taken + said.at < len(said.words) and not match["unit"] and (
                    said.words[said.at + taken] in _SCALES or SECONDS.factor(said.words[said.at + taken])):
                value, taken = f"{value} {said.words[said.at + taken]}", taken + 1
            said.put(flag, value)
            return taken
    return 0


OPTIONS = {name.replace("_", "-") for name in TABLE} - {"on", "own", "model", "method", "deadline", "users", "requests"}


def _model(said: Sentence) -> int:
    for many, text in said.phrase(said.at):
        last = said.words[said.at + many - 1]
        if text in SILENT or (many > 1 and last in SILENT) or (many > 1 and last in FOLLOW):
            continue
        if len(joined(text)) > 2 and (said.catalog.known_model(text) or said.catalog.known_diffusion(text)):
            said.put("model", text.replace(" ", "-"))
            return many
    return _of_family(said)


def _of_family(said: Sentence) -> int:
    """Read the name of a model that the catalog does not know and that begins as the names of a family of its do."""
    known = {_letters(entry.name) for entry in said.catalog.all("models", Model)} - {""}
    if _letters(said.words[said.at]) not in known:
        return 0
    taken = 1
    while said.at + taken < len(said.words) and any(map(str.isdigit, said.words[said.at + taken])) and not noun_of(
            next(iter(said.words[said.at + taken + 1:]), "")):
        taken += 1
    said.put("model", "-".join(said.words[said.at:said.at + taken]))
    return taken


def _letters(name: str) -> str:
    """Return what a name begins with up to its first sign or digit; none where these are few."""
    start = re.split(r"[^a-z]", canonical(name))[0]
    return start if len(start) > 2 else ""


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


def _silent(said: Sentence) -> int:
    return 1 if said.words[said.at] in SILENT else 0


_RULES: tuple[Callable[[Sentence], int], ...] = (_phrase, _hardware, _model, _keyed, _amount, _word, _silent)

"""A number behind the name of a flag: context 32k, lora rank 16, batch 32 or 64."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from planner.cli.phrases import PER, PHRASES, SIDES, STOPS, noun_of
from planner.cli.places import PLACES
from planner.cli.read_amounts import NUMBER, PIXELS, SCALES
from planner.scenario.flag_names import CALLED
from planner.scenario.flags import TABLE
from planner.scenario.said import own_name
from planner.units import SECONDS

if TYPE_CHECKING:
    from planner.cli.read_words import Sentence


def keyed(said: Sentence) -> int:
    """Read the name of a flag with a number behind it: context 32k, lora rank 16."""
    for many, text in said.phrase(said.at, 3):
        if text in _NOUNS_TOO or (text.startswith("batch ") and text != "batch size") or (
                noun_of(text) and said.words[said.at + 1:said.at + 2] == ["of"]):
            continue
        batch = text == "batch" and _stands_alone(said.words, said.at + 1)
        if (text in PHRASES and not batch) or (text in SIDES and text not in OPTIONS and text not in CALLED):
            continue
        flag = own_name(text.replace(" ", "-"), OPTIONS) or ""
        behind = said.at + many
        while behind < len(said.words) - 1 and (said.words[behind] in _TO_VALUE or " ".join(
                said.words[behind - 1:behind + 1]) in _AT_MOST or " ".join(said.words[behind:behind + 2]) in _AT_MOST):
            behind += 1
        if flag in OPTIONS and _counts_no_other(said.words, behind, flag) and (
                match := NUMBER.fullmatch(said.words[behind])) and not PIXELS.fullmatch(said.words[behind]) and (
                _counts_alone(match["unit"], flag)) and not (flag in _TIMES - {"tpot"} and "token" in said.words[
                    behind + 1:behind + 4] and "per" in said.words[behind + 1:behind + 3]):
            ends = behind + 1
            plain = match["unit"] == "" or match["unit"] in SCALES
            while plain and ends < len(said.words) and (
                    said.words[ends] in SCALES or noun_of(said.words[ends]) in ("time", "money", "tokens")):
                ends += 1
            value, taken = " ".join(_SHORT.get(word, word) for word in said.words[behind:ends]), ends - said.at
            time = said.words[ends + 1] if said.words[ends:ends + 1] and said.words[ends] in PER and (
                ends + 1 < len(said.words)) else ""
            flag, value, each = _of_each(flag, value, time)
            taken += each
            more = ends + 1 < len(said.words) and said.words[ends] in _LISTS and NUMBER.fullmatch(said.words[ends + 1])
            if flag == "dataset" and _is_of_a_sample(said.words[behind:ends]):
                continue  # 20k rows of data of 600 tokens
            if flag == "dataset":  # how much there is of it
                flag = "tokens" if any(noun_of(word) == "tokens" for word in said.words[behind:ends]) else "samples"
            flag = _meant(said.words, text, flag, said.at, ends)
            said.put(flag, value)
            if more and plain and (ends + 2 == len(said.words) or noun_of(said.words[ends + 2]) is None):
                said.put(flag, said.words[ends + 1])  # batch 32 or 64
                taken += 2
            return taken
    return 0


def _is_of_a_sample(value: Sequence[str]) -> bool:
    """Say whether a number of tokens is that of one sample, and not of all."""
    match = NUMBER.fullmatch(value[0])
    return match is not None and not match["unit"] and len(value) > 1 and noun_of(value[1]) == "tokens"


def _of_each(flag: str, value: str, per: str) -> tuple[str, str, int]:
    """Return a key and its value that are of each GPU or of a time, and how many words say so."""
    if flag in ("batch", "global-batch") and per in _DEVICES:
        return "per-device-batch", value, 2
    if flag == "budget" and SECONDS.factor(per):  # 8 grand a month
        coined = "$" in value or any(noun_of(word) == "money" for word in value.lower().split())
        return flag, f"{value}{'' if coined else ' USD'}/{per}", 2
    return flag, value, 0


def _meant(words: Sequence[str], text: str, flag: str, at: int, ends: int) -> str:
    """Return the flag that words around a key's name mean: a context that prompts fill, a first token's latency."""
    if text == "latency" and "first" in (*words[max(0, at - 3):at], *words[ends:ends + 4]):
        return "ttft"
    filled = text.startswith(("context", "ctx")) and words[at - 1:at] not in (["max"], ["maximum"])
    return "context" if filled and flag == "seq-len" else flag


def _stands_alone(words: Sequence[str], at: int) -> bool:
    """Say whether a number stands here with nothing that it counts: batch 4, a batch of 16."""
    at += words[at:at + 1] in (["of"], ["size"])
    return at < len(words) and words[at].isdigit() and not any(
        word in SCALES or noun_of(word) for word in takewhile(lambda word: word not in STOPS, words[at + 1:at + 3]))


def _counts_no_other(words: Sequence[str], at: int, flag: str) -> bool:
    """Say whether a number has no noun behind it of its own: in "length, 500 steps" it is none of a length, and in
    "reply in 2 seconds" none of an output.
    """
    ends = at + 2 + _LEAD * (flag in _COUNTED and words[at - 1] != "=")
    behind = [*takewhile(lambda word: word not in STOPS and not NUMBER.fullmatch(word), words[at + 1:ends])]
    # what stands before a number is of that one: epochs 3, context 4096
    counted = [noun_of(word) for place, word in enumerate(behind, at + 2)
               if flag not in _COUNTED or not NUMBER.fullmatch(next(iter(words[place:place + 1]), ""))]
    kinds = ("time",) if flag in _TIMES else ("money",) if flag in ("budget", "electricity") else () if (
        flag in _COUNTED) else ("tokens", "context")
    return at < len(words) and all(noun in (None, *kinds) for noun in counted)


def _counts_alone(unit: str, flag: str) -> bool:
    """Say whether a number is one of a key, and no size of a model or number of cards: in "lora 7b" none of adapters.
    """
    return unit != "x" and _BYTES.fullmatch(unit) is None and (unit != "%" or flag in _SHARES) and (
        unit not in ("b", "t") or flag in ("tokens", "dataset", "model"))


_SHARES = frozenset(place.flag for place in PLACES["share"])
_DEVICES = ("gpu", "device", "card")
_LISTS = ("to", "or", "vs", "versus", "and")
_AT_MOST = ("at most", "up to")
_TO_VALUE = frozenset(("of", "is", "=", "length", "size", "ceiling", "cap", "limit", "max",
                       "maximum", "around", "about", "roughly", "under",
                       "below", "are", "from", "grows", "growing", "grow", "reaches", "reaching", "goes", "to", "up"))
"""Words between the name of a key and its number."""
_TIMES = frozenset(("deadline", "ttft", "tpot", "e2e", "think", "startup", "years", "audio", "price-age", "reward"))
_COUNTED = frozenset(("samples", "documents", "epochs", "steps", "adapters", "gpus"))
"""Names of keys that are what is counted: in "samples of 2k tokens" the number is of none."""
_LEAD = 2
"""Words between a number and its noun that say more of it: 200 GRPO steps."""
_BYTES = re.compile(r"[kmgt]i?b", re.ASCII)
"""No key counts bytes: question, 80GB A100."""
_SHORT = {"grand": "k", "mil": "M", "m": "M", "bucks": "USD"}
"""Words of a quantity that no unit is written as."""
OPTIONS = {name.replace("_", "-") for name in TABLE} - {"on", "own", "model", "method", "deadline", "users", "requests"}
_NOUNS_TOO = ("startup", "day", "images", "frames", "users")
"""Names of flags that are things which a sentence is about."""

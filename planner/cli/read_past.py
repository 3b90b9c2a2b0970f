"""What a sentence says of what was, and not of what is wanted: we trained a 7B for 12 days on 64 A100 last year.

What was gives way: its model and its amount of work are taken where the rest names none, its hardware, its time and
its money never.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from planner.cli.amounts import seconds_of
from planner.cli.read_from import ReadFrom

if TYPE_CHECKING:
    from planner.cli.amounts import Amount
    from planner.cli.read_words import Sentence

_DAY = 86400.0
_WHO = frozenset(("we", "i", "they", "it", "he", "she", "team", "run", "job", "training", "which", "that", "this"))
_DID = frozenset(("trained", "ran", "took", "used", "tried", "did", "spent", "served", "finetuned", "fine-tuned",
                  "pretrained", "lasted", "finished", "needed", "oomed", "crashed", "paid", "started", "attempted"))
_BETWEEN = frozenset(("have", "has", "had", "already", "once", "just", "originally", "initially", "first", "only",
                      "run", "job", "training", "one", "previously"))
"""Words between who and what was done."""
_AGO = frozenset(("ago", "yesterday", "previously", "formerly", "historically"))
_LAST = frozenset(("year", "month", "week", "quarter", "time", "summer", "winter", "spring", "autumn", "fall", "night",
                   "run"))
_MINE = frozenset(("my", "our", "current", "now", "today", "currently"))
_FACTOR = re.compile(r"(\d{1,2}(?:\.\d{1,2})?)x?", re.ASCII)
_FASTER = {"faster than": "twice as fast as", "times faster than": "", "as fast as": "", "times as fast as": "",
           "quicker than": ""}
_GETS = frozenset(("get", "gets", "getting", "reach", "reaches", "achieve", "achieves", "see", "seeing", "does"))
_PACE = frozenset(("tok", "tokens", "toks", "tps"))
_SOON = 4
_LOADS = frozenset(("users", "requests", "rate", "streams", "documents", "samples", "tokens"))
_NOT = frozenset(("if", "would", "should", "will", "how", "what"))
"""Words of a part that asks, or that is of no past."""
_BEGINS = frozenset(("how", "what", "which", "now", "but", "can", "could", "would", "should", "want", "need", "so",
                     "next", "today", "will", "is", "are", "does", "do"))
"""Words behind which another part begins."""
_BOUNDS = frozenset(("under", "below", "within", "most", "less", "than", "should", "must", "can", "may", "only", "how",
                     "would", "will", "could", "if", "that"))
_TAKES = ("takes", "took", "taking", "lasts", "lasted")
_FAR = 3
_GIVES = frozenset(("model", "method", "stack", "engine", "seq-len", "lora-rank", "precision", "optimizer",
                    "quantization"))
"""Flags that are taken of what was, where the rest says none."""
_COUNTS = frozenset(("tokens", "samples", "size", "users", "requests", "context", "epochs", "steps", "documents",
                     "rate", "images", "clips"))
"""Kinds of numbers of which that is so too."""


def past(words: Sequence[str]) -> frozenset[int]:
    """Return the places of the words that tell what was."""
    ends = [0, *(at for at, word in enumerate(words) if word == "," or (word in _BEGINS and at)), len(words)]
    was = {at for begin, end in pairwise(ends) if _was(words[begin:end]) for at in range(begin, end)}
    for begin, end in pairwise(ends):
        for at in range(begin, end):
            if (times := faster(words, at)) is not None and not _MINE.isdisjoint(words[at:end]):
                was.update(range(at + times[1], end))
    return frozenset(was)


def faster(words: Sequence[str], at: int) -> tuple[float, int] | None:
    """Return how many times as fast it is to be as what is named behind, and how many words say so: 1.5x faster than;
    none of other words.
    """
    number = _FACTOR.fullmatch(words[at]) if at < len(words) else None
    for said, words_of in _FASTER.items():
        behind = said.split()
        if number and list(words[at + 1:at + 1 + len(behind)]) == behind:
            return float(number[1]), 1 + len(behind)
        if words_of and list(words[at:at + len(words_of.split())]) == words_of.split():
            return 2.0, len(words_of.split())
    return None


def _was(part: Sequence[str]) -> bool:
    if _NOT.intersection(part):
        return False
    if _AGO.intersection(part) or any(pair[0] == "last" and pair[1] in _LAST for pair in pairwise(part)):
        return True
    if any(word in _GETS and not _PACE.isdisjoint(part[at + 1:at + 1 + _SOON]) for at, word in enumerate(part)):
        return True  # what is reached today is no target
    return any(part[at] in _DID and any(word in _WHO for word in _before(part, at)) for at in range(len(part)))


def _before(part: Sequence[str], at: int) -> Iterator[str]:
    """Yield the words before one, up to the first that does not stand between who did and what was done."""
    for word in part[:at][::-1]:
        yield word
        if word not in _BETWEEN:
            return


def is_as_it_is(words: Sequence[str], at: int) -> bool:
    """Say whether a time that stands here is one that something takes now, and no limit: it takes about 20 hours."""
    before = words[max(0, at - _FAR):at]
    return any(word in _TAKES for word in before) and _BOUNDS.isdisjoint(words[max(0, at - 2 * _FAR):at])


def give_way(said: Sentence, amounts: Sequence[Amount]) -> None:
    """Take of what was what the rest does not say, and note what is not taken."""
    kinds = {amount.kind or ("size" if amount.value[-1:] == "B" else "tokens") for amount in said.amounts}
    for amount in amounts:
        if amount.kind == "time" and said.faster > 1.0:
            soon = f"{seconds_of(amount) / said.faster / _DAY:.3g} days"
            said.put("deadline", ReadFrom(soon, amount.places))
            said.assumed.append(f"{said.faster:g} times as fast as {amount.text} is a deadline of {soon}")
            continue
        kind = amount.kind or ("size" if amount.value[-1:] == "B" else "")
        kind = "pace" if kind == "tokens" and amount.per else kind
        if kind == "pace" and kinds.isdisjoint(_LOADS) and "tokens" not in said.flags:
            said.ask("--objective=rate serve")  # how much it would be elsewhere
        if kind in _COUNTS - kinds and not (kind == "size" and "model" in said.flags):
            said.amounts.append(amount)
        else:
            said.denied.append(f"{amount.text} (of what was)")
    for flag, values in said.earlier.items():
        if flag in _GIVES and flag not in said.flags and not (flag == "model" and "size" in kinds):
            said.flags[flag] = values
        elif flag != "method":
            said.denied += [f"{value} (of what was)" for value in values]

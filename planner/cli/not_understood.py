"""Words of a sentence that are not understood: which may be left out by one note, and which the answer turns on.

A word may go where it carries no number, takes nothing back, and is no word of what a plan knows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from planner.cli.axes import AXES, OFFLOAD
from planner.cli.phrases import COMPARES, ONES, noun_of
from planner.cli.read_words import Sentence
from planner.scenario.flag_names import INSTEAD
from planner.scenario.said import own_name
from planner.units import SECONDS, WATTS

_DATA = re.compile(r"\d+(?:\.\d+)?(?:kb|mb|gb|tb|gib|tib)", re.ASCII)
_TAKES_BACK = frozenset(("not", "no", "except", "excluding", "unless", "never", "neither", "nor", "without"))
"""Words behind which a question may mean the opposite of what the rest of it says."""
_WORDS = frozenset(("recompute", "recomputation", "checkpointing", "offload", "offloading", "zero", "parallel",
                    "sharding", "sharded", "mig", "interconnect"))
"""What a layout or a machine is made of, beside the axes."""
_BARE = frozenset(("larger", "smaller", "bigger", "longer", "shorter", "higher", "other"))
"""What compares with nothing that is said, where "than" is not: higher load."""


AMOUNTS = frozenset(("tokens", "samples", "steps", "rate", "users", "daily-users", "monthly-users", "concurrency",
                     "documents"))
"""Flags of how much is to be done."""


def decisive(sentence: Sentence) -> list[str]:
    """Return why each word that is not understood may not be left out; none of those that may."""
    return [*dict.fromkeys(why for text in sentence.unread if (why := _why(text, sentence)))]


def _why(text: str, sentence: Sentence) -> str:
    why = next(_reasons(text, sentence), "")
    return f"{text!r} ({why})" if why else ""


def _reasons(text: str, sentence: Sentence) -> Iterator[str]:
    words = text.split()
    if any(_DATA.fullmatch(word) for word in words):
        yield "a size of data: how many tokens, or samples and their mean length, does it have?"
        return
    if any(any(map(str.isdigit, word)) or (word in ONES and word not in ("a", "an", "one")) for word in words):
        yield "what does it count: tokens, samples, users, requests a second, GPUs, hours, USD?"
    if any(word in _TAKES_BACK for word in words):
        yield "what is not wanted? GPUs, providers, regions, terms and formats are left out by name"
    if any(word in COMPARES and (word not in _BARE or "than" in sentence.words) for word in words):
        yield "than what? say the number"
    if text in sentence.names:
        yield "part of the model's name? planner catalog list models"
    if any(SECONDS.factor(word) or WATTS.factor(word) for word in words):
        yield "how many?"
    for word in words:
        if word in AXES or word in OFFLOAD or word in _WORDS:
            yield INSTEAD.get(AXES.get(word, word), INSTEAD["tp"])


def noted(sentence: Sentence) -> list[str]:
    """Return what is left out of a question, for one note: words that count nothing, and what is denied and unknown."""
    said = {word for word in sentence.unread if (name := own_name(word, sentence.flags)) and sentence.flags[name]}
    denied = said | {word for text in sentence.denied for word in text.split()}
    return [*(text for text in sentence.unread if not set(text.split()) <= denied or noun_of(text)), *sentence.denied]


def is_whole(given: Collection[str], sentence: Sentence) -> bool:
    """Say whether the rest is a question of its own: a model that is known by its whole name, and how much it does."""
    return "model" in given and not AMOUNTS.isdisjoint(given) and sentence.names == []


def is_open(given: Collection[str]) -> bool:
    """Say whether nothing says what a question is about: neither a model, nor hardware, nor what may be spent."""
    return {"model", "budget", "on", "own", "requests", "dataset"}.isdisjoint(given)

"""What a sentence does not want: not on AWS, anything but A100, without spot. It is never read as what is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.cli.read_words import Sentence

_BARS = ("never mind", "forget about", "anything but", "everything but", "anyone but", "any but", "all but", "but "
        "not", "other than", "apart from",
         "aside from", "rather not", "except for", "except", "excluding", "exclude", "excludes", "avoid", "avoiding",
         "without", "never", "neither", "no", "not", "skip", "besides", "sans")
"""Words before what is not wanted, the longer first."""
_ALL = ("anything", "everything", "anyone", "any", "all", "every")
_HARD = ("never mind", "no", "without", "except", "except for", "excluding", "exclude", "avoid", "avoiding", "anything "
        "but",
         "everything but", "any but", "all but", "other than", "apart from", "aside from", "sans")
"""Those behind which a thing that is not understood is one that must not be."""
_BOUNDS = ("more", "longer", "later", "over", "above", "exceed", "exceeding", "higher", "less", "fewer", "slower",
           "lower", "under", "below", "only", "just", "beyond")
_IDLE = ("chance", "way", "luck", "success", "sure", "idea", "preference", "matter", "rush", "hurry", "problem",
         "deadline", "limit", "budget", "much",
         "yet", "necessarily", "clue", "need", "care", "know", "worries", "object", "time")
"""Words that are denied and limit nothing: no rush, not sure, no deadline."""
_FAR = 5
"""Words at most between a bar and what it bars."""
_JOINS = (",", "and", "or", "nor", "/")


def bounded(said: Sentence) -> int:
    """Read a bound that is said by what it may not pass, and limits that are said not to be."""
    words, at = said.words, said.at
    if words[at] in ("no", "not", "any", "without") and at + 1 < len(words):
        verb = words[at + 1] in ("to", "a")
        word = words[at + 1 + verb] if at + 1 + verb < len(words) else ""
        if word in _BOUNDS:
            return 2 + verb + (words[at + 2 + verb:at + 3 + verb] == ["than"])
        if word in _IDLE and (words[at] != "any" or word in ("deadline", "budget", "time")) and not _numbered(
                words, at + 2 + verb):
            return 2 + verb
    if words[at:at + 2] == ["do", "not"] and words[at + 2:at + 3] and words[at + 2] in _IDLE:
        return 3
    return 2 if words[at:at + 2] == ["nothing", "but"] else 0


def _numbered(words: Sequence[str], at: int) -> bool:
    return any(map(str.isdigit, next(iter(words[at:at + 1]), "")))


def excluded(said: Sentence) -> int:
    """Read what is not wanted, with all that is listed beside it."""
    words, at = said.words, said.at
    if words[at].startswith("non-") and (thing := said.named_at([words[at].removeprefix("non-")], 0)):
        said.excluded.setdefault(thing[0], []).extend(thing[1])
        return 1
    lead = words[at] in _ALL and next((many for many in (1, 2, 3) if words[at + many:at + many + 1] and (
        words[at + many] in ("but", "except", "excluding", "besides") or words[at + many:at + many + 2] in (
            ["other", "than"], ["apart", "from"], ["aside", "from"]))), 0)
    here = at + (lead or 0)
    bar = "except" if lead and words[here] == "but" else next((text for text in _BARS if words[here:here + text.count(
        " ") + 1] == text.split()), "")
    if not bar:
        return 0
    here += bar.count(" ") + 1
    if here == len(words) or words[here] == ",":
        return here - at  # "no, GPU" takes back nothing that is named
    for place in range(here, min(len(words), here + _FAR)):
        if words[place] == ",":
            break
        if thing := said.named_at(words, place):
            return _listed(said, thing, place) - at
    hard = bar in _HARD
    if hard and here < len(words):
        behind = next((place for place in range(here, min(len(words), here + 2)) if words[place] == ","), here + 1)
        barred = " ".join(words[here:behind])
        said.barred.append(f"{bar} {barred}")
        said.refused.append(f"{bar} {barred!r} is not understood: a plan can leave out GPUs, vendors, providers, "
                            "regions, terms, formats, methods and stacks by name, as in 'not on aws' or 'without spot'")
        return behind - at
    denied = [*words[at:here], *_clause(words, here)]
    said.denied.append(" ".join(denied))
    return here - at


def _clause(words: Sequence[str], at: int) -> list[str]:
    return [*takewhile(lambda word: word != ",", words[at:at + 3])]


def _listed(said: Sentence, thing: tuple[str, list[str], int], place: int) -> int:
    """Note what is not wanted and what is listed beside it, and return where that ends."""
    words, flag = said.words, thing[0]
    said.excluded.setdefault(flag, []).extend(thing[1])
    here = place + thing[2]
    while here < len(words):
        ahead = here
        while ahead < len(words) and words[ahead] in _JOINS:
            ahead += 1
        if ahead == here or ahead == len(words):
            break
        more = said.named_at(words, ahead)
        alike = more and (more[0] == flag or {more[0], flag} <= {"on", "vendor"})
        if not more or not alike or (words[here] == "," and ahead == here + 1 and flag in _ONE_LEFT and not _goes_on(
                words, ahead + more[2])):
            break
        said.excluded.setdefault(more[0], []).extend(more[1])
        here = ahead + more[2]
    return here + (words[here:here + 1] != [] and words[here] in _NOUNS)


_ONE_LEFT = ("on", "method", "model", "engine", "stack", "quantization")
"""Flags of which what stands behind a comma is what is wanted instead: not LoRA, full finetuning."""
_NOUNS = ("gpu", "gpus", "card", "cards", "instances", "instance", "pricing", "prices", "nodes", "hardware", "chips")


def _goes_on(words: Sequence[str], at: int) -> bool:
    """Say whether a list goes on to its last: A100, H100 or V100."""
    return words[at:at + 1] in (["or"], ["and"], ["nor"])

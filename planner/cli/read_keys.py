"""What a sentence says of a run that no answer turns on, or that every answer says: lr 1e-4, MFU; and axes of a layout.

What a trainer is told beside is left out by a note; what a plan chooses itself is a part of --layout.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.cli.axes import AXES
from planner.cli.phrases import noun_of
from planner.scenario.flag_names import LEFT_OUT

if TYPE_CHECKING:
    from planner.cli.read_words import Sentence

_VALUE = re.compile(r"\d[\d.e+-]*%?|true|false|cosine|linear|constant", re.ASCII)
_DEGREE = re.compile(r"\d{1,4}", re.ASCII)
_SPEED = re.compile(r"\d+(?:\.\d+)?(?P<unit>[a-z]*)", re.ASCII)
_SPEEDS = frozenset(("gbps", "tbps", "mbps", "gbit", "gbits", "tbit", "gbe", "gigabit"))
_PER_SECOND = frozenset(("gb", "tb", "mb", "gbit", "tbit", "gbits", "gib", "gigabit", "gigabits"))
_SIDE = ("px", "pixel", "pixels", "resolution")
"""Words behind a number that is the side of a picture."""
_TO_VALUE = ("=", "of", "is", "around", "about", "roughly", "at")
_PLAIN = frozenset(("port", "template", "efficiency", "seed"))
"""Names of such keys that are words of any sentence."""


def idle(said: Sentence) -> int:
    """Read a key that changes neither time, memory nor money, or is an answer: it is left out by a note."""
    for many, text in said.phrase(said.at, 3):
        name = text.replace(" ", "-")
        if name not in LEFT_OUT or name in _PLAIN:
            continue
        behind = said.at + many
        while said.words[behind:behind + 1] and said.words[behind] in _TO_VALUE:
            behind += 1
        valued = said.words[behind:behind + 1] != [] and _VALUE.fullmatch(said.words[behind]) is not None
        ends = behind + valued
        while valued and said.words[ends:ends + 1] and noun_of(said.words[ends]) == "time":
            ends += 1
        value = " ".join(said.words[behind:ends])
        if LEFT_OUT[name] == LEFT_OUT["mtbf"]:
            said.ask("fails")
        said.assumed.append(f"{text}{f' {value} is left out' if valued else ''}: {LEFT_OUT[name]}")
        return ends - said.at if valued else many
    return 0


def network(said: Sentence) -> int:
    """Read how fast nodes are joined, a fact of the node type, which is left out by a note: 400 Gb/s, 3.2 Tbps."""
    words, at = said.words, said.at
    match = _SPEED.fullmatch(words[at])
    if match is None:
        return 0
    behind = at + 1
    unit = match["unit"] or next(iter(words[behind:behind + 1]), "")
    behind += not match["unit"]
    if unit in _PER_SECOND and words[behind:behind + 1] == ["per"] and words[behind + 1:behind + 2] in (
            ["s"], ["sec"], ["second"]):
        behind += 2
    elif unit not in _SPEEDS:
        return 0
    behind += words[behind:behind + 1] in (["ethernet"], ["network"], ["networking"], ["fabric"])
    said.assumed.append(f"{' '.join(words[at:behind])} is left out: {LEFT_OUT['infiniband']}")
    return behind - at


def axis(said: Sentence) -> int:
    """Read a degree of a layout: tp 8, pp=4, tensor parallel 8."""
    for many, text in said.phrase(said.at, 3):
        if (name := AXES.get(text.replace(" ", "-"))) is None or name == "mbs":
            continue
        behind = said.at + many
        behind += said.words[behind:behind + 1] in (["="], ["of"], ["size"], ["degree"])
        if said.words[behind:behind + 1] and _DEGREE.fullmatch(said.words[behind]):
            said.put("layout", f"{name}={said.words[behind]}")
            return behind + 1 - said.at
    return 0


def percentile(said: Sentence) -> int:
    """Read at which percentile what is said of latencies is meant: p95."""
    if not re.fullmatch(r"p\d{2}(?:\.\d)?", said.words[said.at], re.ASCII):
        return 0
    said.put("percentile", said.words[said.at])
    return 1


def resolution(said: Sentence) -> int:
    """Read pixels: 480p, 1024x1024."""
    word, taken = said.words[said.at], 1
    if said.words[said.at + 1:said.at + 2] and said.words[said.at + 1] in _SIDE and word.isdigit():
        word, taken = f"{word}px", 2
    if side := re.fullmatch(r"(\d{3,4})(?:px|pixels?)", word, re.ASCII):
        word = f"{side[1]}x{side[1]}"
    if not re.fullmatch(r"\d{3,4}p|\d{3,4}x\d{3,4}", word, re.ASCII):
        return 0
    said.put("resolution", word)
    return taken

"""Models in the words of a sentence: by name, by family, by the sizes of a mixture."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import log
from typing import TYPE_CHECKING

from planner.catalog.architecture import Model
from planner.catalog.engine import Engine
from planner.catalog.sized import size_of
from planner.catalog.spelling import canonical, joined
from planner.cli.phrases import PARAMETER, SILENT, noun_of
from planner.errors import InputError
from planner.physics.shapes import active_parameters, parameters

if TYPE_CHECKING:
    from planner.cli.read_words import Sentence

_FIGURES = re.compile(r"\d{1,6}(?:\.\d{1,3})?", re.ASCII)
_KINDS = ("moe", "mixture", "instruct", "chat", "instance")
"""Words between those of a name that say what kind of model it is."""
_BETWEEN = ("total", "moe", "mixture", "of", "experts", "model", "with", ",", "and")
"""Words between the sizes of a mixture."""
_NEAR = 0.06
"""Share by which a mixture's sizes may differ from what is said of them."""


_LIKE = ("-style", "-like", "-type")
"""Ends of words that say what something is like: a llava-style model."""
_SHORT = 2
"""Letters of a word that names no family."""
_APART = 4
"""Words from the name of a family to its size at most."""


def _sizes(model: Model) -> tuple[float, float]:
    return float(parameters(model)), float(active_parameters(model))


def mixture(said: Sentence) -> int:
    """Read a mixture by its sizes: 30b moe with 3b active."""
    taken, sizes_said = _of_mixture(said.words[said.at:said.at + 12])
    if not taken:
        return 0
    whole, active = sizes_said
    named = [name for name in said.catalog.names("models") if name.endswith(f"-{whole}-a{active}")]
    if named:
        said.put("model", min(named, key=len))
        return taken
    sizes = tuple(size_of(size) or 1.0 for size in sizes_said)
    far, nearest = min((max(abs(log(ours / theirs)) for ours, theirs in zip(sizes, _sizes(entry), strict=True)),
                        entry.name) for entry in said.catalog.all("models", Model) if entry.mixes_experts)
    ours = _sizes(said.catalog.model(nearest))
    like = f"{nearest}, {ours[0] / 1e9:.0f}B with {ours[1] / 1e9:.0f}B active"
    if far > _NEAR:
        raise InputError(f"no model of the catalog has {whole} parameters, {active} of them active: "
                         f"name a mixture of experts; the nearest is {like}")
    said.put("model", nearest)
    said.assumed.append(f"{' '.join(said.words[said.at:said.at + taken])} is planned for as {like}")
    return taken


def _of_mixture(words: Sequence[str]) -> tuple[int, tuple[str, str]]:
    """Return how many words tell the sizes of a mixture, and these, all and active; no words where they tell none."""
    at = 0
    while at < len(words) and words[0] in _KINDS and words[at] in (*_KINDS, "of"):
        at += 1
    sizes = list[str]()
    while at < len(words) and len(sizes) < 2:
        if size_of(words[at]):
            sizes.append(words[at])
        elif not sizes or words[at] not in _BETWEEN:
            return 0, ("", "")
        at += 1
    if len(sizes) < 2 or words[at:at + 1] not in (["active"], ["activated"]):
        return 0, ("", "")
    at += 1
    return at + (words[at:at + 1] != [] and words[at] in PARAMETER), (sizes[0], sizes[1])


def model(said: Sentence) -> int:
    """Read the name of a model, as it is or with parts left out: the longest of all that are named so."""
    names = [*said.catalog.names("models"), *said.catalog.names("diffusion")]
    for many, text in said.phrase(said.at):
        if "/" in text.partition(" ")[2]:
            continue  # words before an organization are none of its
        if _is_engine(said, text):
            return 0
        size, _, family = text.partition(" ")
        name = ""
        if many > 1 and size_of(size) and family[:1].isalpha():  # 235b qwen3, 70b llama 3.1
            name = _as_named(said, f"{family} {size}") or (many == 2 and _of_parts(f"{family} {size}", names)) or ""
        name = name or _as_named(said, text) or _of_size_apart(said, text) or (
            many > 1 and (_begun(text, names) or _of_parts(text, names))) or ""
        if name:
            said.put("model", name)
            return many
    return _of_family(said)


def _of_size_apart(said: Sentence, text: str) -> str:
    """Return the model of a family whose size stands apart from it: the 70b version of llama 3.1, qwen3 with 8b params.
    """
    if not any(map(str.isdigit, text)) or any(size_of(word) for word in text.split()):
        return ""
    ends = said.at + text.count(" ") + 1
    near = (*said.words[max(0, said.at - _APART):said.at][::-1], *said.words[ends:ends + _APART])
    return next((name for word in near if size_of(word) and (name := _as_named(said, f"{text} {word}"))), "")


def _as_named(said: Sentence, text: str) -> str:
    known = text not in SILENT and len(joined(text)) > 2 and (
        said.catalog.known_model(text) or said.catalog.known_diffusion(text))
    return text.replace(" ", "-") if known else ""


def _begun(text: str, names: Sequence[str]) -> str:
    """Return of the names that begin so the last, which is the newest: mistral small, ltx video."""
    begun = [name for name in names if name.startswith(f"{text.replace(' ', '-')}-")]
    return max(begun) if begun and text.rsplit(maxsplit=1)[-1].isalpha() else ""


def _of_parts(text: str, names: Sequence[str]) -> str:
    """Return the name some of whose parts are left out, the shortest and newest of those that have all that are said:
    qwen coder 32b, whisper large turbo, mistral nemo.
    """
    words = [part for word in text.split() if word not in _KINDS for part in re.split(r"[-_]", word)]
    if len(words) < 2 or noun_of(words[-1]) or any(word in SILENT for word in words):
        return ""
    found = [(len(name.split("-")), [-float(number) for number in _FIGURES.findall(name)], name) for name in names
             if _has(re.split(r"[-_]", name), words)]
    return min(found)[2] if found else ""


def _has(parts: Sequence[str], words: Sequence[str]) -> bool:
    """Say whether the parts of a name have all the words in their order, the first at their beginning; a part may have
    a number of its own behind the word.
    """
    at = 0
    for word in words:
        while at < len(parts) and not (parts[at] == word or (
                word.isalpha() and len(word) > 1 and parts[at].startswith(word) and _FIGURES.fullmatch(
                    parts[at].removeprefix(word).removeprefix("v")))):
            at += 1
            if at == 1:
                return False
        at += 1
    return at <= len(parts)


def _is_engine(said: Sentence, text: str) -> bool:
    return joined(text) in {joined(engine.name) for engine in said.catalog.all("engines", Engine)}


def _of_family(said: Sentence) -> int:
    """Read the name of a model that the catalog does not know and that begins as the names of a family of its do; a
    family of models of images or clips alone is its newest.
    """
    if said.words[said.at].endswith(_LIKE):
        return 0
    if newest := _newest(said.words[said.at], said.catalog.names("diffusion")):
        said.put("model", newest)
        said.assumed.append(f"{said.words[said.at]} is a family of models: {newest} is taken")
        return 1
    alone = [name for name in said.catalog.names("models") if name.startswith(f"{said.words[said.at]}-")]
    silent = said.words[said.at] in SILENT
    if len(alone) == 1 and len(said.words[said.at]) > _SHORT and not noun_of(said.words[said.at]) and not silent:
        said.put("model", alone[0])  # grok
        return 1
    known = {letters(entry.name) for entry in said.catalog.all("models", Model)} - {""}
    if letters(said.words[said.at]) not in known or noun_of(said.words[said.at]) or silent:
        return 0
    taken = 1
    while said.at + taken < len(said.words) and any(map(str.isdigit, said.words[said.at + taken])) and not noun_of(
            next(iter(said.words[said.at + taken + 1:]), "")):
        taken += 1
    said.put("model", "-".join(said.words[said.at:said.at + taken]))
    return taken


def _newest(word: str, names: Sequence[str]) -> str:
    """Return of the names that are a word and a version the first of the newest version; none where there is none."""
    version = re.compile(rf"{re.escape(word)}-?(\d+(?:\.\d+)?)(?![\db])")
    versions = {name: float(found[1]) for name in names if len(word) > _SHORT and (found := version.match(name))}
    return min(versions, key=lambda name: (-versions[name], name), default="")


@lru_cache(maxsize=4096)
def letters(name: str) -> str:
    """Return what a name begins with up to its first sign or digit; none where these are few."""
    start = re.split(r"[^a-z]", canonical(name))[0]
    return start if len(start) > 2 else ""

"""Models in the words of a sentence: by name, by family, by the sizes of a mixture."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from planner.catalog.architecture import Model
from planner.catalog.engine import Engine
from planner.catalog.spelling import canonical, joined
from planner.cli.phrases import FOLLOW, SILENT, noun_of
from planner.errors import InputError

if TYPE_CHECKING:
    from planner.cli.read_words import Sentence

_SIZES = re.compile(r"(?P<all>\d+b)(?: (?:moe|mixture|mixture of experts|model))*(?: with| ,| and)* (?P<active>\d+b) "
                    r"(?:active|activated)(?: param(?:eter)?s)?", re.ASCII)


def mixture(said: Sentence) -> int:
    """Read a mixture by its sizes: 30b moe with 3b active."""
    text = " ".join(said.words[said.at:said.at + 9])
    match = _SIZES.match(text)
    if match is None:
        return 0
    ending = f"-{match['all']}-a{match['active']}"
    names = [name for name in said.catalog.names("models") if name.endswith(ending)]
    if not names:
        raise InputError(f"no model of the catalog has {match['all']} parameters, {match['active']} of them active: "
                         "name a mixture of experts, such as qwen3-30b-a3b")
    said.put("model", min(names, key=len))
    return len(match[0].split())


def model(said: Sentence) -> int:
    """Read the name of a model."""
    for many, text in said.phrase(said.at):
        if _is_engine(said, text):
            return 0
        last = said.words[said.at + many - 1]
        if text in SILENT or (many > 1 and last in SILENT) or (many > 1 and last in FOLLOW):
            continue
        if len(joined(text)) > 2 and (said.catalog.known_model(text) or said.catalog.known_diffusion(text)):
            said.put("model", text.replace(" ", "-"))
            return many
    return _begins(said) or _of_family(said)


def _begins(said: Sentence) -> int:
    """Read what begins the names of models, of which the last is the newest: mistral small, ltx video."""
    names = [*said.catalog.names("models"), *said.catalog.names("diffusion")]
    for many, text in said.phrase(said.at):
        begun = [name for name in names if name.startswith(f"{text.replace(' ', '-')}-")]
        if many > 1 and begun and text.split()[-1].isalpha():
            said.put("model", max(begun))
            return many
    return 0


def _is_engine(said: Sentence, text: str) -> bool:
    return joined(text) in {joined(engine.name) for engine in said.catalog.all("engines", Engine)}


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

"""Values that a sentence names: a method, a format, a provider, terms, a region, an engine or a stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.catalog.engine import Engine
from planner.catalog.regions import area_of
from planner.catalog.spelling import joined
from planner.catalog.stack import Stack
from planner.cli.drawn import frameworks
from planner.cli.phrases import PARAMETER, PHRASES, STOPS
from planner.scenario.flag_names import SWITCHES
from planner.scenario.words import SYNONYMS, method_named, named

if TYPE_CHECKING:
    from planner.cli.read_words import Sentence


def _is_region(said: Sentence, text: str) -> bool:
    """Say whether a provider has regions of this name, as whose beginning it may stand: us-east."""
    name = text.replace(" ", "-")
    return name.count("-") in (1, 2) and area_of(name) != "" and any(
        offer.region.startswith(name) for prices in said.catalog.price_lists for offer in prices.offers)


def valued(said: Sentence) -> int:
    """Read a method, a format, a provider, terms, an engine or a stack."""
    for many, text in said.phrase(said.at, 3):
        method = method_named(text)
        if method in SYNONYMS["workload.method"][0] and joined(text) not in ("infer", "reward", "preference") and (
                text != "full" or _is_of_training(said)):
            said.put("method", text.replace(" ", "-"))
            return many
        for flag, path in (("optimizer", "workload.optimizer"), ("quantization", "workload.quantization"),
                           ("provider", "sourcing.rent.providers"),
                           ("terms", "sourcing.rent.terms"), ("region", "sourcing.rent.regions")):
            if flag == "region" and _is_region(said, text):
                said.put(flag, text.replace(" ", "-"))
                return many
            pronoun = text == "us" and not {"in", "the", "region"}.intersection(said.words[max(0, said.at - 1):said.at])
            if (name := named(path, text)) in SYNONYMS[path][0] and not pronoun and text not in (
                    "block", "standard", "none"):
                said.put(flag, str(name))
                return many
        if (switch := SWITCHES.get(text.replace(" ", "-"))) is not None:
            flag, _, value = switch[2:].partition("=")
            said.put(flag, value)
            return many
        known = {"engine": [entry.name for entry in said.catalog.all("engines", Engine)],
                 "stack": [*(entry.name for entry in said.catalog.all("stacks", Stack)),
                           *frameworks(said.words, said.catalog)],
                 "provider": [entry.name for entry in said.catalog.price_lists]}
        if flag := next((flag for flag, names in known.items() if joined(text) in map(joined, names)), ""):
            said.put(flag, text.replace(" ", "-"))
            return many
    return 0


def _is_of_training(said: Sentence) -> bool:
    """Say whether what is full is a training, and no load, no context and no node."""
    behind = next(iter(said.words[said.at + 1:said.at + 2]), ",")
    return behind in STOPS or behind in PARAMETER or behind in ("weight", "weights", "ft", "run") or any(
        what in ("tune", "train") for what in PHRASES.get(behind, "").split())

"""Files whose blocks and keys are called as people call them: `slo: {ttft_p95: 1.5s}`, `dataset: {samples: 35000}`.

A block that nobody knows is a heading: its keys are read as those of a flag, as are keys that a block does not know.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from planner.catalog.recipes import UsualRequests
from planner.errors import InputError, UnknownName
from planner.scenario.accumulated import EACH, TIMES
from planner.scenario.flag_names import INSTEAD
from planner.scenario.flags import NAMES
from planner.scenario.kind import KEYS, kind_by_method
from planner.scenario.limits import Limits, ServingLimits
from planner.scenario.phrased import LATENCIES, Phrased, phrased
from planner.scenario.portfolio_supply import PortfolioLimits, PortfolioSourcing
from planner.scenario.said import in_their_places, own_name
from planner.scenario.words import SYNONYMS, WORKS, named, says_no_more

BLOCKS: Mapping[str, frozenset[str]] = {
    "workload": frozenset().union(*KEYS.values()) | {EACH, TIMES},
    "hardware": frozenset(("candidates",)), "sourcing": frozenset(PortfolioSourcing.model_fields),
    "limits": frozenset(Limits.model_fields) | set(ServingLimits.model_fields) | set(PortfolioLimits.model_fields)}
"""Blocks of a file, with the keys that they know."""
_MAPPED = frozenset(("own", "rent", "buy", "horizon", "input", "output", "arrivals", "day", "speculative", "quota"))
"""Keys whose values may be blocks of their own."""
_ITSELF = ("name", "id", "type", "kind", "value")
"""Keys below a heading that say what the heading is: model: {name: llama-3.1-8b}."""
_KINDS = ("kind", "type", "task")
METHODS = frozenset(SYNONYMS["workload.method"][0])
USUAL = ("the keys are those of the flags, such as model, method, tokens, samples, rate, users, input, output, ttft, "
         "tpot, deadline, budget, on, gpus, own, terms, region: planner help plan lists them")
"""Said of a key that is like none."""
_HARDWARE = ("gpus", "on", "samples", "dataset")


def read_headings(data: dict[Any, Any], own: Collection[str], usual: UsualRequests, *, known: Collection[str] = ()
                  ) -> dict[Any, Any]:
    """Return a mapping with what headings and blocks have under other names lifted out of them, under the planner's.

    own: keys of the mapping itself. known: names of values it may have, with dashes; all where none are given.

    Raises InputError for a key below a heading that nobody knows, and where one value is given twice.
    """
    data = {key: value for key, value in data.items() if key not in WORKS or not _kind_alone(data, str(value))}
    names = frozenset(known or (name.replace("_", "-") for name in NAMES))
    kept, found = dict[Any, Any](), dict[str, tuple[str, Any]]()
    if isinstance(places := data.get("hardware"), str | list):
        data = {**data, "hardware": {"candidates": places}}
    elif isinstance(places, dict) and isinstance(places.get("nodes"), list) and "candidates" not in places:
        data = {**data, "hardware": {"candidates" if key == "nodes" else key: each for key, each in places.items()}}
    for key, stated in data.items():
        said = str(key).replace("_", "-")
        value = _at_percentile(said, stated)
        if key in BLOCKS and isinstance(value, dict):
            kept[key] = {inner: each for inner, each in value.items() if inner in BLOCKS[key] or not _lift(
                found, f"{key}.{inner}", [str(inner)], each, names, data, usual)}
            if key == "workload" and "kind" not in value and (kind := _kind(kept[key], names)):
                kept[key] = {"kind" if inner == kind else inner: each for inner, each in kept[key].items()}
        elif isinstance(value, dict) and key not in own and said not in _MAPPED:
            _under(found, str(key), value, names, data, usual)
        elif key in own or said in names or not _lift(found, str(key), [str(key)], value, names, data, usual):
            kept[key] = value
    for name, (where, value) in found.items():
        if name in kept or name.replace("_", "-") in kept:
            raise InputError(f"{where} and {name} mean the same: give one of them")
        _refuse_twice(name, where, kept)
        kept[name] = value
    return _in_places(kept)


def _refuse_twice(name: str, where: str, kept: Mapping[Any, Any]) -> None:
    """Raise InputError where a value below a heading stands in its own block too."""
    block, _, inner = (path := NAMES.get(name, name)).partition(".")
    if isinstance(there := kept.get(block), dict) and inner in there:
        raise InputError(f"{where} and {path} mean the same: give one of them")


def _at_percentile(name: str, value: Any) -> Any:  # noqa: ANN401 - as a file has it
    """Return a latency that a block states, {max: 5s, percentile: 95} or {p95: 5s}, as text; any other as it is."""
    if not own_name(name, LATENCIES) or not isinstance(value, dict) or not 1 <= len(value) <= len(_BOUND):
        return value
    at = next((key for key in value if key in _AT), None)
    bound = next((key for key in value if key in _BOUND or (at is None and _PERCENTILE.fullmatch(str(key)))), None)
    if bound is None or set(value) - {at, bound}:
        return value
    said = str(bound if at is None else value[at]).lower().removesuffix("%")
    return str(value[bound]) + ("" if said in _BOUND else f" at {said if said[0] in 'pm' else f'p{said}'}")


_BOUND, _AT = ("max", "target", "limit", "value", "slo", "bound"), ("percentile", "at", "p", "quantile")
_PERCENTILE = re.compile(r"p\d{2}(?:\.\d)?|mean", re.ASCII)


def _kind(work: Mapping[Any, Any], names: frozenset[str]) -> str | None:
    return next((key for key in _KINDS if key in work and key not in names), None)




def _kind_alone(data: Mapping[Any, Any], said: str) -> bool:
    """Say whether a word is a kind of work (rlhf) whose method stands beside it (ppo), and so says nothing more."""
    beside = next((data[key] for key in data if own_name(str(key), ("method",)) and key not in WORKS), None)
    if beside is not None and says_no_more(said, beside):
        return True
    kind = named("workload.kind", said)
    return beside is not None and kind in KEYS and kind == (kind_by_method({"method": beside}) or "training")


def _under(found: dict[str, tuple[str, Any]], heading: str, block: Mapping[Any, Any], names: frozenset[str],
           beside: Mapping[Any, Any], usual: UsualRequests) -> None:
    """Lift the keys below a heading. Raises UnknownName for one that is no value's."""
    for inner, stated in block.items():
        where, value = f"{heading}.{inner}", _at_percentile(str(inner), stated)
        if isinstance(value, dict) and str(inner) not in _MAPPED:
            _under(found, str(inner), value, names, beside, usual)
            continue
        tries = [heading] if inner in _ITSELF else [f"{heading}-{inner}", str(inner)]
        if inner in _KINDS and named("workload.method", value) in METHODS:
            tries = ["method"]
        if not _lift(found, where, tries, value, names, {**beside, **block}, usual):
            dashed = str(inner).replace("_", "-")
            if dashed in INSTEAD:
                raise InputError(f"{where}: {INSTEAD[dashed]}")
            raise UnknownName("key", where, sorted(names), unlike=USUAL)


def _lift(found: dict[str, tuple[str, Any]], where: str, tries: Collection[str], value: Any, names: frozenset[str],  # noqa: ANN401
          beside: Mapping[Any, Any], usual: UsualRequests) -> bool:
    """Put a value under the planner's name for the first of the names tried that has one; say whether one has."""
    flat = {str(key).replace("_", "-"): str(each) for key, each in beside.items() if not isinstance(each, dict | list)}
    for name in tries:
        dashed = name.lower().replace("_", "-").replace(" ", "-")
        told: Phrased | None = None
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            told = phrased(dashed, str(value), flat, names, usual)
        own = told.name if told else own_name(dashed, names)
        if own is None:
            continue
        own = own.replace("-", "_")
        if own in found:
            raise InputError(f"{found[own][0]} and {where} mean the same: give one of them")
        listed = own == "model" and isinstance(value, list) and all(isinstance(each, str) for each in value)
        found[own] = (where, told.value if told else ", ".join(value) if listed else value)
        return True
    return False


def _in_places(data: dict[Any, Any]) -> dict[Any, Any]:
    """Return a mapping with hardware that is given where GPUs are counted, and a count where files are named, in place.
    """
    given = {NAMES[name]: data[name] for name in _HARDWARE if name in data}
    moved = in_their_places(given)
    if moved == given:
        return data
    back = {NAMES[name]: name for name in _HARDWARE}
    return {key: value for key, value in data.items() if key not in _HARDWARE} | {
        back[path]: value for path, value in moved.items()}

"""What is left where a sentence says what it does not want, by name: providers without AWS, GPUs without A100."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import get_args

from planner.catalog.load import Catalog
from planner.catalog.price import Term
from planner.catalog.stack import Method
from planner.errors import InputError
from planner.scenario.hardware_names import candidate_nodes
from planner.scenario.words import SYNONYMS, named

_FORMATS = ("bf16", "fp8")
"""Formats that are taken where another is not wanted: those of which nobody asks whether its answers are good."""
_SUPERVISED: tuple[Method, ...] = ("pretrain", "full", "lora", "qlora")
_ALONE = {"method": "full, lora or qlora", "engine": "vllm, sglang, tensorrt-llm or llama-cpp"}
"""Flags that take one value, with those that there are."""


def without(flags: dict[str, list[str]], excluded: Mapping[str, Sequence[str]], catalog: Catalog) -> list[str]:
    """Put what is left of each flag where something of it is not wanted, and return what that is, in words.

    Raises InputError where nothing is left, and where what is left is a choice that a sentence does not make.
    """
    told: list[str] = []
    vendors = flags.pop("vendor", [])
    wanted = set(vendors)
    if not excluded.keys().isdisjoint(("on", "vendor")) or (wanted and not flags.get("on") and not flags.get("own")):
        told += _hardware(flags, excluded, wanted, catalog)
    for flag, values in excluded.items():
        if flag in ("on", "vendor"):
            continue
        if flag == "unmodeled":
            told.append(f"{', '.join(dict.fromkeys(values))} is never planned for")
        elif flag in _LEFT:
            told += _LEFT[flag](flags, values, catalog)
        else:
            told += _named(flags, flag, values)
    return told


def _hardware(flags: dict[str, list[str]], excluded: Mapping[str, Sequence[str]], wanted: Collection[str],
              catalog: Catalog) -> list[str]:
    """Put GPUs without those that are not wanted: of those that are named, or of all that have an offer."""
    out = [_parts(name) for name in excluded.get("on", ())]
    barred = {catalog.node(node).gpu for node in candidate_nodes(excluded.get("on", ()), catalog)}
    barred |= {gpu for gpu in catalog.names("gpus") if any(parts <= _parts(gpu) for parts in out)}
    makers = set(excluded.get("vendor", ()))
    if flags.get("on"):
        rest = [name for name in flags["on"] if not {
            gpu for node in candidate_nodes([name], catalog) if _barred(gpu := catalog.node(node).gpu, barred, makers,
                                                                        catalog)}]
    elif flags.get("own") and not wanted:
        return []
    else:
        offered = sorted({catalog.node(offer.node).gpu for prices in catalog.price_lists for offer in prices.offers})
        rest = [gpu for gpu in offered if not _barred(gpu, barred, makers, catalog) and (
            not wanted or catalog.gpu(gpu).vendor in wanted)]
    if not rest:
        raise InputError(f"nothing is left without {', '.join((*excluded.get('on', ()), *makers))}: name hardware that "
                         "may be used")
    flags["on"] = rest
    names = ", ".join(dict.fromkeys((*excluded.get("on", ()), *makers)))
    return [f"without {names}: planned on the GPUs that --on names"] if names else [
        f"{', '.join(wanted)} alone: planned on the GPUs that --on names"]


def _parts(name: str) -> set[str]:
    """Return the words of a name of hardware, which one that says more has too: A100 is every A100."""
    return set(re.split(r"[\s-]+", name.lower().removesuffix("s")))


def _barred(gpu: str, barred: Collection[str], makers: Collection[str], catalog: Catalog) -> bool:
    return gpu in barred or catalog.gpu(gpu).vendor in makers


def _providers(flags: dict[str, list[str]], values: Sequence[str], catalog: Catalog) -> list[str]:
    return _rest(flags, "provider", [prices.name for prices in catalog.price_lists], [
        str(named("sourcing.rent.providers", value)) for value in values])


def _terms(flags: dict[str, list[str]], values: Sequence[str], catalog: Catalog) -> list[str]:
    every = get_args(Term)
    usual = ["on-demand"] if "on-demand" not in values else [term for term in every if term != "capacity-block"]
    return _rest(flags, "terms", usual, values)


def _regions(flags: dict[str, list[str]], values: Sequence[str], catalog: Catalog) -> list[str]:
    every = SYNONYMS["sourcing.rent.regions"][0]
    if other := [value for value in values if value not in every]:
        raise InputError(f"{other[0]!r} cannot be left out by its name: say in which regions it may run, such as "
                         f"{', '.join(every)} or us-east-1")
    return _rest(flags, "region", every, values)


def _formats(flags: dict[str, list[str]], values: Sequence[str], catalog: Catalog) -> list[str]:
    return _rest(flags, "quantization", _FORMATS, values)


def _stacks(flags: dict[str, list[str]], values: Sequence[str], catalog: Catalog) -> list[str]:
    method = next((each for each in _SUPERVISED if each == (flags.get("method") or ["pretrain"])[0]), None)
    if method is None:
        raise InputError(f"without {', '.join(values)}: --stack names the one that is meant instead")
    return _rest(flags, "stack", [stack.name for stack in catalog.usual_stacks(method, "full")], values)


_LEFT: Mapping[str, Callable[[dict[str, list[str]], Sequence[str], Catalog], list[str]]] = {
    "provider": _providers, "terms": _terms, "region": _regions, "quantization": _formats, "stack": _stacks}


def _rest(flags: dict[str, list[str]], flag: str, every: Sequence[str], out: Sequence[str]) -> list[str]:
    """Put what is left of the values that are named, or of every one."""
    rest = [value for value in flags.get(flag) or every if value not in out]
    if not rest:
        raise InputError(f"without {', '.join(out)} no {flag} is left: say which may be used")
    flags[flag] = rest
    return [f"without {', '.join(dict.fromkeys(out))}: --{flag} {','.join(rest)}"]


def _named(flags: dict[str, list[str]], flag: str, out: Sequence[str]) -> list[str]:
    """Leave values out that are named beside others. Raises InputError where none is, as one must be chosen."""
    rest = [value for value in flags.get(flag, ()) if value not in out]
    if flag == "method" and not rest and "lora" in out:
        rest = ["full"]  # QLoRA is one
    if flag == "model" or rest:
        flags.update({flag: rest} if rest else {})
        return [f"without {', '.join(out)}"]
    known = _ALONE.get(flag, "the one that is meant")
    raise InputError(f"without {', '.join(out)} there is a choice left: name it by --{flag}: {known}")

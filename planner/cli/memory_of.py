"""How much memory a model takes that is run, told of all GPUs together: its weights, and the cache of its sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from planner.catalog.load import Catalog
from planner.physics.serving.sequences import Cut, sequence_bytes
from planner.physics.serving.weights import weight_bytes
from planner.scenario.resolve import format_of
from planner.scenario.words import named
from planner.units import show_bytes
from planner.units.reading import parse_count

_CACHED = "bf16"
"""Format of a cache unless a question has another."""


def memory_of(flags: Mapping[str, Sequence[str]], catalog: Catalog) -> str:
    """Return what the model of a question takes, in words; empty where no language model runs in it."""
    model = catalog.known_model((flags.get("model") or [""])[0])
    if model is None or (flags.get("method") or ["inference"])[0] != "inference" or {"tokens", "samples"} & set(flags):
        return ""
    said = (flags.get("quantization") or [format_of(flags["model"][0]) or model.stored])[0]
    stored, cached = str(named("workload.quantization", said)), (flags.get("kv-cache") or [_CACHED])[0]
    formats = catalog.formats
    if stored not in formats.weights or cached not in formats.cached:
        return ""
    usual = catalog.recipes.requests
    whole = [parse_count(value[0], "tokens") for value in (flags.get("seq-len"), flags.get("max-model-len")) if value]
    length = whole[0] if whole else sum(parse_count((flags.get(side) or [str(each)])[0], side) for side, each in (
        ("input", usual.input), ("output", usual.output)))
    many = next((parse_count(flags[load][0], load) for load in ("users", "concurrency") if load in flags), 1)
    one = np.array([1])
    weights = float(weight_bytes(model, formats.weights[stored], one, one)[0])
    cache = float(sequence_bytes(model, length, formats.cache(cached), Cut(one, one))[0]) * many
    return (f"{model.name} takes {show_bytes(weights + cache)} on all GPUs together: {show_bytes(weights)} of weights "
            f"in {stored}, and {show_bytes(cache)} of {cached} cache for {many:,} sequence{'s' * (many > 1)} of "
            f"{length:,} tokens; what the engine itself takes on each GPU comes on top")

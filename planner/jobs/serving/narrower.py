"""Formats in which people run a model that takes too much in the one it is published in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from planner.scenario.serving import Serving

NARROWER = {"bf16": ("fp8", "int4"), "fp8": ("int4",), "int8": ("int4",)}
"""Those of fewer bits by the only one that is admitted, the widest first."""
CACHE = "fp8"
"""Format of a narrower cache."""


def in_fewer_bits(asked: Serving) -> Iterator[tuple[str, Serving]]:
    """Yield the narrower formats of a resolved service, the widest first, and the service in each."""
    for name in NARROWER.get(",".join(asked.quantization or ()), ()):
        yield name, asked.model_copy(update={"quantization": (name,)})


def narrower(asked: Serving) -> Mapping[str, Mapping[str, object]]:
    """Return what takes less room, weights and cache, by the option that asks for it, as keys of the service."""
    weights = {f"--quantization {name}": {"quantization": (name,)} for name, _ in in_fewer_bits(asked)}
    return {**weights, f"--kv-cache {CACHE}": {"kv_cache": CACHE}}

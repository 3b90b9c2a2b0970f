"""Which weight format a name means, of a model: names of the catalog, GGUF kinds, exl2 at so many bits."""

from __future__ import annotations

import re

from planner.catalog.architecture import Model
from planner.catalog.formats import Formats, WeightFormat

_EXL2 = re.compile(r"exl[23]-(\d+(?:\.\d+)?)bpw", re.IGNORECASE)
_ALL_IN_FOUR = re.compile(r"^qwen3-(?!next)")
"""Mixtures whose nvfp4 checkpoints quantize attention too (nvidia/Qwen3-235B-A22B-NVFP4)."""


def format_of(formats: Formats, name: str, model: Model) -> WeightFormat | None:
    """Return a format as checkpoints of a model have it, where that differs by architecture; else as by name."""
    if name == "nvfp4" and any(block.recurrence for block in model.blocks):
        return formats.weights["nvfp4-hybrid"]
    if name == "w4a16" == model.stored and model.mixes_experts:
        return formats.weights["int4-experts"]  # as Kimi K2 is published: routed experts alone, in groups of 32
    if name == "mxfp4" and not model.mixes_experts:
        return formats.weights["mxfp4-all"]
    if name == "nvfp4" and model.mixes_experts and not _ALL_IN_FOUR.search(model.name):
        return formats.weights["nvfp4-ffn"]
    return format_named(formats, name)


def format_named(formats: Formats, name: str) -> WeightFormat | None:
    """Return a format by its name: ours, a GGUF kind such as Q4_K_M, exl2 at so many bits; none if neither."""
    key = name.strip().lower()
    if key in formats.weights:
        return formats.weights[key]
    kind = formats.gguf.get(key.removeprefix("gguf").strip(" -_:"))
    if kind is not None:
        return WeightFormat(matrix=kind.matrix, embedding=kind.table, head=max(formats.gguf_head, kind.table))
    bits = _EXL2.fullmatch(key)
    return WeightFormat(matrix=float(bits[1]) / 8, head=formats.exl2_head) if bits else None

"""Values that people leave to the planner: the longest context, the largest batch, as many GPUs as it takes."""

from __future__ import annotations

from collections.abc import Mapping

import click

MOVES: Mapping[str, str] = {"max": "estimate", "why-not": "explain"}
"""Flags that one command alone has -> the command that a question with them is for."""
_MOST = ("max", "maximum", "longest", "largest", "biggest", "most", "highest")
_ANY = ("auto", "any", "best", "default", "automatic")
_LARGEST: Mapping[str, tuple[str, ...]] = {
    "seq_len": ("--max", "sequence"), "max_model_len": ("--method", "inference", "--max", "sequence"),
    **dict.fromkeys(("global_batch", "per_device_batch"), ("--max", "micro-batch")),
    **{name: ("--max", name) for name in ("batch", "resolution", "frames")},
    **{name: ("--objective", name) for name in ("users", "rate")}, "concurrency": ("--objective", "users"),
    "model": ("--objective", "largest")}
"""Option -> what asks for the most of it."""
_CHOSEN = ("gpus", "max_gpus", "max_nodes", "on", "provider", "region", "engine", "quantization", "kv_cache", "batch",
           "global_batch", "loss", "memory_fraction", "max_sequences", "max_batched_tokens", "prefill_delay",
           "per_device_batch")
"""Options that are searched, or have a default, where they are not given."""


def open_value(option: click.Option, text: str) -> list[str] | None:
    """Return the words that a value which leaves it open stands for, none of them where it says nothing; none of any
    other value.
    """
    name, said = str(option.name), text.strip().lower()
    if name in _LARGEST and (said in _MOST or (said == "auto" and name == "max_model_len")):
        return list(_LARGEST[name])
    return [] if name in _CHOSEN and said in _ANY else None

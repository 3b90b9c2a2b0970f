"""What of a layer is recomputed where a layout names it by module, as Megatron's --recompute-modules: core_attn+mlp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from planner.catalog.stack import RecomputeModule, Stack
from planner.errors import InputError

MODULES = tuple(name for name in get_args(RecomputeModule) if name != "every-second-matmul")
"""Parts of a layer that a stack may recompute by name."""


def names_modules(text: str) -> bool:
    """Say whether a value of `recompute` names modules."""
    return "+" in text or text in MODULES


def with_modules(stack: Stack, layout: Mapping[str, str]) -> tuple[Stack, Mapping[str, str]]:
    """Return the stack as it recomputes the modules that a layout names, and the layout as selective recompute.

    Raises InputError for what is no module, and for a stack that recomputes none by name.
    """
    text = layout.get("recompute", "")
    if not names_modules(text):
        return stack, layout
    said, named = f"--layout recompute={text}", tuple(dict.fromkeys(text.split("+")))
    unknown = [name for name in named if name not in MODULES]
    if unknown:
        raise InputError(f"{said}: {unknown[0]!r} is no module: expected {', '.join(MODULES)}, joined by +")
    if not {*stack.selective_recompute} & {*MODULES}:
        raise InputError(f"{said}: stack {stack.name} recomputes no modules by name")
    return stack.model_copy(update={"selective_recompute": named}), {**layout, "recompute": "selective"}

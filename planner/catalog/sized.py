"""A model that has a size and no name (70b, 300B): a dense decoder in the proportions of a published one."""

from __future__ import annotations

import re

from planner.catalog.architecture import Mlp, Model
from planner.catalog.attention import Attention
from planner.catalog.spelling import canonical

TEMPLATE = "llama-3-70b"
"""Whose vocabulary, groups of heads, and ratios of width, depth and feed-forward are taken."""
_SIZE = re.compile(r"(\d{1,5}(?:\.\d{1,3})?)-?([mbt])(?:illion)?(?:-(?:params?|parameters|model|dense))?")
_UNITS = {"m": 1e6, "b": 1e9, "t": 1e12}
_STEP, _NARROW, _SMALL = 1024, 256, 3072
"""Widths that are tried: multiples of the first, below `_SMALL` of the second."""
LEAST, MOST = 1e8, 1e13
"""Parameters of such a model."""


def size_of(name: str) -> float | None:
    """Return the parameters that a name is, where it is nothing but a size within bounds."""
    match = _SIZE.fullmatch(canonical(name))
    size = float(match.group(1)) * _UNITS[match.group(2)] if match else 0.0
    return size if LEAST <= size <= MOST else None


def sized(name: str, parameters: float, like: Model) -> Model:
    """Return a dense decoder of about so many parameters, wide and deep as `like` is."""
    block = like.blocks[0]
    attention, mlp = block.attention, block.mlp
    assert isinstance(attention, Attention)
    assert isinstance(mlp, Mlp)
    ratio, fan = like.hidden / block.count, mlp.ffn / like.hidden

    def layers_of(hidden: int) -> int:
        kv = 2 * hidden * attention.head_dim * min(attention.kv_heads, hidden // attention.head_dim)
        per_layer = 2 * hidden ** 2 + kv + 3 * fan * hidden ** 2
        return 2 * round((parameters - 2 * like.vocab * hidden) / per_layer / 2)

    widths = [*range(_NARROW, _SMALL, _NARROW), *range(_SMALL, 2 ** 17, _STEP)]
    hidden = min((width for width in widths if layers_of(width) > 0),
                 key=lambda width: abs(width / layers_of(width) - ratio))
    heads = hidden // attention.head_dim
    shape = block.model_copy(update={
        "count": layers_of(hidden), "mlp": mlp.model_copy(update={"ffn": int(fan * hidden)}),
        "attention": attention.model_copy(update={"heads": heads, "kv_heads": min(attention.kv_heads, heads)})})
    return like.model_copy(update={
        "name": canonical(name), "aliases": (), "hf_id": None, "hidden": hidden, "blocks": (shape,),
        "parameters": None, "facts": {}, "kind": "assumed",
        "source": f"a size alone: a dense decoder in the proportions of {like.name}"})

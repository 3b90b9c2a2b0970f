"""Vision encoders with their projectors from Hugging Face configs: shape, parameters, and how images become tokens.

Bounds of an image are the processor's, of preprocessor_config.json beside the config where it is there, else the
defaults of the family. Source: modeling and processing code of Hugging Face Transformers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from planner.catalog.encoder import Encoder, Tower
from planner.catalog.importers.hf_reading import read_object, read_part

Config = Mapping[str, Any]
COLORS, FRAMES = 3, 2
ASPECTS = range(8)
"""Ways to lay out at most four tiles, where a config lists none."""


def _merger(inner: int, width: int, hidden: int) -> int:
    """Return the parameters of two biased products from merged patches of `inner` to the language model."""
    return inner * width + width + width * hidden + hidden


def _bounds(bounds: Config, least: int, most: int) -> dict[str, int]:
    size = bounds.get("size") if isinstance(bounds.get("size"), dict) else {}
    return {"least": bounds.get("min_pixels") or size.get("shortest_edge") or least,  # type: ignore[union-attr]
            "most": bounds.get("max_pixels") or size.get("longest_edge") or most}  # type: ignore[union-attr]


def _merged(c: Config, bounds: Config, least: int, most: int) -> dict[str, Any]:
    return {"kind": "merged", "patch": c["patch_size"], "merge": c.get("spatial_merge_size", 2),
            "frames": c.get("temporal_patch_size", FRAMES), **_bounds(bounds, least, most)}


def qwen2_vl(c: Config, hidden: int, bounds: Config, _: Config) -> dict[str, Any]:
    """Qwen2-VL: layer norms, a plain feed-forward, every patch sees the whole image."""
    width, patch = c["embed_dim"], COLORS * FRAMES * c["patch_size"] ** 2
    inner = width * c.get("spatial_merge_size", 2) ** 2
    return {"layers": c["depth"], "hidden": width, "heads": c["num_heads"], "ffn": width * c.get("mlp_ratio", 4),
            "embedding": patch * width, "projector": 2 * width + _merger(inner, inner, hidden),
            "reads": _merged(c, bounds, 56**2, 28**2 * 1280)}


def qwen2_5_vl(c: Config, hidden: int, bounds: Config, _: Config) -> dict[str, Any]:
    """Qwen2.5-VL: gated, most layers within windows."""
    width, patch = c["hidden_size"], COLORS * FRAMES * c["patch_size"] ** 2
    inner = width * c.get("spatial_merge_size", 2) ** 2
    return {"layers": c["depth"], "hidden": width, "heads": c["num_heads"], "ffn": c["intermediate_size"],
            "gated": True, "norm": "rmsnorm", "windowed": c["depth"] - len(c["fullatt_block_indexes"]),
            "window": (c["window_size"] // c["patch_size"]) ** 2, "embedding": patch * width,
            "projector": width + _merger(inner, inner, hidden), "reads": _merged(c, bounds, 56**2, 28**2 * 1280)}


def qwen3_vl(c: Config, hidden: int, bounds: Config, _: Config) -> dict[str, Any]:
    """Qwen3-VL: learned positions, and a merger for each layer whose patches the language model gets too."""
    width, patch = c["hidden_size"], COLORS * FRAMES * c["patch_size"] ** 2
    inner = width * c.get("spatial_merge_size", 2) ** 2
    one, deep = _merger(inner, inner, hidden), len(c["deepstack_visual_indexes"])
    return {"layers": c["depth"], "hidden": width, "heads": c["num_heads"], "ffn": c["intermediate_size"],
            "embedding": (patch + 1 + c["num_position_embeddings"]) * width,
            "projector": 2 * width + one + deep * (2 * inner + one), "reads": _merged(c, bounds, 256**2, 4096**2)}


def llava(c: Config, hidden: int, bounds: Config, outer: Config) -> dict[str, Any]:
    """LLaVA-1.5: CLIP at one size, two products to the language model."""
    width, side = c["hidden_size"], c["image_size"] // c["patch_size"]
    embedding = (COLORS * c["patch_size"] ** 2 + 1 + side**2 + 1 + 4) * width
    return {"layers": c["num_hidden_layers"], "hidden": width, "heads": c["num_attention_heads"],
            "ffn": c["intermediate_size"], "embedding": embedding, "projector": _merger(width, hidden, hidden),
            "reads": {"kind": "fixed", "tokens": side**2, "positions": side**2 + 1}}


def gemma3(c: Config, hidden: int, bounds: Config, outer: Config) -> dict[str, Any]:
    """Gemma 3: SigLIP at one size, pooled to so many tokens, a product and a norm."""
    width, side = c["hidden_size"], c["image_size"] // c["patch_size"]
    return {"layers": c["num_hidden_layers"], "hidden": width, "heads": c["num_attention_heads"],
            "ffn": c["intermediate_size"], "embedding": (COLORS * c["patch_size"] ** 2 + 1 + side**2 + 2) * width,
            "projector": width * hidden + width,
            "reads": {"kind": "fixed", "tokens": outer.get("mm_tokens_per_image", 256), "positions": side**2}}


def llama4(c: Config, hidden: int, bounds: Config, _: Config) -> dict[str, Any]:
    """Llama 4: tiles with a thumbnail, of which four patches become one token."""
    width, side = c["hidden_size"], c["image_size"] // c["patch_size"]
    inner, out = c["intermediate_size"], c["vision_output_dim"]
    embedding = (COLORS * c["patch_size"] ** 2 + 1 + side**2 + 1 + 4) * width
    return {"layers": c["num_hidden_layers"], "hidden": width, "heads": c["num_attention_heads"], "ffn": inner,
            "embedding": embedding, "projector": inner * c["projector_input_dim"] + out * (out + hidden),
            "reads": {"kind": "tiled", "side": c["image_size"], "positions": side**2 + 1, "choice": "canvas",
                      "tokens": round(side**2 * c.get("pixel_shuffle_ratio", 0.5) ** 2),
                      "tiles": bounds.get("max_patches", 16)}}


def mistral3(c: Config, hidden: int, bounds: Config, outer: Config) -> dict[str, Any]:
    """Mistral Small 3.1: Pixtral's encoder, patches merged, an end of each row."""
    width, merge = c["hidden_size"], outer.get("spatial_merge_size", 2)
    return {"layers": c["num_hidden_layers"], "hidden": width, "heads": c["num_attention_heads"],
            "ffn": c["intermediate_size"], "gated": True, "norm": "rmsnorm", "bias": "none", "ffn_bias": False,
            "embedding": (COLORS * c["patch_size"] ** 2 + 1) * width,
            "projector": width + merge**2 * width**2 + width * hidden + hidden**2,
            "reads": {"kind": "merged", "patch": c["patch_size"], "merge": merge, "longest": c["image_size"],
                      "row_ends": True}}


def mllama(c: Config, hidden: int, bounds: Config, _: Config) -> dict[str, Any]:
    """Llama 3.2 Vision: layers of tiles that see each other, then gated ones, of which several outputs are joined."""
    width, tiles = c["hidden_size"], c.get("max_num_tiles", 4)
    patches, layers = (c["image_size"] // c["patch_size"]) ** 2 + 1, c["num_hidden_layers"] + c["num_global_layers"]
    # a table of tiles and one of patches in tiles for each aspect, and for none; gates
    aspects = len(c.get("supported_aspect_ratios") or ASPECTS) + 1
    tables = aspects * tiles * (patches + 2) + patches + 1
    embedding = (COLORS * c["patch_size"] ** 2 + tables + 4) * width + 3 + 2 * c["num_global_layers"]
    joined = c.get("vision_output_dim") or width * (len(c["intermediate_layers_indices"]) + 1)
    return {"layers": layers, "hidden": width, "heads": c.get("attention_heads") or c["num_attention_heads"],
            "ffn": c["intermediate_size"], "bias": "none", "embedding": embedding,
            "projector": joined * hidden + hidden,
            "reads": {"kind": "tiled", "side": c["image_size"], "tokens": patches, "positions": -(-patches // 8) * 8,
                      "tiles": tiles, "choice": "canvas", "joined": True}}


TOWERS: Mapping[str, Callable[[Config, int, Config, Config], dict[str, Any]]] = {
    "qwen2_vl": qwen2_vl, "qwen2_5_vl": qwen2_5_vl, "qwen3_vl": qwen3_vl, "qwen3_vl_moe": qwen3_vl, "llava": llava,
    "gemma3": gemma3, "llama4": llama4, "mistral3": mistral3,
    "mllama": mllama}
"""Encoders by the model_type of the whole config."""
WHOLE = frozenset({"llama4", "mistral3"})
"""Those that engines hold whole on every rank of tensor parallelism."""


def tower(kind: str, outer: Config, hidden: int, path: Path) -> dict[str, Any]:
    """Return the tower of a config of one of TOWERS. Raises KeyError for a key that it lacks, InputError or ValueError.

    outer: the whole config as it stands; path: where it is, perhaps beside the settings of the processor.
    """
    beside = path.parent / "preprocessor_config.json"
    bounds = read_object(beside) if beside.exists() else {}
    shape = TOWERS[kind](read_part(outer, "vision_config", path), hidden, bounds, outer)
    return whole_tower(shape, **({"whole": True} if kind in WHOLE else {}))


def whole_tower(shape: dict[str, Any], **said: bool) -> dict[str, Any]:
    """Return the tower of an encoder of that shape. Raises ValueError."""
    encoder = Encoder.model_validate(shape)
    return Tower.model_validate({"parameters": encoder.parameters, "encoder": encoder, **said}).model_dump(
        exclude_defaults=True)


def usual_towers(outer: Config) -> dict[str, dict[str, int]]:
    """Return the towers of a model whose encoders are not modeled by their parameters alone, as blocks of a usual
    transformer have them; empty of what does not say its shape.
    """
    counted = {"tower": _usual(outer.get("vision_config")), "ear": _usual(outer.get("audio_config"))}
    return {name: {"parameters": count} for name, count in counted.items() if count}


def _usual(c: object) -> int:
    if not isinstance(c, dict):
        return 0
    width, layers, ffn = (next((c[key] for key in keys if isinstance(c.get(key), int | float)), 0) for keys in (
        ("embed_dim", "hidden_size", "d_model", "width"), ("num_hidden_layers", "depth", "encoder_layers", "layers"),
        ("intermediate_size", "encoder_ffn_dim", "mlp_dim")))
    inner = ffn or c.get("mlp_ratio", 4) * width
    blocks = layers + (c.get("num_global_layers") or 0)
    patch = c.get("patch_size") or 1
    sides = patch if isinstance(patch, list) else (patch, patch)
    return int(blocks * (4 * width**2 + 2 * width * inner) + COLORS * math.prod(sides) * width)

"""A diffusion model from its diffusers folder: model_index.json, and the config.json of each part.

Blocks are those of the catalog's model of the same class, at the widths and counts of the config; what a block keeps
and how the model is run are as of that model.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from planner.catalog.diffusion import DenoiserBlock, Diffusion, TextEncoder
from planner.catalog.importers.hf_reading import read_object
from planner.catalog.load import Catalog
from planner.errors import InputError

INDEX = "model_index.json"
DENOISERS = ("transformer", "unet")
WEIGHTS = "diffusion_pytorch_model.safetensors.index.json"


@dataclass(frozen=True, slots=True)
class Denoisers:
    """A class of denoisers: the catalog's model that is like it, and what its config calls counts and widths."""

    like: str
    counts: tuple[str | None, ...]
    """Of each of the blocks; none where the config does not count them."""
    width: str = "num_attention_heads*attention_head_dim"
    """Keys whose product is the width."""
    mlp: str | None = None
    """The key of the feed-forward's width, where it is no fixed share of the width."""


FLUX = ("num_layers", "num_single_layers")
FAMILIES = {
    "FluxTransformer2DModel": Denoisers("flux.1-dev", FLUX), "ChromaTransformer2DModel": Denoisers("chroma", FLUX),
    "Flux2Transformer2DModel": Denoisers("flux.2-dev", FLUX),
    "LongCatImageTransformer2DModel": Denoisers("longcat-image", FLUX),
    "SD3Transformer2DModel": Denoisers("sd3-medium", ("num_layers",)),
    "QwenImageTransformer2DModel": Denoisers("qwen-image", ("num_layers",)),
    "AuraFlowTransformer2DModel": Denoisers("auraflow", ("num_mmdit_layers", "num_single_dit_layers")),
    "ZImageTransformer2DModel": Denoisers("z-image", ("n_refiner_layers", "n_refiner_layers", "n_layers"), "dim"),
    "Lumina2Transformer2DModel": Denoisers(
        "lumina2", ("num_refiner_layers", "num_refiner_layers", "num_layers"), "hidden_size"),
    "SanaTransformer2DModel": Denoisers("sana-1.6b", ("num_layers",)),
    "PixArtTransformer2DModel": Denoisers("pixart-sigma", ("num_layers",)),
    "CosmosTransformer3DModel": Denoisers("cosmos-predict2-2b", ("num_layers",)),
    "Krea2Transformer2DModel": Denoisers("krea-2", ("num_layers",)),
    "ErnieImageTransformer2DModel": Denoisers("ernie-image", ("num_layers",), "hidden_size"),
    "Ideogram4Transformer2DModel": Denoisers("ideogram-4", ("num_layers",)),
    "HiDreamImageTransformer2DModel": Denoisers(
        "hidream-i1-full", ("num_layers", "num_layers", "num_layers", "num_single_layers")),
    "WanTransformer3DModel": Denoisers("wan2.1-14b", ("num_layers",), mlp="ffn_dim"),
    "HunyuanVideoTransformer3DModel": Denoisers("hunyuan-video", FLUX),
    "HunyuanVideo15Transformer3DModel": Denoisers("hunyuan-video-1.5", ("num_layers",)),
    "LTXVideoTransformer3DModel": Denoisers("ltx-video-0.9.5", ("num_layers",)),
    "CogVideoXTransformer3DModel": Denoisers("cogvideox-5b", ("num_layers",)),
    "MochiTransformer3DModel": Denoisers("mochi-1", ("num_layers", "num_layers")),
    "SanaVideoTransformer3DModel": Denoisers("sana-video-2b", ("num_layers",)),
    "Kandinsky5Transformer3DModel": Denoisers(
        "kandinsky5-t2v-lite", ("num_text_blocks", "num_visual_blocks"), "model_dim", "ff_dim"),
}
"""Class of a denoiser in diffusers -> how its config is read."""
UNETS = {(768, 4, "4x320"): "sd-1.5", (1024, 4, "4x320"): "sd-2.1", (2048, 4, "3x320"): "sdxl",
         (2048, 4, "3x320+4096"): "kolors"}
"""Width of the text, channels, stages with the narrowest (and of text that is projected) -> the catalog's UNet."""
CODERS = {"AutoencoderKLWan": "wan2.1-14b", "AutoencoderKLQwenImage": "qwen-image", "AutoencoderDC": "sana-1.6b",
          "AutoencoderKLFlux2": "flux.2-dev", "AutoencoderKLHunyuanVideo": "hunyuan-video",
          "AutoencoderKLHunyuanVideo15": "hunyuan-video-1.5", "AutoencoderKLLTXVideo": "ltx-video-0.9.5",
          "AutoencoderKLCogVideoX": "cogvideox-5b", "AutoencoderKLMochi": "mochi-1"}
"""Class of an autoencoder of another form -> the catalog's model that has it."""
WIDE_LATENTS = 48
"""Channels of Wan 2.2's own autoencoder."""


def is_diffusers(path: Path) -> bool:
    """Say whether a path is a diffusers folder, or the model_index.json of one."""
    return path.name == INDEX or (path.is_dir() and (path / INDEX).exists())


def import_diffusers(path: Path, as_of: str, catalog: Catalog, count: Callable[[Diffusion], int],
                     name: str | None = None) -> Diffusion:
    """Return the model that a diffusers folder describes. Raises InputError with file and key.

    as_of: the date to record, year-month-day; count: the weights of a model's blocks; name: what to call it, instead
    of what its folder is called.
    """
    folder = path if path.is_dir() else path.parent
    index = read_object(folder / INDEX)
    part = next((part for part in DENOISERS if isinstance(index.get(part), list) and index[part][-1]), None)
    if part is None:
        raise InputError(f"expected a part named {' or '.join(DENOISERS)}: it is no diffusion model",
                         file=str(folder / INDEX))
    at = folder / part / "config.json"
    config = read_object(at)
    kind = str(config.get("_class_name") or index[part][-1])
    try:
        like = catalog.diffusion(_unet(config) if kind == "UNet2DConditionModel" else _family(kind).like)
        blocks = like.denoiser.blocks if kind == "UNet2DConditionModel" else _blocks(config, _family(kind), like)
        more = sum(block.count for block in blocks) / sum(block.count for block in like.denoiser.blocks)
        denoiser = like.denoiser.model_copy(update={
            "blocks": blocks, "launches": like.denoiser.launches and round(like.denoiser.launches * more)})
        own = count(like.model_copy(update={"denoiser": denoiser}))
        counted = _stored(folder / part / WEIGHTS) or round(like.denoiser.parameters * own / count(like))
        coder, known = _coder(folder, like, catalog)
        clips = like.media == "video" and coder.frames > 1
        same = {"source": f"as of {like.name}", "as_of": as_of, "kind": "assumed"}
        called = str(index.get("_name_or_path") or name or folder.resolve().name)
        return Diffusion.model_validate({
            **like.model_dump(exclude={"facts", "note", "aliases"}),
            "name": re.sub(r"[^a-z0-9.]+", "-", (name or called.rsplit("/", maxsplit=1)[-1]).lower()).strip("-.")
            or "imported",
            "hf_id": called, "source": f"{INDEX} of Hugging Face and its parts", "as_of": as_of, "kind": "quoted",
            "media": "video" if clips else "image", "frames": like.frames if clips else 1,
            "denoiser": {**denoiser.model_dump(), "parameters": counted},
            "denoisers": 2 if isinstance(index.get("transformer_2"), list) and index["transformer_2"][-1] else 1,
            "autoencoder": coder.model_dump(),
            "text_encoders": [each.model_dump() for each in _encoders(folder, index, like)],
            "resolution": _resolution(config, like, coder.compression),
            "facts": {"denoiser.blocks.kept": same, "sampling": same, "text_encoders": same,
                      "autoencoder": {**same, "source": f"as of {known}"}}})
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            said = f"{'.'.join(str(each) for each in first['loc'])}: {first['msg']}"
        else:
            said = f"expected {error.args[0]}" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{kind}: {said}", file=str(at)) from None


def _family(kind: str) -> Denoisers:
    if kind not in FAMILIES:
        raise ValueError(f"not supported; known are UNet2DConditionModel, {', '.join(sorted(FAMILIES))}")
    return FAMILIES[kind]


def _unet(config: Mapping[str, Any]) -> str:
    """Return the catalog's UNet whose shape a config has. Raises ValueError for another."""
    widths = config["block_out_channels"]
    text = config.get("encoder_hid_dim")
    shape = (config["cross_attention_dim"], config["in_channels"],
             f"{len(widths)}x{widths[0]}" + (f"+{text}" if text else ""))
    if shape not in UNETS:
        raise ValueError(f"not supported: a UNet of {len(widths)} stages from {widths[0]} channels with text of width "
                         f"{config['cross_attention_dim']}; those of {', '.join(UNETS.values())} are")
    return UNETS[shape]


def _blocks(config: Mapping[str, Any], family: Denoisers, like: Diffusion) -> tuple[DenoiserBlock, ...]:
    """Return the blocks of a config, those of the model that is like it at other widths and counts."""
    width = math.prod(_whole(config, key) for key in family.width.split("*"))
    largest = max(block.width for block in like.denoiser.blocks)
    made = []
    for block, key in zip(like.denoiser.blocks, family.counts, strict=True):
        ratio = width / largest
        sizes = {name: round(value * ratio) for name in ("width", "inner", "kv", "mlp", "shared", "cross")
                 if (value := getattr(block, name))}
        if block.cross and block.cross != block.width:
            sizes["cross"] = block.cross
        if family.mlp and block.mlp:
            sizes["mlp"] = _whole(config, family.mlp)
        kept = {name: value * ratio for name, value in block.kept.model_dump().items()}
        made.append(DenoiserBlock.model_validate(
            {**block.model_dump(), **sizes, "kept": kept, "count": _whole(config, key) if key else block.count}))
    dual = config.get("dual_attention_layers") or ()
    if dual:
        made.append(DenoiserBlock.model_validate({
            "count": len(dual), "width": width, "reads": "image", "inner": width, "modulation": 3,
            # queries, keys, values and outputs, the norms about them
            "kept": {"adapters": 14 * width, "weights": 18 * width}}))
    return tuple(block for block in made if block.count)


def _whole(config: Mapping[str, Any], key: str) -> int:
    if not isinstance(config[key], int):
        raise ValueError(f"{key}: expected a whole number, got {str(config[key])[:40]!r}")
    return int(config[key])


def _stored(path: Path) -> int | None:
    """Return the parameters that an index of weights in 16 bits states; none where there is none."""
    size = (read_object(path).get("metadata") or {}).get("total_size") if path.exists() else None
    return int(size) // 2 if isinstance(size, int) else None


def _coder(folder: Path, like: Diffusion, catalog: Catalog) -> tuple[Any, str]:
    """Return the autoencoder of a folder, and the catalog's model whose it is."""
    path = next((folder / part / "config.json" for part in ("vae", "vqgan") if (folder / part).is_dir()), None)
    config = read_object(path) if path is not None and path.exists() else {}
    kind = config.get("_class_name")
    if kind == "AutoencoderKLWan" and config.get("z_dim") == WIDE_LATENTS:
        known = "wan2.2-5b"
    elif kind == "AutoencoderKL":
        known = "sdxl" if config.get("latent_channels") == catalog.diffusion("sdxl").autoencoder.channels else like.name
    else:
        known = CODERS.get(str(kind), like.name)
    coder = catalog.diffusion(known).autoencoder
    if kind == "AutoencoderKL":
        coder = coder.model_copy(update={"wide": coder.wide and bool(config.get("force_upcast", True)),
                                         "compression": 2 ** (len(config["block_out_channels"]) - 1)})
    return coder, known


def _encoders(folder: Path, index: Mapping[str, Any], like: Diffusion) -> list[TextEncoder]:
    """Return the text encoders of a folder: counted, or as of the model that is like it where they are not known."""
    parts = sorted(key for key, value in index.items()
                   if key.startswith("text_encoder") and isinstance(value, list) and value[-1])
    known = dict(zip(parts, like.text_encoders, strict=False))
    made = []
    for part in parts:
        path = folder / part / "config.json"
        config = read_object(path) if path.exists() else {}
        counted = _t5(config) if "d_ff" in config else _clip(config) if "projection_dim" in config else None
        if counted is None and part in known:
            made.append(known[part])
        elif counted is not None:
            made.append(TextEncoder(name=f"{config.get('model_type', part)}-{part}", parameters=counted))
        else:
            raise ValueError(f"{part}: {index[part][-1]} is not counted, and {like.name} has none in its place")
    return made


def _t5(config: Mapping[str, Any]) -> int:
    """Return the parameters of a T5 encoder."""
    width, inner = config["d_model"], config["num_heads"] * config["d_kv"]
    gated = "gated" in str(config.get("feed_forward_proj"))
    return int(config["vocab_size"] * width
               + config["num_layers"] * (4 * width * inner + (3 if gated else 2) * width * config["d_ff"] + 2 * width))


def _clip(config: Mapping[str, Any]) -> int:
    """Return the parameters of a CLIP text encoder."""
    width = config["hidden_size"]
    return int((config["vocab_size"] + config["max_position_embeddings"]) * width + config["num_hidden_layers"] * (
        4 * width**2 + 2 * width * config["intermediate_size"] + 9 * width + config["intermediate_size"]))


def _resolution(config: Mapping[str, Any], like: Diffusion, compression: int) -> tuple[int, int]:
    """Return what a model was made for, where its config says so by a side of the latent image."""
    side = config.get("sample_size")
    return (side * compression,) * 2 if isinstance(side, int) and like.media == "image" else like.resolution

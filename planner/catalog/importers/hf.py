"""A model from its Hugging Face config.json: the shape alone, exact to the parameter, or refused by name."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from planner.catalog.architecture import Model
from planner.catalog.importers.hf_details import details_of
from planner.catalog.importers.hf_families import FAMILIES, FUSED, REFUSED, unknown
from planner.catalog.importers.hf_reading import read_config, read_object
from planner.catalog.importers.hf_towers import TOWERS, tower, usual_towers, whole_tower
from planner.errors import InputError
from planner.text_io import real
from planner.yaml_io import dump, parse, validate

EIGHT, FOUR = 8, 4
MOST_NAME = 100
INDEX = "model.safetensors.index.json"
SEQUENCE_LENGTH, GLOBAL_BATCH = 8192, 1024
"""Training set-up assumed of a model whose config states none; no longer than its positions."""
SEES = frozenset({"vision_config", "visual", "mm_vision_tower", "audio_config"})
"""Keys of a config that has more than a language model."""
WITH_IMAGES = frozenset({"gemma3", "gemma4", "llama4", "mistral3", "kimi_k25", "minimax_m3_vl", "qwen3_5",
                         "qwen3_5_moe", "gemma3n"})
"""Language models that can read images too; their text part is what the entry is of."""


def stored(config: Mapping[str, Any]) -> tuple[str, str]:
    """Return the format of the weights as published, and a note where it is assumed to be bf16 for want of a model."""
    given = config.get("quantization_config")
    if not isinstance(given, dict):
        return "bf16", ""
    method = str(given.get("quant_method", "")).lower()
    words = " ".join([method, str(given.get("format", "")), str(given.get("quant_algo", ""))]).lower()
    if config.get("expert_dtype") == "fp4":
        return "mxfp4", "experts are published in mxfp4, the rest in fp8"
    named = next((name for name in ("mxfp4", "nvfp4", "fp8") if name in words), None)
    if named:
        return named, ""
    for weights in _weights(given):
        stored_as = _format(weights.get("num_bits"), str(weights.get("type", "int")))
        if stored_as:
            return stored_as, ""
    return "bf16", f"published in {method or 'a format'} that is not modeled: bf16 assumed"


def _weights(given: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if given.get("quant_method") in ("awq", "gptq", "auto-round"):
        yield {"num_bits": FOUR if given.get("bits") == FOUR or given.get("w_bit") == FOUR else None}
    groups = given.get("config_groups")
    for group in groups.values() if isinstance(groups, dict) else ():
        if isinstance(group, dict) and isinstance(group.get("weights"), dict):
            yield group["weights"]


def _format(bits: object, kind: str) -> str | None:
    if bits == EIGHT:
        return "fp8" if kind == "float" else "int8"
    return "w4a16" if bits == FOUR and kind == "int" else "nvfp4" if bits == FOUR else None


def import_config(path: Path, as_of: str, text_only: bool = False, name: str | None = None) -> Model:
    """Return the model that a config.json describes. Raises InputError with file and key.

    as_of: the date to record, year-month-day; text_only: the language model of one that is made to see or to hear.
    name: what to call it, instead of what the config, the file or its folder are called.
    """
    config = read_config(path)
    beside = path.parent / "hf_quant_config.json"
    if "quantization_config" not in config and beside.exists():
        config["quantization_config"] = read_object(beside).get("quantization")
    own = config.get("ssm_cfg")
    # the authors' own checkpoints of Mamba-2 name it nowhere else
    kind = config.get("model_type") or ("mamba2" if isinstance(own, dict) and own.get("layer") == "Mamba2" else None)
    if not isinstance(kind, str):
        raise InputError("expected model_type, which names the architecture", file=str(path))
    outer = read_object(path)
    named = str(outer.get("model_type", kind))
    sees = next((key for key in sorted(SEES) if config.get(key)), None)
    tall = not text_only and named in TOWERS and isinstance(outer.get("vision_config"), dict)
    try:
        family = kind if kind in FAMILIES or kind in REFUSED else _by_class(config)
        shape, assumption = (FAMILIES[family](config), "") if family in FAMILIES else unknown(config)
        assumption = shape.pop("note", assumption)
        entry = {"hidden": config.get("hidden_size"), "vocab": config.get("vocab_size"), "norm": "rmsnorm",
                 "fused": FUSED.get(family, ()), "details": details_of(config) or None} | shape
        if tall:
            entry["tower"] = tower(named, outer, shape.get("hidden") or config["hidden_size"], path)
            sees = None
        elif sees and not text_only and named not in WITH_IMAGES:
            entry |= usual_towers(config)
        heard = shape.get("ear")
        if isinstance(heard, dict) and "encoder" in heard:
            entry["ear"] = whole_tower(heard["encoder"])
        model = Model.model_validate(entry | _head(config, path, as_of, assumption, sees, name))
        # what is written is what a catalog reads
        return validate(parse(dump(model.model_dump(mode="json", exclude_defaults=True)), str(path)), Model)
    except KeyError as error:
        raise InputError(f"model_type {kind}: expected {error.args[0]}", file=str(path)) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        given = f", got {str(first['input'])[:40]}" if isinstance(first["input"], int | float | str) else ""
        raise InputError(f"model_type {kind}: {where}: {first['msg']}{given}", file=str(path)) from None
    except (TypeError, ArithmeticError, AttributeError, ValueError) as error:
        raise InputError(f"not supported: model_type {kind}: {error}", file=str(path)) from None


def _by_class(config: Mapping[str, Any]) -> str:
    """Return the model_type whose class the config names (DeepseekV4ForCausalLM); empty where none does."""
    classes = {str(name).removesuffix("ForCausalLM").lower() for name in config.get("architectures") or ()}
    return next((known for known in FAMILIES if known.replace("_", "") in classes), "")


def _head(config: Mapping[str, Any], path: Path, as_of: str, assumption: str, sees: str | None,
          name: str | None) -> dict[str, Any]:
    kept, doubt = stored(config)
    notes = [assumption, f"text part alone: {sees} is not modeled" if sees else "", doubt]
    note = "; ".join(filter(None, notes))
    named = name or config.get("_name_or_path") or _called(path)
    context = config.get("max_position_embeddings") or config.get("n_positions") or config.get("max_target_positions")
    assumed = {"source": "not in the config; change it to yours", "as_of": as_of, "kind": "assumed"}
    hf_id = named if isinstance(named, str) and re.fullmatch(r"[\w.-]+/[\w.-]+", named) else None
    return {
        "name": re.sub(r"[^a-z0-9.]+", "-", str(named).rsplit("/", maxsplit=1)[-1].lower()).strip("-.")[:MOST_NAME]
        .strip("-.") or "imported",
        "hf_id": hf_id, "source": f"{path.name} of Hugging Face", "as_of": as_of, "kind": "quoted",
        "stored": kept, **({"note": note} if note else {}),
        "sequence_length": min(int(context or SEQUENCE_LENGTH), SEQUENCE_LENGTH), "global_batch": GLOBAL_BATCH,
        **({"context": int(context)} if context else {}),
        "facts": {"sequence_length": assumed, "global_batch": assumed}}


def _called(path: Path) -> str:
    """Return what a config is of: its file where that is not simply config.json, the repository in the cache of the
    Hugging Face Hub, else its folder.
    """
    if path.stem.lower() != "config":
        return re.sub(r"[-_.]?config$", "", path.stem, flags=re.IGNORECASE)
    folder = real(path).parent
    cached = next((part for part in reversed(folder.parts) if part.startswith("models--")), None)
    return cached.removeprefix("models--").replace("--", "/", 1) if cached else folder.name


def checkpoint_total(path: Path) -> int | None:
    """Return the parameters that the safetensors index beside a config.json states; none where there is no such file.

    Bytes are divided by those of the config's torch_dtype. Raises InputError.
    """
    index = path.parent / INDEX
    if not index.exists():
        return None
    metadata = read_object(index).get("metadata")
    if not isinstance(metadata, dict):
        return None
    total, size = metadata.get("total_parameters"), metadata.get("total_size")
    config = read_config(path)
    dtype = str(config.get("torch_dtype") or config.get("dtype"))
    width = {"bfloat16": 2, "float16": 2, "float32": 4}.get(dtype)
    if isinstance(total, int):
        return total
    if width is None or not isinstance(size, int | float) or not math.isfinite(size) or "quantization_config" in config:
        return None
    return int(size) // width

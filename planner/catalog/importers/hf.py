"""A model from its Hugging Face config.json: the shape alone, exact to the parameter, or refused by name."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from planner.catalog.architecture import Model
from planner.catalog.importers.hf_families import FAMILIES
from planner.catalog.importers.hf_reading import read_config, read_object
from planner.errors import InputError, UnknownName
from planner.text_io import real
from planner.yaml_io import dump, parse, validate

MOST_NAME = 100
INDEX = "model.safetensors.index.json"
SEQUENCE_LENGTH, GLOBAL_BATCH = 8192, 1024
"""Training set-up assumed of a model whose config states none; no longer than its positions."""


def import_config(path: Path, as_of: str) -> Model:
    """Return the model that a config.json describes. Raises InputError with file and key.

    as_of: the date to record, year-month-day.
    """
    config = read_config(path)
    own = config.get("ssm_cfg")
    # the authors' own checkpoints of Mamba-2 name it nowhere else
    kind = config.get("model_type") or ("mamba2" if isinstance(own, dict) and own.get("layer") == "Mamba2" else None)
    if not isinstance(kind, str):
        raise InputError("expected model_type, which names the architecture", file=str(path))
    if kind not in FAMILIES:
        raise UnknownName(f"not supported: {path}: model_type", kind, FAMILIES)
    try:
        shape = FAMILIES[kind](config)
        entry = {"hidden": config.get("hidden_size"), "vocab": config.get("vocab_size"), "norm": "rmsnorm"} | shape
        model = Model.model_validate(entry | _head(config, path, as_of))
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
        raise InputError(f"model_type {kind}: the values do not fit together: {error}", file=str(path)) from None


def _head(config: Mapping[str, Any], path: Path, as_of: str) -> dict[str, Any]:
    named = config.get("_name_or_path") or real(path).parent.name
    longest = config.get("max_position_embeddings") or config.get("n_positions") or SEQUENCE_LENGTH
    assumed = {"source": "not in the config; change it to yours", "as_of": as_of, "kind": "assumed"}
    hf_id = named if isinstance(named, str) and re.fullmatch(r"[\w.-]+/[\w.-]+", named) else None
    return {
        "name": re.sub(r"[^a-z0-9.]+", "-", str(named).rsplit("/", maxsplit=1)[-1].lower()).strip("-.")[:MOST_NAME]
        .strip("-.") or "imported",
        "hf_id": hf_id, "source": f"{path.name} of Hugging Face", "as_of": as_of, "kind": "quoted",
        "sequence_length": min(int(longest), SEQUENCE_LENGTH), "global_batch": GLOBAL_BATCH,
        "facts": {"sequence_length": assumed, "global_batch": assumed}}


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

"""The format that a checkpoint's weights are published in, from the quantization_config of its config.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

EIGHT, FOUR = 8, 4


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
        found = _format(weights.get("num_bits"), str(weights.get("type", "int")))
        if found:
            return found, ""
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

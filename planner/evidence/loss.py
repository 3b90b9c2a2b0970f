"""The loss kernel of a row, as bytes per logit on the last stage: what the source and its notes say of it."""

from __future__ import annotations

import re

from planner.catalog.recipes import Recipes
from planner.evidence.rows import TrainRun

_LADDER = re.compile(r"optimization flags: \+(?!packed|compile)", re.IGNORECASE)
"""torchtune's README adds one flag a row and keeps those before; the chunked loss is the third."""
_COMPILED_LOSS = re.compile(r"model\+loss|torch\.compile on\b", re.IGNORECASE)
_DATED = re.compile(r"_(20\d\d[01]\d)_")
_COMPILES = re.compile(r"(?<!no )(?<!torch\.)(torch\.)?compile\b", re.IGNORECASE)
LOSS_COMPILED = "202504"
"""torchtune compiles its loss with the model; torchtitan does since April 2025, and where it does a row says so, or
its source is dated."""
CHUNKED_SINCE = 2026
"""torchtitan's loss in chunks came with commit e23bb707d of 2025, and is the default of later releases."""
_NO_LIGER = re.compile(r"not using use_liger_kernel", re.IGNORECASE)
FROZEN_SHORT_LOSS = 2.1
"""The same in torchtune where the projection is frozen: chunks of 16-bit logits, whose gradients go as they come."""
QWEN_LOSS, QWEN_HALF_LOSS = 12.0, 8.0
"""Bytes per logit of Qwen v1's own loss, counted: logits and their shifted copy in 16 bits, and the 32-bit cast and
log-softmax that autocast makes; under DeepSpeed in fp16, as its GPTQ script runs, all four stay in 16 bits."""
_TILED = re.compile(r"arctic|\balst\b|\btiled\b", re.IGNORECASE)
"""Arctic Long Sequence Training tiles the loss with its projection."""


def uses_liger(run: TrainRun) -> bool:
    """Say whether a row runs on Liger's kernels: norms and activation fused, the loss fused with its projection."""
    named = re.search(r"\bliger\b", run.notes or "", re.IGNORECASE) is not None
    return (named or tiles(run)) and not _NO_LIGER.search(run.notes or "")


def tiles(run: TrainRun) -> bool:
    """Say whether a row is of Arctic Long Sequence Training: feed-forward and loss in tiles, a model of Liger's."""
    return bool(_TILED.search(f"{run.source or ''} {run.notes or ''}"))


def loss_bytes(run: TrainRun, recipes: Recipes) -> float | None:
    """Return bytes per logit of the loss kernel that is stated, none for the stack's own."""
    if _NO_LIGER.search(run.notes or ""):
        return None  # the column says fused for the whole example, of which this run is the other half
    if run.hidden and run.vocab and uses_liger(run):
        return recipes.losses["fused"] * run.hidden / run.vocab
    if run.source and run.source.startswith("QwenLM/Qwen "):
        return QWEN_HALF_LOSS if run.base_quantization else QWEN_LOSS
    if run.source and "litgpt tutorials" in run.source:
        # chunked_cross_entropy of the release that the tables were made with, 128 tokens at a time
        return recipes.losses["chunked"]
    dated = _DATED.search(run.source_detail or "")
    recent = bool(dated and dated.group(1) >= LOSS_COMPILED and _COMPILES.search(run.notes or ""))
    titan = (run.year or 0) >= CHUNKED_SINCE and "torchtitan" in (run.source or "")
    short = titan or recent or _COMPILED_LOSS.search(run.notes or "") or _LADDER.search(run.source_detail or "")
    if not (short or run.loss_kernel in ("fused", "chunked")):
        return None
    frozen = run.method in ("lora", "qlora") and "torchtune" in (run.source or "")
    return FROZEN_SHORT_LOSS if frozen else recipes.losses["chunked"]

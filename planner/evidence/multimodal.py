"""Rows of tuning as the scripts of a stack state it in their headers, in the words of a row of peak memory."""

from __future__ import annotations

import math
from collections.abc import Mapping

from planner.catalog.architecture import Model
from planner.catalog.quirk import Sources
from planner.evidence.rows import TrainRun
from planner.physics.encoders import TowerWork, parts_of

TWO_PARTS = 2
"""Of the name of a model: its maker and its own."""
CARD_SIZE = "a rounded card size"
"""How notes begin whose figure is the card that a script asks for, not a reading."""
_COLUMNS = {"stack": "framework", "global_batch": "global_batch_seqs", "max_length": "seq_len",
            "checkpointing": "recompute", "attn": "attention_impl", "packing": "packed"}
"""Columns by their names in this file, and in one of peak memory."""
_WORDS = {"recompute": {"true": "full", "false": "none"},
          "precision": {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "e4m3": "fp8", "hybrid": "fp8"},
          "sharding": {"fsdp2": "fsdp", "zero2_offload": "zero2", "zero3_offload": "zero3"}}
"""Cells that another word is used for there."""
_OFFLOADED = {"zero2_offload": "optimizer", "zero3_offload": "optimizer, parameters"}
_LABELS: dict[str, dict[str, str]] = {
    "full": {"method": "full"}, "lora": {"method": "lora"}, "fp8": {"precision": "fp8"}, "bf16": {"precision": "bf16"},
    "muon": {"optimizer": "muon"}, "without padding_free": {"packed": "no"},
    "zero3": {"sharding": "zero3", "tp": "1", "pp": "1", "ep": "1"}}
"""What a header says that prints several runs of a script, each behind a label: how this one departs from it."""
METHODS = ("full", "lora", "qlora")


def as_tuning(stated: Mapping[str, str]) -> dict[str, str]:
    """Return the cells of a row by the names and words of a row of peak memory; what a script computes is left open."""
    cells = {_COLUMNS.get(name, name): text for name, text in stated.items() if not text.startswith("$(")}
    cells["offload"] = _OFFLOADED.get(cells.get("sharding", ""), "none")
    cells |= {name: words.get(cells[name], cells[name]) for name, words in _WORDS.items() if name in cells}
    if "as_of" in cells:
        cells["year"] = cells["as_of"][:4]
    if not cells.get("seq_len", "0").isdecimal():
        cells["source_detail"] = cells.pop("seq_len")
    method, _, rest = cells.get("method", "").partition(" ")
    if method in METHODS:
        cells["method"] = method
    if "trained" in rest:
        cells["lora_targets"] = f"all-linear, {rest}"
    if len(folders := cells.get("model", "").split("/")) > TWO_PARTS:
        # a checkpoint of an earlier run, in a folder named as its model
        cells["model"] = folders[1]
    if _maps_devices(stated):
        # whole layers on each GPU, one after the other, and one micro-batch at a time
        cells |= {"pp": stated["gpus"], "grad_accum": "1"}
    return cells | _LABELS.get(_label(cells.get("notes", "")), {})


def _maps_devices(stated: Mapping[str, str]) -> bool:
    """Say whether a script gives one process several GPUs, so that Accelerate's device_map shares out the layers."""
    alone = not any(stated.get(name) for name in ("sharding", "tp", "pp", "cp", "ep"))
    by_process = stated.get("grad_accum", "").startswith("$(")  # counted from the number of processes
    return (alone and not by_process and stated.get("gpus", "1") != "1"
            and stated.get("stack", "").endswith("transformers") and "ddp" not in stated.get("source", ""))


def seen_in(run: TrainRun, model: Model, sources: Sources) -> tuple[TowerWork, ...]:
    """Return what encoders do in a run of a multimodal model: an image of the most pixels in each sequence."""
    if run.task is None or not any(tower.encoder for tower in model.towers):
        return ()
    side = round(math.sqrt(run.max_pixels or sources.usual("usual_pixels")))
    return parts_of(model, float(model.tower is not None), (side, side), 1, float(model.ear is not None))


def _label(notes: str) -> str:
    return notes.removeprefix(f"{CARD_SIZE}, likely a requirement: ").partition(":")[0].strip().lower()

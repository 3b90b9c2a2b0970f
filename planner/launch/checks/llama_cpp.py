"""llama-server's own parser of its options: with `--version` it reads them all, and starts nothing."""

from __future__ import annotations

from pathlib import Path

from planner.launch.checks.releases import LLAMA_SERVER, said_by_llama_server
from planner.launch.checks.services import LaunchedKind, resolved_by

_CACHES = {"f16": "auto", "bf16": "bf16", "q8_0": "int8"}


def resolve(folder: Path) -> dict[str, object]:
    """Return, for each kind of replica, the axes that its options come to."""
    return resolved_by(folder, _one)


def _one(folder: Path, replica: LaunchedKind, rank: int) -> dict[str, object]:
    words = replica.started(folder, rank, "model.gguf", LLAMA_SERVER).words
    said_by_llama_server(*words, "--version")
    said = {word: after for word, after in zip(words, [*words[1:], ""], strict=True) if word.startswith("--")}
    mode, parts = said["--split-mode"], len(said.get("--tensor-split", "1").split(","))
    slots, context = int(said["--parallel"]), int(said["--ctx-size"])
    alone = "--no-kv-unified" in said
    drafts = said.get("--spec-ngram-simple-size-m")
    return {"gpus": parts, "tp": parts if mode == "tensor" else 1, "pp": parts if mode == "layer" else 1,
            "max_sequences": slots, "max_batched_tokens": int(said["--ubatch-size"]),
            "kv_cache": _CACHES[said["--cache-type-k"]], "drafts": drafts and int(drafts), "role": "whole",
            "answers": "vectors" if "--embedding" in said else "tokens",
            **({"max_model_len": context // slots} if alone else {})}

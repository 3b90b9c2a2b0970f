"""`trtllm-serve`'s own parser where it is installed, which needs a GPU; else the contract that its tests hold it to."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from planner.launch.checks.releases import CONTRACT
from planner.launch.checks.services import LaunchedKind, resolved_by
from planner.launch.checks.started import yaml_of

_TYPES = {"int": int, "float": float, "str": str}
"""Of the contract: the types that our options have."""
KEYS = {"kv_cache_config", "speculative_config", "cache_transceiver_config", "disable_overlap_scheduler",
        "attention_dp_config"}
"""Of the YAML (`LlmArgs`)."""


def resolve(folder: Path) -> dict[str, object]:
    """Return, for each kind of replica, the axes that options and YAML come to."""
    return resolved_by(folder, _one)


def _one(folder: Path, replica: LaunchedKind, rank: int) -> dict[str, object]:
    call = replica.started(folder, rank, "checkpoint", "trtllm-serve")
    assert call.words[0] == "serve", call.words
    said = _by_contract(call.words[2:]) if CONTRACT in os.environ else _by_click(call.words[1:])
    extra = yaml_of(Path(said["extra_llm_api_options"]))
    assert set(extra) <= KEYS, f"keys that LlmArgs may not have: {', '.join(sorted(set(extra) - KEYS))}"
    cache, drafts = extra["kv_cache_config"], extra.get("speculative_config")
    wide, ranks = bool(said["enable_attention_dp"]), said["tensor_parallel_size"]
    mixed = bool(replica.shape.get("experts"))
    ep = said["moe_expert_parallel_size"] or 1
    moved = extra.get("cache_transceiver_config")
    role = "whole" if moved is None else "prefill" if extra["disable_overlap_scheduler"] else "decode"
    return {"gpus": ranks * said["pipeline_parallel_size"], "tp": 1 if wide else ranks,
            "dp": ranks if wide else 1, "pp": said["pipeline_parallel_size"], "ep": ep,
            "expert_tp": ranks // ep if mixed else 1, "max_sequences": said["max_batch_size"],
            "prefill_delay": extra.get("attention_dp_config", {}).get("timeout_iters"),
            "max_batched_tokens": said["max_num_tokens"], "max_model_len": said["max_seq_len"],
            "memory_fraction": cache["free_gpu_memory_fraction"], "kv_cache": cache["dtype"],
            "prefix_cache": cache["enable_block_reuse"], "drafts": drafts and drafts["max_draft_len"], "role": role}


def _by_click(words: list[str]) -> dict[str, Any]:
    command = import_module("tensorrt_llm.commands.serve").serve
    found: dict[str, Any] = command.make_context("serve", list(words)).params
    return found


def _by_contract(words: list[str]) -> dict[str, Any]:
    options = yaml_of(Path(os.environ[CONTRACT]))["commands"]["serve"]["options"]
    names = {flag: name for name, one in options.items() for flag in one["flags"]}
    found = {name: one["default"] for name, one in options.items()}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        assert word in names, f"trtllm-serve has no option {word}"
        one = options[names[word]]
        found[names[word]] = True if one["is_flag"] else _TYPES[one["type"]](rest.pop(0))
    return found

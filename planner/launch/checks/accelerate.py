"""`accelerate launch`'s own parser, the plugins that a process reads back, and the Trainer's arguments."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from accelerate.commands.config.config_args import load_config_from_file
from accelerate.commands.launch import _validate_launch_command, launch_command_parser
from accelerate.utils import FullyShardedDataParallelPlugin, ParallelismConfig
from accelerate.utils.launch import prepare_multi_gpu_env

from planner.launch.checks.started import started
from planner.launch.checks.trainer import synced, trained
from planner.launch.checks.words import NEUTRAL

NESTED = ("fsdp_config", "parallelism_config")
"""Blocks in which Accelerate lets unknown keys by."""


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that they come to."""
    call = started(folder, "train.sh", "accelerate")
    assert call.words[0] == "launch", call.words
    known = launch_command_parser().parse_args(call.words[1:])
    _known_keys(Path(known.config_file), known)
    before = dict(os.environ)
    args, _, _ = _validate_launch_command(known)
    try:
        os.environ.update(prepare_multi_gpu_env(args))
        plugin = FullyShardedDataParallelPlugin() if args.use_fsdp else None
        split = ParallelismConfig() if os.environ.get("ACCELERATE_USE_PARALLELISM_CONFIG") == "true" else None
    finally:
        os.environ.clear()
        os.environ.update(before)
    world = args.num_processes or 1
    module = ["-m"] if args.module else []
    arguments, _, axes = trained([*module, args.training_script, *args.training_script_args], {})
    if plugin is not None:
        assert not arguments.gradient_checkpointing, "the layers would be wrapped twice"
        axes["recompute"] = "full" if plugin.activation_checkpointing else "none"
        axes["offload_activations"] = float(plugin.activation_checkpointing_offload)
    assert (args.mixed_precision == "bf16") == arguments.bf16, "Accelerate and the Trainer differ in precision"
    degrees = _degrees(split, world, plugin)
    ranks = int(str(degrees["dp"]))
    away = float(plugin is not None and type(plugin.cpu_offload).__name__ == "CPUOffloadPolicy")
    return {**NEUTRAL, **axes, **degrees, "gpus": world,
            "global_batch": ranks * arguments.per_device_train_batch_size * arguments.gradient_accumulation_steps,
            "zero": 0 if plugin is None else 3 if plugin.reshard_after_forward else 2, "offload": away,
            "offload_parameters": away,
            **({"no_sync": synced(arguments)} if plugin and arguments.gradient_accumulation_steps > 1 else {})}


def _degrees(split: Any, world: int, plugin: Any) -> dict[str, object]:  # noqa: ANN401 - the stack's own classes
    if split is None:
        return {"dp": world, "hsdp": 1}
    assert split.total_size == world, f"degrees of {split.total_size} for {world} processes"
    ranks = split.dp_replicate_size * split.dp_shard_size
    copies = split.dp_replicate_size if plugin is not None else 1
    return {"dp": ranks, "hsdp": copies, "tp": split.tp_size, "cp": split.cp_size}


def _known_keys(path: Path, args: Any) -> None:  # noqa: ANN401
    said = load_config_from_file(str(path))
    for block in NESTED:
        unknown = {key for key in getattr(said, block) if not hasattr(args, key)}
        assert not unknown, f"{block} has keys that Accelerate would let by: {', '.join(sorted(unknown))}"

"""The arguments of Hugging Face's Trainer, by TRL's own parser or by that of `train.py` in the folder."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torch._inductor.compile_fx

from planner.launch.checks.stand_ins import install
from planner.launch.checks.words import OPTIMIZERS, adapted

install("triton", "bitsandbytes", "liger_kernel", "flash_attn")
torch.cuda.set_device = lambda *_: None
torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: 8
torch.cuda.is_bf16_supported = lambda *_, **__: True
torch.cuda.get_device_capability = lambda *_, **__: (9, 0)
PREFERENCES = {"sft": None, "dpo": "dpo", "kto": "kto", "reward": "reward-model"}
"""Script of TRL -> method that takes preferences."""


def trained(words: list[str], environment: dict[str, str]) -> tuple[Any, Any, dict[str, object]]:
    """Return the Trainer's arguments, those of the model (of TRL alone), and the axes that they say."""
    before = dict(os.environ)
    # what finds its device and starts processes is left out: nothing is run
    os.environ.update({k: v for k, v in environment.items() if k.startswith(("ACCELERATE_", "FSDP_", "PARALLELISM_"))})
    try:
        if words[0] == "-m":
            made = import_module(words[1]).make_parser()
            _, arguments, model, *_rest = made.parse_args_and_config(args=words[2:])
            length, method = arguments.max_length, "full"
        else:
            module = _module(Path(words[0]))
            own, arguments = module.read(words[1:])
            model, length, method = None, own.block_size, "pretrain"
    finally:
        os.environ.clear()
        os.environ.update(before)
    axes: dict[str, object] = {
        "micro_batch": arguments.per_device_train_batch_size, "micro_batches": arguments.gradient_accumulation_steps,
        "sequence_length": length, "precision": _precision(arguments), "optimizer": OPTIMIZERS[str(
            getattr(arguments.optim, "value", arguments.optim))],
        "recompute": "full" if arguments.gradient_checkpointing else "none",
        "offload_activations": float(getattr(arguments, "activation_offloading", False))}
    if model is not None and model.use_peft:
        method = "qlora" if model.load_in_4bit else "lora"
        axes["lora_rank"], axes["adapted"] = model.lora_r, adapted(model.lora_target_modules)
    if words[0] == "-m":
        preference = PREFERENCES[words[1].rpartition(".")[2]]
        axes["preference"] = preference
        if preference is None:
            axes["packing"] = "packed" if arguments.packing else "padded"
        elif getattr(arguments, "precompute_ref_log_probs", False):
            axes["reference"] = "precomputed"
    return arguments, model, {**axes, "method": method}


def synced(arguments: Any) -> int:  # noqa: ANN401 - the stack's own class
    """Return the no_sync axis: whether gradients of micro-batches add up before they are reduced."""
    how = arguments.accelerator_config.gradient_accumulation_kwargs or {}
    return int(not how.get("sync_each_batch", False))


def sharded(arguments: Any) -> dict[str, object]:  # noqa: ANN401
    """Return the axes that FSDP's settings among the Trainer's arguments say."""
    on, how = bool(arguments.fsdp), arguments.fsdp_config or {}
    if not on:
        return {"zero": 0, "offload": 0.0, "offload_parameters": 0.0}
    assert int(how["version"]) == 2, "FSDP 2"
    away = float(bool(how.get("cpu_offload")))
    synchronized = {"no_sync": synced(arguments)} if arguments.gradient_accumulation_steps > 1 else {}
    return {"zero": 3 if how["reshard_after_forward"] else 2, "offload": away, "offload_parameters": away,
            **synchronized}


def _module(path: Path) -> Any:  # noqa: ANN401
    spec = spec_from_file_location(f"train_{abs(hash(path))}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _precision(arguments: Any) -> str:  # noqa: ANN401
    if arguments.bf16 or arguments.fp16:
        return "bf16" if arguments.bf16 else "fp16"
    return "tf32" if arguments.tf32 else "fp32"

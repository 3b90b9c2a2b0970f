"""axolotl's own validation of its YAML, which is made for machines without the GPUs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from planner.launch.checks.started import started, yaml_of
from planner.launch.checks.words import NEUTRAL, OPTIMIZERS, adapted

MACHINE: dict[str, Any] = {"bf16": True, "fp8": True, "n_node": 1, "compute_capability": "sm_90", "tf32": True}


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that the YAML comes to."""
    os.environ["AXOLOTL_DO_NOT_TRACK"] = "1"
    import torch
    from axolotl.utils.config import validate_config
    from axolotl.utils.dict import DictDefault
    from axolotl.utils.schemas.config import AxolotlInputConfig
    from axolotl.utils.schemas.fsdp import FSDPConfig

    call = started(folder, "train.sh", "torchrun")
    assert call.program[:2] == ["-m", "axolotl.cli.train"], call.program
    said = yaml_of(Path(call.program[2]))
    unknown = set(said) - set(AxolotlInputConfig.model_fields)
    unknown |= set(said.get("fsdp_config", {})) - set(FSDPConfig.model_fields)
    assert not unknown, f"keys that axolotl would let by: {', '.join(sorted(unknown))}"
    config = validate_config(DictDefault(said), capabilities={**MACHINE, "n_gpu": call.world},
                             env_capabilities={"torch_version": str(torch.__version__).split("+")[0]})
    fsdp = config.get("fsdp_config")
    copies, tp = config.get("dp_replicate_size") or 1, config.get("tensor_parallel_size") or 1
    cp = config.get("context_parallel_size") or 1
    ranks = call.world // (tp * cp)
    shard = config.get("dp_shard_size")
    assert shard is None or shard * copies * tp * cp == call.world, f"degrees for {call.world} GPUs"
    away = float(bool(fsdp and fsdp.get("offload_params")))
    micro, batches = config.micro_batch_size, config.gradient_accumulation_steps
    kept = config.get("gradient_checkpointing")
    method = config.get("adapter") or "full"
    preference = "reward-model" if config.get("reward_model") else getattr(config.get("rl"), "value", config.get("rl"))
    return {**NEUTRAL, "gpus": call.world, "dp": ranks, "tp": tp, "cp": cp, "hsdp": copies, "micro_batch": micro,
            "micro_batches": batches, "global_batch": micro * batches * ranks,
            "sequence_length": config.sequence_len, "precision": _precision(config), "method": method,
            "zero": 0 if not fsdp else 3 if fsdp.get("reshard_after_forward", True) else 2, "offload": away,
            "offload_parameters": away, "offload_activations": float(bool(config.get("activation_offloading"))),
            "recompute": "full" if kept else "none", "optimizer": OPTIMIZERS[str(config.optimizer)],
            **({"preference": preference, **({"reference": "precomputed"} if config.get("precompute_ref_log_probs")
                else {})} if preference else {
                    "preference": None, "packing": "packed" if config.get("sample_packing") else "padded"}),
            **({"lora_rank": config.lora_r, "adapted": adapted(config.get("lora_target_modules"))}
               if method != "full" else {})}


def _precision(config: Any) -> str:  # noqa: ANN401 - the stack's own class
    if config.get("bf16") or config.get("fp16"):
        return "bf16" if config.get("bf16") else "fp16"
    return "tf32" if config.get("tf32") else "fp32"

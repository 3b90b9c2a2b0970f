"""LLaMA-Factory's own parser of its YAML."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from planner.launch.checks.started import started, yaml_of
from planner.launch.checks.trainer import sharded
from planner.launch.checks.words import NEUTRAL, OPTIMIZERS, adapted


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that it comes to."""
    os.environ["DISABLE_VERSION_CHECK"] = "1"
    from llamafactory.hparams.parser import _parse_train_args

    call = started(folder, "train.sh", "torchrun")
    said = yaml_of(Path(call.program[1]))
    said["output_dir"] = said["output_dir"] or "checkpoints"
    model, data, training, tuning, _ = _parse_train_args(said)
    ranks, micro, batches = call.world, training.per_device_train_batch_size, training.gradient_accumulation_steps
    length = data.cutoff_len + int(bool(data.packing))  # it leaves one token of a packed sequence to its padding
    method = tuning.finetuning_type
    if method == "lora" and model.quantization_bit == 4:
        method = "qlora"
    found: dict[str, object] = {
        **NEUTRAL, "gpus": call.world, "dp": ranks, "micro_batch": micro, "micro_batches": batches,
        "global_batch": micro * batches * ranks, "sequence_length": length,
        "precision": _precision(training), "method": method, "offload_activations": 0.0,
        "recompute": "none" if model.disable_gradient_checkpointing else "full",
        "optimizer": OPTIMIZERS[str(getattr(training.optim, "value", training.optim))],
        **_preference(tuning),
        **({"packing": "packed" if data.packing else "padded"} if tuning.stage == "sft" else {}),
        **({"lora_rank": tuning.lora_rank, "adapted": adapted(tuning.lora_target)} if method != "full" else {})}
    return found | sharded(training)


def _preference(tuning: Any) -> dict[str, object]:  # noqa: ANN401 - the stack's own class
    if tuning.stage == "dpo":
        method = {"sigmoid": "dpo"}.get(tuning.pref_loss, tuning.pref_loss)
        assert method != "dpo" or tuning.use_ref_model, "DPO without a reference"
        return {"preference": method}
    return {"preference": {"sft": None, "kto": "kto", "rm": "reward-model"}[tuning.stage]}


def _precision(training: Any) -> str:  # noqa: ANN401 - the stack's own class
    if training.bf16 or training.fp16:
        return "bf16" if training.bf16 else "fp16"
    return "tf32" if training.tf32 else "fp32"

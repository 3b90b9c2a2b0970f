"""unsloth: the YAML of `unsloth train`, on one GPU."""

from __future__ import annotations

from planner.launch import hugging_face as hf
from planner.launch.axes import WHOLE, No, Settings, Table, only, settings_of
from planner.launch.emitter import Emitter
from planner.launch.formats import as_text, by_file
from planner.launch.program import Part, Program, filled, script
from planner.launch.work import Work

FILE = "unsloth.yaml"
DATA = "tatsu-lab/alpaca"


def _batch(work: Work) -> Settings | No:
    if work.placed.gpus > 1:
        return No(f"{work.placed.gpus} GPUs (it runs on one)", {"dp": 1})
    return {f"{FILE}:training.batch_size": work.layout.micro_batch,
            f"{FILE}:training.gradient_accumulation_steps": work.layout.micro_batches}


def _recompute(work: Work) -> Settings | No:
    kept, away = work.value("recompute"), work.layout.offload.activations
    if kept not in ("none", "full"):
        return No(f"{kept} (every layer whole, or none)", {"recompute": "full"})
    if away and kept == "none":
        return No("checkpoints on the host without recompute", {"recompute": "full"})
    return {f"{FILE}:training.gradient_checkpointing": "none" if kept == "none" else "unsloth" if away else "true"}


def _adapted(work: Work, rank: int) -> Settings:
    return {f"{FILE}:training.training_type": "lora", f"{FILE}:training.load_in_4bit": work.method == "qlora",
            f"{FILE}:lora.lora_r": rank, f"{FILE}:lora.lora_alpha": 2 * rank}


TABLE: Table = {
    ("candidate", "dp", "micro_batch"): _batch,
    ("precision",): only("precision", "bf16", reason="it takes the 16-bit format of the GPU"),
    **hf.unsplit("tp", "sp", "cp", "pp", "vpp", "stages", "schedule", "ep", "expert_tp", "zero", "hsdp", "no_sync",
                 "offload", "offload_parameters", "nvme", reason="it runs on one GPU"),
    ("cp_method",): lambda w: {},
    ("recompute", "offload_activations"): _recompute,
    ("method", "lora_rank"): hf.tuned_by(
        {f"{FILE}:training.training_type": "full", f"{FILE}:training.load_in_4bit": False}, _adapted),
    ("optimizer",): only("optimizer", "adamw-8bit", reason="its program has AdamW in 8 bits alone",
                         instead={"optimizer": "adamw-8bit"}),
    ("optimizer_in_backward",): only("optimizer_in_backward", False, reason="it steps after backward"),
    ("loss",): only("loss", "the stack's", reason="its loss is its own"),
    **WHOLE,
    ("packing",): lambda w: {f"{FILE}:training.packing": w.value("packing") == "packed"},
}


def emit(work: Work) -> Program:
    """Return unsloth's YAML, and the script that starts it."""
    data = by_file(settings_of(work, TABLE))[FILE]
    training = {"max_seq_length": work.sequence_length, "max_steps": work.steps, "learning_rate": 2e-4,
                "output_dir": "checkpoints", **data.pop("training")}
    data = {"model": work.model.hf_id or work.model.name, "data": {"dataset": DATA}, "training": training, **data}
    values = {"model": "MODEL", "output_dir": "CHECKPOINTS", "learning_rate": "LEARNING_RATE", "max_steps": "STEPS"}
    head = f"unsloth {work.release.release}"
    body = [*filled(FILE, values, {DATA: "DATA"}), 'exec unsloth train --config "$config"']
    return Program(target=work.target, variables=hf.variables(work, {"DATA": DATA}), feedback="trainer_state.json",
                   parts=(Part("train", "train.sh", 1, 1),),
                   files={FILE: as_text(FILE, head, data), "train.sh": script(head, {}, body)})


EMITTER = Emitter("unsloth", TABLE, emit)

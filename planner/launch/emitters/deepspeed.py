"""DeepSpeed: its JSON, under TRL's SFT trainer for tuning, or a script of the Transformers Trainer from scratch."""

from __future__ import annotations

from planner.launch import hugging_face as hf
from planner.launch.adapted import listed
from planner.launch.axes import No, Settings, Table, only, settings_of
from planner.launch.emitter import Emitter, plain
from planner.launch.formats import as_text, by_file
from planner.launch.program import Part, Program, script, torchrun
from planner.launch.work import Work

DS, ARGS = "ds.json", "train.yaml"
FLASH = "/local"
"""Folder on local flash, as most providers mount it."""


def _zero(work: Work) -> Settings | No:
    layout, out = work.layout, work.layout.offload
    if work.copies > 1:
        return No(f"{work.copies} copies of {layout.shard} ranks (groups are gone from its releases)",
                  {"shard": layout.dp * layout.cp})
    zero = f"{DS}:zero_optimization"
    settings: dict[str, object] = {f"{zero}.stage": layout.zero}
    if layout.zero:
        settings |= {f"{zero}.overlap_comm": True, f"{zero}.contiguous_gradients": True}
    if out.to == "nvme" and layout.zero < 3:
        return No("NVMe without ZeRO-3", {"offload_to": "host"})
    device = "nvme" if out.to == "nvme" else "cpu"
    where = {"device": device, "pin_memory": True, **({"nvme_path": FLASH} if device == "nvme" else {})}
    if 0 < out.optimizer < 1 and layout.zero < 3:
        return No(f"{out.optimizer:.0%} of the optimizer states on the host with ZeRO {layout.zero} (a part needs "
                  "ZeRO-3)", {"offload_optimizer": 1})
    if out.optimizer:
        share = {"ratio": out.optimizer} if out.optimizer < 1 else {}
        settings[f"{zero}.offload_optimizer"] = {**where, **share}
    if out.parameters:
        if out.parameters < 1 or layout.zero < 3:
            return No(f"{out.parameters:.0%} of the weights with ZeRO {layout.zero} (all of them, with ZeRO-3)",
                      {"offload_parameters": 1, "zero": 3})
        settings[f"{zero}.offload_param"] = dict(where)
    return settings


def _batch(work: Work) -> Settings:
    layout = work.layout
    return {**hf.batch_of(ARGS, work), f"{DS}:train_batch_size": work.global_batch,
            f"{DS}:train_micro_batch_size_per_gpu": layout.micro_batch,
            f"{DS}:gradient_accumulation_steps": layout.micro_batches}


def _precision(work: Work) -> Settings | No:
    said = hf.precision(ARGS)(work)
    if isinstance(said, No):
        return said
    name = work.layout.precision
    return {**said, f"{DS}:bf16": {"enabled": name == "bf16"}, f"{DS}:fp16": {"enabled": name == "fp16"}}


def _activations(work: Work) -> Settings | No:
    share = work.layout.offload.activations
    if share and work.method == hf.FROM_SCRATCH:
        return No("checkpoints on the host (the Trainer keeps them on the GPU)", {"offload_activations": 0})
    return {} if work.method == hf.FROM_SCRATCH or work.preference else {f"{ARGS}:activation_offloading": bool(share)}


TABLE: Table = {
    **hf.rest(ARGS),
    **hf.by_trl(ARGS, narrows=True),
    ("candidate", "dp", "micro_batch"): _batch,
    ("precision",): _precision,
    **hf.unsplit("tp", "cp"),
    ("cp_method",): lambda w: {},
    ("zero", "hsdp", "offload", "offload_parameters", "nvme"): _zero,
    ("no_sync",): only("no_sync", 0, reason="its engine reduces sharded gradients each time", instead={"no_sync": 0}),
    ("recompute",): hf.recompute(ARGS),
    ("optimizer",): plain("optimizer", f"{ARGS}:optim", hf.OPTIMIZERS),
    ("offload_activations",): _activations,
    ("method", "lora_rank"): hf.adapters(ARGS),
    ("lora_targets",): listed(f"{ARGS}:lora_target_modules"),
    ("packing",): hf.trainer_packing(ARGS),
}


def emit(work: Work) -> Program:
    """Return DeepSpeed's JSON, the Trainer's arguments, and the script that starts them."""
    files = by_file(settings_of(work, TABLE))
    scratch = work.method == hf.FROM_SCRATCH
    files[ARGS] |= hf.arguments(work, ARGS)
    head = f"DeepSpeed {work.release.release}: runs on every node"
    what, flags = hf.trainer_call(work, ARGS)
    body = ["exec " + " ".join(torchrun(work.gpus_per_node, work.placed.nodes)) + " \\", what,
            f'{flags} --deepspeed "$here/{DS}"']
    own = hf.variables(work, {"DATA": "mock"} if scratch else None)
    texts = {name: as_text(name, f"DeepSpeed {work.release.release}, by Hugging Face's Trainer", data)
             for name, data in files.items()}
    return Program(target=work.target, variables=own, feedback="train.log",
                   parts=(Part("train", "train.sh", work.placed.nodes, work.gpus_per_node),),
                   files={**texts, **hf.trainer_files(work),
                          "train.sh": script(head, {}, body)},
                   notes=("nvme_path in ds.json is local flash of every node.",) if
                   work.layout.offload.to == "nvme" else ())


EMITTER = Emitter("deepspeed", TABLE, emit)

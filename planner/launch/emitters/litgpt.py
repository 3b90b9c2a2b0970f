"""litgpt: the YAML of its recipes. How it shards is fixed in its code: FSDP on several GPUs, one whole model on one."""

from __future__ import annotations

from collections.abc import Sequence

from planner.launch import hugging_face as hf
from planner.launch.adapted import modules_by
from planner.launch.axes import WHOLE, No, Settings, Table, only, settings_of
from planner.launch.emitter import Emitter
from planner.launch.formats import as_text, by_file
from planner.launch.program import Part, Program, filled, script, torchrun
from planner.launch.work import Work

FILE = "litgpt.yaml"
PARTS = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "o_proj": "projection"}
FEED_FORWARD = {"gate_proj", "up_proj", "down_proj"}
RECIPES = {"full": "finetune_full", "lora": "finetune_lora", "qlora": "finetune_lora"}


def _sharding(work: Work) -> Settings | No:
    several = work.placed.gpus > 1
    if (work.layout.zero == 3) != several or work.copies > 1:
        return No(f"{work.layout.zero} over {work.layout.shard} GPUs (3 over all where there are several, else 0)",
                  {"zero": 3 if several else 0})
    return {f"{FILE}:devices": work.gpus_per_node, f"{FILE}:num_nodes": work.placed.nodes}


def _recompute(work: Work) -> Settings | No:
    fixed = "full" if work.placed.gpus > 1 else "none"
    if work.value("recompute") != fixed:
        return No(f"{work.value('recompute')} (full on several GPUs, none on one)", {"recompute": fixed})
    return {}


def _method(work: Work) -> Settings | No:
    if work.method not in RECIPES:
        return No(f"{work.method} (it starts from trained weights)", {"method": "full"})
    if work.method == "full":
        return {}
    if work.method == "qlora" and work.placed.gpus > 1:
        return No("qlora on several GPUs (its quantized weights are not sharded)", {"dp": 1})
    quantized = {f"{FILE}:quantize": "bnb.nf4-dq"} if work.method == "qlora" else {}
    return {f"{FILE}:lora_r": work.asked.rank, f"{FILE}:lora_alpha": 2 * work.asked.rank,
            **quantized}


def _parts(names: Sequence[str]) -> Settings | No:
    fed = FEED_FORWARD.intersection(names)
    if fed not in (set(), FEED_FORWARD):
        return No(f"{', '.join(names)} (of a feed-forward all three products, or none)", {"lora_targets": "all"})
    return {**{f"{FILE}:lora_{part}": name in names for name, part in PARTS.items()}, f"{FILE}:lora_mlp": bool(fed)}


def _precision(work: Work) -> Settings | No:
    names = {"bf16": "bf16-true", "fp16": "16-true", "fp32": "32-true"}
    name = work.layout.precision
    return {f"{FILE}:precision": names[name]} if name in names else No(
        f"{name} (it has {', '.join(names)})", {"precision": "bf16"})


TABLE: Table = {
    ("candidate", "dp", "micro_batch"): lambda w: {f"{FILE}:train.global_batch_size": w.global_batch,
                                                   f"{FILE}:train.micro_batch_size": w.layout.micro_batch},
    ("precision",): _precision,
    **hf.unsplit("tp", "sp", "cp", "pp", "vpp", "stages", "schedule", "ep", "expert_tp", "offload",
                 "offload_parameters", "offload_activations", "nvme"),
    ("cp_method",): lambda w: {},
    ("zero", "hsdp"): _sharding,
    ("no_sync",): lambda w: {} if w.layout.no_sync or w.layout.micro_batches == 1 or w.layout.zero < 2 else No(
        "0 (gradients of micro-batches add up whole)", {"no_sync": 1}),
    ("recompute",): _recompute,
    ("method", "lora_rank"): _method,
    ("optimizer",): only("optimizer", "adamw", reason="the planner writes its AdamW", instead={"optimizer": "adamw"}),
    ("optimizer_in_backward",): only("optimizer_in_backward", False, reason="it steps after backward"),
    ("loss",): only("loss", "the stack's", "chunked", reason="its loss is in chunks"),
    **WHOLE,
    ("lora_targets",): modules_by(dict.fromkeys((*(f"{FILE}:lora_{part}" for part in PARTS.values()),
                                                 f"{FILE}:lora_mlp"), True), _parts),
    ("packing",): lambda w: {},  # it pads: the head of the file says what that takes of the samples
}


def _checkpoint(work: Work) -> str:
    """Return the checkpoint that is loaded."""
    return work.release.checkpoints.get(work.model.name) or work.model.hf_id or work.model.name


def emit(work: Work) -> Program:
    """Return litgpt's YAML, and the script that starts its recipe."""
    checkpoint = _checkpoint(work)
    data = by_file(settings_of(work, TABLE))[FILE]
    data["train"] |= {"max_seq_length": work.sequence_length, "max_steps": work.steps, "epochs": 1000,
                      "log_interval": 1, "lr_warmup_steps": 0}
    data = {"checkpoint_dir": checkpoint, "out_dir": "checkpoints", **data,
            "data": "Alpaca", "optimizer": {"class_path": "torch.optim.AdamW", "init_args": {"lr": 1e-5}}}
    values = {"checkpoint_dir": "MODEL", "out_dir": "CHECKPOINTS", "data": "DATA", "max_steps": "STEPS",
              "lr": "LEARNING_RATE"}
    filling = "" if work.value("packing") == "padded" else "; samples are padded: the plan has them fill the sequence"
    head = f"litgpt {work.release.release}"
    run = "exec " + " ".join(torchrun(work.gpus_per_node, work.placed.nodes))
    body = [*filled(FILE, values), run + f' -m litgpt {RECIPES[work.method]} --config "$config"']
    return Program(target=work.target, feedback="train.log",
                   variables=hf.variables(work, {"DATA": "Alpaca", "MODEL": checkpoint}),
                   parts=(Part("train", "train.sh", work.placed.nodes, work.gpus_per_node),),
                   files={FILE: as_text(FILE, head + filling, data),
                          "train.sh": script(f"{head}: runs on every node", {}, body)})


EMITTER = Emitter("litgpt", TABLE, emit)

"""Accelerate: the YAML of `accelerate launch` (FSDP 2, or DDP), under TRL's SFT trainer or the Transformers Trainer."""

from __future__ import annotations

from planner.launch import hugging_face as hf
from planner.launch.adapted import listed
from planner.launch.axes import No, Settings, Table, in_part, settings_of
from planner.launch.emitter import Emitter
from planner.launch.formats import as_text, by_file
from planner.launch.program import PORT, Part, Program, script
from planner.launch.work import Work

HOW, ARGS = "accelerate.yaml", "train.yaml"


def _sharding(work: Work) -> Settings | No:
    layout, copies = work.layout, work.copies
    if layout.zero == 1:
        return No("1 (FSDP shards gradients too; ZeRO-1 is DeepSpeed's)", {"zero": 2})
    if layout.dp % copies:
        return No(f"{copies} copies of {layout.shard} ranks", {"shard": layout.dp * layout.cp})
    alone = work.placed.gpus == 1
    split = f"{HOW}:parallelism_config.parallelism_config"
    if not layout.zero:
        return {f"{HOW}:distributed_type": "NO" if alone else "MULTI_GPU"}
    degrees: dict[str, object] = {}
    if copies > 1 or layout.tp > 1 or layout.cp > 1:
        degrees = {f"{split}_dp_replicate_size": copies, f"{split}_dp_shard_size": layout.dp // copies,
                   f"{split}_tp_size": layout.tp, f"{split}_cp_size": layout.cp}
    fsdp = f"{HOW}:fsdp_config.fsdp"
    return {f"{HOW}:distributed_type": "FSDP", f"{fsdp}_version": 2,
            f"{fsdp}_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            f"{fsdp}_reshard_after_forward": layout.zero == 3,
            f"{fsdp}_offload_params": bool(layout.offload.parameters),
            f"{fsdp}_state_dict_type": "SHARDED_STATE_DICT", f"{fsdp}_cpu_ram_efficient_loading": True,
            f"{fsdp}_activation_checkpointing": layout.recompute == "full",
            f"{fsdp}_activation_checkpointing_offload": bool(layout.offload.activations), **degrees}


def _offload(work: Work) -> Settings | No:
    return {} if hf.offloads_whole(work) else in_part(work)


def _recompute(work: Work) -> Settings | No:
    said = hf.recompute(ARGS)(work)
    # under FSDP its own plugin wraps the layers, and the Trainer must not do it again
    return {f"{ARGS}:gradient_checkpointing": False} if work.layout.zero and not isinstance(said, No) else said


def _activations(work: Work) -> Settings | No:
    share, scratch = work.layout.offload.activations, work.method == hf.FROM_SCRATCH
    if share and not work.layout.zero and scratch:
        return No("checkpoints on the host without FSDP", {"offload_activations": 0})
    return {} if scratch or work.preference else {f"{ARGS}:activation_offloading": bool(share) and not work.layout.zero}


def _context(work: Work) -> Settings | No:
    exchange = {"ring": "alltoall", "all-gather": "allgather"}.get(str(work.value("cp_method")))
    if work.layout.cp == 1:
        return {}
    if exchange is None or not work.layout.zero:
        return No("all-to-all of heads, or without FSDP", {"cp": 1})
    return {f"{HOW}:parallelism_config.parallelism_config_cp_comm_strategy": exchange}


def _precision(work: Work) -> Settings | No:
    said = hf.precision(ARGS)(work)
    name = work.layout.precision
    return said if isinstance(said, No) else {
        **said, f"{HOW}:mixed_precision": name if name in ("bf16", "fp16") else "no"}


TABLE: Table = {
    **hf.rest(ARGS),
    **hf.by_trl(ARGS, narrows=False),
    ("precision",): _precision,
    ("tp",): lambda w: {} if w.layout.tp == 1 or w.layout.zero else No("more than 1 without FSDP", {"zero": 3}),
    ("cp", "cp_method"): _context,
    ("zero", "hsdp"): _sharding,
    ("no_sync",): hf.no_sync(ARGS),
    ("recompute",): _recompute,
    ("offload", "offload_parameters"): _offload,
    ("offload_activations",): _activations,
    ("nvme",): hf.ON_HOST,
    ("method", "lora_rank"): hf.adapters(ARGS),
    ("lora_targets",): listed(f"{ARGS}:lora_target_modules"),
    ("packing",): hf.trainer_packing(ARGS),
}


def emit(work: Work) -> Program:
    """Return Accelerate's YAML, the Trainer's arguments, and the script that starts them."""
    files = by_file(settings_of(work, TABLE))
    scratch, nodes = work.method == hf.FROM_SCRATCH, work.placed.nodes
    files[ARGS] |= hf.arguments(work, ARGS)
    files[HOW] = {"compute_environment": "LOCAL_MACHINE", **files[HOW], "num_machines": nodes,
                  "num_processes": work.placed.gpus, "machine_rank": 0, "rdzv_backend": "static", "same_network": True}
    meet = ('--machine_rank="${NODE_RANK:?}" --main_process_ip="${MASTER_ADDR:?}" '
            f'--main_process_port="${{MASTER_PORT:-{PORT}}}" ' if nodes > 1 else "")
    body = [f'exec accelerate launch --config_file="$here/{HOW}" {meet}\\', *hf.trainer_call(work, ARGS)]
    head = f"Accelerate {work.release.release}"
    texts = {name: as_text(name, head, data) for name, data in files.items()}
    return Program(target=work.target, variables=hf.variables(work, {"DATA": "mock"} if scratch else None),
                   parts=(Part("train", "train.sh", nodes, work.gpus_per_node),), feedback="train.log",
                   files={**texts, **hf.trainer_files(work),
                          "train.sh": script(f"{head}: runs on every node", {}, body)})


EMITTER = Emitter("accelerate", TABLE, emit)

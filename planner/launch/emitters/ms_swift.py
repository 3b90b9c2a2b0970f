"""ms-swift: the YAML of `swift sft`."""

from __future__ import annotations

from planner.launch import hugging_face as hf
from planner.launch.adapted import listed
from planner.launch.axes import No, Settings, settings_of
from planner.launch.emitter import Emitter
from planner.launch.formats import as_text, by_file
from planner.launch.older import SDPA
from planner.launch.program import Part, Program, filled, script
from planner.launch.work import Work

FILE = "ms-swift.yaml"
DATA = "tatsu-lab/alpaca"


def _adapted(work: Work, rank: int) -> Settings:
    quantized = {f"{FILE}:quant_method": "bnb", f"{FILE}:quant_bits": 4, f"{FILE}:bnb_4bit_quant_type": "nf4",
                 f"{FILE}:bnb_4bit_use_double_quant": True} if work.method == "qlora" else {}
    return {f"{FILE}:tuner_type": "lora", f"{FILE}:lora_rank": rank, f"{FILE}:lora_alpha": 2 * rank,
            **quantized}


def _recompute(work: Work) -> Settings | No:
    said = hf.recompute(FILE)(work)
    if isinstance(said, No) or not work.layout.zero or work.value("recompute") == "none":
        return said
    # its FSDP wraps the layers by itself
    return {f"{FILE}:gradient_checkpointing": False, f"{FILE}:fsdp_config.activation_checkpointing": True}


def _packing(work: Work) -> Settings | No:
    said = hf.packing(FILE)(work)
    if work.attention == SDPA and isinstance(said, dict) and any(said.values()):
        return No(f"packed (by FlashAttention, which has no kernels for {work.gpu.name})")
    return said


TABLE = {**hf.of_trainer(FILE, recompute=_recompute, liger="use_liger_kernel",
                         method=hf.tuned_by({f"{FILE}:tuner_type": "full"}, _adapted)),
         ("lora_targets",): listed(f"{FILE}:target_modules"), ("packing",): _packing,
         **hf.preferences({name: {f"{FILE}:rlhf_type": said} for name, said in {
             "dpo": "dpo", "kto": "kto", "orpo": "orpo", "simpo": "simpo", "reward-model": "rm"}.items()})}


def emit(work: Work) -> Program:
    """Return ms-swift's YAML, and the script that starts it."""
    files = by_file(settings_of(work, TABLE))
    kind = {"bf16": "bfloat16", "fp16": "float16"}.get(work.layout.precision, "float32")
    sharded = {key: files[FILE].pop(key) for key in ("fsdp", "fsdp_config") if key in files[FILE]}
    data = {None: DATA, "kto": "trl-lib/kto-mix-14k"}.get(work.preference, "trl-lib/ultrafeedback_binarized")
    files[FILE] = {
        "use_hf": True, "model": work.model.hf_id or work.model.name, "dataset": data, "torch_dtype": kind,
        "max_length": work.sequence_length, "attn_impl": work.attention, "output_dir": "checkpoints",
        "max_steps": work.steps, "logging_steps": 1, "report_to": "none", "lr_scheduler_type": "cosine",
        "learning_rate": float(hf.rate_of(work)), "include_num_input_tokens_seen": True,
        **files[FILE], **({"fsdp": sharded} if sharded else {})}
    values = {"model": "MODEL", "dataset": "DATA", "output_dir": "CHECKPOINTS", "learning_rate": "LEARNING_RATE",
              "max_steps": "STEPS"}
    head, nodes = f"ms-swift {work.release.release}", work.placed.nodes
    # swift starts torchrun itself, from these
    meet = {"NPROC_PER_NODE": str(work.gpus_per_node), "NNODES": str(nodes)} if work.placed.gpus > 1 else {}
    needs = [': "${NODE_RANK:?}" "${MASTER_ADDR:?}"'] if nodes > 1 else []
    body = [*needs, *filled(FILE, values), f'exec swift {"rlhf" if work.preference else "sft"} "$config"']
    return Program(target=work.target, variables=hf.variables(work, {"DATA": data}), feedback="train.log",
                   parts=(Part("train", "train.sh", nodes, work.gpus_per_node),),
                   files={**{name: as_text(name, head, data) for name, data in files.items()},
                          "train.sh": script(f"{head}: runs on every node", meet, body)})


EMITTER = Emitter("ms-swift", TABLE, emit)

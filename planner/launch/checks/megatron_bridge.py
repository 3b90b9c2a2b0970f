"""Megatron-Bridge's own config: built by the script in the folder, completed and validated."""

from __future__ import annotations

import os
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import torch

from planner.launch.checks import megatron_lm
from planner.launch.checks.stand_ins import install
from planner.launch.checks.started import started
from planner.launch.checks.words import EVERY

install("transformer_engine_torch", "nvidia_resiliency_ext", "flash_attn", "mamba_ssm", "causal_conv1d", "flashinfer",
        "megatron.energon", "fla", "modelopt", "timm", "open_clip", "qwen_vl_utils", "torchvision", "diffusers",
        "mistral_common", "wandb", "mlflow", "comet_ml", "multistorageclient")


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that the config comes to."""
    import transformers  # noqa: F401 - before the stand-ins are asked for by it
    from megatron.bridge.training.config import runtime_config_update

    call = started(folder, "train.sh", "torchrun")
    spec = spec_from_file_location("pretrain_of_the_plan", call.program[0])
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    before = dict(os.environ)
    os.environ.update(call.environment)
    if "pretrained_checkpoint" in Path(call.program[0]).read_text():
        os.environ["WEIGHTS"] = str(folder)  # that they are there is all that is asked
    os.environ.update(WORLD_SIZE=str(call.world), RANK="0", LOCAL_RANK="0")
    try:
        spec.loader.exec_module(module)
        config = module.config()
        runtime_config_update(config)
        config.validate()
    finally:
        os.environ.clear()
        os.environ.update(before)
    return _axes(config, call.world)


def _axes(config: Any, world: int) -> dict[str, object]:  # noqa: ANN401 - the stack's own class
    model, ranks = config.model, config.data_parallel_size
    micro, whole = config.train.micro_batch_size, config.train.global_batch_size
    assert whole % (micro * ranks) == 0, f"global batch {whole} is no multiple of {micro} x {ranks}"
    stage = int(config.ddp.use_distributed_optimizer)
    if config.ddp.use_megatron_fsdp:
        stage = megatron_lm._STAGES[config.ddp.data_parallel_sharding_strategy]
    exchange = model.cp_comm_type[0] if isinstance(model.cp_comm_type, list) else model.cp_comm_type
    context = {"cp_method": megatron_lm._EXCHANGES[exchange]} if model.context_parallel_size > 1 else {}
    experts = {"ep": model.expert_model_parallel_size, "expert_tp": model.expert_tensor_parallel_size}
    kept = model.recompute_granularity
    recompute: object = kept or "none"
    if kept == "full" and model.recompute_method == "block":
        recompute = {"full": model.recompute_num_layers}
    offloaded = config.optimizer.optimizer_cpu_offload
    return {"tp": model.tensor_model_parallel_size, "pp": model.pipeline_model_parallel_size,
            "vpp": model.virtual_pipeline_model_parallel_size or 1, "cp": model.context_parallel_size, **context,
            "sp": int(model.sequence_parallel), "stages": megatron_lm._stages(model), "gpus": world, "dp": ranks,
            **(experts if model.num_moe_experts else {}), "micro_batch": micro,
            "micro_batches": whole // micro // ranks,
            "global_batch": whole, "sequence_length": model.seq_length, "layers": model.num_layers,
            "hidden": model.hidden_size, "zero": stage, "hsdp": config.ddp.num_distributed_optimizer_instances,
            "offload": config.optimizer.optimizer_offload_fraction if offloaded else 0.0, "recompute": recompute,
            "precision": _precision(config), "optimizer": {"adam": "adamw", "sgd": "sgd-momentum"}.get(
                config.optimizer.optimizer, config.optimizer.optimizer),
            "model": {**megatron_lm.built(model, model), "vocab": model.vocab_size, "tied": bool(
                model.share_embeddings_and_output_weights)},
            "method": "lora" if config.peft else "full" if config.checkpoint.finetune else "pretrain",
            **({"lora_rank": config.peft.dim, "adapted": _adapted(config.peft)} if config.peft else {})}


def _adapted(peft: Any) -> list[str]:  # noqa: ANN401
    """Return the modules that have adapters, by the names that most stacks have for them."""
    parts = {"linear_qkv": EVERY[:3], "linear_fc1": EVERY[4:6],
             **{name: (EVERY[at],) for at, name in enumerate(("linear_q", "linear_k", "linear_v", "linear_proj",
                                                              "linear_fc1_gate", "linear_fc1_up", "linear_fc2"))}}
    return [name for part in peft.target_modules for name in parts[part]]


def _precision(config: Any) -> str:  # noqa: ANN401
    mixed = config.mixed_precision
    if getattr(mixed, "fp4", None):
        return "fp4"
    if mixed.fp8:
        return "mxfp8" if mixed.fp8_recipe == "mxfp8" else "fp8"
    return "bf16" if config.model.params_dtype == torch.bfloat16 else "fp16"

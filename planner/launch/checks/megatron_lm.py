"""Megatron-LM's own arguments: parsed, validated, and made into the config of its transformer."""

from __future__ import annotations

import os
import sys
import typing
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from planner.launch.checks.stand_ins import install
from planner.launch.checks.started import started

if not hasattr(typing, "override"):
    typing.override = lambda function: function  # type: ignore[attr-defined]  # Python 3.11
import torch
import torch._dynamo
import torch._inductor.compile_fx

install("triton", "transformer_engine")
TRANSFORMER_ENGINE = "2.14.0"
"""Release that is taken to be there: it has every recipe."""


def _on_a_gpu(capability: tuple[int, int]) -> None:
    """Have torch say what GPU there is."""
    found = SimpleNamespace(major=capability[0], minor=capability[1], total_memory=80 * 2**30, name="GPU",
                            multi_processor_count=132)
    torch.cuda.get_device_properties = lambda *_, **__: found
    torch.cuda.get_device_capability = lambda *_, **__: capability


_on_a_gpu((9, 0))
import megatron.core.models.common.embeddings.rope_utils as rope  # noqa: E402 - what stands in has to be there first
import megatron.core.utils as core  # noqa: E402
from megatron.core.num_microbatches_calculator import ConstantNumMicroBatchesCalculator  # noqa: E402
from megatron.core.optimizer.optimizer_config import OptimizerConfig  # noqa: E402
from megatron.training.arguments import parse_args, validate_args  # noqa: E402
from packaging.version import Version  # noqa: E402

try:
    from megatron.training.arguments import core_transformer_config_from_args
except ImportError:
    from megatron.training.argument_utils import core_transformer_config_from_args
core._te_version = Version(TRANSFORMER_ENGINE)
core.get_te_version = lambda: Version(TRANSFORMER_ENGINE)
rope.fused_apply_rotary_pos_emb = rope.fused_apply_rotary_pos_emb_thd = lambda *_, **__: None
_STAGES = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
_EXCHANGES = {"p2p": "ring", "a2a": "all-to-all", "allgather": "all-gather"}


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that Megatron's arguments come to."""
    call = started(folder, "train.sh", "torchrun")
    before = dict(os.environ)
    os.environ.update({name: value for name, value in call.environment.items() if name.startswith(("CUDA_", "NV"))})
    os.environ.update(WORLD_SIZE=str(call.world), RANK="0")
    sys.argv = call.program
    try:
        args = parse_args()
        validate_args(args)
        config = core_transformer_config_from_args(args)
        # pretrain_gpt.py makes it of the arguments, and it refuses what they let by
        OptimizerConfig(**{one.name: getattr(args, one.name) for one in fields(OptimizerConfig) if hasattr(
            args, one.name)})
    finally:
        os.environ.clear()
        os.environ.update(before)
    ranks = args.data_parallel_size
    batches = ConstantNumMicroBatchesCalculator(args.global_batch_size, args.micro_batch_size, ranks, False, 0)
    return {**_degrees(args, config), **_states(args), "gpus": call.world, "dp": ranks,
            "micro_batches": batches.get(), "global_batch": args.global_batch_size,
            "sequence_length": args.seq_length, "layers": config.num_layers, "hidden": config.hidden_size,
            "precision": _precision(args), "recompute": _recompute(args), "schedule": "1f1b",
            "model": {**built(config, args), "vocab": args.vocab_size,
                      "tied": not args.untie_embeddings_and_output_weights, "gate": args.attention_output_gate},
            "method": "full" if args.finetune else "pretrain"}


def _degrees(args: Any, config: Any) -> dict[str, object]:  # noqa: ANN401 - the stack's own classes
    experts = {"ep": config.expert_model_parallel_size, "expert_tp": config.expert_tensor_parallel_size}
    exchange = config.cp_comm_type[0] if isinstance(config.cp_comm_type, list) else config.cp_comm_type
    context = {"cp_method": _EXCHANGES[exchange]} if args.context_parallel_size > 1 else {}
    return {"tp": config.tensor_model_parallel_size, "pp": config.pipeline_model_parallel_size,
            "vpp": config.virtual_pipeline_model_parallel_size or 1, "cp": config.context_parallel_size,
            "sp": int(config.sequence_parallel), "micro_batch": args.micro_batch_size, **context,
            "stages": _stages(config), **(experts if config.num_moe_experts else {})}


def built(config: Any, args: Any) -> dict[str, object]:  # noqa: ANN401
    """Return the model that a transformer's config comes to; what is of positions is among the arguments."""
    freq = config.moe_layer_freq
    mixed = [] if not config.num_moe_experts else freq if isinstance(freq, list) else [
        int(at % freq == 0) for at in range(config.num_layers)]
    model: dict[str, object] = {
        "heads": config.num_attention_heads, "qk_norm": config.qk_layernorm,
        "window": config.window_size[0] if config.window_size else None,
        "qkv_bias": bool(config.add_bias_linear or config.add_qkv_bias),
        "prediction_layers": config.mtp_num_layers or 0, "norm_epsilon": config.layernorm_epsilon}
    if mixed:
        model |= {"experts": config.num_moe_experts, "experts_per_token": config.moe_router_topk,
                  "expert_ffn": config.moe_ffn_hidden_size, "mixtures": sum(mixed),
                  "shared_ffn": config.moe_shared_expert_intermediate_size,
                  "sigmoid": config.moe_router_score_function == "sigmoid",
                  "router_scale": config.moe_router_topk_scaling_factor,
                  "groups": config.moe_router_num_groups, "groups_per_token": config.moe_router_group_topk}
    if not all(mixed) or not mixed:
        model["ffn"] = config.ffn_hidden_size
    if config.multi_latent_attention:
        return model | {"q_lora_rank": config.q_lora_rank, "kv_lora_rank": config.kv_lora_rank,
                        "qk_nope": config.qk_head_dim, "qk_rope": config.qk_pos_emb_head_dim,
                        "v_head": config.v_head_dim, "rotary_base": config.rotary_base,
                        "rotary_share": config.rotary_percent,
                        **({"scaled_by": config.rotary_scaling_factor} if config.rope_type == "yarn" else {})}
    turned = args.position_embedding_type == "rope"
    scaled = getattr(args, "use_rope_scaling", False) or getattr(args, "rope_scaling", False)
    return model | {"kv_heads": config.num_query_groups, "head_dim": config.kv_channels} | ({
        "rotary_base": args.rotary_base, "rotary_share": args.rotary_percent,
        "scaled_by": args.rope_scaling_factor if scaled else None} if turned else {})


def _stages(config: Any) -> str:  # noqa: ANN401
    """Return the layers of the stages, `even` where they are alike, by Megatron's own count of each."""
    from megatron.core.transformer.transformer_block import get_num_layers_to_build

    chunks = config.virtual_pipeline_model_parallel_size or 1
    own = config.pipeline_model_parallel_layout
    # its own count of a layout asks which chunk this process is of
    layers = [sum(kind.name == "decoder" for part in stage for kind in part) for stage in own.layout] if own else [
        sum(get_num_layers_to_build(config, chunk if chunks > 1 else None, stage) for chunk in range(chunks))
        for stage in range(config.pipeline_model_parallel_size)]
    assert sum(layers) == config.num_layers, f"the stages hold {layers} of {config.num_layers} layers"
    return "even" if len(set(layers)) == 1 else ", ".join(map(str, layers))


def _states(args: Any) -> dict[str, object]:  # noqa: ANN401
    stage = int(args.use_distributed_optimizer or args.use_layer_wise_distributed_optimizer)
    if args.use_megatron_fsdp:
        stage = _STAGES[args.data_parallel_sharding_strategy]
    return {"zero": stage, "hsdp": args.num_distributed_optimizer_instances, "no_sync": 0,
            "offload": args.optimizer_offload_fraction if args.optimizer_cpu_offload else 0.0,
            "offload_parameters": 0.0, "offload_activations": 0.0, "nvme": 0,
            "optimizer": {"adam": "adamw", "sgd": "sgd-momentum"}.get(args.optimizer, args.optimizer)}


def _precision(args: Any) -> str:  # noqa: ANN401
    if args.fp4:
        return "fp4"
    if args.fp8:
        return "mxfp8" if args.fp8_recipe == "mxfp8" else "fp8"
    if args.bf16 or args.fp16:
        return "bf16" if args.bf16 else "fp16"
    return "tf32" if os.environ.get("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE") == "1" else "fp32"


def _recompute(args: Any) -> object:  # noqa: ANN401
    if args.recompute_granularity is None:
        return "none"
    if args.recompute_granularity == "selective":
        return "selective"
    return "full" if args.recompute_method == "uniform" else {"full": args.recompute_num_layers}

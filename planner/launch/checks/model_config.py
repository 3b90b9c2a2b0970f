"""A config.json that has the shape of the plan's model: what an engine's parser reads in place of a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_PACKED = {"weights": {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 128},
           "targets": ["Linear"]}
_WHOLE = {"weights": {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel"},
          "input_activations": {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "token", "dynamic": True},
          "targets": ["Linear"]}
FORMATS: dict[str, dict[str, Any]] = {
    "fp8": {"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3", "weight_block_size": [128, 128]},
    "int4": {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"},
    "gptq-int8": {"quant_method": "gptq", "bits": 8, "group_size": 128, "desc_act": False, "sym": True},
    "w4a16": {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": _PACKED},
              "ignore": ["lm_head"]},
    "int8": {"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": {"group_0": _WHOLE},
             "ignore": ["lm_head"]},
    "nvfp4": {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16, "kv_cache_quant_algo": None,
              "exclude_modules": ["lm_head"]},
    "mxfp4": {"quant_method": "mxfp4"},
}
"""How a checkpoint in each format says so."""
NAMES = {"fp8": "fp8", "fp8_per_tensor": "fp8", "awq": "int4", "auto_awq": "int4", "awq_marlin": "int4",
         "modelopt_fp4": "nvfp4", "modelopt": "nvfp4", "mxfp4": "mxfp4", "gpt_oss_mxfp4": "mxfp4", "gptq": "gptq-int8",
         "gptq_marlin": "gptq-int8", "auto_gptq": "gptq-int8", "w8a8_int8": "int8", None: "bf16"}
"""What a parser calls each."""


def write_config(folder: Path, shape: Mapping[str, Any], turned: bool) -> None:
    """Write the config; `turned` says that the engine is asked to turn published weights into the format."""
    config: dict[str, Any] = {
        "hidden_size": shape["hidden"], "num_hidden_layers": shape["layers"], "num_attention_heads": shape["heads"],
        "num_key_value_heads": shape["kv_heads"], "vocab_size": shape["vocab"], "intermediate_size": shape["ffn"],
        "max_position_embeddings": shape["longest"], "rms_norm_eps": 1e-5, "hidden_act": "silu", "rope_theta": 1e6,
        "torch_dtype": "bfloat16", "tie_word_embeddings": False}
    if "latent" in shape:
        config |= {"architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", **shape["latent"],
                   "n_routed_experts": shape.get("experts"), "num_experts_per_tok": shape.get("experts_per_token"),
                   "moe_intermediate_size": shape.get("expert_ffn", shape["ffn"]), "n_shared_experts": 1, "n_group": 8,
                   "topk_group": 4, "first_k_dense_replace": 3, "moe_layer_freq": 1, "topk_method": "noaux_tc",
                   "scoring_func": "sigmoid", "norm_topk_prob": True, "routed_scaling_factor": 2.5}
    elif shape.get("experts"):
        config |= {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "head_dim": shape["head_dim"],
                   "num_local_experts": shape["experts"], "num_experts_per_tok": shape["experts_per_token"]}
    else:
        config |= {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
        if "head_dim" in shape:
            config["head_dim"] = shape["head_dim"]
    if not turned and shape["format"] in FORMATS:
        config["quantization_config"] = FORMATS[shape["format"]]
    (folder / "config.json").open("w").write(json.dumps(config))


def format_named(name: str | None, config: Mapping[str, Any] | None) -> str:
    """Return our name of the format that a parser came to."""
    if name == "compressed-tensors" and config is not None:
        weights = config["config_groups"]["group_0"]["weights"]
        return {4: "w4a16", 8: "int8"}[weights["num_bits"]]
    return NAMES.get(name, str(name))

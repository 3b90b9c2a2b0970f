"""Which shape each Hugging Face model_type has, and what is assumed of one that is not in the table."""

from __future__ import annotations

from collections.abc import Callable

from planner.catalog.importers import hf_dense as dense
from planner.catalog.importers import hf_hybrids as hybrids
from planner.catalog.importers import hf_mixtures as mixtures
from planner.catalog.importers.hf_parts import Config, Entry, usual

_BY_SHAPE: dict[Callable[[Config], Entry], str] = {
    dense.llama: "llama granite baichuan yi exaone helium",
    dense.tied_llama: "smollm3 minicpm ernie4_5 ",
    dense.mistral: "mistral ministral ministral3 mistral3", dense.phi3: "phi3", dense.phi: "phi",
    dense.qwen: "qwen", dense.qwen2: "qwen2 qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text mimo",
    dense.qwen3: "qwen3 qwen3_vl qwen3_vl_text hunyuan_v1_dense",
    dense.olmo: "olmo", dense.olmo2: "olmo2", dense.olmo3: "olmo3", dense.gemma: "gemma", dense.gemma2: "gemma2",
    dense.gemma3: "gemma3 gemma3_text", dense.glm: "glm", dense.glm4: "glm4", dense.chatglm: "chatglm",
    dense.seed_oss: "seed_oss", dense.internlm2: "internlm internlm2", dense.exaone4: "exaone4", dense.bitnet: "bitnet",
    dense.arcee: "arcee", dense.apertus: "apertus", dense.nemotron: "nemotron", dense.starcoder2: "starcoder2",
    dense.stablelm: "stablelm", dense.cohere: "cohere", dense.cohere2: "cohere2", dense.gpt_neox: "gpt_neox",
    dense.gpt2: "gpt2", dense.gpt_bigcode: "gpt_bigcode", dense.gptj: "gptj codegen", dense.opt: "opt",
    dense.bloom: "bloom", dense.falcon: "falcon", dense.mpt: "mpt",
    mixtures.mixtral: "mixtral", mixtures.qwen2_moe: "qwen2_moe",
    mixtures.qwen3_moe: "qwen3_moe qwen3_vl_moe qwen3_vl_moe_text", mixtures.olmoe: "olmoe",
    mixtures.granitemoe: "granitemoe granitemoeshared", mixtures.phimoe: "phimoe", mixtures.dbrx: "dbrx",
    mixtures.gpt_oss: "gpt_oss", mixtures.glm4_moe: "glm4_moe", mixtures.dots1: "dots1",
    mixtures.minimax_m2: "minimax_m2", mixtures.minimax_m3: "minimax_m3 minimax_m3_vl minimax_m3_vl_text",
    mixtures.deepseek_v1: "deepseek",
    mixtures.deepseek: "deepseek_v2 deepseek_v3 deepseek_v32 kimi_k2 kimi_k25 glm_moe_dsa glm4_moe_lite",
    mixtures.deepseek_v4: "deepseek_v4", mixtures.llama4: "llama4 llama4_text",
    mixtures.gemma4: "gemma4 gemma4_text", mixtures.ernie4_5_moe: "ernie4_5_moe",
    mixtures.hunyuan_moe: "hunyuan_v1_moe hunyuan", mixtures.mimo_v2_flash: "mimo_v2_flash",
    mixtures.step3p7: "step3p7",
    hybrids.nemotron_h: "nemotron_h", hybrids.jamba: "jamba", hybrids.mamba: "mamba falcon_mamba",
    hybrids.mamba2: "mamba2", hybrids.granite_hybrid: "granitemoehybrid", hybrids.kimi_linear: "kimi_linear",
    hybrids.nemotron_nas: "nemotron-nas",
    hybrids.qwen_hybrid: "qwen3_next qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text",
}
FAMILIES: dict[str, Callable[[Config], Entry]] = {
    name: shape for shape, names in _BY_SHAPE.items() for name in names.split()}
TELLING = frozenset({
    "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "kv_lora_rank", "ssm_cfg", "state_size",
    "linear_attn_config", "block_configs", "is_encoder_decoder", "layers_block_type", "hybrid_override_pattern",
    "hybrid_layer_pattern", "sparse_attention_config", "index_topk", "parallel_attn", "use_parallel_residual",
    "attn_config", "ssm_state_size", "mamba_d_state", "hidden_size_per_layer_input", "altup_num_inputs"})
"""Keys that say that a model is no stack of equal dense layers."""


def unknown(c: Config) -> tuple[Entry, str]:
    """Return the shape of a model_type that is not in the table, and what is assumed. Raises ValueError with the key.

    Only where the config has all fields of a Llama and none that tells of another shape.
    """
    c = usual(c)
    kinds = set(c.get("layer_types") or ()) - {"full_attention", "sliding_attention"}
    telling = sorted(key for key in TELLING if c.get(key)) + [f"layer_types {kind}" for kind in sorted(kinds)]
    if telling:
        raise ValueError(f"not in the table of architectures, and {telling[0]} says that it is not like Llama")
    missing = [key for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
                               "vocab_size", "hidden_act") if not c.get(key)]
    if missing:
        raise ValueError("not in the table of architectures, and to be read like Llama it lacks " + ", ".join(missing))
    if c["hidden_act"] not in ("silu", "swiglu", "swish"):
        raise ValueError(f"not in the table of architectures, and hidden_act {c['hidden_act']} does not tell whether "
                         "the feed-forward has a gate")
    normed = any(c.get(key) for key in ("qk_norm", "use_qk_norm"))
    entry = dense.llama(c)
    block = entry["blocks"][0]
    entry["blocks"] = [block | {"attention": block["attention"] | ({"qk_norm": True} if normed else {})}]
    return entry, ("model_type " + str(c.get("model_type")) + " is not in the table: read like Llama (gated "
                   "feed-forward, two RMS norms a layer, rotary positions, biases only where the config states them, "
                   "full attention)")

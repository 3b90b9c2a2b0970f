"""Which shape each Hugging Face model_type has, and what is assumed of one that is not in the table."""

from __future__ import annotations

from collections.abc import Callable

from planner.catalog.importers import hf_crossing as crossing
from planner.catalog.importers import hf_dense as dense
from planner.catalog.importers import hf_encoders as encoders
from planner.catalog.importers import hf_hybrids as hybrids
from planner.catalog.importers import hf_mixtures as mixtures
from planner.catalog.importers import hf_plain as plain
from planner.catalog.importers import hf_remote as remote
from planner.catalog.importers import hf_routed as routed
from planner.catalog.importers import hf_streams as streams
from planner.catalog.importers.hf_parts import Config, Entry, usual

_BY_SHAPE: dict[Callable[[Config], Entry], str] = {
    dense.llama: "llama granite baichuan yi exaone helium aquila",
    dense.tied_llama: "smollm3 minicpm ernie4_5 ",
    dense.mistral: "mistral ministral ministral3 mistral3", dense.phi3: "phi3", plain.phi: "phi",
    dense.qwen: "qwen", dense.qwen2: "qwen2 qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text mimo",
    dense.qwen3: "qwen3 qwen3_vl qwen3_vl_text", dense.hunyuan: "hunyuan_v1_dense",
    dense.olmo: "olmo", dense.olmo2: "olmo2", dense.olmo3: "olmo3", dense.gemma: "gemma", dense.gemma2: "gemma2",
    dense.gemma3: "gemma3 gemma3_text", dense.glm: "glm", dense.glm4: "glm4", dense.chatglm: "chatglm",
    dense.seed_oss: "seed_oss", dense.internlm2: "internlm internlm2", dense.exaone4: "exaone4", dense.bitnet: "bitnet",
    plain.arcee: "arcee", dense.apertus: "apertus apertus1p5_text", plain.nemotron: "nemotron",
    plain.starcoder2: "starcoder2", dense.stablelm: "stablelm stablelm_epoch", dense.cohere: "cohere",
    dense.cohere2: "cohere2", plain.gpt_neox: "gpt_neox",
    plain.gpt2: "gpt2 openai-gpt gpt-sw3", plain.gpt_bigcode: "gpt_bigcode", plain.gptj: "gptj codegen",
    plain.opt: "opt", plain.bloom: "bloom", plain.falcon: "falcon", plain.mpt: "mpt",
    mixtures.mixtral: "mixtral", mixtures.qwen2_moe: "qwen2_moe",
    mixtures.qwen3_moe: "qwen3_moe qwen3_vl_moe qwen3_vl_moe_text", mixtures.olmoe: "olmoe",
    mixtures.granitemoe: "granitemoe granitemoeshared", mixtures.phimoe: "phimoe", mixtures.dbrx: "dbrx",
    mixtures.gpt_oss: "gpt_oss", mixtures.glm4_moe: "glm4_moe", mixtures.dots1: "dots1",
    mixtures.minimax_m2: "minimax_m2", mixtures.minimax_m3: "minimax_m3 minimax_m3_vl minimax_m3_vl_text",
    mixtures.deepseek_v1: "deepseek",
    mixtures.deepseek: "deepseek_v2 deepseek_v3 deepseek_v32 kimi_k2 kimi_k25 glm_moe_dsa glm4_moe_lite "
    "mistral4",
    mixtures.deepseek_v4: "deepseek_v4", mixtures.llama4: "llama4 llama4_text",
    mixtures.gemma4: "gemma4 gemma4_text", hybrids.gemma3n: "gemma3n gemma3n_text",
    mixtures.ernie4_5_moe: "ernie4_5_moe",
    mixtures.hunyuan_moe: "hunyuan_v1_moe hunyuan", mixtures.mimo_v2_flash: "mimo_v2_flash",
    mixtures.step3p7: "step3p7",
    hybrids.nemotron_h: "nemotron_h", hybrids.jamba: "jamba", hybrids.mamba: "mamba falcon_mamba",
    hybrids.mamba2: "mamba2", hybrids.granite_hybrid: "granitemoehybrid", hybrids.kimi_linear: "kimi_linear",
    hybrids.nemotron_nas: "nemotron-nas",
    dense.latent_llama: "minicpm3 youtu", dense.vaultgemma: "vaultgemma", dense.hyperclovax: "hyperclovax",
    dense.internlm3: "internlm3", dense.granite_swa: "granite_swa", plain.jais2: "jais2", plain.nanochat: "nanochat",
    plain.persimmon: "persimmon fuyu", plain.gpt_neo: "gpt_neo", plain.xglm: "xglm", plain.biogpt: "biogpt",
    dense.doge: "doge",
    routed.afmoe: "afmoe", routed.exaone_moe: "exaone_moe", routed.hy_v3: "hy_v3", routed.solar_open: "solar_open",
    routed.mellum: "mellum", routed.cohere2_moe: "cohere2_moe", routed.flex_olmo: "flex_olmo",
    routed.aria: "aria_text aria_moe_lm", routed.axk1: "axk1", routed.bailing_moe: "bailing_moe bailing_moe_v2",
    routed.granitemoe_swa: "granitemoe_swa", routed.laguna: "laguna", routed.longcat_flash: "longcat_flash",
    routed.flint: "flint", routed.kolibri1: "kolibri1",
    routed.minimax: "minimax minimax_text_01 minimax_m1", routed.step3p5: "step3p5",
    hybrids.bamba: "bamba", hybrids.falcon_h1: "falcon_h1", hybrids.lfm2: "lfm2 lfm2_moe", hybrids.lfm3: "lfm3",
    hybrids.olmo_hybrid: "olmo_hybrid", hybrids.bailing_hybrid: "bailing_hybrid",
    hybrids.recurrent_gemma: "recurrent_gemma", hybrids.rwkv: "rwkv", hybrids.xlstm: "xlstm",
    streams.axk2: "axk2", streams.beam: "beam", streams.hy_v4: "hy_v4",
    streams.dots3_note: "dots3_note dots3_note_text", streams.inkling: "inkling inkling_text",
    streams.qwen4_exp: "qwen4_exp qwen4_exp_text", streams.gemma4_unified: "gemma4_unified gemma4_unified_text",
    streams.glm5_next: "glm5_next glm5_next_text",
    streams.mistral_large4: "mistral_large4 mistral_large4_text",
    streams.muse_glimmer: "muse_glimmer muse_glimmer_text", streams.muse_spark: "muse_spark muse_spark_text",
    streams.ring_linear: "bailing_moe_linear bailing_moe_linear_v2",
    encoders.bert: "bert mpnet megatron-bert ernie electra",
    encoders.xlm_roberta: "roberta xlm-roberta camembert xlm-roberta-xl roberta-prelayernorm data2vec-text",
    encoders.bert_generation: "bert-generation", encoders.roformer: "roformer",
    remote.refined_web: "RefinedWebModel RefinedWeb", remote.phi_msft: "phi-msft", remote.orion: "orion",
    remote.deci: "deci", remote.openelm: "openelm", remote.jais: "jais", remote.codeshell: "codeshell",
    remote.gpt_neox_japanese: "gpt_neox_japanese", remote.ctrl: "ctrl",
    remote.modernbert_decoder: "modernbert-decoder",
    routed.step3: "step3 step3_text", routed.arctic: "arctic", routed.grok: "grok-1 grok",
    encoders.distilbert: "distilbert", encoders.jina: "jina_embeddings_v3", encoders.nomic_bert: "nomic_bert",
    encoders.modernbert: "modernbert", encoders.eurobert: "eurobert",
    crossing.whisper: "whisper", crossing.mllama: "mllama mllama_text_model",
    hybrids.qwen_hybrid: "qwen3_next qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text",
}
FAMILIES: dict[str, Callable[[Config], Entry]] = {
    name: shape for shape, names in _BY_SHAPE.items() for name in names.split()}
_FUSED = {
    "qkv": "phi3 internlm2 chatglm qwen gpt_neox gpt2 openai-gpt gpt-sw3 gpt_bigcode codegen bloom falcon mpt "
    "persimmon fuyu dbrx bailing_moe bailing_moe_v2 modernbert nomic_bert",
    "gate-up": "phi3 chatglm glm glm4 granitemoehybrid modernbert",
    "experts": "gpt_oss llama4 llama4_text gemma4 gemma4_text granitemoe granitemoeshared granitemoehybrid "
    "qwen3_vl_moe qwen3_vl_moe_text qwen3_5_moe qwen3_5_moe_text", "qkvz": "qwen3_next"}
FUSED = {name: tuple(part for part, names in _FUSED.items() if name in names.split()) for name in FAMILIES}
"""Products that Transformers keeps as one matrix, of every architecture."""
_REFUSED = {
    "an encoder with a decoder behind it is not modeled": "t5 mt5 umt5 t5gemma t5gemma2 bart mbart pegasus "
    "bigbird_pegasus blenderbot blenderbot-small marian m2m_100 nllb-moe plbart prophetnet mvp trocr led "
    "longt5",
    "weights that several layers share are not modeled": "zamba zamba2 albert",
    "layers that run several times for a token are not modeled": "hrm_text ouro",
    "attention as a mixture of experts is not modeled": "jetmoe",
    "attention inside a compressed space with convolutions is not modeled": "zaya",
    "attention that also scores positions apart from content is not modeled": "deberta deberta-v2 xlnet cpmant",
    "attention over blocks that are drawn or hashed is not modeled": "big_bird reformer longformer",
    "a mixing of tokens by time decay with data of its own is not modeled": "rwkv5 rwkv6 rwkv6qwen2 rwkv7",
    "convolutions ahead of attention are not modeled": "yuan yuan2",
    "tables narrower than the layers are not modeled": "rembert",
    "text with sound as several streams of tokens is not modeled": "moshi csm",
    "text that is denoised, not generated token by token, is not modeled": "llada llada_moe dream sdar diffusion_gemma",
    "layers that attend over the outputs of earlier ones are not modeled": "inkling2 inkling2_text",
    "a decoder over the embeddings of an image encoder of its own is not modeled": "git",
    "tables of pronunciation and shape beside those of tokens are not modeled": "roc_bert",
    "embeddings of languages beside those of tokens are not modeled": "xlm flaubert",
    "adapters of each language inside the layers are not modeled": "xmod",
    "bytes joined to patches of varying length are not modeled": "blt",
}
REFUSED = {name: why for why, names in _REFUSED.items() for name in names.split()}
"""Architectures whose configs could be misread, with what the planner lacks."""
TELLING = frozenset({
    "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "moe_layers_enum", "kv_lora_rank",
    "ssm_cfg", "state_size", "linear_attn_config", "block_configs", "is_encoder_decoder", "layers_block_type",
    "hybrid_override_pattern", "hybrid_layer_pattern", "sparse_attention_config", "index_topk", "parallel_attn",
    "use_parallel_residual", "attn_config", "ssm_state_size", "mamba_d_state", "hidden_size_per_layer_input",
    "altup_num_inputs"})
"""Keys that say that a model is no stack of equal dense layers."""


def unknown(c: Config) -> tuple[Entry, str]:
    """Return the shape of a model_type that is not in the table, and what is assumed. Raises ValueError with the key.

    Only where the config has all fields of a Llama and none that tells of another shape.
    """
    if str(c.get("model_type")) in REFUSED or c.get("is_encoder_decoder"):
        raise ValueError(REFUSED.get(str(c.get("model_type")), REFUSED["t5"]))
    telling = sorted(key for key in TELLING if c.get(key))
    c = usual(c)
    kinds = set(c.get("layer_types") or ()) - {"full_attention", "sliding_attention"}
    telling += [f"layer_types {kind}" for kind in sorted(kinds)]
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

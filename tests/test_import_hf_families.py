"""Configs of current families: the tensors that transformers 5.23.0 builds of them, counted, or the count published."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.catalog.architecture import Model
from planner.catalog.importers.hf import import_config
from planner.catalog.load import Catalog
from planner.cli.main import main
from planner.physics.shapes import active_parameters, parameters
from tests.test_import_hf import CONFIGS, LATENT, saved, shape

FOURTHS = (["sliding_attention"] * 3 + ["full_attention"])
SIXTHS = (["sliding_attention"] * 5 + ["full_attention"])
EXPERTS = {"num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408,
           "shared_expert_intermediate_size": 5632}
GLM5 = shape("glm_moe_dsa", 78, 6144, 64, 12288, 154880, head_dim=64, q_lora_rank=2048, kv_lora_rank=512,
             qk_nope_head_dim=192, qk_rope_head_dim=64, v_head_dim=256, index_head_dim=128, index_n_heads=32,
             index_topk=2048, n_routed_experts=256, num_experts_per_tok=8, moe_intermediate_size=2048,
             n_shared_experts=1, first_k_dense_replace=3, moe_layer_freq=1, topk_method="noaux_tc")
V4 = shape("deepseek_v4", 43, 4096, 64, 0, 129280, num_key_value_heads=1, head_dim=512, hc_mult=4, index_head_dim=128,
           index_n_heads=64, index_topk=512, moe_intermediate_size=2048, n_routed_experts=256, n_shared_experts=1,
           num_experts_per_tok=6, num_hash_layers=3, o_groups=8, o_lora_rank=1024, q_lora_rank=1024,
           qk_rope_head_dim=64, sliding_window=128, topk_method="noaux_tc", expert_dtype="fp4",
           compress_ratios=[0, 0] + [4, 128] * 20 + [4, 0],
           quantization_config={"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]})
M3 = shape("minimax_m3", 60, 6144, 64, 3072, 200064, num_key_value_heads=4, head_dim=128, dense_intermediate_size=12288,
           moe_intermediate_size=3072, moe_layer_freq=[0] * 3 + [1] * 57, n_shared_experts=1, num_experts_per_tok=4,
           num_local_experts=128, shared_intermediate_size=3072, use_qk_norm=True, sparse_attention_config={
               "sparse_attention_freq": [0] * 3 + [1] * 57, "sparse_block_size": 128, "sparse_index_dim": 128,
               "sparse_num_index_heads": 4, "sparse_topk_blocks": 16, "use_sparse_attention": True})
KIMI = shape("kimi_linear", 27, 2304, 32, 9216, 163840, kv_lora_rank=512, qk_nope_head_dim=128, qk_rope_head_dim=64,
             v_head_dim=128, first_k_dense_replace=1, moe_intermediate_size=1024, num_experts=256,
             num_experts_per_token=8, num_shared_experts=1, moe_layer_freq=1, linear_attn_config={
                 "full_attn_layers": [4, 8, 12, 16, 20, 24, 27], "head_dim": 128, "num_heads": 32,
                 "short_conv_kernel_size": 4})
GEMMA4 = {"model_type": "gemma4", "vision_config": {"model_type": "gemma4_vision"}, "text_config": shape(
    "gemma4_text", 30, 2816, 16, 2112, 262144, num_key_value_heads=8, head_dim=256, attention_k_eq_v=True,
    enable_moe_block=True, global_head_dim=512, num_global_key_value_heads=2, num_experts=128, top_k_experts=8,
    moe_intermediate_size=704, hidden_size_per_layer_input=0, sliding_window=1024, layer_types=SIXTHS * 5)}
GEMMA4_E2B = {"model_type": "gemma4_text"} | shape(
    "gemma4_text", 35, 1536, 8, 6144, 262144, num_key_value_heads=1, head_dim=256, hidden_size_per_layer_input=256,
    num_kv_shared_layers=20, use_double_wide_mlp=True, layer_types=["sliding_attention"] * 4 + ["full_attention"] + (
        ["sliding_attention"] * 4 + ["full_attention"]) * 6)


def nas(heads: int | None, ffn_mult: float | None, linear: bool = False) -> dict[str, Any]:
    """A layer of Llama Nemotron: attention with so many heads in a group, a feed-forward of so many widths, or none."""
    return {"attention": {"n_heads_in_group": heads, "no_op": heads is None and not linear,
                          "replace_with_linear": linear},
            "ffn": {"ffn_mult": ffn_mult, "no_op": ffn_mult is None, "replace_with_linear": False}}


TOTALS: dict[str, tuple[dict[str, Any], int, int]] = {
    "gpt-neox-20b": (shape("gpt_neox", 44, 6144, 64, 24576, 50432), 20554567680, 20554567680),
    "starcoder": ({"model_type": "gpt_bigcode", "n_embd": 6144, "n_head": 48, "n_layer": 40, "n_inner": 24576,
                   "n_positions": 8192, "vocab_size": 49152, "multi_query": True}, 15517456384, 15517456384),
    "gpt-j-6b": ({"model_type": "gptj", "n_embd": 4096, "n_head": 16, "n_layer": 28, "n_positions": 2048,
                  "vocab_size": 50400, "n_inner": None}, 6050882784, 6050882784),
    "olmo-1b": (shape("olmo", 16, 2048, 16, 8192, 50304, tie_word_embeddings=True), 1176764416, 1176764416),
    "olmo-3-7b": (shape("olmo3", 32, 4096, 32, 11008, 100278, sliding_window=4096, layer_types=FOURTHS * 8),
                  7298011136, 7298011136),
    "olmoe-1b-7b": (shape("olmoe", 16, 2048, 16, 1024, 50304, num_experts=64, num_experts_per_tok=8),
                    6919161856, 1282017280),
    "smollm3-3b": (shape("smollm3", 36, 2048, 16, 11008, 128256, num_key_value_heads=4), 3075098624, 3075098624),
    "qwen1.5-moe-a2.7b": (shape("qwen2_moe", 24, 2048, 16, 5632, 151936, decoder_sparse_step=1, **EXPERTS),
                          14315784192, 2689173504),
    "dbrx": ({"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40, "vocab_size": 100352,
              "attn_config": {"kv_n_heads": 8, "clip_qkv": 8},
              "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4}},
             131596523520, 36469708800),
    "starcoder2-15b": (shape("starcoder2", 40, 6144, 48, 24576, 49152, num_key_value_heads=4, sliding_window=4096,
                             tie_word_embeddings=False), 15957889024, 15957889024),
    "command-r-35b": (shape("cohere", 40, 8192, 64, 22528, 256000), 34980831232, 34980831232),
    "command-r-plus-104b": (shape("cohere", 64, 12288, 96, 33792, 256000, num_key_value_heads=8, use_qk_norm=True),
                            103810674688, 103810674688),
    "command-r7b": (shape("cohere2", 32, 4096, 32, 14336, 256000, num_key_value_heads=8, sliding_window=4096,
                          sliding_window_pattern=4), 8028033024, 8028033024),
    "granite-3.1-8b": (shape("granite", 40, 4096, 32, 12800, 49155, num_key_value_heads=8, tie_word_embeddings=True),
                       8170848256, 8170848256),
    "granite-3.1-3b-a800m": (shape("granitemoe", 32, 1536, 24, 512, 49155, num_key_value_heads=8, num_local_experts=40,
                                   num_experts_per_tok=8, tie_word_embeddings=True), 3298793472, 882874368),
    "granite-4.0-h-tiny": (shape(
        "granitemoehybrid", 40, 1536, 12, 512, 100352, num_key_value_heads=4, num_local_experts=64,
        num_experts_per_tok=6, shared_intermediate_size=1024, mamba_n_heads=48, mamba_d_state=128, mamba_d_conv=4,
        mamba_expand=2, mamba_n_groups=1, tie_word_embeddings=True,
        layer_types=["attention" if i % 10 == 5 else "mamba" for i in range(40)]),
        6939037248, 1465470528),
    "internlm2-7b": (shape("internlm2", 32, 4096, 32, 14336, 92544, num_key_value_heads=8, bias=False),
                     7737708544, 7737708544),
    "seed-oss-36b": (shape("seed_oss", 64, 5120, 80, 27648, 155136, num_key_value_heads=8, head_dim=128,
                           attention_bias=True, attention_out_bias=False), 36151104512, 36151104512),
    "phi-2": (shape("phi", 32, 2560, 32, 10240, 51200), 2779683840, 2779683840),
    "phi-3.5-moe": (shape("phimoe", 32, 4096, 32, 6400, 32064, num_key_value_heads=8, num_local_experts=16,
                          num_experts_per_tok=2, attention_bias=True, lm_head_bias=True), 41873153344, 6640999744),
    "ernie-4.5-21b-a3b": (shape(
        "ernie4_5_moe", 28, 2560, 20, 12288, 103424, num_key_value_heads=4, moe_num_experts=64, moe_k=6,
        moe_intermediate_size=1536, moe_num_shared_experts=2, moe_layer_start_index=1), 21825437888, 3352148480),
    "hunyuan-a13b": (shape("hunyuan_v1_moe", 32, 4096, 32, 3072, 128167, num_key_value_heads=8, head_dim=128,
                           num_experts=64, moe_topk=[8] * 32, moe_intermediate_size=[3072] * 32,
                           num_shared_expert=[1] * 32, tie_word_embeddings=True), 80393183232, 12747448320),
    "dots.llm1": (shape("dots1", 62, 4096, 32, 10944, 152064, n_routed_experts=128, num_experts_per_tok=6,
                        moe_intermediate_size=1408, n_shared_experts=2, first_k_dense_replace=1,
                        topk_method="noaux_tc"), 142774381696, 14016581120),
    "deepseek-moe-16b": (shape("deepseek", 28, 2048, 16, 10944, 102400, n_routed_experts=64, num_experts_per_tok=6,
                               moe_intermediate_size=1408, n_shared_experts=2, first_k_dense_replace=1,
                               moe_layer_freq=1), 16375728128, 2828650496),
    "exaone-4.0-32b": (shape("exaone4", 64, 5120, 40, 27392, 102400, num_key_value_heads=8, head_dim=128,
                             sliding_window=4096, sliding_window_pattern="LLLG"), 32003216384, 32003216384),
    "stablelm-2-12b": (shape("stablelm", 40, 5120, 32, 13824, 100352, num_key_value_heads=8, use_qkv_bias=False,
                             use_parallel_residual=True, qk_layernorm=True), 12143185920, 12143185920),
    "bitnet-b1.58-2b-4t": (shape("bitnet", 30, 2560, 20, 6912, 128256, num_key_value_heads=5), 2412820480, 2412820480),
    "hunyuan-7b": (shape("hunyuan_v1_dense", 32, 4096, 32, 14336, 128167, num_key_value_heads=8, head_dim=128,
                         tie_word_embeddings=True), 7504568320, 7504568320),
    "glm-4-9b": (shape("glm", 40, 4096, 32, 13696, 151552, num_key_value_heads=2, attention_bias=True),
                 9399951360, 9399951360),
    "glm-4-9b-0414": (shape("glm4", 40, 4096, 32, 13696, 151552, num_key_value_heads=2, attention_bias=True),
                      9400279040, 9400279040),
    "chatglm3-6b": ({"model_type": "chatglm", "num_layers": 28, "hidden_size": 4096, "num_attention_heads": 32,
                     "multi_query_attention": True, "multi_query_group_num": 2, "kv_channels": 128,
                     "ffn_hidden_size": 13696, "padded_vocab_size": 65024, "add_qkv_bias": True, "seq_length": 8192,
                     "add_bias_linear": False}, 6243584000, 6243584000),
    "arcee": (shape("arcee", 32, 2560, 32, 18432, 32000), 4022766080, 4022766080),
    "apertus": (shape("apertus", 32, 4096, 32, 14336, 131072), 6979596352, 6979596352),
    "apertus1p5_text": (shape("apertus1p5_text", 32, 4096, 32, 14336, 131072), 6979596352, 6979596352),
    "mamba": ({"model_type": "mamba", "num_hidden_layers": 32, "hidden_size": 768, "vocab_size": 50280,
               "state_size": 16, "expand": 2, "conv_kernel": 4, "time_step_rank": 48}, 159308544, 159308544),
    "step-3.7-flash": (shape(
        "step3p7", 45, 4096, 64, 11264, 128896, num_key_value_heads=8, head_dim=128, sliding_window=512,
        first_k_dense_replace=3, num_experts=288, num_experts_per_tok=8, moe_intermediate_size=1280,
        share_expert_dim=1280, n_shared_experts=1, use_moe_router_bias=True,
        layer_types=(["full_attention"] + ["sliding_attention"] * 3) * 11 + ["full_attention"]),
        195832700736, 10863882240),
    "deepseek-v3": (CONFIGS["deepseek-v3"] | {"moe_layer_freq": 1}, 671026419200, 37552282624),
    "glm-5": (GLM5, 743911218432, 41784709632),
    "glm-5.2": (GLM5 | {"indexer_types": ["full"] * 2 + (["full"] + ["shared"] * 3) * 19}, 743377019904, 41250511104),
    "deepseek-v4-flash": (V4, 284332240471, 13799622231),
    "minimax-m3": (M3, 426174572928, 25962466560),
    "kimi-linear-48b-a3b": (KIMI, 49122681728, 3484453248),
    "gemma-4-26b-a4b": (GEMMA4, 25233141760, 3822530560),
    "gemma-4-e2b": (GEMMA4_E2B, 4628569344, 4628569344),
    "kimi-k2-thinking": (shape("kimi_k2", 61, 7168, 64, 18432, 163840, n_routed_experts=384, num_experts_per_tok=8,
                               moe_intermediate_size=2048, n_shared_experts=1, first_k_dense_replace=1,
                               moe_layer_freq=1, topk_method="noaux_tc", **LATENT), 1026408232448, 32861477888),
}


COUNTED: dict[str, tuple[dict[str, Any], int]] = json.loads(
    (Path(__file__).parent / "hf_configs.json").read_text(encoding="utf-8"))
"""Configs as published, with the parameters of the model card, and what config classes of transformers 5.23.0 say by
default, with the tensors that it builds of them; keys that decide nothing are left out."""


@pytest.mark.parametrize("name", COUNTED)
def test_the_count_is_the_published_one(name: str, tmp_path: Path) -> None:
    config, total = COUNTED[name]
    found = parameters(import_config(saved(tmp_path, config), "2026-11-22", text_only=True))
    # a model card may round, and leave out or count prediction modules
    assert found == pytest.approx(total, rel=0.001 if name.startswith("default of") else 0.006)


def test_a_config_of_another_type_is_told_by_its_class(tmp_path: Path) -> None:
    other = V4 | {"model_type": "deepseek_ref", "architectures": ["DeepseekV4ForCausalLM"]}
    assert parameters(import_config(saved(tmp_path, other), "2026-11-22")) == TOTALS["deepseek-v4-flash"][1]


def test_an_encoder_reads_and_generates_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, COUNTED["bge-m3"][0], "bge-m3")
    mine = str(tmp_path / "mine")
    assert main(["catalog", "import", "hf", str(path), "-o", mine]) == 0
    asked = ["--catalogs", mine, "--model", "bge-m3", "--on", "l4", "--rate", "5", "--input", "500"]
    assert main(["plan", *asked, "--output", "0"]) == 0
    assert main(["plan", *asked, "--output", "100"]) == 2
    assert "is an encoder" in capsys.readouterr().err
    tuned = ["estimate", "--catalogs", mine, "--model", "bge-m3", "--node", "l4-1x", "--method"]
    assert main([*tuned, "full"]) == 0
    assert main([*tuned, "dpo", "--samples", "1k"]) == 2
    assert "is an encoder" in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "reason"), [("zamba2", "several layers share"), ("t5", "an encoder with a decoder"),
                                              ("hrm_text", "run several times"), ("deberta-v2", "scores positions"),
                                              ("xmod", "adapters of each language"), ("roc_bert", "pronunciation")])
def test_what_cannot_be_modeled_is_refused_with_its_reason(kind: str, reason: str, tmp_path: Path,
                                                           capsys: pytest.CaptureFixture[str]) -> None:
    config = shape(kind, 4, 512, 8, 2048, 1000, hidden_act="silu")
    assert main(["catalog", "import", "hf", str(saved(tmp_path, config))]) == 2
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize("name", TOTALS)
def test_the_count_is_that_of_every_tensor(name: str, tmp_path: Path) -> None:
    config, total, active = TOTALS[name]
    model = import_config(saved(tmp_path, config), "2026-11-22")
    assert parameters(model) == total
    assert active_parameters(model) == active
    known = Catalog().known_model(name)
    assert known is None or parameters(known) == total


def test_layers_that_a_search_narrowed_replaced_or_took_out(tmp_path: Path) -> None:
    """Two narrowed layers, one product in place of attention, one layer that is gone, counted by hand."""
    config = shape("nemotron-nas", 4, 1024, 8, 0, 1000, intermediate_size=None, num_key_value_heads=None,
                   block_configs=[nas(4, 2.625), nas(8, 5.25), nas(None, 1.0, linear=True), nas(None, None)])
    model = import_config(saved(tmp_path, config), "2026-11-22")
    widths = [1792, 3584, 768]
    layers = [1024 * (2 * 1024 + 2 * 256), 1024 * (2 * 1024 + 2 * 128), 1024 * 1024]
    assert model.layers == len(widths)
    assert parameters(model) == 2 * 1000 * 1024 + 1024 + sum(
        mixer + 3 * 1024 * width + 2 * 1024 for mixer, width in zip(layers, widths, strict=True))


QUANTIZED: list[tuple[dict[str, Any], str, str]] = [
    ({"quant_method": "fp8"}, "fp8", ""), ({"quant_method": "mxfp4"}, "mxfp4", ""),
    ({"quant_method": "awq", "bits": 4}, "w4a16", ""), ({"quant_method": "gptq", "bits": 4}, "w4a16", ""),
    ({"quant_method": "compressed-tensors", "format": "pack-quantized",
      "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}}}, "w4a16", ""),
    ({"quant_method": "compressed-tensors", "format": "float-quantized",
      "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "float"}}}}, "fp8", ""),
    ({"quant_method": "compressed-tensors", "format": "int-quantized",
      "config_groups": {"group_0": {"weights": {"num_bits": 8, "type": "int"}}}}, "int8", ""),
    ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4", ""),
    ({"quant_method": "bitnet"}, "bf16", "published in bitnet that is not modeled"),
    ({"quant_method": "gptq", "bits": 3}, "bf16", "published in gptq that is not modeled")]


@pytest.mark.parametrize(("given", "stored", "said"), QUANTIZED)
def test_weights_are_as_published(given: dict[str, Any], stored: str, said: str, tmp_path: Path,
                                  capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, CONFIGS["qwen3-8b"] | {"quantization_config": given})
    assert import_config(path, "2026-11-22").stored == stored
    assert main(["catalog", "import", "hf", str(path), "-o", str(tmp_path / "own")]) == 0
    assert said in capsys.readouterr().err


def test_the_file_beside_the_config_says_how_it_is_quantized(tmp_path: Path) -> None:
    path = saved(tmp_path, CONFIGS["qwen3-8b"])
    (path.parent / "hf_quant_config.json").write_text(json.dumps({"quantization": {"quant_algo": "NVFP4"}}), "utf-8")
    assert import_config(path, "2026-11-22").stored == "nvfp4"


PLAIN = {**CONFIGS["llama-2-7b"], "model_type": "newest", "hidden_act": "silu"}


def test_an_unknown_dense_model_is_read_like_llama_and_says_so(tmp_path: Path,
                                                               capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, PLAIN)
    assert parameters(import_config(path, "2026-11-22")) == 6738415616
    assert main(["catalog", "import", "hf", str(path)]) == 0
    assert "model_type newest is not in the table: read like Llama (gated feed-forward" in capsys.readouterr().err


@pytest.mark.parametrize(("more", "problem"), [
    ({"num_experts": 8}, "num_experts says that it is not like Llama"),
    ({"kv_lora_rank": 512}, "kv_lora_rank says"), ({"layer_types": ["linear_attention"] * 32}, "linear_attention"),
    ({"hidden_act": "gelu"}, "does not tell whether the feed-forward has a gate"),
    ({"intermediate_size": None}, "it lacks intermediate_size"),
    ({"model_type": "kimi_linear", "linear_attn_config": {"full_attn_layers": [1]}, "attn_res_block_size": 12},
     "attn_res_block_size (Kimi K3) is not supported")])
def test_what_the_fields_do_not_determine_is_refused(more: dict[str, Any], problem: str, tmp_path: Path,
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "import", "hf", str(saved(tmp_path, PLAIN | more))]) == 2
    assert problem in capsys.readouterr().err


def test_shipped_models_of_several_kinds_have_layers_in_order() -> None:
    for name in ("gemma-4-26b-a4b", "kimi-linear-48b-a3b", "deepseek-v4-flash"):
        model: Model = Catalog().model(name)
        assert len(model.layer_kinds()) == model.layers

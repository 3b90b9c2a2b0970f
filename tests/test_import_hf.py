"""config.json of every family against the catalog's exact counts; what is unknown or broken is refused by name."""

from __future__ import annotations

import ast
import json
import math
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.catalog.importers import hf_reading
from planner.catalog.importers.hf import import_config
from planner.catalog.importers.hf_families import FAMILIES
from planner.catalog.importers.hf_reading import FACTORS, LISTS, NESTED, NUMBERS, PARTS, SWITCHES, TEXTS
from planner.catalog.load import Catalog
from planner.cli.main import main
from planner.errors import InputError, UnknownName
from planner.physics.shapes import active_parameters, parameters


def shape(kind: str, layers: int, hidden: int, heads: int, ffn: int, vocab: int, **more: Any) -> dict[str, Any]:
    return {"model_type": kind, "num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads,
            "intermediate_size": ffn, "vocab_size": vocab, "max_position_embeddings": 131072} | more


LATENT = {"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128}
CONFIGS: dict[str, dict[str, Any]] = {
    "llama-2-7b": shape("llama", 32, 4096, 32, 11008, 32000),
    "llama-3.1-70b": shape("llama", 80, 8192, 64, 28672, 128256, num_key_value_heads=8),
    "llama-3.2-1b": shape("llama", 16, 2048, 32, 8192, 128256, num_key_value_heads=8, tie_word_embeddings=True),
    "mistral-7b-v0.1": shape("mistral", 32, 4096, 32, 14336, 32000, num_key_value_heads=8, sliding_window=4096),
    "mixtral-8x7b": shape("mixtral", 32, 4096, 32, 14336, 32000, num_key_value_heads=8, num_local_experts=8,
                          num_experts_per_tok=2),
    "phi-3-mini-4k": shape("phi3", 32, 3072, 32, 8192, 32064, num_key_value_heads=32, sliding_window=2047),
    "qwen2.5-7b": shape("qwen2", 28, 3584, 28, 18944, 152064, num_key_value_heads=4, use_sliding_window=False,
                        sliding_window=131072),
    "qwen3-8b": shape("qwen3", 36, 4096, 32, 12288, 151936, num_key_value_heads=8, head_dim=128),
    "qwen3-30b-a3b": shape("qwen3_moe", 48, 2048, 32, 6144, 151936, num_key_value_heads=4, head_dim=128,
                           num_experts=128, num_experts_per_tok=8, moe_intermediate_size=768),
    "olmo-2-7b": shape("olmo2", 32, 4096, 32, 11008, 100352, num_key_value_heads=32),
    "gemma-2b": shape("gemma", 18, 2048, 8, 16384, 256000, num_key_value_heads=1, head_dim=256),
    "gemma-2-9b": shape("gemma2", 42, 3584, 16, 14336, 256000, num_key_value_heads=8, head_dim=256,
                        sliding_window=4096),
    "gemma-3-4b": {"model_type": "gemma3", "text_config": {
        "model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34,
        "sliding_window": 1024}},
    "gpt-oss-20b": shape("gpt_oss", 24, 2880, 64, 2880, 201088, num_key_value_heads=8, head_dim=64, sliding_window=128,
                         num_local_experts=32, num_experts_per_tok=4,
                         layer_types=["sliding_attention", "full_attention"] * 12),
    "glm-4.5": shape("glm4_moe", 92, 5120, 96, 12288, 151552, num_key_value_heads=8, head_dim=128, attention_bias=True,
                     use_qk_norm=True, n_routed_experts=160, num_experts_per_tok=8, moe_intermediate_size=1536,
                     n_shared_experts=1, first_k_dense_replace=3),
    "minimax-m2.5": shape("minimax_m2", 62, 3072, 48, 1536, 200064, num_key_value_heads=8, head_dim=128,
                          use_qk_norm=True, num_local_experts=256, num_experts_per_tok=8),
    "deepseek-v3": shape("deepseek_v3", 61, 7168, 128, 18432, 129280, n_routed_experts=256, num_experts_per_tok=8,
                         moe_intermediate_size=2048, n_shared_experts=1, first_k_dense_replace=3,
                         topk_method="noaux_tc", **LATENT),
    "gpt2": {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
             "vocab_size": 50257},
    "opt-1.3b": shape("opt", 24, 2048, 32, 0, 50272, ffn_dim=8192, max_position_embeddings=2048,
                      word_embed_proj_dim=2048),
    "bloom-7b1": {"model_type": "bloom", "hidden_size": 4096, "n_head": 32, "n_layer": 30, "vocab_size": 250880},
    "falcon-7b": shape("falcon", 32, 4544, 71, 0, 65024, multi_query=True, new_decoder_architecture=False),
    "falcon-40b": shape("falcon", 60, 8192, 128, 0, 65024, num_kv_heads=8, new_decoder_architecture=True),
    "mpt-7b": {"model_type": "mpt", "d_model": 4096, "n_heads": 32, "n_layers": 32, "expansion_ratio": 4,
               "vocab_size": 50432, "max_seq_len": 2048},
    "nemotron-4-340b": shape("nemotron", 96, 18432, 96, 73728, 256000, num_key_value_heads=8, head_dim=192),
    "qwen3.5-27b": shape("qwen3_5_text", 64, 5120, 24, 17408, 248320, num_key_value_heads=4, head_dim=256,
                         linear_num_key_heads=16, linear_num_value_heads=48, linear_key_head_dim=128,
                         linear_value_head_dim=128),
    "qwen3.5-35b-a3b": shape(
        "qwen3_5_moe_text", 40, 2048, 16, 0, 248320, num_key_value_heads=2, head_dim=256, linear_num_key_heads=16,
        linear_num_value_heads=32, linear_key_head_dim=128, linear_value_head_dim=128, num_experts=256,
        num_experts_per_tok=8, moe_intermediate_size=512, shared_expert_intermediate_size=512),
    "qwen-7b": shape("qwen", 32, 4096, 32, 22016, 151936),
    "llama-4-maverick": {"model_type": "llama4", "text_config": shape(
        "llama4_text", 48, 5120, 40, 8192, 202048, num_key_value_heads=8, head_dim=128, intermediate_size_mlp=16384,
        num_local_experts=128, num_experts_per_tok=1, interleave_moe_layer_step=2)},
    "jamba-v0.1": shape("jamba", 32, 4096, 32, 14336, 65536, num_key_value_heads=8, num_experts=16,
                        num_experts_per_tok=2, mamba_dt_rank=256, attn_layer_period=8, attn_layer_offset=4,
                        expert_layer_period=2, expert_layer_offset=1),
    "mamba2-2.7b": {"d_model": 2560, "n_layer": 64, "vocab_size": 50277, "ssm_cfg": {"layer": "Mamba2"},
                    "pad_vocab_size_multiple": 16, "tie_embeddings": True},
    "mamba2-370m": {"model_type": "mamba2", "hidden_size": 1024, "num_hidden_layers": 48, "vocab_size": 50288,
                    "head_dim": 64, "num_heads": 32, "state_size": 128, "n_groups": 1, "tie_word_embeddings": True},
    "mimo-v2-flash": shape(
        "mimo_v2_flash", 48, 4096, 64, 16384, 152576, num_key_value_heads=4, head_dim=192, v_head_dim=128,
        swa_num_attention_heads=64, swa_num_key_value_heads=8, swa_head_dim=192, swa_v_head_dim=128,
        sliding_window=128, add_full_attention_sink_bias=False, add_swa_attention_sink_bias=True,
        n_routed_experts=256, num_experts_per_tok=8, moe_intermediate_size=2048, topk_method="noaux_tc",
        hybrid_layer_pattern=[0, 1, 1, 1, 1] + [0, 1, 1, 1, 1, 1] * 7 + [0], moe_layer_freq=[0] + [1] * 47),
    "nemotron-3-nano-30b-a3b": shape(
        "nemotron_h", 52, 2688, 32, 1856, 131072, num_key_value_heads=2, head_dim=128, mamba_num_heads=64,
        mamba_head_dim=64, ssm_state_size=128, n_groups=8, conv_kernel=4, n_routed_experts=128, num_experts_per_tok=6,
        moe_intermediate_size=1856, n_shared_experts=1, moe_shared_expert_intermediate_size=3712,
        hybrid_override_pattern="MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"),
    "nemotron-3-super-120b-a12b": shape(
        "nemotron_h", 88, 4096, 32, 2688, 131072, num_key_value_heads=2, head_dim=128, mamba_num_heads=128,
        mamba_head_dim=64, ssm_state_size=128, n_groups=8, conv_kernel=4, n_routed_experts=512, num_experts_per_tok=22,
        moe_intermediate_size=2688, n_shared_experts=1, moe_shared_expert_intermediate_size=5376, moe_latent_size=1024,
        hybrid_override_pattern="MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEMEMEM*"
                                "EMEMEMEME"),
    "nemotron-3.5-lightning-30b-a3b": shape(
        "nemotron_h", 52, 2688, 32, 1856, 131072, num_key_value_heads=2, head_dim=128, mamba_num_heads=64,
        mamba_head_dim=64, ssm_state_size=128, n_groups=8, conv_kernel=4, n_routed_experts=128, num_experts_per_tok=6,
        moe_intermediate_size=1856, n_shared_experts=1, moe_shared_expert_intermediate_size=3712, moe_latent_size=None,
        layers_block_type=[{"M": "mamba", "E": "moe", "*": "attention"}[symbol]
                           for symbol in "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME"]),
}


def saved(folder: Path, config: object, name: str = "imported") -> Path:
    path = folder / name / "config.json"
    path.parent.mkdir(parents=True)
    path.write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", CONFIGS)
def test_the_count_is_exact(name: str, tmp_path: Path) -> None:
    imported, known = import_config(saved(tmp_path, CONFIGS[name]), "2026-11-21"), Catalog().model(name)
    assert parameters(imported) == parameters(known) == (known.parameters or parameters(known))
    assert active_parameters(imported) == active_parameters(known)
    assert imported.layer_kinds()[0].attention == known.layer_kinds()[0].attention


def test_every_family_is_tried() -> None:
    from tests.test_import_hf_families import COUNTED, TOTALS
    from tests.test_import_hf_remote import COUNTED as BUILT_IN
    from tests.test_import_hf_remote import PUBLISHED
    from tests.test_import_hf_streams import BUILT, RING
    from tests.test_import_hf_vision import HEARS, TALL

    tried = {str(config.get("text_config", config).get("model_type", "mamba2")) for config in (
        *CONFIGS.values(), *(config for config, *_ in (*TOTALS.values(), *COUNTED.values())), {
            "model_type": "nemotron-nas"}, RING, HEARS, *TALL.values(), *(config for config, _ in PUBLISHED.values()),
            *({"model_type": kind} for kind in BUILT_IN), *(one["config"] for one in BUILT.values()))}
    shapes = {FAMILIES[kind] for kind in tried}
    untried = {kind for kind, shape in FAMILIES.items() if shape not in shapes}
    assert untried == set()


def test_the_entry_is_a_catalog_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, CONFIGS["qwen3-8b"], "my-model")
    assert main(["catalog", "import", "hf", str(path), "-o", str(tmp_path / "mine")]) == 0
    assert "8,190,735,360 parameters" in capsys.readouterr().out
    assert parameters(Catalog([tmp_path / "mine"]).model("my-model")) == 8190735360
    assert main(["catalog", "import", "hf", str(path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["parameters"], shown["active_parameters"], shown["name"]) == (8190735360, 8190735360, "my-model")


@pytest.mark.parametrize(("metadata", "code"), [
    ({"total_parameters": 8190735360}, 0), ({"total_size": 2 * 8190735360}, 0), ({"total_size": 2 * 8190735361}, 2)])
def test_the_checkpoint_must_agree(metadata: dict[str, int], code: int, tmp_path: Path,
                                   capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, CONFIGS["qwen3-8b"] | {"torch_dtype": "bfloat16"})
    (path.parent / "model.safetensors.index.json").write_text(json.dumps({"metadata": metadata}), encoding="utf-8")
    assert main(["catalog", "import", "hf", str(path)]) == code
    assert ("the checkpoint 8,190,735,361" in capsys.readouterr().err) == bool(code)


@pytest.mark.parametrize(("config", "problem"), [
    ({"model_type": "whisper"}, "expected d_model"), ({"model_type": "t5"}, "not supported"),
    ({"hidden_size": 4}, "expected model_type"),
    ("[1]", "expected an object"), ("{", "not JSON"),
    ({"model_type": "llama", "hidden_size": 4096}, "expected num_attention_heads"),
    (CONFIGS["llama-2-7b"] | {"hidden_size": "4k"}, "hidden_size: expected a whole number from 0 to"),
    (CONFIGS["llama-2-7b"] | {"num_attention_heads": 0}, "num_attention_heads: expected a whole number from 1"),
    (CONFIGS["llama-2-7b"] | {"num_hidden_layers": -1}, "num_hidden_layers: expected a whole number from 0 to 10"),
    (CONFIGS["llama-2-7b"] | {"num_hidden_layers": 10**12}, "num_hidden_layers: expected a whole number"),
    (CONFIGS["llama-2-7b"] | {"hidden_size": math.nan}, "hidden_size: expected a whole number"),
    (CONFIGS["llama-2-7b"] | {"vocab_size": math.inf}, "vocab_size: expected a whole number"),
    (CONFIGS["llama-2-7b"] | {"intermediate_size": True}, "intermediate_size: expected a whole number"),
    (CONFIGS["llama-2-7b"] | {"head_dim": 10**27}, "head_dim: expected a whole number"),
    (CONFIGS["llama-2-7b"] | {"head_dim": 10**8}, "head_dim: Input should be less than or equal to 10000000"),
    (CONFIGS["llama-2-7b"] | {"max_position_embeddings": 0.5}, "max_position_embeddings: expected a whole number"),
    (CONFIGS["llama-2-7b"] | {"tie_word_embeddings": "yes"}, "tie_word_embeddings: expected true or false"),
    (CONFIGS["gpt-oss-20b"] | {"layer_types": {"a": 1}}, "layer_types: expected a list"),
    (CONFIGS["gemma-3-4b"] | {"text_config": {"hidden_size": "4k"}}, "text_config.hidden_size: expected"),
    (json.dumps(CONFIGS["llama-2-7b"])[:-1] + ', "head_dim": ' + "9" * 4300 + "}", "head_dim: expected a whole number"),
    ("[" * 5000, "nested too deeply")])
def test_what_is_unknown_or_broken_is_refused(config: object, problem: str, tmp_path: Path,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, config)
    assert main(["catalog", "import", "hf", str(path)]) == 2
    error = capsys.readouterr().err
    assert problem in error
    assert str(path) in error


def test_an_absent_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "import", "hf", "nowhere/config.json"]) == 2
    assert "nowhere/config.json: cannot read" in capsys.readouterr().err


def test_every_key_that_a_family_reads_is_of_a_known_kind() -> None:
    known = NUMBERS | FACTORS | SWITCHES | TEXTS | LISTS | PARTS | NESTED
    read: set[str] = set()
    for path in Path(hf_reading.__file__).parent.glob("hf*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            owner = (node.value if isinstance(node, ast.Subscript) else
                     node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None)
            key = (node.slice if isinstance(node, ast.Subscript) else
                   node.args[0] if isinstance(node, ast.Call) and node.args else None)
            named = isinstance(owner, ast.Name) and owner.id in ("c", "own", "config")
            if named and isinstance(key, ast.Constant) and isinstance(key.value, str):
                read.add(key.value)
    assert len(read) > 60
    assert read - known == set()


@pytest.mark.parametrize("size", [math.nan, math.inf, -1, "many", 0.5, None])
def test_an_index_that_states_no_number_is_not_compared(size: object, tmp_path: Path) -> None:
    path = saved(tmp_path, CONFIGS["qwen3-8b"] | {"torch_dtype": "bfloat16"})
    index = path.parent / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": size}}), encoding="utf-8")
    assert main(["catalog", "import", "hf", str(path)]) in (0, 2)


@pytest.mark.parametrize("named", ["1e5", "0x10", "true", "null", ".hidden", "x" * 300, "org/2026-11-22", "²", "-"])
def test_what_is_written_is_read_back(named: str, tmp_path: Path) -> None:
    path = saved(tmp_path, CONFIGS["llama-2-7b"] | {"_name_or_path": named})
    out = tmp_path / "own"
    assert main(["catalog", "import", "hf", str(path), "-o", str(out)]) == 0
    (written,) = (out / "models").iterdir()
    assert Catalog([out]).model(written.stem) == import_config(path, Catalog([out]).model(written.stem).as_of)


def test_an_entry_is_named_after_the_file_the_repository_or_as_told(tmp_path: Path) -> None:
    config = CONFIGS["llama-2-7b"]
    cached = saved(tmp_path / "models--Qwen--Qwen3-8B" / "snapshots", config, "0123abcd")
    assert import_config(cached, "2026-11-22").hf_id == "Qwen/Qwen3-8B"
    plain = tmp_path / "my_8b-config.json"
    plain.write_text(json.dumps(config))
    assert import_config(plain, "2026-11-22").name == "my-8b"
    assert import_config(plain, "2026-11-22", name="Foo/Bar-7B").name == "bar-7b"
    assert import_config(saved(tmp_path, config, "my-model"), "2026-11-22").name == "my-model"


def test_a_model_may_be_the_path_of_its_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the user's own machine answers; what a server is asked opens no path."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text(json.dumps(CONFIGS["llama-3.1-70b"]), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    asked: dict[str, Any] = {"method": "full", "tokens": "1B", "seq_len": 8192, "on": "dgx-h100"}
    whole = planner.plan(model="llama-3.1-70b", **asked).objective.value
    for name in ("mine", "mine/config.json", str(tmp_path / "mine" / "config.json")):
        assert planner.plan(model=name, **asked).objective.value == whole
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"broken\.json"):
        planner.plan(model="broken.json", **asked)
    with pytest.raises(InputError, match="unknown model"):
        planner.plan(model="nowhere/config.json", **asked)
    with pytest.raises(UnknownName):
        Catalog().model("mine/config.json")

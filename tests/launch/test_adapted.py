"""Adapters on modules by name: told in each stack's own words, and refused where the names are not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import planner
from planner.catalog.load import Catalog
from planner.errors import InputError, Unsupported
from planner.launch.folder import launched
from planner.launch.written import write_all
from tests.launch.works import given

CATALOG = Catalog()
ASKED: dict[str, Any] = {"method": "lora", "tokens": "10M", "on": "dgx-h100", "gpus": 8,
                         "lora_targets": "q_proj,v_proj"}


@pytest.mark.parametrize(("target", "said"), [
    ("accelerate", "lora_target_modules:\n- q_proj\n- v_proj"),
    ("deepspeed", "lora_target_modules:\n- q_proj\n- v_proj"),
    ("ms-swift", "target_modules:\n- q_proj\n- v_proj"), ("axolotl", "lora_target_modules:\n- q_proj\n- v_proj"),
    ("llama-factory", "lora_target: q_proj,v_proj"), ("unsloth", "lora_target_modules:\n- q_proj\n- v_proj"),
    ("litgpt", "lora_query: true\nlora_key: false\nlora_value: true\nlora_projection: false\nlora_mlp: false")])
def test_modules_are_told_by_name(target: str, said: str, tmp_path: Path) -> None:
    found = planner.plan(model="llama-3.1-8b", launchable=target, **ASKED)
    write_all(found, CATALOG, tmp_path / "run")
    texts = "".join(path.read_text().replace('"', "").replace("  - ", "- ") for path in sorted(
        (tmp_path / "run").glob("*.yaml")))
    assert said in texts
    assert "all-linear" not in texts
    assert "lora_target_linear" not in texts


@pytest.mark.parametrize(("changed", "why"), [
    ({"model": "phi-4"}, "what the modules of phi-4 are called is not known"),
    ({"model": "llama-3.1-8b", "lora_targets": "attention,embeddings"}, "embeddings .they train whole"),
])
def test_what_has_no_known_name_is_refused(changed: dict[str, str], why: str) -> None:
    with pytest.raises(InputError, match=why):
        planner.plan(**{**ASKED, **changed}, launchable="ms-swift")


def test_megatron_bridge_has_adapters_on_parts_of_its_fused_matrices(tmp_path: Path) -> None:
    found = planner.plan(model="llama-3.1-8b", launchable="megatron-bridge", **ASKED)
    write_all(found, CATALOG, tmp_path / "run")
    said = (tmp_path / "run" / "pretrain.py").read_text()
    assert "cfg.peft = CanonicalLoRA(dim=16, alpha=32, target_modules=['linear_q', 'linear_v'])" in said


def test_litgpt_adapts_a_feed_forward_whole() -> None:
    with pytest.raises(InputError, match="of a feed-forward all three products, or none"):
        planner.plan(model="llama-3.1-8b", launchable="litgpt", **{**ASKED, "lora_targets": "q_proj,up_proj"})


def test_litgpt_is_told_the_checkpoints_that_it_knows(tmp_path: Path) -> None:
    asked = {key: value for key, value in ASKED.items() if key != "lora_targets"}
    found = planner.plan(model="llama-3.1-8b", launchable="litgpt", **asked)
    write_all(found, CATALOG, tmp_path / "run")
    assert "checkpoint_dir: meta-llama/Meta-Llama-3.1-8B" in (tmp_path / "run" / "litgpt.yaml").read_text()
    assert "{MODEL:=meta-llama/Meta-Llama-3.1-8B}" in (tmp_path / "run" / "variables.sh").read_text()
    with pytest.raises(InputError, match=r"qwen2\.5-vl-7b in litgpt: it has"):
        planner.plan(model="qwen2.5-vl-7b", launchable="litgpt", **asked)


@pytest.mark.parametrize(("target", "stack"), [
    ("accelerate", "hf-peft"), ("deepspeed", "hf-peft"), ("axolotl", "axolotl"), ("llama-factory", "hf-peft"),
    ("ms-swift", "hf-peft")])
def test_experts_that_would_stay_wide_are_refused(target: str, stack: str) -> None:
    """Transformers 5 has experts as parameters of their own, which bitsandbytes does not quantize."""
    asked = {"model": "mixtral-8x7b", "global_batch": "8", "seq_len": "512", "stack": stack, "gpus": "1"}
    with pytest.raises(InputError, match="experts stay in 16 bits"):
        launched(given("dp=1,recompute=full", "h200-sxm-1x", method="qlora", **asked), CATALOG, target)


@pytest.mark.parametrize(("model", "dropout"), [("llama-3.1-8b", "0.05"), ("olmoe-1b-7b", "0.0")])
def test_adapters_of_experts_have_no_dropout(model: str, dropout: str) -> None:
    """PEFT refuses it there (lora.ParamWrapper), so that the run would not start."""
    one = given("dp=1,recompute=full", "h200-sxm-1x", method="lora", model=model, global_batch="4", seq_len="2048",
                stack="trl", gpus="1")
    assert f"lora_dropout: {dropout}" in launched(one, CATALOG, "accelerate").files["train.yaml"]


def test_trl_plans_no_qlora_of_a_mixture() -> None:
    with pytest.raises(Unsupported, match="experts stay in 16 bits"):
        planner.estimate("mixtral-8x7b", "h200-sxm-1x", method="qlora", stack="trl", seq_len=512, global_batch=8)
    assert planner.estimate("mixtral-8x7b", "h200-sxm-1x", method="qlora", seq_len=512, global_batch=8).stack != "trl"

"""Configs of vision-language models: imported with their encoder, or their text part alone where that is asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.catalog.importers.hf import import_config
from planner.catalog.load import Catalog
from planner.cli.main import main
from planner.physics.shapes import parameters
from tests.test_import_hf import CONFIGS, saved

VISION = {"depth": 27, "hidden_size": 1152, "intermediate_size": 4304, "num_heads": 16, "patch_size": 16,
          "out_hidden_size": 4096, "num_position_embeddings": 2304, "deepstack_visual_indexes": [8, 16, 24]}
SEES = {"model_type": "qwen3_vl", "vision_config": VISION,
        "text_config": CONFIGS["qwen3-8b"] | {"model_type": "qwen3_vl_text"}}
TALL = {
    "qwen3-vl-8b": SEES,
    "qwen2-vl-7b": {"model_type": "qwen2_vl", **{k: v for k, v in CONFIGS["qwen2.5-7b"].items() if k != "model_type"},
                    "vision_config": {"depth": 32, "embed_dim": 1280, "num_heads": 16, "patch_size": 14}},
    "llava-1.5-7b": {"model_type": "llava", "text_config": CONFIGS["llama-2-7b"], "vision_config": {
        "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096,
        "image_size": 336, "patch_size": 14}},
    "llama-3.2-11b-vision": {
        "model_type": "mllama",
        "text_config": {**CONFIGS["llama-3.1-70b"], "model_type": "mllama_text_model", "num_hidden_layers": 40,
                        "hidden_size": 4096, "num_attention_heads": 32, "intermediate_size": 14336,
                        "cross_attention_layers": [3, 8, 13, 18, 23, 28, 33, 38]},
        "vision_config": {"hidden_size": 1280, "attention_heads": 16, "intermediate_size": 5120, "image_size": 560,
                          "patch_size": 14, "num_hidden_layers": 32, "num_global_layers": 8, "max_num_tiles": 4,
                          "vision_output_dim": 7680, "intermediate_layers_indices": [3, 7, 15, 23, 30]}}}
HEARS = {"model_type": "whisper", "d_model": 1280, "vocab_size": 51866, "num_mel_bins": 128, **{
    f"{part}_{key}": value for part in ("encoder", "decoder") for key, value in (
        ("layers", 32), ("attention_heads", 20), ("ffn_dim", 5120))}}


@pytest.mark.parametrize("name", TALL)
def test_a_vision_language_model_is_imported_with_its_encoder(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path, TALL[name])
    (path.parent / "preprocessor_config.json").write_text(json.dumps({
        "min_pixels": 3136, "max_pixels": 12845056} if name == "qwen2-vl-7b" else {}), "utf-8")
    found, known = import_config(path, "2026-11-23"), Catalog().model(name)
    assert found.tower == known.tower
    # LLaVA's table has 64 tokens more than that of the config here
    assert parameters(known) - parameters(found) == (64 * 2 * 4096 if name == "llava-1.5-7b" else 0)


def test_a_model_that_writes_what_it_hears_is_imported_whole(tmp_path: Path) -> None:
    found, known = import_config(saved(tmp_path, HEARS), "2026-11-23"), Catalog().model("whisper-large-v3")
    assert (found.ear, found.blocks) == (known.ear, known.blocks)
    assert parameters(found) == parameters(known)


def test_an_encoder_of_no_known_kind_is_counted_and_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """27 blocks of 1,152 and 4,304: 4 x 1152^2 + 2 x 1152 x 4304 each, and patches of 16 x 16 x 3 to 1,152."""
    (tmp_path / "newest").mkdir()
    unknown = saved(tmp_path / "newest", {**SEES, "model_type": "newest_vl"})
    assert main(["catalog", "import", "hf", str(unknown)]) == 0
    assert "text part alone: vision_config is not modeled" in capsys.readouterr().err
    tower = import_config(unknown, "2026-11-23").tower
    assert tower is not None
    assert (tower.encoder, tower.parameters) == (None, 27 * (4 * 1152**2 + 2 * 1152 * 4304) + 3 * 16**2 * 1152)


def test_a_vision_language_model_is_its_text_part_if_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(saved(tmp_path, SEES))
    assert main(["catalog", "import", "hf", path, "--text-only", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["parameters"] == 8190735360
    assert shown["note"] == "text part alone: vision_config is not modeled"


def test_text_costs_of_a_vision_language_model_are_those_of_its_text_model(capsys: pytest.CaptureFixture[str]) -> None:
    for more in (["--layout", "dp=8,zero=3", "--stack", "deepspeed", "--global-batch", "64", "--seq-len", "4096"],
                 ["--input", "1000", "--output", "100", "--concurrency", "4", "--layout", "tp=1"]):
        assert main(["estimate", "--model", "qwen3-vl-8b", "--node", "dgx-h200", *more]) == 0
        assert "text alone is planned for: qwen3-vl-8b also reads images" in capsys.readouterr().err

"""Folders of diffusers read into catalog entries: as large as the published classes count, or refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.catalog.load import Catalog
from planner.cli.main import main

SD35 = {"num_layers": 38, "num_attention_heads": 38, "attention_head_dim": 64, "sample_size": 128}
WAN = {"num_layers": 30, "num_attention_heads": 12, "attention_head_dim": 128, "ffn_dim": 8960}
COG = {"num_layers": 30, "num_attention_heads": 30, "attention_head_dim": 64}
SDXL = {"cross_attention_dim": 2048, "in_channels": 4, "block_out_channels": [320, 640, 1280], "sample_size": 128}
CLIP = {"projection_dim": 768, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12,
        "vocab_size": 49408, "max_position_embeddings": 77}
VAE = {"_class_name": "AutoencoderKL", "latent_channels": 4, "block_out_channels": [128, 256, 512, 512],
       "force_upcast": False}


def folder(at: Path, part: str, kind: str, config: dict[str, Any], **parts: dict[str, Any]) -> Path:
    index = {part: ["diffusers", kind]} | {name: ["library", "Class"] for name in parts}
    at.mkdir()
    (at / "model_index.json").write_text(json.dumps(index))
    for name, own in {part: {"_class_name": kind, **config}, **parts}.items():
        (at / name).mkdir()
        (at / name / "config.json").write_text(json.dumps(own))
    return at


@pytest.mark.parametrize(("part", "kind", "config", "parameters"), [
    # counts of the classes of diffusers 0.42.1 built without weights
    ("transformer", "SD3Transformer2DModel", SD35, 8_056_627_520),
    ("transformer", "WanTransformer3DModel", WAN, 1_418_996_800),
    ("transformer", "CogVideoXTransformer3DModel", COG, 1_693_783_872),
    ("unet", "UNet2DConditionModel", SDXL, 2_567_463_684)])
def test_a_folder_is_as_large_as_its_classes(tmp_path: Path, part: str, kind: str, config: dict[str, Any],
                                             parameters: int) -> None:
    made = folder(tmp_path / "Mine", part, kind, config, text_encoder=CLIP, vae=VAE)
    assert main(["catalog", "import", "hf", str(made), "-o", str(tmp_path / "catalog")]) == 0
    shown = Catalog([tmp_path / "catalog"]).diffusion("mine")
    assert shown.denoiser.parameters == pytest.approx(parameters, rel=0.01)
    assert shown.text_encoders[0].parameters == pytest.approx(123_060_480, rel=1e-3)
    assert not shown.autoencoder.wide
    assert planner.estimate("mine", "rtx-4090", catalogs=[tmp_path / "catalog"]).memory.peak_bytes


@pytest.mark.parametrize(("kind", "config", "said"), [
    ("FooTransformer", {}, "FooTransformer: not supported; known are UNet2DConditionModel, AuraFlow"),
    ("WanTransformer3DModel", {"num_layers": 30}, "WanTransformer3DModel: expected num_attention_heads"),
    ("WanTransformer3DModel", WAN | {"ffn_dim": "x"}, "ffn_dim: expected a whole number, got 'x'"),
    ("UNet2DConditionModel", SDXL | {"cross_attention_dim": 999}, "not supported: a UNet of 3 stages")])
def test_what_is_not_known_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str,
                                      config: dict[str, Any], said: str) -> None:
    assert main(["catalog", "import", "hf", str(folder(tmp_path / "x", "transformer", kind, config))]) == 2
    assert said in capsys.readouterr().err

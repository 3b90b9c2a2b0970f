"""Latents and embeddings that are made while a diffusion model trains: what the encoders add, by hand."""

from __future__ import annotations

from typing import Any

import pytest

import planner
from planner.catalog.load import Catalog

CATALOG = Catalog()
HELD: dict[str, Any] = {"model": "flux.1-dev", "method": "lora", "layout": "recompute=full,offload_parameters=0,mbs=1"}


def test_encoders_beside_the_denoiser_take_their_weights_and_their_time() -> None:
    cached, online = (planner.estimate(node="h100-sxm-1x", latents=how, **HELD) for how in ("cached", "online"))
    model = CATALOG.diffusion("flux.1-dev")
    beside = 2 * (sum(part.parameters for part in model.text_encoders) + model.autoencoder.parameters)
    assert online.memory.components.weights - cached.memory.components.weights == pytest.approx(beside, rel=1e-6)
    # texts of 512 tokens through both encoders, and 1024 x 1024 pixels through the autoencoder, at some of the peak
    flops = 2 * sum(part.parameters for part in model.text_encoders) * 512 + 4.2e6 * 1024**2
    added = online.time.step_seconds - cached.time.step_seconds
    assert flops / CATALOG.gpu("h100-sxm").peak["bf16"] < added < 0.3


def test_a_long_clip_is_encoded_before_anything_is_kept() -> None:
    """Its encoder holds more at once than a denoiser whose blocks are all recomputed."""
    held = {"model": "wan2.1-1.3b", "method": "lora", "layout": "recompute=full,offload_activations=0"}
    cached, online = (planner.estimate(node="h100-sxm-1x", latents=how, **held) for how in ("cached", "online"))
    assert online.memory.components.activations >= cached.memory.components.activations


def test_a_model_whose_every_run_ran_out_of_memory_says_so() -> None:
    """24 rows of the evidence did so; a model beside it, and running it, say nothing."""
    failed, other = (planner.plan(model=name, method="lora", on="h100", steps=100) for name in (
        "ace-step-1.5", "ace-step-v1"))
    assert any("all 24 published runs" in note for note in failed.notes)
    assert not any("published runs" in note for note in other.notes)

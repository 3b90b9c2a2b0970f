"""Attention to what an encoder has read: parameters, FLOPs and cache by hand, and what neither text nor answers change.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import planner
from planner.catalog.load import Catalog
from planner.errors import Unsupported
from planner.physics.encoders import parts_of
from planner.physics.kinds import shape_of
from planner.physics.serving.deployment import deployment_of, seeing
from planner.physics.serving.sequences import Cut, Paging, sequence_bytes
from planner.physics.serving.step import Replicas, StepLoad, step_times
from planner.physics.training.question import question_of
from tests.search_cases import candidate, catalog

CATALOG = Catalog()
HALF = CATALOG.formats.cache("bf16")
ONE = Cut(np.array([1]))
POSITIONS = 1500
TILES = 4 * 1601


def test_flops_of_whisper_by_hand() -> None:
    """Each of 32 layers: four products of 1,280 over tokens, two of cross attention, and a feed-forward of four widths;
    keys and values over 1,500 positions; scores over half of the sequence, and over all positions.
    """
    wide, length = 1280, 448
    each = (4 + 2 + 2 * 4) * wide**2 + 2 * wide**2 * POSITIONS / length
    scores = 2 * (2 * wide) * (length / 2 + POSITIONS)
    expected = 3 * (32 * (2 * each + scores) + 2 * 51866 * wide)
    found = shape_of(CATALOG.model("whisper-large-v3")).model_flops_per_token(length, 1, POSITIONS)
    assert found == pytest.approx(expected, rel=1e-12)


def test_flops_of_llama_vision_by_hand() -> None:
    """Without an image those of Llama 3.1 8B: eight of 40 layers are passed by; with one of four tiles they run."""
    model, plain = CATALOG.model("llama-3.2-11b-vision"), CATALOG.model("llama-3.1-8b")
    shape, length = shape_of(model), 1024
    text = shape_of(plain).model_flops_per_token(length, 1)
    assert shape.model_flops_per_token(length, 1) == pytest.approx(text, rel=1e-12)
    crossed = 2 * 4096**2 + 2 * 4096 * 1024 * TILES / length + 3 * 4096 * 14336
    expected = text + 3 * 8 * (2 * crossed + 2 * 2 * 4096 * TILES)
    assert shape.model_flops_per_token(length, 1, TILES) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("name", "images", "sound", "tokens", "memory", "positions"), [
    ("llama-3.2-11b-vision", 1.0, 0.0, 1, TILES, 4 * 1608), ("llama-3.2-90b-vision", 2.0, 0.0, 2, 2 * TILES, 4 * 1608),
    ("whisper-tiny", 0.0, 10.0, 0, POSITIONS, POSITIONS)])
def test_what_is_read_stands_beside_the_tokens(name: str, images: float, sound: float, tokens: int, memory: int,
                                               positions: int) -> None:
    """An image of 1024x1024 has four tiles of 560; ten seconds of sound are padded to thirty."""
    part, = parts_of(CATALOG.model(name), images, (1024, 1024), 1, sound)
    assert (part.tokens, part.memory, part.positions) == (tokens, memory, positions)


def held(name: str, length: int, memory: int, *, by_kind: bool) -> float:
    return float(sequence_bytes(CATALOG.model(name), length, HALF, ONE, Paging(16, by_kind, 8192), 0, memory)[0])


def test_cache_of_whisper_by_hand() -> None:
    """20 heads of 64, keys and values of 2 bytes: 5,120 bytes a layer. 100 tokens are 7 blocks, 1,500 positions 94."""
    block = 16 * 32 * 5120
    assert held("whisper-large-v3", 100, POSITIONS, by_kind=True) == (7 + 94) * block
    # the blocks of an engine that does not tell layers apart have room for a layer's tokens or its positions
    assert held("whisper-large-v3", 100, POSITIONS, by_kind=False) == (7 + 94) * block


def test_cache_of_llama_vision_by_hand() -> None:
    """Eight heads of 128: 4,096 bytes a layer. 32 layers hold tokens, eight hold positions, or all 40 either."""
    assert held("llama-3.2-11b-vision", 160, TILES, by_kind=True) == (10 * 32 + 401 * 8) * 16 * 4096
    assert held("llama-3.2-11b-vision", 160, TILES, by_kind=False) == (10 + 401) * 16 * 40 * 4096


def step(name: str, sound: float, images: float, context: float) -> tuple[float, float]:
    """Return seconds of a step of 32 sequences that decode, and of one that reads a prompt of 8 tokens."""
    model, gpus = CATALOG.model(name), (candidate("h100-sxm-1x"),)
    d = deployment_of(CATALOG, model, "bf16", CATALOG.formats.weights["bf16"], HALF, gpus,
                      CATALOG.speeds("sglang").release(None, "hopper"))
    d = seeing(CATALOG, d, parts_of(model, images, (1024, 1024), 1, sound) if sound or images else (), 8.0)
    one, none = np.array([1]), np.zeros(1)
    rows = Replicas(np.array([0]), one, one, one, one)
    decode = StepLoad(none + 32, none + context, none, none)
    return (float(step_times(d, rows, decode).total[0]),
            float(step_times(d, rows, replace(decode, sequences=none, prompt=none + 8, behind=none + 4)).total[0]))


def test_steps_read_what_the_encoder_left() -> None:
    """Whisper decodes over 1,500 positions however few tokens there are: 32 x 1,500 x 163,840 bytes at 3.35 TB/s."""
    heard, prompt = step("whisper-large-v3", 30.0, 0.0, 10.0)
    assert heard > 32 * POSITIONS * 163_840 / 3.35e12
    assert heard < 5 * 32 * POSITIONS * 163_840 / 3.35e12
    # 2.3 TFLOP of the encoder, and keys and values of its positions
    assert 2.3e12 / 989e12 < prompt < 0.02


def test_text_passes_layers_of_images_by() -> None:
    text, _ = step("llama-3.2-11b-vision", 0.0, 0.0, 500.0)
    seen, prompt = step("llama-3.2-11b-vision", 0.0, 1.0, 500.0)
    plain, _ = step("llama-3.1-8b", 0.0, 0.0, 500.0)
    assert text == pytest.approx(plain, rel=1e-9)
    assert seen > text + 8 * 218e6 * 2 / 3.35e12  # weights of eight more layers
    assert prompt > 6432 * 2 * 787e6 / 989e12


def test_who_does_not_run_or_train_it_says_so() -> None:
    engine, model = CATALOG.engine("vllm"), CATALOG.model("llama-3.2-11b-vision")
    assert "releases before 0.10 do" in str(engine.lacks_model(model, None))
    assert engine.lacks_model(model, "0.9.2") is None
    assert engine.lacks_model(CATALOG.model("whisper-tiny"), None) is None
    assert "does not run" in str(CATALOG.engine("llama-cpp").lacks_model(model, None))
    for name, told in (("megatron-core", "no layers that attend to images"), ("hf-peft", "")):
        def asked(stack: str = name) -> object:
            return question_of(catalog(), model, (candidate("dgx-h100"),), catalog().stack(stack), sequence_length=512,
                               global_batch=8, precisions=("bf16",), method="full", confidence=0.95,
                               seen=parts_of(model, 1.0, (560, 560), 1, 0.0))
        if told:
            with pytest.raises(Unsupported, match=told):
                asked()
        else:
            assert asked()


def test_a_burst_of_sound_is_worked_off() -> None:
    """Sound is held from the first token on: a replica that is full works at the 8 requests/s of one that is not.

    By hand, of an A10: 32 ms to encode each of 37 pieces, 105 steps of 25 ms for all of them, 9 requests/s.
    """
    plan = planner.plan("whisper-large-v3", rate="10/s", gpu="a10")
    (made,) = plan.assignments
    assert (plan.status, made.serving.replicas) == ("optimal", 2)


MEASURED = (
    # huggingface/open_asr_leaderboard pull request 42: Whisper large-v3 by TensorRT-LLM (Triton 24.09) on an A100 PCIe
    # of 80 GB: sound a second over the mean seconds of a clip of each set; 3.5 tokens a second of speech
    *(("a100-pcie-80gb-1x", "tensorrt-llm", "0.13", 64, seconds, rtfx / seconds) for seconds, rtfx in (
        (2.56, 105.41), (7.1, 244.48), (7.42, 245.05), (6.5, 222.43), (9.15, 289.69), (8.2, 255.01), (9.57, 305.96))),
    # vllm-project/vllm issue 25172: 8 prompt tokens a second, four of each piece; 477.7 tokens/s of 30 that run
    ("t4-1x", "vllm", "0.10", 30, 239 / 3.5, 2.0))


@pytest.mark.parametrize(("node", "engine", "version", "clients", "seconds", "rate"), MEASURED)
def test_published_rates_of_whisper(node: str, engine: str, version: str | None, clients: int, seconds: float,
                                    rate: float) -> None:
    """No constant was fitted to them."""
    found = planner.estimate("whisper-large-v3", node, layout={"tp": 1}, concurrency=clients, engine=engine,
                             engine_version=version, output=round(3.5 * seconds) + 1, audio="30s")
    assert found.serving is not None
    assert found.serving.requests_per_second == pytest.approx(rate, rel=0.17)

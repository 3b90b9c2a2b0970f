"""Tokens of images, clips and sound against published counts, and encoders against the parameters of checkpoints."""

import pytest

from planner.catalog.architecture import Model
from planner.catalog.load import Catalog
from planner.catalog.pictures import heard, pictures
from planner.errors import InputError
from planner.physics.encoders import encoder_model, parts_of
from planner.physics.shapes import layer_parameters

CATALOG = Catalog()
TOWERS = [(model.name, tower) for model in CATALOG.all("models", Model) for tower in model.towers if tower.encoder]


def tokens(model, size, frames=1):
    return pictures(CATALOG.model(model).tower.encoder.reads, size, frames).tokens


@pytest.mark.parametrize(("name", "tower"), TOWERS, ids=[f"{name} {at}" for at, (name, _) in enumerate(TOWERS)])
def test_shape_has_the_parameters_of_the_tower(name, tower):
    assert tower.encoder.parameters == tower.parameters
    layers = encoder_model(tower.encoder)
    assert tower.parameters - tower.encoder.embedding - tower.encoder.projector == sum(
        block.count * layer_parameters(block, layers) for block in layers.blocks)


@pytest.mark.parametrize(("model", "text", "total"), [
    # sums of the tensors of the checkpoints on Hugging Face
    ("llava-1.5-7b", 6738939904, 7063427072), ("qwen2-vl-2b", 1543714304, 2208985600),
    ("llama-3.2-11b-vision", 9775192080, 10670220835), ("whisper-large-v3", 906521600, 1543490560),
    ("whisper-tiny", 29552256, 37760640), ("whisper-large-v3-turbo", 171909120, 808878080),
    ("qwen2.5-vl-7b", 7615616512, 8292166656), ("qwen2-audio-7b", 7754878976, 8397094912),
    ("gemma-3-4b", 3880263168, 4300079472), ("llama-4-scout", 107769861120, 108641793536)])
def test_parts_add_up_to_the_checkpoint(model, text, total):
    assert text + sum(tower.parameters for tower in CATALOG.model(model).towers) == total


@pytest.mark.parametrize(("model", "size", "expected"), [
    ("llava-1.5-7b", (640, 480), 24 * 24), ("gemma-3-4b", (2000, 300), 256), ("qwen-vl", (448, 448), 256),
    # 1024 / 28 rounds to 37; 224 / 28 is 8; below 3,136 pixels a side grows to 56
    ("qwen2-vl-7b", (1024, 1024), 37 * 37), ("qwen2.5-vl-7b", (224, 224), 64), ("qwen2-vl-7b", (28, 28), 4),
    # 12,845,056 pixels are 3,584 on a side, 128 tokens
    ("qwen2-vl-7b", (8000, 8000), 128 * 128), ("qwen3-vl-8b", (1024, 1024), 32 * 32),
    # at most 1,540 pixels on a side, 28 a token, and an end of each row
    ("mistral-small-3.1-24b", (3080, 1540), 28 * 55 + 28), ("pixtral-12b", (1024, 512), 32 * 64 + 32),
    # one tile has no thumbnail; 3 x 3 of 448 and one, two to one is 4 x 2 where the image fills half of it
    ("internvl3-8b", (448, 448), 256), ("internvl3-8b", (1024, 1024), 2560), ("internvl3-8b", (1792, 896), 9 * 256),
    ("llama-4-scout", (336, 336), 144), ("llama-4-scout", (672, 336), 3 * 144),
    ("minicpm-v-2.6", (448, 448), 64), ("minicpm-v-2.6", (1344, 1344), 640),
    # 2 x 2 tiles of 24 x 24, a new line for each of 48 rows, and a small view: the documentation's 2,928
    ("llava-v1.6-7b", (672, 672), 48 * 48 + 48 + 576), ("llava-v1.6-mistral-7b", (336, 672), 48 * 24 + 48 + 576)])
def test_images_are_counted_as_processors_count_them(model, size, expected):
    assert tokens(model, size) == expected


def test_frames_of_a_clip_are_joined_or_images_of_their_own():
    assert tokens("qwen2.5-vl-7b", (448, 448), 16) == 8 * 256
    assert tokens("qwen2.5-vl-7b", (448, 448), 15) == 8 * 256
    assert tokens("internvl3-8b", (1024, 1024), 16) == 16 * 256
    assert tokens("llava-1.5-7b", (1024, 1024), 8) == 8 * 576


def test_sound_is_counted_by_the_second():
    padded, open_ = (CATALOG.model(name).ear.encoder.reads for name in ("qwen2-audio-7b", "qwen2.5-omni-7b"))
    assert (heard(padded, 30).tokens, heard(padded, 30).positions) == (750, 1500)
    assert (heard(padded, 8).tokens, heard(padded, 8).positions) == (200, 1500)
    assert (heard(open_, 8).tokens, heard(open_, 8).positions) == (200, 400)
    with pytest.raises(InputError, match="at most 30 s"):
        heard(padded, 31)
    # 13 of a second, 12.5 and 6.25
    assert [heard(CATALOG.model(name).ear.encoder.reads, 30).tokens
            for name in ("qwen3-omni", "voxtral-small-24b", "ultravox-8b")] == [390, 375, 187]


@pytest.mark.parametrize(("model", "images", "sound", "reason"), [
    ("llama-3.1-8b", 1, 0, "llama-3.1-8b has no encoder for images"),
    ("qwen2.5-vl-7b", 0, 3, "qwen2.5-vl-7b has no encoder for sound"),
    ("kimi-k2.5", 1, 0, "the shape of its encoder is not in the catalog")])
def test_what_a_model_cannot_see_or_hear_is_refused(model, images, sound, reason):
    with pytest.raises(InputError, match=reason):
        parts_of(CATALOG.model(model), images, (512, 512), 1, sound)


def test_no_processor_reads_a_line():
    with pytest.raises(InputError, match="200 times"):
        tokens("qwen2-vl-7b", (4020, 20))


def test_flops_of_an_encoder_are_those_of_its_matrices():
    """CLIP on 577 positions: twice its 12 h^2 matrices a layer, and scores and context of all pairs."""
    (part,) = parts_of(CATALOG.model("llava-1.5-7b"), 1, (336, 336), 1, 0)
    by_hand = 577 * 24 * (2 * 12 * 1024**2 + 2 * 2 * 577 * 1024)
    assert part.flops == pytest.approx(by_hand, rel=0.01)

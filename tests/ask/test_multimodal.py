"""Questions of models that see and hear: what images change in training and serving, and what text does not."""

import pytest

import planner
from planner.errors import InputError
from tests.answered import shipped_answer

TUNED = {"node": "dgx-h100", "gpus": 1, "method": "lora", "stack": "hf-peft", "seq_len": 2048, "global_batch": 8,
         "layout": {"mbs": 1, "recompute": "full"}}


def estimate(model, **asked):
    return planner.estimate(model, **{**TUNED, **asked})


def seconds(found):
    return found.time.step_seconds


def test_without_images_the_answer_is_that_of_the_text_model():
    plan = planner.plan(model="qwen2.5-vl-7b", method="lora", tokens="10M", on="h100-sxm-1x", max_gpus=1)
    text = planner.plan(model="qwen2.5-7b", method="lora", tokens="10M", on="h100-sxm-1x", max_gpus=1)
    assert plan.assignments[0].cost_usd == text.assignments[0].cost_usd
    assert "text alone is planned for: qwen2.5-vl-7b also reads images, and none are given" in plan.notes


def test_frozen_encoder_adds_its_weights_and_its_forward():
    text, seen = estimate("qwen2.5-vl-7b"), estimate("qwen2.5-vl-7b", images=1, resolution=1024)
    for part in ("time", "memory"):  # no run of the evidence reads images
        plain, wide = (getattr(one, part).evidence for one in (text, seen))
        assert ("media" in plain.unlike, "media" in wide.unlike) == (False, True)
    held = seen.memory.components.weights - text.memory.components.weights
    assert held == pytest.approx(2 * 676550144, rel=1e-6)
    # 5,476 patches through 0.63 G parameters, and full attention in four of 32 layers; eight images a step
    flops = 8 * 5476 * (2 * 630e6 + 4 * 5476 * 1280 * 4)
    assert seconds(seen) - seconds(text) == pytest.approx(flops / 989e12 / 0.4, rel=0.6)
    assert seen.memory.components.activations == text.memory.components.activations


def test_trained_encoder_has_states_and_activations():
    frozen, trained = (estimate("qwen2.5-vl-7b", method="full", stack="deepspeed", gpus=8, images=1,
                                layout={"dp": 8, "zero": 2, "recompute": "full", "mbs": 1}, trained_parts=parts)
                       for parts in ("language", "language,encoder,projector"))
    states = (4 + 8 + 2) * 676550144 / 8
    more = sum(getattr(trained.memory.components, part) - getattr(frozen.memory.components, part)
               for part in ("gradients", "master_weights", "optimizer"))
    assert more == pytest.approx(states, rel=0.3)
    assert trained.memory.components.activations > frozen.memory.components.activations
    assert seconds(trained) > seconds(frozen)


def test_projector_alone_leaves_the_language_model_as_it_is():
    whole, alone = (estimate("llava-1.5-7b", method="full", stack="deepspeed", images=1, trained_parts=parts,
                             layout={"mbs": 1, "recompute": "full", "offload_optimizer": 0})
                    for parts in ("language", "projector"))
    assert alone.memory.fits == "fits"
    assert whole.memory.fits == "does not fit"
    assert alone.memory.components.optimizer < 1e9
    # no gradients of weights: two thirds of the work
    assert seconds(alone) < 0.85 * seconds(whole)


def test_samples_count_text_and_images_come_on_top():
    plan = planner.plan(model="llava-1.5-7b", method="lora", samples=1000, mean_length=124, images=2, on="h100-sxm-1x",
                        max_gpus=1, seq_len=4096)
    said = {default.name: default.value for default in plan.provenance.defaults}
    assert said["image tokens"] == "1152"
    assert said["tokens"].startswith("1.28 M")


def test_sequences_have_room_for_images_unless_their_length_is_given():
    """An image of 1024x1024 is 4,160 tokens to Pixtral, and tuning has 4,096 unless it is told."""
    plan = planner.plan(model="pixtral-12b", method="lora", samples=1000, mean_length=200, images=1, on="h100-sxm-1x",
                        max_gpus=1)
    said = {default.name: default.value for default in plan.provenance.defaults}
    assert (said["sequence_length"], said["tokens"]) == ("8,192", "4.36 M")
    assert estimate("pixtral-12b", seq_len=None, images=1).sequence_length == 8192


def test_packed_sequences_have_the_images_of_their_samples():
    one, many = (estimate("qwen2.5-vl-7b", images=1, resolution=728, samples_per_sequence=count) for count in (1, 3))
    text = estimate("qwen2.5-vl-7b")
    assert seconds(many) - seconds(text) == pytest.approx(3 * (seconds(one) - seconds(text)), rel=0.2)


@pytest.mark.parametrize(("asked", "reason"), [
    ({"images": 4, "resolution": "2048x2048", "seq_len": 4096}, "sequence_length .* has no room"),
    ({"resolution": 512}, "resolution applies to images"), ({"audio": "3s"}, "has no encoder for sound"),
    ({"trained_parts": "encoder"}, "trained_parts applies to samples with images"),
    ({"images": 1, "trained_parts": "projector"}, "adapts the language model"),
    ({"images": 1, "trained_parts": "eye"}, "language"), ({"images": 0}, "images")])
def test_what_has_no_sense_is_refused(asked, reason):
    with pytest.raises(InputError, match=reason):
        planner.plan(model="qwen2.5-vl-7b", method="lora", tokens="10M", on="h100-sxm-1x", max_gpus=1, **asked)


def served(**asked):
    return planner.estimate("qwen2.5-vl-7b", "h100-sxm-1x", layout={"tp": 1}, concurrency=1, output=200,
                            **{"input": 200, **asked})


def test_images_of_a_request_are_prompt_tokens_and_encoder_time():
    seen, text = served(images_per_request=1, resolution=1024), served(input=1569)
    first, alone = (found.serving.ttft_seconds.p50 for found in (seen, text))
    # one image through 6.9 TFLOP of products and 0.6 of attention, at half of the peak
    assert first - alone == pytest.approx(7.5e12 / 989e12 / 0.5, rel=0.6)
    assert seen.serving.requests_per_second < text.serving.requests_per_second
    assert ("media" in seen.time.evidence.unlike, "media" in text.time.evidence.unlike) == (True, False)


def test_sound_is_served_too():
    heard = planner.estimate("qwen2-audio-7b", "h100-sxm-1x", layout={"tp": 1}, concurrency=8, output=200, input=100,
                             audio="30 s")
    assert heard.memory.fits == "fits"
    with pytest.raises(InputError, match="at most 30 s"):
        planner.estimate("qwen2-audio-7b", "h100-sxm-1x", layout={"tp": 1}, concurrency=8, output=200, input=100,
                         audio="60 s")


@pytest.mark.parametrize(("model", "told"), [
    ("clip-vit-large", "not modeled"), ("siglip-so400m", "CLIP")])
def test_what_is_no_multimodal_language_model_is_refused_by_name(model, told):
    with pytest.raises(InputError, match=told):
        planner.plan(model=model, method="lora", tokens="10M", on="h100-sxm-1x")


@pytest.mark.parametrize("name", ["qwen2.5-vl-7b-full-8xh100", "llava-from-scratch", "qwen-vl-service-with-images"])
def test_scenarios_of_images_are_proven(name):
    assert shipped_answer(name).status == "optimal"


def test_plan_with_images_is_compared_and_swept_like_any_other():
    compared = planner.compare(model="qwen2.5-vl-7b", rate="5", input=100, output=100, images_per_request=1,
                               resolution=896, on=["h100-sxm-1x", "l40s-1x"], provider="nebius")
    assert {row.status for row in compared.rows} == {"optimal"}
    few, many = (planner.plan(model="qwen2.5-vl-7b", concurrency=32, input=100, output=100, images_per_request=count,
                              resolution=896, on="h100-sxm-1x", gpus=1).assignments[0].serving.requests_per_second
                 for count in (1, 4))
    # four times the image tokens and encoder time are most of the work
    assert many < 0.5 * few

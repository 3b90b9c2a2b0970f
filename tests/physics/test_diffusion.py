"""Shapes of denoisers against the published classes, and memory and time of a step against published runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.catalog.diffusion import Diffusion
from planner.catalog.load import Catalog
from planner.physics.diffusion.shape import forward_flops, parameters, sample_of
from planner.physics.diffusion.step import (
    StepSplit,
    Trainee,
    allocated,
    entering_bytes,
    memory,
    step_seconds,
    swapped_bytes,
    trained,
)

CATALOG = Catalog()
LAW = CATALOG.diffusion_law
# TFLOP of a forward pass that torch's FlopCounterMode counts of the class of diffusers 0.42.1 on the meta device
COUNTED = {
    "sdxl": ((512, 512), 1, 1.534, 0.055),
    "sd-1.5": ((512, 512), 1, 0.677, 0.126),
    "sd3-medium": ((512, 512), 1, 1.598, 0.205),
    "sd3.5-large": ((512, 512), 1, 6.347, 0.513),
    "flux.1-dev": ((512, 512), 1, 19.850, 1.652),
    "qwen-image": ((512, 512), 1, 17.415, 1.208),
    "z-image": ((512, 512), 1, 13.050, 0.644),
    "auraflow": ((512, 512), 1, 10.510, 0.734),
    "chroma": ((512, 512), 1, 20.035, 1.652),
    "pixart-sigma": ((512, 512), 1, 1.114, 0.175),
    "sana-1.6b": ((512, 512), 1, 0.823, 0.014),
    "flux.2-klein-9b": ((512, 512), 1, 21.495, 1.237),
    "wan2.1-14b": ((512, 512), 17, 124.609, 23.622),
    "hunyuan-video": ((512, 512), 17, 73.191, 21.310),
    "ltx-video-0.9.5": ((512, 512), 49, 5.958, 0.789),
    "cogvideox-5b": ((720, 480), 49, 169.119, 163.079),
    "kandinsky5-t2v-lite": ((512, 512), 17, 14.884, 6.315),
}


WORDS = {"ace-step-v1": 24 * 4 * 2560**2 + 235932544,
         "cosmos3-edge": 2 * 131072 * 2048, "cosmos3-nano": 2 * 151936 * 4096, "cosmos3-super": 2 * 151936 * 5120}
"""Weights of the words that go in and come out of a tower that reads text, which no block has; of ACE-Step those of
cross attention that multiply nothing (added_kv_proj), and what is not its blocks (lyrics, projectors).
"""


@pytest.mark.parametrize("model", CATALOG.all("diffusion", Diffusion), ids=lambda model: model.name)
def test_blocks_are_nearly_all_of_the_published_parameters(model: Diffusion) -> None:
    assert 0.93 < (parameters(model) + WORDS.get(model.name, 0)) / model.denoiser.parameters < 1.01


@pytest.mark.parametrize(("name", "size", "frames", "products", "attention"),
                         [(name, *counted) for name, counted in COUNTED.items()])
def test_a_forward_pass_has_the_flops_of_the_published_class(name: str, size: tuple[int, int], frames: int,
                                                             products: float, attention: float) -> None:
    model = CATALOG.diffusion(name)
    mine = forward_flops(model, sample_of(model, size, frames))
    assert mine[0] / 1e12 == pytest.approx(products, rel=0.03)
    assert mine[1] / 1e12 == pytest.approx(attention, rel=0.03, abs=1e-3)


@pytest.mark.parametrize(("name", "seconds", "products", "attention"), [
    ("ace-step-1.5", 60.0, 2.223, 0.186), ("stable-audio-open", 2048 * 1024 / 44100, 2.097, 0.1746)])
def test_sound_is_a_line_of_samples(name: str, seconds: float, products: float, attention: float) -> None:
    """Tokens are those of the autoencoder's strides; FLOPs those that FlopCounterMode counts of the classes."""
    model = CATALOG.diffusion(name)
    sample = sample_of(model, model.extent(None, None, seconds)[:2], 1)
    assert sample.image() == {"ace-step-1.5": 750, "stable-audio-open": 1024}[name]
    mine = forward_flops(model, sample)
    assert mine[0] / 1e12 == pytest.approx(products, rel=0.03)
    assert mine[1] / 1e12 == pytest.approx(attention, rel=0.03)


def lora(name: str, size: tuple[int, int], rank: int, optimizer: str, base: str = "bf16") -> Trainee:
    model = CATALOG.diffusion(name)
    return Trainee(model, sample_of(model, size, 1), rank, base, optimizer)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "rank", "optimizer", "base", "recomputed", "gib"), [
    # SimpleTuner's examples at 512 x 512, peak of allocated memory on L40S
    ("auraflow", 8, "lion", "bf16", 0, 19.1), ("auraflow", 8, "lion", "bf16", 1, 13.3),
    ("z-image", 64, "lion", "bf16", 0, 21.2), ("z-image", 64, "lion", "bf16", 1, 12.8),
    ("z-image", 64, "lion", "int8", 1, 7.2), ("longcat-image", 16, "adamw", "bf16", 0, 16.4),
    ("chroma", 16, "adamw", "bf16", 1, 17.6)])
def test_memory_is_that_of_published_runs(name: str, rank: int, optimizer: str, base: str, recomputed: int,
                                          gib: float) -> None:
    peak = allocated(lora(name, (512, 512), rank, optimizer, base), StepSplit(recomputed=recomputed), LAW)
    assert peak / 2**30 == pytest.approx(gib, rel=0.08)


def test_states_of_all_weights_are_those_of_the_recipe() -> None:
    tuning = lora("sdxl", (1024, 1024), 0, "adamw")
    parts = memory(tuning, StepSplit(recomputed=1.0), LAW)
    count = 2_567_463_684
    assert trained(tuning) == count
    assert (parts["weights"], parts["gradients"], parts["optimizer"]) == (2 * count, 2 * count, 6 * count)


@pytest.mark.parametrize(("change", "grows"), [
    ({"micro_batch": 2}, True), ({"recomputed": 0.5}, False), ({"recomputed": 1.0}, False), ({"swapped": 1.0}, False)])
def test_memory_moves_with_the_split(change: dict[str, float], grows: bool) -> None:
    tuning, split = lora("flux.1-dev", (1024, 1024), 16, "adamw"), StepSplit()
    now, then = (sum(memory(tuning, each, LAW).values()) for each in (split, replace(split, **change)))  # type: ignore[arg-type]
    assert (then > now) == grows


def test_shards_share_weights_and_states() -> None:
    tuning = lora("flux.1-dev", (1024, 1024), 0, "adamw")
    one, four = (memory(tuning, StepSplit(count, count, recomputed=1.0), LAW) for count in (1, 4))
    assert all(four[part] == one[part] / 4 for part in ("weights", "gradients", "optimizer"))


def test_recompute_costs_a_forward_pass() -> None:
    gpu = CATALOG.gpu("rtx-4090")
    tuning, rates = lora("flux.1-dev", (1024, 1024), 16, "adamw"), CATALOG.rates(gpu.architecture)
    none, half, full = (step_seconds(tuning, StepSplit(recomputed=share), LAW, gpu, rates, CATALOG.kernels)
                        for share in (0.0, 0.5, 1.0))
    assert none["recompute"] == 0
    assert half["recompute"] * 2 == full["recompute"] < none["compute"]
    assert sum(none.values()) < sum(half.values()) < sum(full.values())


def test_what_eager_fp8_rounds_is_kept_by_numbers_that_enter_its_products() -> None:
    """By hand: a block of Z-Image has six products of 3,840 inputs and one of 10,240."""
    tuning = lora("z-image", (512, 512), 64, "lion", "fp8")
    plain = LAW.model_copy(update={"bases": {**LAW.bases, "fp8": LAW.bases["fp8"].model_copy(update={"rounded": 0.0})}})
    image, text, entering = 1024, 128, 6 * 3840 + 10240
    tokens = 30 * (image + text) + 2 * image + 2 * text
    kept = allocated(tuning, StepSplit(), LAW) - allocated(tuning, StepSplit(), plain)
    assert kept == pytest.approx(tokens * entering * LAW.bases["fp8"].rounded)
    # blocks that come from the host are expanded on the way
    assert allocated(tuning, StepSplit(swapped=1.0), LAW) == allocated(tuning, StepSplit(swapped=1.0), plain)


def busy(tuning: Trainee, split: StepSplit, gpu: str) -> float:
    """Return the seconds that a GPU works forward and backward."""
    card = CATALOG.gpu(gpu)
    return step_seconds(tuning, split, LAW, card, CATALOG.rates(card.architecture), CATALOG.kernels)["compute"]


def test_rounding_moves_each_number_that_enters_a_product_through_memory() -> None:
    """By hand: numbers of Z-Image as above, forward alone, and none where blocks come from the host."""
    eager, plain = lora("z-image", (512, 512), 64, "lion", "fp8"), lora("z-image", (512, 512), 64, "lion")
    entering = (30 * 1152 + 2 * 1024 + 2 * 128) * (6 * 3840 + 10240)
    for gpu in ("l40s", "h100-sxm"):
        card = CATALOG.gpu(gpu)
        moved = LAW.bases["fp8"].moved * entering / (card.memory_bandwidth * CATALOG.rates(card.architecture).memory)
        assert busy(eager, StepSplit(), gpu) - busy(plain, StepSplit(), gpu) == pytest.approx(moved)
        assert busy(eager, StepSplit(swapped=1.0), gpu) == busy(plain, StepSplit(swapped=1.0), gpu)


def test_the_small_matrix_of_kronecker_adapters_takes_rows_of_a_factor() -> None:
    """By hand: PixArt's 28 blocks, 4,096 tokens: six outputs of 1,152, and keys and values of other text."""
    model = CATALOG.diffusion("pixart-sigma")
    two, four = (Trainee(model, sample_of(model, (1024, 1024), 1), 0, "bf16", "adamw", factor) for factor in (2, 4))
    rows = 28 * 4096 * 6 * 1152 * (1 / 2 - 1 / 4)
    beside = 2 * 28 * 4096 * 6 * 1152**2 * (1 / 2 - 1 / 4)
    card = CATALOG.gpu("h100-sxm")
    rate = 989e12 * (card.gemm_efficiency.get("bf16") or CATALOG.rates("hopper").gemm["bf16"]) * LAW.products
    # once forward, and two times as long backward
    assert busy(two, StepSplit(), "h100-sxm") - busy(four, StepSplit(), "h100-sxm") == pytest.approx(
        3 * (LAW.factor_row * rows + beside / rate), rel=1e-3)


def test_a_cache_that_holds_what_a_kernel_leaves_spares_memory() -> None:
    """An L40S has 96 MB: 1,280 tokens of AuraFlow's 8,192 are 42 MB in and out, four times as many 168 MB."""
    tuning = lora("auraflow", (512, 512), 8, "lion")
    bare = CATALOG.gpu("l40s").model_copy(update={"cache": 0.0})
    rates = CATALOG.rates("ada")
    spared = {}
    for batch in (1, 4):
        split = StepSplit(micro_batch=batch)
        cold = step_seconds(tuning, split, LAW, bare, rates, CATALOG.kernels)["compute"]
        spared[batch] = (cold - busy(tuning, split, "l40s")) / batch
    assert spared[4] / spared[1] == pytest.approx(96e6 / (4 * 4 * 1280 * 8192), rel=1e-3)


def test_blocks_without_attention_have_their_products_alone_to_launch() -> None:
    """By hand: SDXL has 70 blocks of attention, and 32 pairs of convolutions."""
    tuning = lora("sdxl", (64, 64), 16, "adamw")
    without = LAW.model_copy(update={"host_block": 1e-9, "overlap": 1.0})
    gpu, rates = CATALOG.gpu("h100-sxm"), CATALOG.rates("hopper")
    with_, none = (step_seconds(tuning, StepSplit(), law, gpu, rates, CATALOG.kernels)["other"]
                   for law in (LAW.model_copy(update={"overlap": 1.0}), without))
    attending = sum(block.count for block in tuning.model.denoiser.blocks if block.inner)
    assert with_ - none == pytest.approx(attending * LAW.host_block, rel=1e-3)


def test_what_enters_recomputed_blocks_waits_on_the_host() -> None:
    """By hand: 40 blocks of Wan 2.1 14B, 21 x 32 x 32 tokens of 5,120 numbers in 16 bits."""
    model = CATALOG.diffusion("wan2.1-14b")
    tuning = Trainee(model, sample_of(model, (512, 512), 81), 16, "fp8-weights", "adamw")
    stays, away = (StepSplit(recomputed=1.0, swapped=0.8, entering=share) for share in (1.0, 0.0))
    entering = 40 * 21 * 32 * 32 * 5120 * 2
    parts = [memory(tuning, split, LAW)["activations"] for split in (stays, away)]
    assert parts[0] - parts[1] == pytest.approx(entering)
    assert [entering_bytes(tuning, split) for split in (stays, away)] == [0, entering]
    gpu = CATALOG.gpu("rtx-4090")
    later, sooner = (step_seconds(tuning, split, LAW, gpu, CATALOG.rates("ada"), CATALOG.kernels)["offload"]
                     for split in (away, stays))
    assert later - sooner == pytest.approx(2 * entering / (LAW.spill_rate * gpu.pcie_bandwidth))


def test_products_in_8_bits_take_their_share_of_the_peak_and_casts() -> None:
    """FLUX.1, all weights on a B200: of the peaks 0.654 in 16 bits and 0.528 in 8, and 7.4 bytes a number cast."""
    gpu, model = CATALOG.gpu("b200"), CATALOG.diffusion("flux.1-schnell")
    wide = Trainee(model, sample_of(model, (256, 256), 1), 0, "bf16", "adamw", graphed=True)
    rates, split = CATALOG.rates(gpu.architecture), StepSplit(micro_batch=32)
    plain, scaled = (step_seconds(tuning, split, LAW, gpu, rates, CATALOG.kernels)["compute"]
                     for tuning in (wide, replace(wide, scaled="mxfp8")))
    multiplied = 3 * 32 * forward_flops(model, wide.sample)[0] / LAW.products
    saved = multiplied * (1 / (2.25e15 * 0.654) - 1 / (4.5e15 * 0.528))
    # widths into products and out of them of a block of image and text, and of one of both together
    into = 32 * 512 * (19 * (4 * 3072 + 3072 + 12288) + 38 * (4 * 3072 + 3072 + 12288))
    casts = into * (CATALOG.kernels.cast_forward_bytes + CATALOG.kernels.cast_backward_bytes) / (
        gpu.memory_bandwidth * rates.memory)
    assert plain - scaled == pytest.approx(saved - casts, rel=1e-3)


def test_quantized_weights_come_from_the_host_more_slowly_than_pinned_ones() -> None:
    """By hand: two passes over 8.1 GB at 5.9 GB/s, less what computing hides, against 16.3 GB over PCIe 5."""
    gpu = CATALOG.gpu("h100-sxm")
    rates, swapped = CATALOG.rates(gpu.architecture), StepSplit(swapped=1.0)
    wide, narrow = (step_seconds(lora("ernie-image", (512, 512), 16, "adamw", base), swapped, LAW, gpu, rates,
                                 CATALOG.kernels) for base in ("bf16", "int8"))
    weights = parameters(CATALOG.diffusion("ernie-image"))
    for seconds, size, rate in ((wide, 2.0, LAW.spill_rate * gpu.pcie_bandwidth), (narrow, 1.02, 5.9e9)):
        assert seconds["offload"] == pytest.approx(2 * size * weights / rate - seconds["compute"] - seconds["other"])
    assert narrow["offload"] > 3 * wide["offload"]


def test_what_enters_recomputed_blocks_can_go_to_the_host() -> None:
    tuning = lora("flux.1-dev", (1024, 1024), 16, "adamw")
    here, there = (memory(tuning, StepSplit(recomputed=1.0, entering=share), LAW)["activations"]
                   for share in (1.0, 0.0))
    image, text, width = 4096, 512, 3072
    assert here - there == pytest.approx(57 * 2 * width * (image + text))


def test_gpus_that_share_a_clip_share_its_activations_and_products_and_swap_tokens_for_heads() -> None:
    model = CATALOG.diffusion("wan2.1-14b")
    tuning = Trainee(model, sample_of(model, (832, 480), 81), 16, "bf16", "adamw")
    gpu = CATALOG.gpu("h100-sxm")
    rates, one, four = CATALOG.rates(gpu.architecture), StepSplit(), StepSplit(sequence=4)
    assert memory(tuning, four, LAW)["activations"] == pytest.approx(memory(tuning, one, LAW)["activations"] / 4)
    assert memory(tuning, four, LAW)["weights"] == memory(tuning, one, LAW)["weights"]
    (alone, shared), (cold_alone, cold_shared) = (
        [step_seconds(tuning, split, LAW, card, rates, CATALOG.kernels)["compute"] for split in (one, four)]
        for card in (gpu, gpu.model_copy(update={"cache": 0.0})))
    assert cold_shared == pytest.approx(cold_alone / 4)
    assert shared < alone / 4 < cold_alone / 4  # a cache holds more of fewer tokens
    # by hand: 21 latent frames of 52 x 30 tokens, 5,120 wide, in 16 bits; queries, keys, values, outputs, both ways
    assert swapped_bytes(tuning, four) == [(40 * 4 * 2, 21 * 52 * 30 * 5120 * 2 / 4)]
    assert not swapped_bytes(tuning, one)

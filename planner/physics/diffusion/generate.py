"""Memory and time of making images or clips: text encoders, passes of the denoiser, the autoencoder, one after another.

The peak of memory is that of the worst moment. Parts that are offloaded are on the GPU only while they are at work.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from planner.catalog.diffusion import Coding, DenoiserBlock, Diffusion
from planner.catalog.generation_law import GenerationLaw, StepCache, Stored
from planner.physics.diffusion.rates import STORED, Rates
from planner.physics.diffusion.shape import (
    LatentSize,
    attention_flops,
    block_parameters,
    matrix_flops,
    parameters,
    products,
    tokens_of,
)

COLORS = 3
EXCHANGED = 4
"""Queries, keys, values and outputs that Ulysses sends for every block."""
Offloaded = Literal["none", "model", "sequential"]
Moment = Literal["encode", "denoise", "decode"]
Exchange = Callable[[str, float, int], float]
"""Seconds of a collective by its name, bytes and ranks."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What is made: of what model, how large, in how many steps and passes, in what format."""

    model: Diffusion
    sample: LatentSize
    pixels: int
    """Of a frame."""
    frames: int
    steps: int
    passes: int
    """Of the denoiser for a step: two with guidance by a second prompt."""
    stored: Stored = "bf16"
    compiled: bool = False
    cache: StepCache = "none"
    encoders: float = STORED
    """Bytes of a weight of the text encoders."""
    bf16: bool | None = None
    """Whether its 16 bits are bfloat16; none where that is not known yet."""

    def widened(self, law: GenerationLaw) -> float:
        """Return bytes of the autoencoder's numbers over 16 bits: one that overflows in float16 works in 32 bits."""
        return law.wide if self.model.autoencoder.wide and not self.bf16 else 1.0


@dataclass(frozen=True, slots=True)
class CallSplit:
    """How a call is run: images of a call, what waits on the host, and the GPUs that share it."""

    batch: int = 1
    offload: Offloaded = "none"
    """Nothing; each part while another is at work; or every block."""
    tiled: bool = False
    """Whether the autoencoder works on one image and tile at a time."""
    cfg: int = 1
    """GPUs that share out the two passes of guidance."""
    ulysses: int = 1
    ring: int = 1
    pipefusion: int = 1
    """Stages of blocks that patches pass, with stale neighbors."""

    @property
    def gpus(self) -> int:
        """GPUs that make one batch together."""
        return self.cfg * self.ulysses * self.ring * self.pipefusion

    @property
    def sequence(self) -> int:
        """Parts that tokens are split into."""
        return self.ulysses * self.ring * self.pipefusion


@dataclass(frozen=True, slots=True)
class Bytes:
    """Of one GPU at one moment."""

    weights: float
    activations: float
    held: float = 1.0
    """Bytes that the allocator holds for each of the activations."""

    @property
    def allocated(self) -> float:
        """As PyTorch counts."""
        return self.weights + self.activations

    def device(self, law: GenerationLaw) -> float:
        """Return them as the device shows them."""
        return self.weights * (1 + law.wasted) + self.activations * self.held + law.context


def denoiser_bytes(model: Diffusion, stored: Stored, law: GenerationLaw) -> float:
    """Return the bytes of one denoiser: its matrices in their format, all else in 16 bits."""
    matrices = parameters(model)
    return matrices * law.formats[stored].weight + max(0, model.denoiser.parameters - matrices) * STORED


def moments(picture: Picture, split: CallSplit, law: GenerationLaw) -> dict[Moment, Bytes]:
    """Return the bytes of one GPU while each part is at work."""
    model = picture.model
    vae = model.autoencoder.parameters * STORED * picture.widened(law)
    encoders = [encoder.parameters * picture.encoders for encoder in model.text_encoders]
    one = denoiser_bytes(model, picture.stored, law) / split.pipefusion
    working = _working(picture, split, law)
    coded = coding_bytes(picture, split, law)
    if split.offload == "none":
        all_of_it = sum(encoders) + one * model.denoisers + vae
        return {"encode": Bytes(all_of_it, 0.0), "denoise": Bytes(all_of_it, working),
                "decode": Bytes(all_of_it, coded, law.held)}
    block = max(block_parameters(block) for block in model.denoiser.blocks) * law.formats[picture.stored].weight
    at_work = block if split.offload == "sequential" else one
    encoding = min(block, max(encoders, default=0.0)) if split.offload == "sequential" else max(encoders, default=0.0)
    return {"encode": Bytes(encoding, 0.0), "denoise": Bytes(at_work, working), "decode": Bytes(vae, coded, law.held)}


def coding_bytes(picture: Picture, split: CallSplit, law: GenerationLaw, coding: Coding | None = None) -> float:
    """Return what is alive at once in the autoencoder, of all images of a call or of one tile of one; and the frames
    that are made.
    """
    vae = picture.model.autoencoder
    coding = coding or vae.decode
    pixels, images = (min(picture.pixels, vae.tile**2), 1) if split.tiled else (picture.pixels, split.batch)
    at_once = min(picture.frames, coding.frames or picture.frames)
    made = split.batch * picture.pixels * picture.frames * COLORS * STORED
    return images * pixels * at_once * coding.bytes * picture.widened(law) + made


def _working(picture: Picture, split: CallSplit, law: GenerationLaw) -> float:
    """Return what a pass of the denoiser works with: the intermediates of the largest block, and what enters it."""
    together = picture.passes // split.cfg if picture.model.sampling.together else 1
    images = split.batch * max(1, together)
    largest = max(_block_bytes(block, picture.sample) for block in picture.model.denoiser.blocks)
    kept = 0.0
    if split.pipefusion > 1:
        # keys and values of the whole sequence stay, for patches that are computed later
        kept = sum(2 * block.count * (block.kv or block.inner) * tokens_of(block, picture.sample) * STORED
                   for block in picture.model.denoiser.blocks) / split.pipefusion
    return images * (law.working * largest / split.sequence + kept)


def _block_bytes(block: DenoiserBlock, sample: LatentSize) -> float:
    if block.inputs is not None:
        return STORED * tokens_of(block, sample) * (block.inputs + 2 * block.width)
    width = 2 * block.width + 4 * block.inner + (2 if block.gated else 1) * block.mlp
    return STORED * tokens_of(block, sample) * width


def on_host(picture: Picture, split: CallSplit, law: GenerationLaw) -> float:
    """Return the bytes of the host's memory that wait there."""
    if split.offload == "none":
        return 0.0
    model = picture.model
    encoders = sum(encoder.parameters for encoder in model.text_encoders) * picture.encoders
    return (encoders + denoiser_bytes(model, picture.stored, law) * model.denoisers
            + model.autoencoder.parameters * STORED)


def call_seconds(picture: Picture, split: CallSplit, law: GenerationLaw, rates: Rates, exchange: Exchange
                 ) -> dict[str, float]:
    """Return the seconds of one call, which makes a batch, by what they go into. Raises MissingFact."""
    model = picture.model
    inward, outward = (min(rate, rates.gpu.pcie_bandwidth) for rate in (law.copied_in, law.copied_out))
    computed = law.step_caches[picture.cache]
    one = _pass(picture, split, law, rates)
    loaded = denoiser_bytes(model, picture.stored, law) / inward if split.offload == "sequential" else 0.0
    sent = _exchanged(picture, split, law, exchange)
    # patches follow each other through the stages after the first steps, which are computed stage by stage
    whole = 1 + (split.pipefusion - 1) * min(1.0, law.stale / picture.steps)
    passes = picture.steps * computed
    there = on_host(picture, split, law)
    vae = model.autoencoder
    return {
        "encode": _encoding(picture, split, law, rates),
        "denoise": passes * one * whole,
        "exchange": passes * sent,
        "offload": passes * loaded + (
            there * (1 / inward + 1 / outward) if split.offload == "model" else 0.0),
        "decode": coding_seconds(picture, split, law, rates, vae.decode),
        "other": law.host_image}


def _encoding(picture: Picture, split: CallSplit, law: GenerationLaw, rates: Rates) -> float:
    encoders, tokens = picture.model.text_encoders, picture.sample.text * split.batch * picture.passes
    flops = sum(2.0 * encoder.parameters for encoder in encoders) * tokens
    read = sum(encoder.parameters for encoder in encoders) * picture.encoders
    return max(flops / (rates.products() * law.encoder), read / rates.memory)


def _pass(picture: Picture, split: CallSplit, law: GenerationLaw, rates: Rates) -> float:
    """Return the seconds of all passes of one step on one GPU; what GPUs exchange is not among them."""
    stored, blocks = law.formats[picture.stored], picture.model.denoiser.blocks
    share = split.batch * max(1, picture.passes // split.cfg) / split.sequence
    unet = any(block.inputs is not None for block in blocks)
    multiplied = share * sum(block.count * matrix_flops(block, picture.sample) for block in blocks) / rates.denoising(
        law, stored, unet=unet)
    scores = share * sum(block.count * attention_flops(block, picture.sample) for block in blocks)
    kept = share * sum(block.count * block.kept.weights * tokens_of(block, picture.sample) * (
        1.0 if unet else 1 - law.cached * rates.holds(share * block.width * tokens_of(block, picture.sample)))
        for block in blocks)
    times = law.fused + stored.fused if picture.compiled else stored.passes + (
        law.convolved if unet else law.passes)
    weights = parameters(picture.model) / split.pipefusion
    read, expanded = (weights * size / rates.memory
                      for size in (stored.weight, 0.0 if picture.compiled else stored.expands))
    attention = scores / rates.attention(law, picture.model.denoiser.head)
    busy = max(multiplied, read) + attention + times * kept / rates.memory + expanded
    shared = math.pow(law.sharing, math.log2(split.gpus))
    return max(busy / shared, _launched(picture, split, law) / split.pipefusion)


def _launched(picture: Picture, split: CallSplit, law: GenerationLaw) -> float:
    """Return the seconds in which the host launches all passes of one step, which may be calls of their own."""
    denoiser = picture.model.denoiser
    calls = 1 if picture.model.sampling.together else max(1, picture.passes // split.cfg)
    shared = split.ulysses * split.ring > 1
    if picture.compiled or shared:
        each = law.host_fused if picture.compiled else law.host_shared
        return calls * each * sum(block.count for block in denoiser.blocks)
    kernels = denoiser.launches or law.launched * sum(block.count * products(block) for block in denoiser.blocks)
    return calls * law.host_launch * kernels


def _exchanged(picture: Picture, split: CallSplit, law: GenerationLaw, exchange: Exchange) -> float:
    """Return the seconds that GPUs exchange in a step: tokens for heads, keys and values, stages, and guidance."""
    images = split.batch * max(1, picture.passes // split.cfg)
    sent = 0.0
    for block in picture.model.denoiser.blocks:
        if not block.inner:
            continue
        tokens = images * tokens_of(block, picture.sample) * STORED
        if split.ulysses > 1:
            sent += block.count * EXCHANGED * exchange(
                "all_to_all", tokens * block.inner / split.ulysses, split.ulysses)
        if split.ring > 1:
            sent += block.count * law.ring * exchange(
                "all_gather", tokens * 2 * (block.kv or block.inner) / split.ulysses, split.ring)
    width = max(block.width for block in picture.model.denoiser.blocks)
    passed = images * picture.sample.image() * width * STORED
    if split.pipefusion > 1:
        sent += exchange("all_gather", passed, split.pipefusion)
    return sent + (exchange("all_gather", passed, split.cfg) if split.cfg > 1 else 0.0)


def latents_made(picture: Picture, batch: int, law: GenerationLaw, rates: Rates) -> tuple[float, float]:
    """Return the seconds and the bytes alive of turning a batch of samples and their texts into what a denoiser reads.

    An autoencoder whose encoder was not counted takes what its decoder does.
    """
    coding, split = picture.model.autoencoder.encode or picture.model.autoencoder.decode, CallSplit(batch)
    return (_encoding(picture, split, law, rates) + coding_seconds(picture, split, law, rates, coding),
            coding_bytes(picture, split, law, coding))


def coding_seconds(picture: Picture, split: CallSplit, law: GenerationLaw, rates: Rates, coding: Coding) -> float:
    """Return the seconds of the autoencoder on a call's images; tiles share their borders."""
    vae = picture.model.autoencoder
    rate = rates.wide if picture.widened(law) > 1 else rates.products()
    pixels = split.batch * picture.pixels * picture.frames
    moved = law.moved * coding.bytes * picture.widened(law)
    again = 1 / (1 - law.overlap) ** 2 if split.tiled and picture.pixels > vae.tile**2 else 1.0
    return law.host_coding + pixels * again * (coding.flops / rate + moved / rates.memory)

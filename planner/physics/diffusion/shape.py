"""What a denoiser is made of, and what one image or clip makes it do: tokens, weights, FLOPs, kept bytes."""

from __future__ import annotations

from dataclasses import dataclass

from planner.catalog.diffusion import DenoiserBlock, Diffusion

KERNEL = 3
"""Taps of a side of a convolution."""


@dataclass(frozen=True, slots=True)
class LatentSize:
    """One image or clip as the denoiser reads it: latent frames, and tokens of a side."""

    frames: int
    across: int
    down: int
    text: int

    def image(self, scale: int = 1) -> int:
        """Return the tokens of the image or clip at a scale; a side that does not divide is rounded up."""
        return self.frames * -(-self.across // scale) * -(-self.down // scale)


def sample_of(model: Diffusion, resolution: tuple[int, int], frames: int) -> LatentSize:
    """Return what the denoiser reads of an image or clip of `resolution` (width, height in pixels)."""
    vae, side = model.autoencoder, model.autoencoder.compression * model.denoiser.patch
    return LatentSize((frames - 1) // vae.frames + 1, -(-resolution[0] // side), -(-resolution[1] // side),
                      model.denoiser.text_tokens)


def tokens_of(block: DenoiserBlock, sample: LatentSize) -> int:
    """Return the tokens that one block reads of one sample."""
    image = sample.image(block.scale)
    return {"both": image + sample.text, "all": image + sample.text, "image": image, "text": sample.text}[block.reads]


def crossed(block: DenoiserBlock) -> tuple[int, int]:
    """Return how wide queries and keys of a block's cross attention are."""
    queries = block.cross_inner or block.width
    return queries, block.cross_kv or queries


def token_weights(block: DenoiserBlock) -> int:
    """Return the weights that one token meets in one block, keys and values of cross attention left out."""
    if block.inputs is not None:
        width, shortcut = block.width, block.inputs * block.width if block.inputs != block.width else 0
        return KERNEL**2 * (block.inputs + width) * width + shortcut
    kv = block.kv or block.inner
    attention = 2 * block.width * (block.inner + kv)
    crossing = 2 * block.width * crossed(block)[0] if block.cross else 0
    return attention + crossing + _feed_forward(block, block.active)


def _feed_forward(block: DenoiserBlock, experts: int) -> int:
    """Return the weights of so many feed-forwards of one block, and of the one that every token meets."""
    return (3 if block.gated else 2) * block.width * (experts * block.mlp + block.shared)


def block_parameters(block: DenoiserBlock) -> int:
    """Return the weights of one block's matrices."""
    crossing = 2 * block.cross * crossed(block)[1] if block.cross else 0
    modulation = block.modulation * block.width * (block.conditioning or block.width)
    idle = _feed_forward(block, block.experts) - _feed_forward(block, block.active)
    return (2 if block.reads == "both" else 1) * (token_weights(block) + idle + modulation) + crossing


@dataclass(frozen=True, slots=True)
class Matrix:
    """One product of a block: how wide what goes in and comes out is."""

    inputs: int
    outputs: int
    share: float
    """Of the tokens that the block reads, those that it multiplies; none where it multiplies other text."""


def attended(block: DenoiserBlock) -> list[Matrix]:
    """Return the matrices of one block's attention; of image and text where each has its own."""
    kv, width = block.kv or block.inner, block.width
    sides = 2 if block.reads == "both" else 1
    own = [Matrix(width, block.inner, 1 / sides)] * 2 + [Matrix(width, kv, 1 / sides)] * 2 if block.inner else []
    queries, keys = crossed(block)
    crossing = ([Matrix(width, queries, 1.0), Matrix(queries, width, 1.0)] + [Matrix(block.cross, keys, 0.0)] * 2
                if block.cross else [])
    return own * sides + crossing


def fed(block: DenoiserBlock) -> list[Matrix]:
    """Return the matrices of one block's feed-forward."""
    if not (block.inner and block.mlp):
        return []
    sides, width, mlp = 2 if block.reads == "both" else 1, block.width, block.mlp
    into = [Matrix(width, mlp, 1 / sides)] * (2 if block.gated else 1)
    return [*into, Matrix(mlp, width, 1 / sides)] * sides


def products(block: DenoiserBlock) -> int:
    """Return the number of products of one block: attention, cross attention, feed-forward, convolutions."""
    return 2 if block.inputs is not None else len(attended(block)) + (len(fed(block)) or (2 if block.mlp else 0))


def parameters(model: Diffusion, *, convolutions: bool = True) -> int:
    """Return the weights of all blocks; embedders, norms and biases are not among them.

    convolutions: whether those of convolutions are, which formats of a base leave in 16 bits.
    """
    return sum(block.count * block_parameters(block) for block in model.denoiser.blocks
               if convolutions or block.inputs is None)


def matrix_flops(block: DenoiserBlock, sample: LatentSize) -> float:
    """Return the FLOPs of one block's products forward, attention itself left out."""
    crossing = 2.0 * 2 * block.cross * crossed(block)[1] * sample.text if block.cross else 0.0
    return 2.0 * token_weights(block) * tokens_of(block, sample) + crossing


def attention_flops(block: DenoiserBlock, sample: LatentSize) -> float:
    """Return the FLOPs of one block's attention forward: scores and their product with values."""
    tokens = tokens_of(block, sample)
    own = 0.0 if block.inputs is not None or block.linear else 4.0 * tokens * tokens * block.inner
    return own + (4.0 * tokens * sample.text * crossed(block)[0] if block.cross else 0.0)


def forward_flops(model: Diffusion, sample: LatentSize) -> tuple[float, float]:
    """Return the FLOPs of the denoiser forward on one sample: of products, and of attention."""
    blocks = model.denoiser.blocks
    return (sum(block.count * matrix_flops(block, sample) for block in blocks),
            sum(block.count * attention_flops(block, sample) for block in blocks))

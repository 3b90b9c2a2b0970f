"""Memory and time of one step of training a denoiser, on one of the GPUs that share a batch."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.catalog.calibration import ArchitectureRates, KernelShape
from planner.catalog.diffusion import DenoiserBlock, Diffusion, Extent
from planner.catalog.diffusion_law import Base, DiffusionLaw, StoredBase
from planner.catalog.hardware import Gpu, Precision
from planner.errors import MissingFact
from planner.physics.diffusion.rates import STORED, Rates
from planner.physics.diffusion.shape import (
    LatentSize,
    Matrix,
    attended,
    block_parameters,
    fed,
    forward_flops,
    parameters,
    products,
    tokens_of,
)

EXCHANGED = 4
"""Queries, keys, values and outputs of a block that Ulysses sends."""
GATHERED = 2
"""Blocks whose shards are gathered at once: the one at work and the next."""


@dataclass(frozen=True, slots=True)
class Trainee:
    """What trains, of what base, by which optimizer. Without a rank or a factor it is all weights."""

    model: Diffusion
    sample: LatentSize
    rank: int
    base: Base
    optimizer: str
    factor: int = 0
    """Of Kronecker adapters (LoKr): a side of the smaller of the two matrices whose product is added."""
    mlp: int = 0
    """The rank or factor of the feed-forward's adapters; none where only attention has them."""
    cached: bool = True
    """Whether latents and embeddings are computed before, so that only the denoiser is on the GPU."""
    ema: bool = False
    graphed: bool = False
    """Whether kernels are fused and a step is one graph, which the host launches at once."""
    extent: Extent | None = None
    """Pixels and frames of a sample, which encoders beside the denoiser read."""
    wide: bool = False
    """Whether weights, activations and products are in 32 bits."""
    scaled: Precision | None = None
    """Format of the products of weights that train, where it is narrower than 16 bits."""

    @property
    def stretch(self) -> int:
        """Bytes of a number over those in 16 bits."""
        return 2 if self.wide else 1

    @property
    def frozen(self) -> bool:
        """Whether adapters train beside a frozen base."""
        return bool(self.rank or self.factor)


@dataclass(frozen=True, slots=True)
class StepSplit:
    """How a step is split: copies, over how many GPUs each is sharded, and the micro-batches of each."""

    copies: int = 1
    shard: int = 1
    micro_batch: int = 1
    micro_batches: int = 1
    recomputed: float = 0.0
    """Share of the blocks that keep only what enters them."""
    segment: int = 1
    """Blocks in a row of which only what enters the first is kept."""
    swapped: float = 0.0
    """Share of the blocks whose weights are on the host until they are at work."""
    states_out: float = 0.0
    """Share of the optimizer's states on the host."""
    spilled: bool = False
    """Whether what attention keeps goes to the host, so that recompute is of the feed-forward alone."""
    entering: float = 1.0
    """Share of what enters recomputed blocks that stays on the GPU; the rest goes to the host."""
    sequence: int = 1
    """GPUs that share the tokens of a sample, and swap them for heads around attention (Ulysses)."""

    @property
    def gpus(self) -> int:
        """GPUs of all copies."""
        return self.copies * self.sequence


def trained(tuning: Trainee) -> int:
    """Return the weights that train: all, or adapters on every matrix of attention, and of the feed-forward if asked.

    LoRA has two matrices of the rank, LoKr one of factor x factor and one that is so much smaller than the whole.
    Source: LyCORIS, lycoris/modules/lokr.py, with full matrices.
    """
    if not tuning.frozen:
        return tuning.model.denoiser.parameters
    size = _kronecker if tuning.factor else _low_rank
    return sum(block.count * (sum(size(matrix, tuning.factor or tuning.rank) for matrix in attended(block))
                              + sum(size(matrix, tuning.mlp) for matrix in fed(block) if tuning.mlp))
               for block in tuning.model.denoiser.blocks)


def _low_rank(matrix: Matrix, rank: int) -> int:
    return rank * (matrix.inputs + matrix.outputs)


def _kronecker(matrix: Matrix, factor: int) -> int:
    small = _divisor(matrix.inputs, factor), _divisor(matrix.outputs, factor)
    return small[0] * small[1] + matrix.inputs // small[0] * (matrix.outputs // small[1])


def _divisor(side: int, most: int) -> int:
    """Return the largest divisor of a side up to `most`."""
    return next(each for each in range(min(most, side), 0, -1) if side % each == 0)


def memory(tuning: Trainee, split: StepSplit, law: DiffusionLaw) -> dict[str, float]:
    """Return the bytes of one GPU by component, as the device shows them."""
    model, base = tuning.model, law.bases[tuning.base]
    count, batch = trained(tuning), split.micro_batch
    matrices = parameters(model, convolutions=False)
    frozen = matrices * base.weight + max(0, model.denoiser.parameters - matrices) * STORED if tuning.frozen else 0.0
    frozen *= tuning.stretch
    state = tuning.stretch * law.trained["adapters" if tuning.frozen else "weights"] / 2
    largest = max(model.denoiser.blocks, key=block_parameters)
    # blocks on the host leave room for two: the one at work and the next
    held = frozen * (1 - split.swapped) + (GATHERED * block_parameters(largest) * base.weight if split.swapped else 0)
    weights = held / split.shard + count * state / split.shard
    if not tuning.cached:
        weights += STORED * (model.autoencoder.parameters + sum(part.parameters for part in model.text_encoders))
    if tuning.ema:
        weights += count * STORED / split.shard
    gathered = GATHERED * block_parameters(largest) * STORED if split.shard > 1 else 0.0
    parts = {"weights": weights, "gradients": count * state / split.shard,
             "optimizer": count * law.optimizers[tuning.optimizer] * (1 - split.states_out) / split.shard,
             "activations": (_activations(tuning, split, law, base) * batch / split.sequence
                             + _copies(tuning, split, law, base)),
             "communication_buffers": gathered + (2 * count * state if split.gpus > split.shard else 0.0)}
    allocated = sum(parts.values()) + law.fixed
    parts["framework"] = law.fixed + law.wasted * allocated + law.context
    return parts


def _beside(matrices: list[Matrix], factor: int) -> float:
    """Return the products that the larger matrices of Kronecker adapters add for one token."""
    return sum(matrix.share * matrix.inputs * matrix.outputs / factor for matrix in matrices) if factor else 0.0


def _rows(matrices: list[Matrix], factor: int) -> float:
    """Return the rows that Kronecker adapters multiply with their smaller matrix for one token."""
    return sum(matrix.share * matrix.outputs / factor for matrix in matrices) if factor else 0.0


def _rounded(block: DenoiserBlock) -> float:
    """Return the numbers of one token that go into the products of one block."""
    return sum(each.inputs * each.share for each in attended(block) + fed(block))


def _adapted(block: DenoiserBlock, tuning: Trainee) -> list[Matrix]:
    """Return the matrices of one block that have adapters."""
    return attended(block) + (fed(block) if tuning.mlp else [])


def _kept(block: DenoiserBlock, tuning: Trainee, law: DiffusionLaw, base: StoredBase, swapped: float = 0.0) -> float:
    """Return the bytes that one block keeps of one sample."""
    of_token = block.kept.adapters if tuning.frozen else block.kept.weights
    if tuning.mlp and fed(block):  # what goes into its two products
        of_token += STORED * (block.width + block.mlp)
    if tuning.factor:  # what the first of the two matrices makes of a token
        of_token += STORED * sum(matrix.outputs * matrix.share for matrix in _adapted(block, tuning))
    # weights that come from the host are expanded on the way, and their products round nothing
    rounded = base.rounded * (1 - swapped) * _rounded(block)
    return (tuning.stretch * of_token * law.kept * base.kept + rounded) * tokens_of(block, tuning.sample)


def _activations(tuning: Trainee, split: StepSplit, law: DiffusionLaw, base: StoredBase) -> float:
    """Return the bytes that are kept of one sample for backward."""
    denoiser, stays = tuning.model.denoiser, 1 - law.spilled if split.spilled else 1.0
    kept = [_kept(block, tuning, law, base, split.swapped) for block in denoiser.blocks]
    every = sum(block.count * each for block, each in zip(denoiser.blocks, kept, strict=True))
    # what makes one text of several is no block that is recomputed
    whole = (1 - split.recomputed) * stays * every + tuning.stretch * denoiser.text_kept * tuning.sample.text
    if not split.recomputed:
        return whole + (max(kept) if split.spilled else 0.0)
    entering = _entering(tuning) * (law.spill_inputs if split.spilled else split.entering)
    return whole + split.recomputed * entering / split.segment + (law.working + split.segment - 1) * max(kept)


def _entering(tuning: Trainee) -> float:
    return sum(block.count * STORED * block.width * tokens_of(block, tuning.sample)
               for block in tuning.model.denoiser.blocks)


def entering_bytes(tuning: Trainee, split: StepSplit) -> float:
    """Return the bytes of one micro-batch that enter recomputed blocks and wait on the host."""
    away = 0.0 if split.spilled else split.recomputed * (1 - split.entering) / split.segment / split.sequence
    return away * split.micro_batch * _entering(tuning)


def spilled_bytes(tuning: Trainee, split: StepSplit, law: DiffusionLaw) -> float:
    """Return the bytes of one micro-batch that attention keeps on the host: none unless that is asked for."""
    if not split.spilled:
        return 0.0
    base = law.bases[tuning.base]
    kept = sum(block.count * _kept(block, tuning, law, base, split.swapped) for block in tuning.model.denoiser.blocks)
    copies = base.copies * parameters(tuning.model, convolutions=False) if tuning.frozen else 0.0
    return law.spilled * (split.micro_batch * kept / split.sequence + copies)


def _copies(tuning: Trainee, split: StepSplit, law: DiffusionLaw, base: StoredBase) -> float:
    """Return the bytes of expanded weights that are kept for backward, or are at work."""
    if not tuning.frozen or not base.copies:
        return 0.0
    largest = max(block_parameters(block) for block in tuning.model.denoiser.blocks) if split.recomputed else 0
    expanded = (1 - split.recomputed) * (1 - split.swapped) * parameters(tuning.model, convolutions=False)
    if split.spilled:
        expanded *= 1 - law.spilled
    return base.copies * (expanded + largest * split.segment)


def allocated(tuning: Trainee, split: StepSplit, law: DiffusionLaw) -> float:
    """Return PyTorch's peak of allocated bytes."""
    return (sum(memory(tuning, split, law).values()) - law.context) / (1 + law.wasted)


def step_seconds(tuning: Trainee, split: StepSplit, law: DiffusionLaw, gpu: Gpu, rates: ArchitectureRates,
                 kernels: KernelShape) -> dict[str, float]:
    """Return the seconds of a step by component; what copies exchange is not among them. Raises MissingFact."""
    peak = (gpu.peak.get("tf32") if tuning.wide else None) or gpu.halves
    share = gpu.gemm_efficiency.get("bf16") or rates.gemm.get("bf16") or rates.gemm.get("fp16")
    needs = tuning.scaled or law.bases[tuning.base].needs
    if peak is None or share is None or (needs is not None and needs not in gpu.peak):
        raise MissingFact(f"GPU {gpu.name}", f"rate of products in {needs or '16 bits'}")
    blocks, base = tuning.model.denoiser.blocks, law.bases[tuning.base]
    memory_rate = gpu.memory_bandwidth * rates.memory
    samples = split.micro_batch * split.micro_batches / split.sequence
    multiplied, scores = (samples * flops for flops in forward_flops(tuning.model, tuning.sample))
    multiply, attend = peak * share * law.products, peak * rates.attention_forward * law.attention
    into = outof = 0.0
    if tuning.scaled:
        multiply = gpu.peak[tuning.scaled] * (gpu.gemm_efficiency.get(tuning.scaled)
                                              or rates.gemm.get(tuning.scaled, share)) * law.products
        # what goes into a product is cast, and the gradient of what comes out
        cast = samples / memory_rate
        every = [(block.count * tokens_of(block, tuning.sample) * matrix.share, matrix)
                 for block in blocks for matrix in (*attended(block), *fed(block))]
        into = cast * kernels.cast_forward_bytes * sum(tokens * matrix.inputs for tokens, matrix in every)
        outof = cast * kernels.cast_backward_bytes * sum(tokens * matrix.outputs for tokens, matrix in every)
    tokens = [(block, samples * block.count * tokens_of(block, tuning.sample)) for block in blocks]
    beside = rows = 0.0
    if tuning.factor:
        beside = 2.0 * sum(count * (_beside(attended(block), tuning.factor) + _beside(fed(block), tuning.mlp))
                           for block, count in tokens)
        rows = law.factor_row * sum(count * (_rows(attended(block), tuning.factor) + _rows(fed(block), tuning.mlp))
                                    for block, count in tokens)
    into += base.moved * (1 - split.swapped) * sum(count * _rounded(block) for block, count in tokens) / memory_rate
    passes = law.graphed if tuning.graphed else law.passes
    traffic = passes * samples * sum(
        block.count * _kept(block, tuning, law, law.bases["bf16"]) * (1 - law.cached * Rates(gpu, rates).holds(
            tuning.stretch * split.micro_batch * tokens_of(block, tuning.sample) * max(block.width, block.mlp)
            / split.sequence)) for block in blocks) / memory_rate
    forward = (multiplied + beside) / multiply + scores / attend + traffic / 3 + into + rows
    backward = (((1 if tuning.frozen else 2) * multiplied + 2 * beside) / multiply
                + kernels.attention_backward_flops * scores / (attend * rates.attention_backward)
                + traffic * 2 / 3 + outof + 2 * rows)
    again = split.recomputed * forward * (1 - law.spilled if split.spilled else 1.0)
    launched = split.micro_batches * sum(block.count * (
        (law.host_block if block.inner else 0.0) + products(block) * (law.host_product + base.launch)
        + (len(_adapted(block, tuning)) * law.host_factor if tuning.factor else 0.0)) for block in blocks)
    host = 0.0 if tuning.graphed else launched * (1 + split.recomputed * (law.host_recompute - 1)) + law.host_step
    out = split.swapped * parameters(tuning.model) * base.weight
    # weights on the host come once for every pass
    rate = min(law.spill_rate * gpu.pcie_bandwidth, base.copied or math.inf)
    transfers = split.micro_batches * out * (2 + split.recomputed) / rate
    states = trained(tuning) * (law.optimizers[tuning.optimizer] + law.trained["weights"])
    stepped = 2 * states * (1 - split.states_out) / memory_rate / split.shard
    stepped += 2 * states * split.states_out / gpu.pcie_bandwidth / split.shard
    busy = forward + backward + again
    # the host launches ahead of the GPU, but for where it waits or falls behind
    waited = (busy**law.overlap + host**law.overlap) ** (1 / law.overlap) - busy
    away = spilled_bytes(tuning, split, law) + entering_bytes(tuning, split)
    spill = 2 * split.micro_batches * away / (law.spill_rate * gpu.pcie_bandwidth)
    return {"compute": forward + backward, "recompute": again, "other": waited, "optimizer_step": stepped,
            "offload": max(0.0, transfers - busy - waited) + spill}


def swapped_bytes(tuning: Trainee, split: StepSplit) -> list[tuple[int, float]]:
    """Return how often a step swaps tokens for heads, and the bytes of one GPU each time, by kind of block."""
    passes = split.micro_batches * (2 + split.recomputed)
    return [(round(block.count * EXCHANGED * passes),
             split.micro_batch * tokens_of(block, tuning.sample) * STORED * block.inner / split.sequence)
            for block in tuning.model.denoiser.blocks if block.inner and split.sequence > 1]

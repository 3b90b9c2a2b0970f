"""Memory and time of one step of training a denoiser, on one of the GPUs that share a batch."""

from __future__ import annotations

from dataclasses import dataclass

from planner.catalog.calibration import ArchitectureRates
from planner.catalog.diffusion import DenoiserBlock, Diffusion
from planner.catalog.diffusion_law import Base, DiffusionLaw, StoredBase
from planner.catalog.hardware import Gpu
from planner.errors import MissingFact
from planner.physics.diffusion.shape import (
    Sample,
    block_parameters,
    forward_flops,
    parameters,
    tokens_of,
)

STORED = 2.0
"""Bytes of an activation, and of a weight that nothing quantizes."""
GATHERED = 2
"""Blocks whose shards are gathered at once: the one at work and the next."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """What trains, of what base, by which optimizer. A rank of zero is all weights."""

    model: Diffusion
    sample: Sample
    rank: int
    base: Base
    optimizer: str
    cached: bool = True
    """Whether latents and embeddings are computed before, so that only the denoiser is on the GPU."""
    ema: bool = False


@dataclass(frozen=True, slots=True)
class Split:
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


def trained(tuning: Tuning) -> int:
    """Return the weights that train: all, or adapters of a rank on every matrix of attention."""
    model, rank = tuning.model, tuning.rank
    if not rank:
        return model.denoiser.parameters
    return sum(block.count * rank * _adapted(block) for block in model.denoiser.blocks)


def _adapted(block: DenoiserBlock) -> int:
    """Return inputs and outputs of the matrices of one block's attention together."""
    kv, width = block.kv or block.inner, block.width
    own = 2 * (width + block.inner) + 2 * (width + kv) if block.inner else 0
    return (2 if block.reads == "both" else 1) * own + (4 * width + 2 * (block.cross + width) if block.cross else 0)


def memory(tuning: Tuning, split: Split, law: DiffusionLaw) -> dict[str, float]:
    """Return the bytes of one GPU by component, as the device shows them."""
    model, base = tuning.model, law.bases[tuning.base]
    count, batch = trained(tuning), split.micro_batch
    matrices = parameters(model)
    frozen = matrices * base.weight + max(0, model.denoiser.parameters - matrices) * STORED if tuning.rank else 0.0
    state = law.trained["adapters" if tuning.rank else "weights"] / 2
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
             "activations": _activations(tuning, split, law, base) * batch + _copies(tuning, split, base),
             "communication_buffers": gathered + (2 * count * state if split.copies > split.shard else 0.0)}
    allocated = sum(parts.values()) + law.fixed
    parts["framework"] = law.fixed + law.wasted * allocated + law.context
    return parts


def _kept(block: DenoiserBlock, tuning: Tuning, law: DiffusionLaw, base: StoredBase) -> float:
    """Return the bytes that one block keeps of one sample."""
    of_token = block.kept.adapters if tuning.rank else block.kept.weights
    return of_token * tokens_of(block, tuning.sample) * law.kept * base.kept


def _activations(tuning: Tuning, split: Split, law: DiffusionLaw, base: StoredBase) -> float:
    """Return the bytes that are kept of one sample for backward."""
    blocks = tuning.model.denoiser.blocks
    whole = (1 - split.recomputed) * sum(block.count * _kept(block, tuning, law, base) for block in blocks)
    if not split.recomputed:
        return whole
    entering = sum(block.count * STORED * block.width * tokens_of(block, tuning.sample) for block in blocks)
    at_work = law.working + split.segment - 1
    return (whole + split.recomputed * entering / split.segment
            + at_work * max(_kept(block, tuning, law, base) for block in blocks))


def _copies(tuning: Tuning, split: Split, base: StoredBase) -> float:
    """Return the bytes of expanded weights that are kept for backward, or are at work."""
    if not tuning.rank or not base.copies:
        return 0.0
    largest = max(block_parameters(block) for block in tuning.model.denoiser.blocks) if split.recomputed else 0
    return base.copies * ((1 - split.recomputed) * parameters(tuning.model) + largest * split.segment)


def allocated(tuning: Tuning, split: Split, law: DiffusionLaw) -> float:
    """Return PyTorch's peak of allocated bytes."""
    whole = sum(memory(tuning, split, law).values())
    return (whole - law.context) / (1 + law.wasted)


def step_seconds(tuning: Tuning, split: Split, law: DiffusionLaw, gpu: Gpu, rates: ArchitectureRates,
                 attention_backward: float) -> dict[str, float]:
    """Return the seconds of a step by component; what copies exchange is not among them. Raises MissingFact.

    attention_backward: FLOPs of attention backward over forward.
    """
    peak = gpu.peak.get("bf16") or gpu.peak.get("fp16")
    share = gpu.gemm_efficiency.get("bf16") or rates.gemm.get("bf16") or rates.gemm.get("fp16")
    needs = law.bases[tuning.base].needs
    if peak is None or share is None or (needs is not None and needs not in gpu.peak):
        raise MissingFact(f"GPU {gpu.name}", f"rate of products in {needs or '16 bits'}")
    blocks, samples = tuning.model.denoiser.blocks, split.micro_batch * split.micro_batches
    products, scores = (samples * flops for flops in forward_flops(tuning.model, tuning.sample))
    multiply, attend = peak * share * law.products, peak * rates.attention_forward * law.attention
    moved = law.passes * samples * sum(block.count * _kept(block, tuning, law, law.bases["bf16"]) for block in blocks)
    traffic = moved / (gpu.memory_bandwidth * rates.memory)
    forward = products / multiply + scores / attend + traffic / 3
    backward = ((1 if tuning.rank else 2) * products / multiply
                + attention_backward * scores / (attend * rates.attention_backward) + traffic * 2 / 3)
    again = split.recomputed * forward
    launched = split.micro_batches * sum(block.count for block in blocks) * (
        law.host_block + law.bases[tuning.base].launch)
    host = launched * (1 + split.recomputed * (law.host_recompute - 1)) + law.host_step
    out = split.swapped * parameters(tuning.model) * law.bases[tuning.base].weight
    # weights on the host come once for every pass
    transfers = split.micro_batches * out * (2 + split.recomputed) / gpu.pcie_bandwidth
    states = trained(tuning) * (law.optimizers[tuning.optimizer] + law.trained["weights"])
    stepped = 2 * states * (1 - split.states_out) / (gpu.memory_bandwidth * rates.memory) / split.shard
    stepped += 2 * states * split.states_out / gpu.pcie_bandwidth / split.shard
    busy = forward + backward + again
    # the host launches ahead of the GPU, but for where it waits or falls behind
    waited = (busy**law.overlap + host**law.overlap) ** (1 / law.overlap) - busy
    return {"compute": forward + backward, "recompute": again, "other": waited, "optimizer_step": stepped,
            "offload": max(0.0, transfers - busy - waited)}

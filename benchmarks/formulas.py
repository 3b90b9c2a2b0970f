"""Rules and reference formulas for the memory of a training step, to hold on the same rows as the planner.

Each returns bytes on one GPU from what a row states: P parameters, L layers, h hidden, f feed-forward width, s
sequence, b micro-batch, t and p degrees, N data-parallel ranks, T GPUs. They are written as published, defects too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.evidence.compare import PredictedRow
from planner.evidence.degrees import ZERO_STAGES
from planner.evidence.rows import TrainRun


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a row states, with 1 for degrees it leaves out."""

    parameters: float
    layers: int
    hidden: int
    ffn: int
    tokens: int
    tp: int
    pp: int
    shards: int
    gpus: int
    zero: int
    sequence_parallel: bool


def inputs_of(outcome: PredictedRow) -> Inputs | None:
    """Return the inputs of a row; none where it does not state size, layers, width, length and micro-batch."""
    run = outcome.row.run
    assert isinstance(run, TrainRun)
    if not (run.params_b and run.layers and run.hidden and run.seq_len and run.micro_batch):
        return None
    tp, pp, gpus = run.tp or 1, run.pp or 1, outcome.prediction.gpus
    return Inputs(parameters=run.params_b * 1e9, layers=run.layers, hidden=run.hidden, ffn=run.ffn or 4 * run.hidden,
                  tokens=run.seq_len * run.micro_batch // (run.cp or 1), tp=tp, pp=pp,
                  shards=max(1, gpus // (tp * pp)), gpus=gpus, zero=ZERO_STAGES.get(run.sharding or "", 0),
                  sequence_parallel=run.seq_parallel in ("yes", "1"))


def four_times(i: Inputs) -> float:
    """Four times the 16-bit weights, over all GPUs."""
    return 8 * i.parameters / i.gpus


def sixteen_and_34(i: Inputs) -> float:
    """16 bytes per parameter over the shards, and 34 s b h L (Korthikanti et al. 2022, arXiv 2205.05198)."""
    return 16 * i.parameters / i.gpus + 34 * i.tokens * i.hidden * i.layers / i.tp


def megatron(i: Inputs) -> float:
    """Megatron-LM megatron/training/theoretical_memory_usage.py."""
    states = i.parameters / (i.tp * i.pp) * (6 + 12 / i.shards if i.zero else 18)
    if i.sequence_parallel:
        return states + i.tokens * i.hidden * i.layers * (18 + 4 * i.ffn / i.hidden) / i.tp
    return 1.05 * (states + i.tokens * i.hidden * i.layers * (10 + 24 / i.tp))


def eleuther(i: Inputs) -> float:
    """EleutherAI cookbook calc/calc_transformer_mem.py."""
    weights = 2 * i.parameters / (i.tp * i.pp) / (i.gpus if i.zero == 3 else 1)
    gradients = 4 * i.parameters / (i.gpus if i.zero >= 2 else 1)
    optimizer = 12 * i.parameters / (i.gpus if i.zero >= 1 else 1)
    buckets = (1e9 if i.zero else 0) + (2e9 if i.zero == 3 else 0)
    return weights + gradients + optimizer + buckets + 34 * i.tokens * i.hidden * i.layers + 5 * 2**30


def deepspeed(i: Inputs) -> float:
    """DeepSpeed estimate_zero2/3_model_states_mem_needs; below ZeRO-2 everything on every GPU. States alone."""
    if i.zero == 3:
        return 18 * i.parameters / i.gpus + 4 * i.parameters / i.layers
    return 2 * i.parameters + 18 * i.parameters / (i.gpus if i.zero == 2 else 1)


def accelerate(i: Inputs) -> float:
    """Hugging Face accelerate estimate-memory, training with Adam: twice the 32-bit weights, whatever the GPUs."""
    return 8 * i.parameters


FORMULAS: dict[str, Callable[[Inputs], float]] = {
    "4 x the model": four_times, "16 bytes a parameter + 34 s b h L": sixteen_and_34,
    "Megatron-LM, theoretical": megatron, "EleutherAI's calculator": eleuther, "DeepSpeed's estimators": deepspeed,
    "accelerate estimate-memory": accelerate}

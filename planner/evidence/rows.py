"""Evidence rows, typed. What was run and what was measured are kept apart.

A prediction is handed a `StatedRun` and nothing else, so no measured column can be an input. Field names are column
names, an empty cell is None, and a column that is not named here is ignored. Columns: the evidence section of the
contract. Units stand in each model's docstring.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

_TRUTH = {"yes": True, "no": False, "1": True, "0": False, "true": True, "false": False}
ABOVE_ZERO = "above zero"
LEAST, MOST = 1e-9, 1e12
"""Below any number above zero, and above any number, in the unit of its column."""


def _truth(given: object) -> bool:
    word = str(given).lower()
    if word not in _TRUTH:
        raise ValueError(f"expected yes or no, got {_short(given)}")
    return _TRUTH[word]


def _amount(given: object, least: str = "of zero or more", most: float = MOST) -> float:
    text = str(given)
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"expected a number, got {_short(given)}") from None
    if not math.isfinite(value) or "_" in text:
        raise ValueError(f"expected a finite number, got {_short(given)}")
    if value < 0 or (value == 0 and least == ABOVE_ZERO):
        raise ValueError(f"expected a number {least}, got {_short(given)}")
    if value > most or 0 < value < LEAST:
        raise ValueError(f"expected a number from {LEAST:g} to {most:,.0f}, got {_short(given)}")
    return value


def _whole(given: object, least: str = "of zero or more", most: float = 1e9) -> int:
    value = _amount(given, least, most)
    if value != int(value):
        raise ValueError(f"expected a whole number, got {_short(given)}")
    return int(value)


def _short(given: object) -> str:
    return repr(str(given)[:40])


_POSITIVE = partial(_whole, least=ABOVE_ZERO)
Text: TypeAlias = str | None
Truth: TypeAlias = Annotated[bool, BeforeValidator(_truth)] | None
Positive: TypeAlias = Annotated[float, BeforeValidator(partial(_amount, least=ABOVE_ZERO))] | None
Amount: TypeAlias = Annotated[float, BeforeValidator(_amount)] | None
Share: TypeAlias = Annotated[float, BeforeValidator(partial(_amount, most=1))] | None
Count: TypeAlias = Annotated[int, BeforeValidator(_POSITIVE)] | None
Number: TypeAlias = Annotated[int, BeforeValidator(_whole)] | None
"""A count that may be zero."""
Degree: TypeAlias = Annotated[int, BeforeValidator(partial(_POSITIVE, most=1e6))] | None
"""Ranks, layers, and what there is of them."""
Ranks: TypeAlias = Annotated[int, BeforeValidator(partial(_whole, most=1e6))] | None
OfNode: TypeAlias = Annotated[int, BeforeValidator(partial(_POSITIVE, most=256))] | None


class Cells(BaseModel):
    """Some columns of a row."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True, protected_namespaces=())


class StatedRun(Cells):
    """What any row says was run.

    Words: source, source_detail, notes, model, attention (gqa or mla), gpu (a catalog name). Calendar year: year.
    Billions: params_b. Counts: layers, heads, kv_heads, experts, experts_per_token, shared_experts, dense_layers (those
    ahead of the experts), vocab in tokens, gpus, and the degrees tp, pp and ep in GPUs. Elements: hidden, ffn, moe_ffn.
    Yes or no: gated_mlp, tied_embeddings.
    """

    source: Text = None
    source_detail: Text = None
    notes: Text = None
    year: Degree = None
    model: Text = None
    params_b: Positive = None
    layers: Degree = None
    hidden: Count = None
    ffn: Count = None
    heads: Degree = None
    kv_heads: Degree = None
    vocab: Count = None
    gated_mlp: Truth = None
    tied_embeddings: Truth = None
    experts: Number = None
    experts_per_token: Number = None
    moe_ffn: Number = None
    shared_experts: Ranks = None
    dense_layers: Ranks = None
    attention: Text = None
    gpu: Text = None
    gpus: Degree = None
    tp: Degree = None
    pp: Degree = None
    ep: Ranks = None


class TrainRun(StatedRun):
    """What a training row says was run.

    Words: framework, task (pretrain, sft, embedding, ...), method, scaleout, sharding, seq_parallel, recompute,
    recompute_modules, recompute_layers (none/selective/full of each stage, where recompute is mixed), precision,
    precision_recipe, the formats weights_dtype, gradients_dtype, master_dtype and moments_dtype, optimizer,
    attention_impl, loss_kernel, lora_targets, base_quantization, offload. GiB: gpu_mem_gib. Gbit/s: nic_gbit_per_gpu.
    Pixels of an image at most: max_pixels.
    Yes or no: packed (several samples a sequence). Tokens: mean_length of a sample.
    Counts: gpus_per_node, vpp (chunks of a GPU), the degrees cp and dp in GPUs, grad_accum in micro-batches, lora_rank.
    Tokens: seq_len. Sequences: global_batch_seqs, and micro_batch of one GPU. Shares of 1 that stand on the host:
    offload_optimizer, offload_parameters, offload_activations.
    """

    framework: Text = None
    task: Text = None
    max_pixels: Positive = None
    method: Text = None
    gpu_mem_gib: Positive = None
    gpus_per_node: OfNode = None
    scaleout: Text = None
    nic_gbit_per_gpu: Positive = None
    seq_len: Count = None
    global_batch_seqs: Count = None
    micro_batch: Degree = None
    grad_accum: Degree = None
    vpp: Degree = None
    cp: Degree = None
    dp: Degree = None
    sharding: Text = None
    seq_parallel: Text = None
    recompute: Text = None
    recompute_modules: Text = None
    recompute_layers: Text = None
    precision: Text = None
    precision_recipe: Text = None
    weights_dtype: Text = None
    gradients_dtype: Text = None
    master_dtype: Text = None
    moments_dtype: Text = None
    optimizer: Text = None
    attention_impl: Text = None
    loss_kernel: Text = None
    lora_rank: Count = None
    lora_targets: Text = None
    base_quantization: Text = None
    packed: Truth = None
    mean_length: Positive = None
    offload: Text = None
    offload_optimizer: Share = None
    offload_parameters: Share = None
    offload_activations: Share = None


class ServeRun(StatedRun):
    """What a serving row says was run, as far as it is read.

    Words: engine, engine_version, and the formats weight_precision and kv_precision. Yes or no: mla, disaggregated.
    Tokens: isl (prompt), osl (answer), max_model_len, block_size. Sequences at once: concurrency, max_batch.
    Share of memory: gpu_memory_utilization. GPUs: the degree dp.
    """

    engine: Text = None
    engine_version: Text = None
    weight_precision: Text = None
    kv_precision: Text = None
    mla: Truth = None
    dp: Ranks = None
    disaggregated: Truth = None
    isl: Positive = None
    osl: Positive = None
    concurrency: Positive = None
    max_batch: Positive = None
    max_model_len: Count = None
    gpu_memory_utilization: Positive = None
    block_size: Count = None


class Measured(Cells):
    """What a row measured: never an input of a prediction."""


class TrainMeasured(Measured):
    """What a training row measured, as far as it is compared; `mem_kind` says what the peak counts.

    Tokens/s: tokens_per_s_per_gpu. Seconds: step_time_s. GiB: peak_mem_gib. Yes or no: fits. Word: mem_kind.
    """

    tokens_per_s_per_gpu: Positive = None
    step_time_s: Positive = None
    peak_mem_gib: Positive = None
    fits: Truth = None
    mem_kind: Text = None

    @property
    def needed_gib(self) -> float | None:
        """The peak of a run that ran: a reading before a failure says not what it needs."""
        return None if self.fits is False else self.peak_mem_gib


class ServeMeasured(Measured):
    """What a serving row measured, as far as it is compared.

    GiB of a GPU: weights_gib, kv_cache_gib. Tokens or blocks of a replica: kv_tokens_or_blocks. Longest sequences at
    once: max_concurrency. Tokens/s: output_tok_s_per_gpu, output_tok_s_total, total_tok_s_per_gpu. Milliseconds:
    ttft_ms, tpot_ms.
    """

    weights_gib: Amount = None
    kv_cache_gib: Amount = None
    kv_tokens_or_blocks: Amount = None
    max_concurrency: Amount = None
    output_tok_s_per_gpu: Amount = None
    output_tok_s_total: Amount = None
    total_tok_s_per_gpu: Amount = None
    ttft_ms: Amount = None
    tpot_ms: Amount = None


class EvidenceRow(Cells):
    """One line of an evidence file; `stated` rows leave nothing important open, `suspect` ones do not count."""

    id: Annotated[str, Field(min_length=1)]
    suspect: Truth = None
    stated: Truth = None

    @property
    def prefix(self) -> str:
        """The source's short name, as its ids begin."""
        return self.id.split("-", maxsplit=1)[0]


class TrainRow(EvidenceRow):
    """A training run."""

    run: TrainRun
    measured: TrainMeasured


class ServeRow(EvidenceRow):
    """A served load, or what an engine printed at its start."""

    run: ServeRun
    measured: ServeMeasured

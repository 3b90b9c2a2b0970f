"""The four kinds of evidence file as typed rows. What was run and what was measured are kept apart.

A prediction is handed a `TrainRun` and nothing else, so that no measured column can be an input.
Columns: the evidence section of the contract; one that is not named here is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, get_type_hints

Zero = "zero is a value here"
MOST = 1e12
"""Above any number of a run, in the unit of its column."""


@dataclass(frozen=True, slots=True)
class Most:
    """Declared with a column: the largest number that makes sense in it."""

    value: float


Count: TypeAlias = Annotated[int, Most(10**9)]
Degree: TypeAlias = Annotated[int, Most(10**6)]
"""Ranks, layers, and what there is of them."""
OfNode: TypeAlias = Annotated[int, Most(256)]
Ranks: TypeAlias = Annotated[int, Most(10**6), Zero]
Share: TypeAlias = Annotated[float, Zero]
Number: TypeAlias = Annotated[int, Most(10**9), Zero]


@dataclass(frozen=True, slots=True)
class TrainRun:
    """What a training row says was run. Field names are column names; None is an empty cell."""

    source: str | None = None
    source_detail: str | None = None
    notes: str | None = None
    year: Degree | None = None
    framework: str | None = None
    method: str | None = None
    model: str | None = None
    params_b: float | None = None
    layers: Degree | None = None
    hidden: Count | None = None
    ffn: Count | None = None
    heads: Degree | None = None
    kv_heads: Degree | None = None
    vocab: Count | None = None
    gated_mlp: bool | None = None
    tied_embeddings: bool | None = None
    experts: Number | None = None
    experts_per_token: Number | None = None
    moe_ffn: Number | None = None
    shared_experts: Ranks | None = None
    dense_layers: Ranks | None = None
    attention: str | None = None
    gpu: str | None = None
    gpu_mem_gib: float | None = None
    gpus: Degree | None = None
    gpus_per_node: OfNode | None = None
    scaleup: str | None = None
    scaleout: str | None = None
    nic_gbit_per_gpu: float | None = None
    seq_len: Count | None = None
    global_batch_seqs: Count | None = None
    micro_batch: Degree | None = None
    grad_accum: Degree | None = None
    tp: Degree | None = None
    pp: Degree | None = None
    vpp: Degree | None = None
    cp: Degree | None = None
    ep: Ranks | None = None
    dp: Degree | None = None
    sharding: str | None = None
    seq_parallel: str | None = None
    recompute: str | None = None
    recompute_modules: str | None = None
    precision: str | None = None
    precision_recipe: str | None = None
    weights_dtype: str | None = None
    gradients_dtype: str | None = None
    master_dtype: str | None = None
    moments_dtype: str | None = None
    optimizer: str | None = None
    attention_impl: str | None = None
    loss_kernel: str | None = None
    lora_rank: Count | None = None
    lora_targets: str | None = None
    base_quantization: str | None = None
    offload_optimizer: Share | None = None
    offload_parameters: Share | None = None
    offload_activations: Share | None = None


@dataclass(frozen=True, slots=True)
class TrainMeasured:
    """What a training row measured. `mem_kind` says what `peak_mem_gib` counts and is no measurement."""

    tokens_per_s_per_gpu: float | None = None
    step_time_s: float | None = None
    tflops_per_gpu: float | None = None
    mfu: float | None = None
    peak_mem_gib: float | None = None
    fits: bool | None = None
    mem_kind: str | None = None


@dataclass(frozen=True, slots=True)
class ServeRun:
    """What a serving row says was run, as far as it is read."""

    source: str | None = None
    source_detail: str | None = None
    year: Degree | None = None
    notes: str | None = None
    model: str | None = None
    params_b: float | None = None
    gpu: str | None = None
    gpus: Degree | None = None
    engine: str | None = None
    engine_version: str | None = None
    layers: Degree | None = None
    hidden: Count | None = None
    ffn: Count | None = None
    heads: Degree | None = None
    kv_heads: Degree | None = None
    head_dim: Count | None = None
    vocab: Count | None = None
    gated_mlp: bool | None = None
    experts: Number | None = None
    experts_per_token: Number | None = None
    moe_ffn: Number | None = None
    shared_experts: Ranks | None = None
    dense_layers: Ranks | None = None
    attention: str | None = None
    weight_precision: str | None = None
    kv_precision: str | None = None
    mla: bool | None = None
    tp: Degree | None = None
    pp: Degree | None = None
    ep: Ranks | None = None
    dp: Ranks | None = None
    disaggregated: bool | None = None
    isl: float | None = None
    osl: float | None = None
    concurrency: float | None = None
    max_batch: float | None = None
    request_rate: float | None = None
    max_model_len: Count | None = None
    gpu_memory_utilization: float | None = None
    block_size: Count | None = None


@dataclass(frozen=True, slots=True)
class ServeMeasured:
    """What a serving row measured, as far as it is compared."""

    weights_gib: Share | None = None
    kv_cache_gib: Share | None = None
    kv_tokens_or_blocks: Share | None = None
    max_concurrency: Share | None = None
    output_tok_s_per_gpu: Share | None = None
    output_tok_s_total: Share | None = None
    total_tok_s_per_gpu: Share | None = None
    ttft_ms: Share | None = None
    tpot_ms: Share | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """One line of an evidence file. `stated` rows leave nothing important open; one with a `problem` was not read."""

    id: str
    line: int
    suspect: bool
    stated: bool
    run: TrainRun | ServeRun
    measured: TrainMeasured | ServeMeasured
    problem: str | None = None

    @property
    def prefix(self) -> str:
        """The source's short name, as its ids begin."""
        return self.id.split("-", maxsplit=1)[0]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of file: the columns that tell it from the others, and the types of its rows."""

    name: str
    signature: frozenset[str]
    run: type[TrainRun] | type[ServeRun]
    measured: type[TrainMeasured] | type[ServeMeasured]

    def columns(self) -> dict[str, Any]:
        """Return the annotation of each column that is read."""
        run, measured = (get_type_hints(part, include_extras=True) for part in (self.run, self.measured))
        return run | measured


_TRAIN: tuple[type[TrainRun], type[TrainMeasured]] = (TrainRun, TrainMeasured)
_SERVE: tuple[type[ServeRun], type[ServeMeasured]] = (ServeRun, ServeMeasured)
KINDS = (
    Kind("train_throughput", frozenset({"id", "global_batch_seqs", "tokens_per_s_per_gpu"}), *_TRAIN),
    Kind("train_memory", frozenset({"id", "method", "mem_kind", "fits"}), *_TRAIN),
    Kind("serve_throughput", frozenset({"id", "isl", "osl", "output_tok_s_per_gpu"}), *_SERVE),
    Kind("serve_memory", frozenset({"id", "max_model_len", "weights_gib", "kv_cache_gib"}), *_SERVE),
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One file, read."""

    kind: str
    rows: tuple[Row, ...]

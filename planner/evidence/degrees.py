"""The layout of a row: its parallel degrees, with the stack's documented default for what is open."""

from __future__ import annotations

from dataclasses import dataclass
from math import log2, sqrt
from typing import Literal

from planner.catalog.architecture import Model
from planner.catalog.quirk import Sources
from planner.catalog.stack import Stack
from planner.evidence.rows import TrainRun
from planner.evidence.skipping import SkippedError
from planner.evidence.stages import stated_layers
from planner.layouts.axes import RECOMPUTE, STAGED
from planner.layouts.table import Ints, Layouts, from_rows

ZERO_STAGES = {"ddp": 0, "none": 0, "zero1": 1, "distopt": 1, "zero2": 2, "fsdp-no-reshard": 2,
               "fsdp-shard-grad-op": 2, "zero3": 3, "fsdp": 3, "zero3/fsdp": 3, "hsdp": 3,
               "fsdp + expert parallel": 3}
"""The ZeRO stage of each sharding that a row may name."""
FULL_LENGTH = "tokens="
"""Instruction data that is not packed: seq_len is the cap, the samples are shorter."""
FULL = RECOMPUTE.index("full")
MANY_SAMPLES = 8
"""Samples of a micro-batch from which on the mean length counts at the peak, no longer the longest."""


@dataclass(frozen=True, slots=True)
class Degrees:
    """One layout with its batch, ready for the physics."""

    table: Layouts
    sequence_length: int
    global_batch: int
    gpus: int
    peak_length: int
    """Tokens of a sequence of the micro-batch that holds most."""
    counted: float
    """Share of the tokens at work that the row's speed counts: one, or without padding."""
    recompute_layers: int | Ints | None = None
    """Layers of a stage that are recomputed, where not all are, or (stages, 3) layers by recompute mode."""


def degrees_of(run: TrainRun, model: Model, stack: Stack, sources: Sources, assumed: list[str], *,
               memory_only: bool = False, beside: float = 0.0) -> Degrees:
    """Return the layout of a row; every default is named in `assumed`. Raises SkippedError.

    memory_only: the length is that of the peak, else that of the mean micro-batch; beside: tokens of the
    longest sample that are no text.
    """
    cap = run.seq_len or _usual_length(run, sources, assumed)
    if run.micro_batch is None and run.global_batch_seqs is None:
        raise SkippedError("batch not stated")
    tp, pp, cp = _model_parallel(run, assumed)
    gpus, dp = _gpus(run, tp * pp * cp)
    vpp = _virtual(run, pp, sources, assumed)
    micro = _micro_batch(run, stack, dp, pp, sources, assumed)
    batch = _batch(run, dp, micro, pp, assumed)
    some: int | Ints | None = sources.whole("recompute_layers", run) if run.recompute == "selective" else None
    staged = run.recompute == "mixed" and run.recompute_layers is not None
    if staged:
        some = stated_layers(run.recompute_layers or "", pp, model)
    row: dict[str, float] = {
        "tp": tp, "pp": pp, "cp": cp, "dp": dp, "vpp": vpp, "micro_batch": micro,
        **_experts(run, model, tp, dp * cp, sources, assumed),
        "no_sync": float(_accumulates(run, stack, batch // (dp * micro), sources, assumed)),
        "zero": _zero(run, stack, dp * cp, sources, assumed),
        "recompute": STAGED if staged else FULL if some is not None else _recompute(run, sources, assumed),
        "hsdp": _copies(run, gpus, tp, dp * cp, sources, assumed), "offload": _offload(run, sources),
        "offload_parameters": _outside("offload_parameters", run.offload_parameters, run, sources),
        "offload_activations": _outside("offload_activations", run.offload_activations, run, sources)}
    # embedding and head may count as layers
    if not 1 <= pp * vpp <= model.layers + 2:
        raise SkippedError(f"pp {pp} x vpp {vpp} is not within the {model.layers} layers of the model")
    if row["ep"] * row["hsdp"] > dp * cp * (tp if row.get("expert_tp") else 1):
        raise SkippedError(f"ep {row['ep']} is wider than a shard group of {dp * cp // row['hsdp']:g}")
    if memory_only:
        length = peak = _peak_length(run, cap, micro, sources, assumed, round(beside))
        counted = 1.0
    else:
        length, counted = _mean_length(run, cap, micro, dp, sources, assumed)
        known = not any(entry.startswith(FULL_LENGTH) for entry in assumed)
        peak = length if known else max(length, _fullest(run, micro, sources))
    return Degrees(from_rows([row], batch), length, batch, gpus, peak, counted, some)


def _usual_length(run: TrainRun, sources: Sources, assumed: list[str]) -> int:
    """Return the default sequence length of the source's configurations. Raises SkippedError."""
    usual = sources.whole("usual_length", run)
    if usual is None:
        raise SkippedError("sequence length not stated")
    return _default("seq_len", usual, assumed)


def _accumulates(run: TrainRun, stack: Stack, micro_batches: int, sources: Sources, assumed: list[str]) -> bool:
    """Say whether a row has several micro-batches whose gradients its stack reduces once."""
    if not stack.no_sync[0] or (run.pp or 1) > 1:
        return False
    batches = sources.flag("several_batches", run, stack=stack.name)
    if run.grad_accum is None and run.global_batch_seqs is None and batches:
        assumed.append("grad_accum=several")
        return True
    return (run.grad_accum or micro_batches) > 1


def _mean_length(run: TrainRun, cap: int, micro: int, ranks: int, sources: Sources,
                 assumed: list[str]) -> tuple[int, float]:
    """Return the tokens of a sequence that a step takes as long as, and the share of them that the row's speed counts.

    Samples that are not packed are padded to the longest of their micro-batch, and all ranks wait for the longest of
    theirs. Without padding they wait for the rank with the most tokens, unless samples are shared out evenly.
    """
    printed, mean = sources.whole("sample_tokens", run) or cap, run.mean_length
    if run.packed is not False or mean is None:
        return printed, 1.0
    if sources.flag("padding_free", run):
        spread = 0.0 if sources.flag("balanced", run) else log2(ranks) / sqrt(micro)
    elif mean < printed:
        spread = log2(micro * ranks)
    else:
        return printed, 1.0
    padded = sources.flag("true_length", run)
    slowest = round(mean * (1 + sources.usual("sample_spread") * spread))
    slowest = slowest if padded else min(cap, slowest)
    assumed.append(f"{FULL_LENGTH}{slowest}")
    return slowest, (printed if padded else mean) / slowest


def _peak_length(run: TrainRun, cap: int, micro: int, sources: Sources, assumed: list[str], beside: int = 0) -> int:
    """Return tokens of a sequence at the peak: stated, or for samples that are not packed between their mean and cap.

    beside: tokens of the longest sample that are no text; those of a mean one are few, as most images are small.

    A few of the longest samples meet in some micro-batch of a run and fill the cap; among many the mean counts.
    """
    if run.method in (None, "pretrain") or sources.flag("true_length", run):
        return cap
    longest = cap if cap >= sources.usual("long_data") else min(cap, beside + int(sources.usual("longest_sample", run)))
    mean = min(cap, int(sources.usual("mean_sample", run)))
    length = mean + (longest - mean) // micro if micro >= MANY_SAMPLES else longest
    assumed.append(f"{FULL_LENGTH}{length}")
    return length


def _fullest(run: TrainRun, micro: int, sources: Sources) -> int:
    """Return tokens of a sequence of the fullest micro-batch: all padded to the longest sample, or it beside means."""
    mean = round(run.mean_length or 0)
    longest = max(mean, int(sources.usual("longest_sample", run)))
    return mean + (longest - mean) // micro if sources.flag("padding_free", run) else longest


def _default(name: str, value: int, assumed: list[str]) -> int:
    assumed.append(f"{name}={value}")
    return value


def _model_parallel(run: TrainRun, assumed: list[str]) -> tuple[int, int, int]:
    """Return (tp, pp, cp). A stated tp without pp or cp has none; none stated on many GPUs is data parallelism."""
    open_ = [name for name in ("tp", "pp") if getattr(run, name) is None]
    if run.gpus != 1:
        assumed.extend(f"{name}=1" for name in open_)
    return run.tp or 1, run.pp or 1, run.cp or 1


def _gpus(run: TrainRun, model_parallel: int) -> tuple[int, int]:
    """Return (gpus, dp); dp follows from the GPUs where both are stated and disagree in the row."""
    gpus = run.gpus or (run.dp * model_parallel if run.dp else None)
    if gpus is None:
        raise SkippedError("GPU count not stated")
    if gpus % model_parallel:
        raise SkippedError(f"tp x pp x cp = {model_parallel} does not divide {gpus} GPUs")
    dp = gpus // model_parallel
    if run.dp is not None and run.dp != dp:
        raise SkippedError(f"tp x pp x cp x dp = {model_parallel * run.dp} where the row has {gpus} GPUs")
    return gpus, dp


def _experts(run: TrainRun, model: Model, tp: int, shards: int, sources: Sources,
             assumed: list[str]) -> dict[str, float]:
    """Return the expert-parallel degree, and over how many GPUs an expert is split where its group does not fit else.

    Unstated is 1, every stack's default. Experts whose group reaches over the tensor-parallel ranks are whole
    (Megatron's expert_tensor_parallel_size of 1).
    """
    if not model.mixes_experts:
        return {"ep": 1}
    degree = run.ep or _default("ep", 1, assumed)
    inferred = bool(shards % degree)
    if inferred:
        assumed.append("expert_tp=1")
    whole = inferred or sources.flag("whole_experts", run)
    if shards * (tp if whole else 1) % degree:
        raise SkippedError(f"ep {degree} does not divide {'tp x ' if whole else ''}dp x cp = "
                           f"{shards * (tp if whole else 1)}")
    return {"ep": degree, "expert_tp": float(whole and tp > 1)}


def _virtual(run: TrainRun, pp: int, sources: Sources, assumed: list[str]) -> int:
    """Return the virtual stages: stated, in the notes where the file has no such column, else the recipes' way.

    The recipes' way is a layer a chunk, or for layers that do not divide, counting embedding and head as layers.
    """
    stated = 1 if pp == 1 else run.vpp or sources.whole("vpp", run)
    if stated is not None:
        return stated
    chunks = sources.whole("usual_vpp", run) or 1
    if run.layers and sources.flag("tuned", run):
        chunks = next((layers // pp for layers in (run.layers, run.layers + 2) if layers % pp == 0), 1)
    return _default("vpp", chunks, assumed)


def _micro_batch(run: TrainRun, stack: Stack, dp: int, pp: int, sources: Sources, assumed: list[str]) -> int:
    """Return sequences of a micro-batch. torchtitan splits the batch of a pipeline, at first into one a stage."""
    if stack.family == "fsdp2" and pp > 1:
        local = run.micro_batch or (run.global_batch_seqs or 0) // dp
        usual = sources.whole("pipeline_micro_batch", run)
        if usual is not None and local:
            return _default("micro_batch", min(usual, local), assumed)
        if local >= pp and local % pp == 0:
            return _default("micro_batch", local // pp, assumed)
    return run.micro_batch or _default("micro_batch", 1, assumed)


def _batch(run: TrainRun, dp: int, micro: int, pp: int, assumed: list[str]) -> int:
    if run.global_batch_seqs is None and run.micro_batch is not None:
        micro = run.micro_batch  # the batch of a GPU, whatever pieces a pipeline makes of it
    if run.global_batch_seqs is not None:
        if run.global_batch_seqs % (dp * micro):
            raise SkippedError(f"global batch {run.global_batch_seqs} is no multiple of dp {dp} x micro-batch {micro}")
        return run.global_batch_seqs
    return dp * micro * (run.grad_accum or _default("grad_accum", pp, assumed))


def _zero(run: TrainRun, stack: Stack, shards: int, sources: Sources, assumed: list[str]) -> int:
    if run.sharding is not None:
        if run.sharding not in ZERO_STAGES:
            raise SkippedError(f"sharding {run.sharding} is not modeled")
        stage = ZERO_STAGES[run.sharding]
        # by default PyTorch's FSDP does not reshard between the micro-batches of a pipeline
        stage = 2 if stage == 3 and "fsdp" in run.sharding and (run.pp or 1) > 1 and stack.fully_sharded else stage
        return stage if shards > 1 else min(1, stage)
    if shards == 1:
        return 0
    named = sources.whole("zero", run)
    if named is not None:
        return named
    usual = sources.whole("usual_zero", run, stack=stack.family)
    return _default("zero", 1 if usual is None else usual, assumed)


def _copies(run: TrainRun, gpus: int, tp: int, shards: int, sources: Sources, assumed: list[str]) -> int:
    """Return the copies of a hybrid shard group, which is a node unless the row says otherwise."""
    stated = sources.whole("shard_group", run)
    if run.sharding != "hsdp" and stated is None:
        return 1
    node = run.gpus_per_node or int(sources.usual("machine_gpus"))
    group = max(1, min(gpus, node) // tp) if stated is None else stated
    if stated is None:
        assumed.append(f"shard={group}")
    if group < 1 or shards % group:
        raise SkippedError(f"a shard group of {group} does not divide dp x cp = {shards}")
    return shards // group


def _offload(run: TrainRun, sources: Sources) -> float:
    """Return the share of the optimizer on the host: stated, or said in the notes of a file without the column."""
    if run.offload_parameters and run.sharding == "fsdp":
        return 1.0  # FSDP's CPU offload takes weights, gradients and optimizer states together
    return _outside("offload", run.offload_optimizer, run, sources)


def _outside(question: Literal["offload", "offload_parameters", "offload_activations"], stated: float | None,
             run: TrainRun, sources: Sources) -> float:
    """Return the share of something on the host: stated, or by the words of the row."""
    return (sources.number(question, run) if stated is None else stated) or 0.0


def _recompute(run: TrainRun, sources: Sources, assumed: list[str]) -> int:
    preset = sources.word("preset_recompute", run)
    mode = preset or run.recompute
    if mode is None or preset is not None:
        mode = preset or sources.word("usual_recompute", run) or "none"
        assumed.append(f"recompute={mode}")
    if mode not in RECOMPUTE:
        raise SkippedError(f"recompute {mode} is not modeled")
    return RECOMPUTE.index(mode)

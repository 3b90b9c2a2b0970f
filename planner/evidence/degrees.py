"""The layout of a row: its parallel degrees, with the stack's documented default for what is open."""

from __future__ import annotations

import re
from dataclasses import dataclass

from planner.catalog.architecture import Model, MoeMlp
from planner.catalog.stack import Stack
from planner.evidence.rows import TrainRun
from planner.evidence.skipping import SkippedError
from planner.evidence.software import is_tuned
from planner.layouts.axes import RECOMPUTE
from planner.layouts.table import Layouts, from_rows

ZERO_STAGES = {"ddp": 0, "none": 0, "zero1": 1, "distopt": 1, "zero2": 2, "fsdp-no-reshard": 2,
               "fsdp-shard-grad-op": 2, "zero3": 3, "fsdp": 3, "zero3/fsdp": 3, "hsdp": 3}
"""The ZeRO stage of each sharding that a row may name."""
_DEFAULT_ZERO = {"megatron-core": 1, "megatron-core-2025": 1, "megatron-deepspeed": 0, "fsdp2": 3, "llm-foundry": 3,
                 "deepspeed": 3, "internevo": 1, "jax": 3, "llmq": 1, "hf-peft": 0}
"""NeMo and Megatron-Bridge recipes set the distributed optimizer; FSDP shards all; Megatron of 2021 nothing."""
_DEFAULT_RECOMPUTE = ((r"pytorch/torchtune", "full"), (r"pytorch/torchtitan", "selective"))
"""enable_activation_checkpointing in torchtune's recipes, selective mode in torchtitan's."""
_FSDP2_PRESET = re.compile(r"ms-swift.{0,200}/fsdp2")
"""ms-swift's fsdp2 preset sets activation_checkpointing itself, whatever the script's flag says."""
FULL_LENGTH = "tokens="
"""Instruction data that is not packed: seq_len is the cap, the samples are shorter."""
MANY_SAMPLES = 8
MEAN_LENGTH = 400
"""Tokens of an instruction sample with its answer, on average: between Alpaca's and those of chat data."""
LONGEST = 1304
"""Tokens of the longest sample of Alpaca's data, as LitGPT's tables print it for Llama 2."""
LONG_DATA = 8192
"""A cap from here on is set for data that reach it."""
_DEFAULT_LENGTH = ((r"pytorch/torchtitan", 8192), (r"ms-swift", 2048), (r"torchtune", 512))
"""Tokens of a sequence in the source's own configurations: seq_len of torchtitan's llama3_8b.toml, max_length of
ms-swift; torchtune's recipes have no cap, and most samples of Alpaca's data stay below this."""
_FLAGS = re.compile(r"optimization flags: (?!baseline)|, packed|docs/source/accelerate", re.IGNORECASE)
"""torchtune's list of flags, each kept from row to row, packing first; PEFT's example scripts pack too."""
_BY_LENGTH = re.compile(r"litgpt|QwenLM/Qwen |Megatron-Bridge|fsdp_qlora|Arctic")
"""LitGPT's peaks belong to the longest sample, whose length it prints; Qwen's profile runs at each length, as do
Answer.AI's on dummy data and Arctic's recipes; Megatron-Bridge pads or packs to it."""
_PACKED = re.compile(r"(?<!not )\bpack", re.IGNORECASE)
_VPP = re.compile(r"\bVPP\s*=\s*(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Degrees:
    """One layout with its batch, ready for the physics."""

    table: Layouts
    sequence_length: int
    global_batch: int
    gpus: int


def degrees_of(run: TrainRun, model: Model, stack: Stack, assumed: list[str]) -> Degrees:
    """Return the layout of a row; every default is named in `assumed`. Raises SkippedError."""
    cap = run.seq_len or _usual_length(run, assumed)
    if run.micro_batch is None and run.global_batch_seqs is None:
        raise SkippedError("batch not stated")
    tp, pp, cp = _model_parallel(run, assumed)
    gpus, dp = _gpus(run, tp * pp * cp)
    vpp = _virtual(run, pp, assumed)
    micro = _micro_batch(run, stack, dp, pp, assumed)
    batch = _batch(run, dp, micro, pp, assumed)
    row: dict[str, float] = {
        "tp": tp, "pp": pp, "cp": cp, "dp": dp, "vpp": vpp, "micro_batch": micro,
        "ep": _experts(run, model, tp, dp * cp, assumed),
        "no_sync": float(_accumulates(run, stack, assumed)), "zero": _zero(run, stack, dp * cp, assumed),
        "recompute": _recompute(run, assumed),
        "hsdp": _copies(run, gpus, tp, dp * cp, assumed), "offload": _offload(run),
        "offload_parameters": run.offload_parameters or 0.0, "offload_activations": run.offload_activations or 0.0}
    # embedding and head may count as layers
    if not 1 <= pp * vpp <= model.layers + 2:
        raise SkippedError(f"pp {pp} x vpp {vpp} is not within the {model.layers} layers of the model")
    return Degrees(from_rows([row], batch), _length(run, cap, micro, assumed), batch, gpus)


def _usual_length(run: TrainRun, assumed: list[str]) -> int:
    """Return the default sequence length of the source's configurations. Raises SkippedError."""
    usual = next((tokens for pattern, tokens in _DEFAULT_LENGTH if re.search(pattern, run.source or "")), None)
    if usual is None:
        raise SkippedError("sequence length not stated")
    return _default("seq_len", usual, assumed)


def _accumulates(run: TrainRun, stack: Stack, assumed: list[str]) -> bool:
    """Say whether a row has several micro-batches whose gradients its stack reduces once."""
    if not stack.no_sync[0] or (run.pp or 1) > 1:
        return False
    if run.grad_accum is None and run.global_batch_seqs is None and stack.name == "litgpt":
        assumed.append("grad_accum=several")  # its batches of 64 and more never fit one micro-batch
        return True
    return (run.grad_accum or 1) > 1


def _length(run: TrainRun, cap: int, micro: int, assumed: list[str]) -> int:
    """Return tokens of a sequence at the peak: stated, or for samples that are not packed between their mean and cap.

    A few of the longest samples meet in some micro-batch of a run and fill the cap; among many the mean counts.
    """
    if run.method in (None, "pretrain") or _true_length(run):
        return cap
    longest = cap if cap >= LONG_DATA else min(cap, LONGEST)
    mean = min(cap, MEAN_LENGTH)
    length = mean + (longest - mean) // micro if micro >= MANY_SAMPLES else longest
    assumed.append(f"{FULL_LENGTH}{length}")
    return length


def _true_length(run: TrainRun) -> bool:
    """Say whether seq_len is the length of the samples: packed ones, or a table of peaks by length."""
    text = f"{run.source_detail or ''}, {run.notes or ''}"
    packed = _PACKED.search(run.notes or "") or _FLAGS.search(text)
    return packed is not None or _BY_LENGTH.search(run.source or "") is not None


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


def _experts(run: TrainRun, model: Model, tp: int, shards: int, assumed: list[str]) -> int:
    """Return the expert-parallel degree within dp x cp.

    Unstated is 1, every stack's default. Experts whose group reaches over the tensor-parallel ranks are whole
    (Megatron's expert_tensor_parallel_size of 1); here they are split over both, which holds and computes the same.
    """
    if not any(isinstance(block.mlp, MoeMlp) for block in model.blocks):
        return 1
    degree = run.ep or _default("ep", 1, assumed)
    if shards % degree and (shards * tp) % degree == 0 and degree % tp == 0:
        assumed.append(f"expert_tp={tp}, ep={degree // tp}")
        degree //= tp
    if shards % degree:
        raise SkippedError(f"ep {degree} does not divide dp x cp = {shards}")
    return degree


def _virtual(run: TrainRun, pp: int, assumed: list[str]) -> int:
    """Return the virtual stages: stated, in the notes where the file has no such column, else the recipes' way.

    The recipes' way is a layer a chunk, or for layers that do not divide, counting embedding and head as layers.
    """
    if run.vpp is not None or pp == 1:
        return run.vpp or 1 if pp > 1 else 1
    said = _VPP.search(run.notes or "")
    if said:
        return int(said.group(1))
    chunks = 2 if re.search("interleaved", run.notes or "", re.IGNORECASE) else 1  # PyTorch's default
    if run.layers and is_tuned(run):
        chunks = next((layers // pp for layers in (run.layers, run.layers + 2) if layers % pp == 0), 1)
    return _default("vpp", chunks, assumed)


def _micro_batch(run: TrainRun, stack: Stack, dp: int, pp: int, assumed: list[str]) -> int:
    """Return sequences of a micro-batch. torchtitan splits the batch of a pipeline into as many as it has stages."""
    if stack.family == "fsdp2" and pp > 1:
        local = run.micro_batch or (run.global_batch_seqs or 0) // dp
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


def _zero(run: TrainRun, stack: Stack, shards: int, assumed: list[str]) -> int:
    if run.sharding is not None:
        if run.sharding not in ZERO_STAGES:
            raise SkippedError(f"sharding {run.sharding} is not modeled")
        stage = ZERO_STAGES[run.sharding]
        # by default PyTorch's FSDP does not reshard between the micro-batches of a pipeline
        stage = 2 if stage == 3 and "fsdp" in run.sharding and (run.pp or 1) > 1 and stack.fully_sharded else stage
        return stage if shards > 1 else min(1, stage)
    if shards == 1:
        return 0
    framework = (run.framework or "").lower()
    named = re.search(r"zero-?([123])", framework)
    return int(named.group(1)) if named else _default("zero", _DEFAULT_ZERO.get(stack.family, 1), assumed)


def _copies(run: TrainRun, gpus: int, tp: int, shards: int, assumed: list[str]) -> int:
    """Return the copies of a hybrid shard group, which is a node unless the row says otherwise."""
    # InternEvo's option: ranks that share the states, -1 for all
    local = re.search(r"\bzero1=(\d{1,9})", run.notes or "")
    if run.sharding != "hsdp" and not local:
        return 1
    group = int(local.group(1)) if local else max(1, min(gpus, run.gpus_per_node or 8) // tp)
    if not local:
        assumed.append(f"shard={group}")
    if shards % group:
        raise SkippedError(f"a shard group of {group} does not divide dp x cp = {shards}")
    return shards // group


def _offload(run: TrainRun) -> float:
    """Return the share of the optimizer on the host: stated, or said in the notes of a file without the column."""
    said = re.search(r"cpu adamw? offload", run.notes or "", re.IGNORECASE)
    if run.offload_parameters and run.sharding == "fsdp":
        return 1.0  # FSDP's CPU offload takes weights, gradients and optimizer states together
    return run.offload_optimizer or (1.0 if said and run.offload_optimizer is None else 0.0)


def _recompute(run: TrainRun, assumed: list[str]) -> int:
    if _FSDP2_PRESET.search(run.source or ""):
        assumed.append("recompute=full")
        return RECOMPUTE.index("full")
    if run.recompute is None:
        usual = next((mode for pattern, mode in _DEFAULT_RECOMPUTE if re.search(pattern, run.source or "")), "none")
        assumed.append(f"recompute={usual}")
        return RECOMPUTE.index(usual)
    if run.recompute not in RECOMPUTE:
        raise SkippedError(f"recompute {run.recompute} is not modeled")
    return RECOMPUTE.index(run.recompute)

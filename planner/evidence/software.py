"""The stack of a row: by its framework or source, with the recipe that the row states on top.

Mapping, first match wins; a framework of no family is taken as the stack that shards the way the row does:

    megatron-core      Megatron-LM from 2023 on, Megatron-Core, Megatron-Bridge, NeMo and NVIDIA's MLPerf releases
    megatron-deepspeed Megatron-LM to 2022, BigScience's Megatron-DeepSpeed
    llm-foundry        Composer with FSDP
    fsdp2              torchtitan, fms-fsdp and other PyTorch FSDP trainers; fsdp2-eager, fsdp2-rowwise and
                       fsdp2-async-tp where the row says so
    deepspeed          DeepSpeed ZeRO under Hugging Face, LLaMA-Factory, Colossal-AI
    hf-peft            adapters under Hugging Face PEFT, ms-swift, Answer.AI's FSDP with QLoRA: eager PyTorch
    axolotl, unsloth, litgpt, torchtune, internevo, jax, llmq   their own

megatron-core rows of NVIDIA's performance recipes are of megatron-bridge.

Releases of Megatron-Core before 2026-06 spend more host time on a mixture of experts: megatron-core-2025.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, get_args

from planner.catalog.architecture import Model
from planner.catalog.hardware import Precision
from planner.catalog.load import Catalog
from planner.catalog.recipes import Recipes
from planner.catalog.stack import KeptProduct, RecomputeModule, Stack, StateBytes
from planner.evidence.loss import loss_bytes, tiles, uses_liger
from planner.evidence.rows import TrainRun
from planner.evidence.skipping import SkippedError

_FAMILIES: tuple[tuple[str, str], ...] = (
    (r"megatron-deepspeed", "megatron-deepspeed"),
    (r"composer|llm-foundry", "llm-foundry"),
    (r"interne?vo|internlm", "internevo"),
    (r"llmq|llm\.c", "llmq"),
    (r"paxml|maxtext|jax", "jax"),
    (r"megatron|nemo|ngc pytorch|nvidia release|simumax", "megatron-core"),
    (r"deepspeed|llama-factory|colossal", "deepspeed"),
    (r"litgpt|lit-gpt", "litgpt"), (r"axolotl", "axolotl"), (r"unsloth", "unsloth"), (r"torchtune", "torchtune"),
    (r"ms-swift|huggingface/peft|fsdp_qlora|qwenlm", "hf-peft"),
    (r"fsdp|torchtitan|picotron|nanochat", "fsdp2"),
)
_EAGER = {"hf-peft", "deepspeed"}
"""Stacks of eager Hugging Face models, which stand in for one another: DeepSpeed trains all weights, PEFT adapters."""
_TUNED = re.compile(r"nemo|nvidia|bridge|ngc|^megatron-lm$", re.IGNORECASE)
_FREED = re.compile(r"optimizer_in_bwd|gradients freed", re.IGNORECASE)
_LADDER_FREED = re.compile(r"optimization flags: \+(optimizer in backward|activation offloading|8-bit)", re.IGNORECASE)
"""torchtune's README adds one flag a row and keeps those before: the chunked loss, then the optimizer in backward."""
_EAGER_RUN = re.compile(r"\beager\b|\bno (torch\.)?compile\b|^FSDP;", re.IGNORECASE)
"""Also torchtitan's tables, which list what is on: "FSDP", then "FSDP+compile"."""
_ASYNC_TP = re.compile(r"async ?tp", re.IGNORECASE)
_ROWWISE = re.compile(r"float8 rowwise", re.IGNORECASE)
_WEIGHT = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0, "none": 0.0}
_MOMENTS = {"fp32": 8.0, "bf16": 4.0, "8bit": 2.06, "4bit": 1.06}
"""Bytes of both Adam moments per parameter; low-bit states carry an fp32 scale per block of 256 or 128."""
_OTHER_MOMENTS = ((r"paged", 0.0), (r"adafactor", 0.02), (r"^sgd", 0.0), (r"muon", 4.0), (r"8bit", 2.06),
                  (r"4bit", 1.06))
"""Optimizers whose states are not two moments of `moments_dtype`: paged ones leave the GPU under pressure, Adafactor
keeps a row and a column, Muon one fp32 momentum."""
TILE = 0.05
"""Share of the feed-forward that is live where it goes through the sequence in tiles (Arctic's TiledMLP)."""
FAST_EXPERTS = (26, 6)
"""First release (year, month) of NVIDIA's stack with CUDA graphs and fused permutation around the experts."""
_RECOMPUTABLE, _KEPT_PRODUCTS = get_args(RecomputeModule), get_args(KeptProduct)
_ALL_EXCEPT = "all except "
_LLMQ_FLAGS: Mapping[str, RecomputeModule] = {
    "norm": "layernorm", "swiglu": "mlp_act", "ffn": "mlp", "att": "core_attn"}
"""What LLMQ's --recompute-* flags drop."""


def stack_of(run: TrainRun, model: Model, catalog: Catalog, assumed: list[str], *, memory_only: bool = False) -> Stack:
    """Return the stack of a row with the recipe it states. Raises SkippedError.

    memory_only: no time is asked for, so a stack without host times of a mixture of experts will do.
    """
    # published runs use the default, the ring
    stack = catalog.stack(_name(run, model, assumed)).model_copy(update={"ulysses": False})
    changes = _kernels(run, stack, catalog)
    if model.mixes_experts and stack.experts is None and memory_only:
        changes["experts"] = catalog.stack("megatron-core").experts  # which no memory prediction reads
    if run.seq_parallel is not None:
        changes["sequence_parallel"] = run.seq_parallel.lower() in ("yes", "1", "true")
    flags = re.findall("recompute-([a-z]+)", run.notes or "")
    if run.recompute == "selective" and stack.name == "llmq" and flags:
        changes["selective_recompute"] = tuple(_LLMQ_FLAGS[flag] for flag in flags if flag in _LLMQ_FLAGS)
    if run.recompute == "selective" and run.recompute_modules:
        changes["selective_recompute"] = _modules(run.recompute_modules, _RECOMPUTABLE)
    elif run.recompute_modules and run.recompute_modules.startswith(_ALL_EXCEPT):
        kept = run.recompute_modules.removeprefix(_ALL_EXCEPT).replace("+", ",")
        changes["full_recompute_keeps"] = _modules(kept, _KEPT_PRODUCTS)
    if run.weights_dtype or run.moments_dtype or _moments(run) is not None:
        changes["states"] = _states(run, stack, catalog.recipes)
        if _single_device(run, stack):
            assumed.append("optimizer=PagedAdamW8bit in backward")
    if stack.name in ("megatron-core-2025", "megatron-bridge") and is_tuned(run):
        bridge = catalog.stack("megatron-bridge")
        half = bridge.recipe("bf16").gradient
        usual = changes.get("states", stack.states)
        changes["states"] = {p: s.model_copy(update={"gradient": half}) for p, s in usual.items()}
        changes["reduce_bytes"] = bridge.reduce_bytes
    return stack.model_copy(update=changes) if changes else stack


def _kernels(run: TrainRun, stack: Stack, catalog: Catalog) -> dict[str, Any]:
    """Return what the kernels that a row names change: its loss, Liger's, no compiler, no overlap."""
    changes: dict[str, Any] = {}
    # a PyTorch row that does not name its loss kernel is of a time before chunked ones
    usual = catalog.stack(stack.family) if stack.family in ("fsdp2", "hf-peft") else stack
    plain = usual.loss_bytes_per_logit
    changes["loss_bytes_per_logit"] = min(plain, loss_bytes(run, catalog.recipes) or plain)
    if tiles(run):
        changes["live_mlp"] = TILE
    if run.attention_impl == "unfused":
        changes["fused_attention"] = False
    if uses_liger(run):
        changes |= {"fused_norm_and_activation": True, "live_layers": catalog.stack("megatron-core").live_layers}
    if stack.name in ("megatron-core", "megatron-core-2025") and not is_tuned(run):
        # only NVIDIA's recipes set --tp-comm-overlap
        changes["overlap"] = stack.overlap.model_copy(update={"tensor_parallel": 0.0})
    return changes


def is_tuned(run: TrainRun) -> bool:
    """Say whether a row is of NVIDIA's performance recipes.

    They reduce gradients in 16 bits (grad_reduce_in_fp32 = False in Megatron-Bridge scripts/performance/configs and
    NeMo's; --grad-reduce-in-bf16 in Megatron-LM examples/llama) and interleave wherever there is a pipeline.
    """
    return _TUNED.search(run.framework or run.source or "") is not None


def _name(run: TrainRun, model: Model, assumed: list[str]) -> str:
    name = _family(run, assumed)
    adapters = run.method in ("lora", "qlora")
    if name in _EAGER and not (name == "deepspeed" and re.search("deepspeed", run.framework or "", re.IGNORECASE)):
        name = "hf-peft" if adapters or run.sharding == "fsdp" else "deepspeed"
    if name == "megatron-core" and model.mixes_experts and _before_fast_experts(run):
        return "megatron-core-2025"
    if name == "fsdp2":
        return _fsdp2(run)
    return "megatron-bridge" if name == "megatron-core" and is_tuned(run) else name


def _fsdp2(run: TrainRun) -> str:
    """Return the variant of FSDP2: without a compiler, with fp8 scales by row, or with asynchronous TP."""
    notes = run.notes or ""
    if _EAGER_RUN.search(f"{run.source_detail or ''} {notes}") or _EAGER_RUN.search(notes):
        return "fsdp2-eager"
    variants = ((_ROWWISE, "fsdp2-rowwise"), (_ASYNC_TP, "fsdp2-async-tp"))
    return next((stack for named, stack in variants if named.search(notes)), "fsdp2")


def _family(run: TrainRun, assumed: list[str]) -> str:
    text = f"{run.framework or run.source or ''}".lower()
    if run.sharding == "distopt" and not run.framework:
        return "megatron-core"
    name = next((stack for pattern, stack in _FAMILIES if re.search(pattern, text)), None)
    if name == "megatron-core" and (run.year or 9999) <= 2022 and "nemo" not in text:
        return "megatron-deepspeed"
    if name is not None:
        return name
    by_sharding = {"zero1": "deepspeed", "zero2": "deepspeed", "zero3": "deepspeed"}
    default = "megatron-core" if max(run.tp or 1, run.pp or 1) > 1 else by_sharding.get(run.sharding or "", "fsdp2")
    if run.method in ("lora", "qlora") and default != "megatron-core":
        default = "hf-peft"
    assumed.append(f"stack={default}")
    return default


def _before_fast_experts(run: TrainRun) -> bool:
    """Say whether a release is older than 26.06, whose mixtures of experts lost most of their host time."""
    release = re.search(r"\b(2\d)\.(\d\d)", run.framework or "")
    if release:
        return (int(release.group(1)), int(release.group(2))) < FAST_EXPERTS
    return (run.year or 9999) <= 2025


def _single_device(run: TrainRun, stack: Stack) -> bool:
    """Say whether a row is of torchtune's full_finetune_single_device with the optimizer left to its configuration."""
    return stack.name == "torchtune" and run.method == "full" and run.gpus == 1 and run.optimizer is None


def _frees_gradients(run: TrainRun) -> bool:
    return bool(_FREED.search(run.notes or "") or _LADDER_FREED.search(run.source_detail or ""))


def _modules(text: str, known: Collection[str]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SkippedError(f"recompute of {', '.join(unknown)} is not modeled")
    return names


def _states(run: TrainRun, stack: Stack, recipes: Recipes) -> Mapping[str, StateBytes]:
    """Return the recipe of the row for every precision: what it states, the rest as the stack has it."""
    usual = stack.states["bf16"]
    recipe = StateBytes(
        weight=_bytes("weights_dtype", run.weights_dtype, _WEIGHT, usual.weight),
        gradient=recipes.least_gradient if _frees_gradients(run) or _single_device(run, stack) else _bytes(
            "gradients_dtype", run.gradients_dtype, _WEIGHT, usual.gradient),
        master=_bytes("master_dtype", run.master_dtype, _WEIGHT, usual.master),
        moments=0.0 if _single_device(run, stack) else _optimizer_bytes(run, usual.moments))
    return dict.fromkeys(get_args(Precision), recipe)


def _optimizer_bytes(run: TrainRun, usual: float) -> float:
    named = _moments(run)
    return _bytes("moments_dtype", run.moments_dtype, _MOMENTS, usual) if named is None else named


def _moments(run: TrainRun) -> float | None:
    """Return bytes per parameter of an optimizer whose states are not Adam's two moments, none for Adam."""
    name = run.optimizer or ""
    return next((held for pattern, held in _OTHER_MOMENTS if re.search(pattern, name, re.IGNORECASE)), None)


def _bytes(column: str, stated: str | None, known: Mapping[str, float], usual: float) -> float:
    if stated is None:
        return usual
    if stated not in known:
        raise SkippedError(f"{column} {stated} is not modeled")
    return known[stated]

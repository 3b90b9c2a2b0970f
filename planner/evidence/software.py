"""The stack of a row: by its framework or source, with the recipe that the row states on top.

Mapping, first match wins; a framework of no family is taken as the stack that shards the way the row does:

    megatron-core      Megatron-LM from 2023 on, Megatron-Core, Megatron-Bridge, NeMo and NVIDIA's MLPerf releases
    megatron-deepspeed Megatron-LM to 2022, BigScience's Megatron-DeepSpeed
    llm-foundry        Composer with FSDP
    fsdp2              torchtitan, torchtune, fms-fsdp and other PyTorch FSDP trainers
    deepspeed          DeepSpeed ZeRO under Hugging Face, LLaMA-Factory, Colossal-AI
    internevo, jax, llmq   their own
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from planner.catalog.load import Catalog
from planner.catalog.stack import Stack, StateBytes
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
    (r"fsdp|torchtitan|torchtune|picotron|nanochat|litgpt|lit-gpt", "fsdp2"),
)
_TUNED = re.compile(r"nemo|nvidia|bridge|ngc|^megatron-lm$", re.IGNORECASE)
_WEIGHT = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0, "none": 0.0}
_MOMENTS = {"fp32": 8.0, "bf16": 4.0, "8bit": 2.06, "4bit": 1.06}
"""Bytes of both Adam moments per parameter; low-bit states carry an fp32 scale per block of 256 or 128."""
SHORT_LOSS = 4.0
"""Bytes per logit of a chunked or fused cross entropy: 16-bit logits and their gradient in place."""
FUSED_LINEAR_LOSS = 8.0
"""Bytes per hidden element of a loss fused with its projection (Liger), which never holds the logits."""
_RECOMPUTABLE = {"core_attn", "layernorm", "mlp", "every-second-matmul"}


def stack_of(run: TrainRun, catalog: Catalog, assumed: list[str]) -> Stack:
    """Return the stack of a row with the recipe it states. Raises SkippedError."""
    stack = catalog.stack(_name(run, assumed))
    changes: dict[str, Any] = {}
    if run.seq_parallel is not None:
        changes["sequence_parallel"] = run.seq_parallel.lower() in ("yes", "1", "true")
    short = _loss(run)
    if short is not None:
        changes["loss_bytes_per_logit"] = min(stack.loss_bytes_per_logit, short)
    if run.recompute == "selective" and run.recompute_modules:
        changes["selective_recompute"] = _modules(run.recompute_modules)
    if run.weights_dtype:
        changes["states"] = _states(run, stack)
    elif is_tuned(run) and stack.name == "megatron-core":
        changes["states"] = {p: s.model_copy(update={"gradient": 2.0}) for p, s in stack.states.items()}
        changes["reduce_bytes"] = 2.0
    return stack.model_copy(update=changes) if changes else stack


def is_tuned(run: TrainRun) -> bool:
    """Say whether a row is of NVIDIA's performance recipes.

    They reduce gradients in 16 bits (grad_reduce_in_fp32 = False in Megatron-Bridge scripts/performance/configs and
    NeMo's; --grad-reduce-in-bf16 in Megatron-LM examples/llama) and interleave wherever there is a pipeline.
    """
    return _TUNED.search(run.framework or "") is not None


def _name(run: TrainRun, assumed: list[str]) -> str:
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
    assumed.append(f"stack={default}")
    return default


def _loss(run: TrainRun) -> float | None:
    """Return bytes per logit of the loss kernel that is stated, none for the stack's own."""
    if run.hidden and run.vocab and re.search(r"\bliger\b", run.notes or "", re.IGNORECASE):
        return FUSED_LINEAR_LOSS * run.hidden / run.vocab
    return SHORT_LOSS if run.loss_kernel in ("fused", "chunked") else None


def _modules(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    unknown = [name for name in names if name not in _RECOMPUTABLE]
    if unknown:
        raise SkippedError(f"recompute of {', '.join(unknown)} is not modeled")
    return names


def _states(run: TrainRun, stack: Stack) -> Mapping[str, StateBytes]:
    """Return the recipe of the row for every precision: what it states, the rest as the stack has it."""
    usual = stack.states["bf16"]
    recipe = StateBytes(
        weight=_bytes("weights_dtype", run.weights_dtype, _WEIGHT, usual.weight),
        gradient=_bytes("gradients_dtype", run.gradients_dtype, _WEIGHT, usual.gradient),
        master=_bytes("master_dtype", run.master_dtype, _WEIGHT, usual.master),
        moments=_bytes("moments_dtype", run.moments_dtype, _MOMENTS, usual.moments))
    return dict.fromkeys(("bf16", "fp16", "fp8"), recipe)


def _bytes(column: str, stated: str | None, known: Mapping[str, float], usual: float) -> float:
    if stated is None:
        return usual
    if stated not in known:
        raise SkippedError(f"{column} {stated} is not modeled")
    return known[stated]

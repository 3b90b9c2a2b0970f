"""The stack of a row: by its framework or source (`stack` in catalogs/evidence), with the recipe that the row states.

A framework of no family is taken as the stack that shards the way the row does. NVIDIA's performance recipes are
megatron-bridge: they reduce gradients in 16 bits (grad_reduce_in_fp32 = False in Megatron-Bridge
scripts/performance/configs and NeMo's; --grad-reduce-in-bf16 in Megatron-LM examples/llama) and interleave wherever
there is a pipeline.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, get_args

from planner.catalog.architecture import Model
from planner.catalog.hardware import Gpu, Precision
from planner.catalog.load import Catalog
from planner.catalog.quirk import Sources
from planner.catalog.stack import KeptProduct, RecomputeModule, Stack, StateBytes
from planner.evidence.rows import TrainRun
from planner.evidence.skipping import SkippedError
from planner.physics.training.recipes import Recipe, with_recipe

WEIGHT_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0, "none": 0.0}
"""Bytes of a weight, gradient or master copy by its format."""
HELD_IN = {"16 bits": StateBytes(weight=2, gradient=2, master=0, moments=4, step=2),
           "32 bits": StateBytes(weight=4, gradient=4, master=0, moments=8, step=4)}
"""States without a master copy, under PyTorch's AdamW over many tensors at once."""
_RECOMPUTABLE, _KEPT_PRODUCTS = get_args(RecomputeModule), get_args(KeptProduct)
_ALL_EXCEPT = "all except "
_ZERO = ("zero1", "zero2", "zero3")


def stack_of(run: TrainRun, model: Model, catalog: Catalog, assumed: list[str], *, memory_only: bool = False) -> Stack:
    """Return the stack of a row with the recipe it states. Raises SkippedError.

    memory_only: no time is asked for, so a stack without host times of a mixture of experts will do.
    """
    if run.framework and catalog.sources.flag("launched", run):
        return _planned(run, run.framework, model, catalog)
    return _published(run, model, catalog, assumed, memory_only=memory_only)


def _published(run: TrainRun, model: Model, catalog: Catalog, assumed: list[str], *, memory_only: bool) -> Stack:
    """Return the stack of a row by its words and the habits of its source."""
    said = catalog.sources
    stack = catalog.stack(_name(run, model, said, assumed))
    # published runs use the default, the ring; FSDP holds the gradients of checkpoints, DeepSpeed's ZeRO does not
    stack = stack.model_copy(update={
        "ulysses": False, "repeats_heads": ("ulysses",) if run.seq_parallel == "ulysses" else tuple(
            part for part in stack.repeats_heads if part == "tensor"),
        "keeps_checkpoint_gradients": stack.keeps_checkpoint_gradients and run.sharding not in _ZERO})
    changes = _kernels(run, stack, model, catalog)
    if model.mixes_experts and stack.experts is None and memory_only:
        changes["experts"] = catalog.stack("megatron-core").experts  # which no memory prediction reads
    if stack.experts is not None:
        changes["experts"] = stack.experts.model_copy(update={
            "deduplicated": stack.experts.deduplicated and not said.flag("sends_each_expert", run),
            "in_turn": said.flag("experts_in_turn", run)})
    if run.seq_parallel is not None:
        changes["sequence_parallel"] = run.seq_parallel.lower() in ("yes", "1", "true")
    flags = said.several("recompute_flags", run, stack=stack.name)
    if run.recompute in (None, "selective") and flags:
        changes["selective_recompute"] = flags
    if run.recompute == "selective" and run.recompute_modules:
        changes["selective_recompute"] = _modules(run.recompute_modules, _RECOMPUTABLE)
    elif run.recompute_modules and run.recompute_modules.startswith(_ALL_EXCEPT):
        kept = run.recompute_modules.removeprefix(_ALL_EXCEPT).replace("+", ",")
        changes["full_recompute_keeps"] = _modules(kept, _KEPT_PRODUCTS)
    held_in = said.word("held_in", run)
    if held_in is not None:
        changes["states"] = dict.fromkeys(get_args(Precision), HELD_IN[held_in])
    elif run.weights_dtype or run.moments_dtype or said.number("moments", run) is not None:
        changes["states"] = _states(run, stack, catalog, assumed)
    if stack.name in ("megatron-core-2025", "megatron-bridge") and said.flag("tuned", run):
        bridge = catalog.stack("megatron-bridge")
        half = bridge.recipe("bf16").gradient
        usual = changes.get("states", stack.states)
        changes["states"] = {p: s.model_copy(update={"gradient": half}) for p, s in usual.items()}
        changes["reduce_bytes"] = bridge.reduce_bytes
    return stack.model_copy(update=changes) if changes else stack


def attending(stack: Stack, rate: float | None, on: Gpu | None) -> Stack:
    """Return a stack whose attention reaches `rate` of its own on a GPU's architecture; none leaves it as it is."""
    if rate is None or on is None:
        return stack
    kernel, of = stack.attention_kernel, on.architecture
    return stack.model_copy(update={"attention_kernel": {**kernel, of: rate * kernel.get(of, 1.0)}})


def _planned(run: TrainRun, name: str, model: Model, catalog: Catalog) -> Stack:
    """Return the stack of a plan that was launched, as the plan had it: no habit of a source bears on it."""
    stack, backward = catalog.stack(name), catalog.sources.flag("optimizer_in_backward", run)
    if run.seq_parallel is not None:
        stack = stack.model_copy(update={"sequence_parallel": run.seq_parallel == "yes"})
    return with_recipe(catalog.recipes, stack, model, Recipe(run.optimizer, backward, run.loss_kernel))


def _kernels(run: TrainRun, stack: Stack, model: Model, catalog: Catalog) -> dict[str, Any]:
    """Return what the kernels that a row names change: its loss, Liger's, no compiler, no overlap."""
    said, changes = catalog.sources, dict[str, Any]()
    # a PyTorch row that does not name its loss kernel is of a time before chunked ones
    usual = catalog.stack(stack.family) if stack.family in ("fsdp2", "hf-peft") else stack
    plain, stated = usual.loss_bytes_per_logit, _loss_bytes(run, stack, model, catalog)
    changes["loss_bytes_per_logit"] = plain if stated is None else min(plain, stated)
    changes["context_bytes"] = stack.context_bytes + (said.number("standing_buffers", run) or 0.0)
    unsaved = said.number("unsaved_products", run)
    if unsaved is not None:
        changes["unsaved_products"] = unsaved
    tile = said.number("live_mlp", run)
    if tile is not None:
        changes["live_mlp"] = tile
    rate = said.number("attention_rate", run, stack=stack.name)
    changes["attention_kernel"] = attending(stack, rate, catalog.known_gpu(run.gpu or "")).attention_kernel
    changes["fuses_operations"] = said.flag("fuses_operations", run, stack=stack.name)
    if run.attention_impl == "unfused" or said.flag("keeps_scores", run):
        changes["fused_attention"] = False
    elif "flash" in (run.attention_impl or ""):
        changes["fused_attention"] = True
    if said.flag("narrow_adapters", run):
        changes["adapter_casts"] = 0.0
    changes["autocasts"] = stack.autocasts and not said.flag("no_autocast", run)
    if said.flag("keeps_half", run):
        changes |= {"upcast": 1.0, "casts_residual": False}
    if said.flag("liger", run):
        changes |= {"fused_norm_and_activation": True, "live_layers": catalog.stack("megatron-core").live_layers}
    if stack.name in ("megatron-core", "megatron-core-2025") and not said.flag("tuned", run):
        # only NVIDIA's recipes set --tp-comm-overlap
        changes["overlap"] = stack.overlap.model_copy(update={"tensor_parallel": 0.0})
    return changes


def _loss_bytes(run: TrainRun, stack: Stack, model: Model, catalog: Catalog) -> float | None:
    """Return bytes per logit on the last stage of the loss kernel that a row states, none where it states none."""
    said, losses = catalog.sources, catalog.recipes.losses
    kernel = said.word("loss", run)
    if kernel == "fused with its projection":
        return losses["fused"] * (run.hidden or model.hidden) / (run.vocab or model.vocab)
    if kernel == "of no token":
        return 0.0
    if kernel == "the stack's own":
        return stack.loss_bytes_per_logit
    if kernel != "in chunks":
        return None
    counted = said.number("loss_bytes", run)
    return losses["chunked"] if counted is None else counted


def _name(run: TrainRun, model: Model, said: Sources, assumed: list[str]) -> str:
    name = said.word("stack", run)
    if name is None:
        name = "deepspeed" if run.sharding in _ZERO else "fsdp2"
        name = "hf-peft" if run.method in ("lora", "qlora") else name
        name = "megatron-core" if max(run.tp or 1, run.pp or 1) > 1 else name
        assumed.append(f"stack={name}")
    if name == "megatron-core" and model.mixes_experts and said.flag("slow_experts", run):
        return "megatron-core-2025"
    if name == "megatron-core" and said.flag("tuned", run):
        return "megatron-bridge"
    return said.word("fsdp2_stack", run) or name if name == "fsdp2" else name


def _modules(text: str, known: Collection[str]) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SkippedError(f"recompute of {', '.join(unknown)} is not modeled")
    return names


def _states(run: TrainRun, stack: Stack, catalog: Catalog, assumed: list[str]) -> Mapping[str, StateBytes]:
    """Return the recipe of the row for every precision: what it states, the rest as the stack has it."""
    said, usual = catalog.sources, stack.states["bf16"]
    single = said.flag("optimizer_in_backward", run, stack=stack.name)
    if single:
        assumed.append("optimizer=PagedAdamW8bit in backward")
    recipe = StateBytes(
        weight=_bytes("weights_dtype", run.weights_dtype, usual.weight),
        gradient=catalog.recipes.least_gradient if single or said.flag("frees_gradients", run) else _bytes(
            "gradients_dtype", run.gradients_dtype, usual.gradient),
        master=_bytes("master_dtype", run.master_dtype, usual.master),
        moments=0.0 if single else _moments(run, said, usual.moments))
    return dict.fromkeys(get_args(Precision), recipe)


def _moments(run: TrainRun, said: Sources, usual: float) -> float:
    """Return bytes per parameter of the optimizer's states: by its name, else two moments of the stated format."""
    named, stated = said.number("moments", run), said.number("dtype_moments", run)
    if named is None and stated is None and run.moments_dtype is not None:
        raise SkippedError(f"moments_dtype {run.moments_dtype} is not modeled")
    return next((held for held in (named, stated) if held is not None), usual)


def _bytes(column: str, stated: str | None, usual: float) -> float:
    if stated is None:
        return usual
    if stated not in WEIGHT_BYTES:
        raise SkippedError(f"{column} {stated} is not modeled")
    return WEIGHT_BYTES[stated]

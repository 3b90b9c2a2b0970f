"""Which models a trainer builds from what it is told; one that loads published code and weights has any."""

from __future__ import annotations

from planner.catalog.architecture import Mlp, Model, MoeMlp
from planner.catalog.attention import Attention, LatentAttention
from planner.catalog.details import Details
from planner.catalog.releases import Releases, Target

LLAMA3_TRAINED, YARN_TRAINED, YARN_FAST = 8192, 4096, 32
"""Of Megatron: tokens that its scalings take positions to be trained with, and beta_fast; no argument says others."""
FUNCTIONS = {True: ("silu",), False: ("gelu", "gelu-tanh", "relu2")}
"""Of Megatron: functions of a feed-forward, by whether it is gated."""


def unbuilt(releases: Releases, name: str, model: Model) -> str | None:
    """Return what is in the way of a model in a target, in words; none where it has the model."""
    target = releases.target(name)
    if model.is_silent and target.work == "training":
        return f"{model.name} in {name}: its files train models that generate text"
    named = {*target.has, *target.checkpoints, *target.models}
    if target.work != "training" or model.name in named:
        return None
    reason = _megatron(model) if target.builds == "megatron" else (
        _llama(model, target) if target.builds == "llama" else f"it has {', '.join(sorted(named))}" if named else None)
    return reason and f"{model.name} in {name}: {reason}"


def having(releases: Releases, model: Model, method: str) -> list[str]:
    """Return the targets that train a model by a method."""
    return [name for name in releases.of_work("training", method) if unbuilt(releases, name, model) is None]


def activation_of(model: Model, mlp: Mlp | MoeMlp) -> tuple[bool, str]:
    """Return whether a feed-forward is gated, and its function."""
    gated = mlp.kind == "gated" or (isinstance(mlp, MoeMlp) and mlp.gated)
    return gated, (model.details and model.details.activation) or ("silu" if gated else "gelu-tanh")


def _megatron(model: Model) -> str | None:
    """Return what pretrain_gpt.py's arguments do not say of a model."""
    kinds = model.layer_kinds()
    if model.norm not in ("rmsnorm", "layernorm") or model.positions not in ("rope", "learned", "none"):
        return f"its {model.norm} norms and {model.positions} positions"
    if len({block.attention for block in model.blocks}) > 1 or any(block.recurrence for block in model.blocks):
        return "layers whose attention differs, or that have none"
    found = model.blocks[0].attention
    latent = isinstance(found, LatentAttention) and found.indexer is None
    if not latent and (not isinstance(found, Attention) or found.indexer or found.chunk or found.bidirectional
                       or found.borrowed or found.value_dim != found.head_dim or found.sinks or found.query_rank
                       or found.qk_norm == "full"):
        return "its attention"
    if model.towers or model.embedding_norm or model.input_parameters or model.output_parameters or any(
            block.products or block.norms not in (None, 2) for block in kinds):
        return "towers that see or hear, or parts beside plain layers"
    dense = {block.mlp for block in kinds if isinstance(block.mlp, Mlp)}
    mixed = {block.mlp for block in kinds if isinstance(block.mlp, MoeMlp)}
    if len(dense) > 1 or len(mixed) > 1 or any(block.mlp is None or block.parallel for block in kinds):
        return "layers of several widths, or without a feed-forward"
    gated, function = activation_of(model, *dense or mixed)
    return "its activation" if function not in FUNCTIONS[gated] else _detailed(model.details or Details(), latent)


def _detailed(said: Details, latent: bool) -> str | None:
    scaling = said.scaling
    if said.beyond:
        return said.beyond
    if scaling is None or (scaling.kind == "llama3" and scaling.original == LLAMA3_TRAINED):
        return None
    if not latent or scaling.kind != "yarn" or scaling.original != YARN_TRAINED:
        return f"its {scaling.kind} scaling of positions"
    return None if scaling.beta_fast == YARN_FAST else f"beta_fast {scaling.beta_fast:g} of its yarn scaling"


def _llama(model: Model, target: Target) -> str | None:
    """Return what sets a model apart from a dense one like Llama, whose parts alone are put together anew."""
    block = model.blocks[0]
    attention, mlp = block.attention, block.mlp
    plain = isinstance(attention, Attention) and attention == Attention(
        heads=attention.heads, kv_heads=attention.kv_heads, head_dim=model.hidden // attention.heads)
    gated = isinstance(mlp, Mlp) and mlp.kind == "gated" and not mlp.bias
    if len(model.blocks) > 1 or not plain or not gated or model.norm != "rmsnorm" or (
            model.positions != "rope" or model.tied):
        return f"it has {', '.join(target.models)} and dense models like Llama"
    said = model.details or Details()
    if said.activation not in (None, "silu"):
        return f"{said.activation} in its feed-forward"
    if said.scaling is not None and said.scaling.kind != "llama3":
        return f"its {said.scaling.kind} scaling of positions"
    return said.beyond or ("norms around one" if said.around_one else
                           "positions on a part of each head" if said.rotary_share < 1 else None)

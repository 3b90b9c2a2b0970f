"""The shape of a model and of its GPU, as checks need it, and what a program that builds the model has to come to."""

from __future__ import annotations

from planner.catalog.architecture import Mlp, Model, MoeMlp
from planner.catalog.attention import Attention, LatentAttention
from planner.launch.served import EngineGroup


def shape_of(served: EngineGroup) -> dict[str, object]:
    """Return what stands in for a checkpoint's config."""
    model = served.model
    attention = next((block.attention for block in model.layer_kinds() if block.attention is not None), None)
    mixed = next((block.mlp for block in model.layer_kinds() if isinstance(block.mlp, MoeMlp)), None)
    widths = [block.mlp.ffn for block in model.layer_kinds() if block.mlp is not None]
    shape: dict[str, object] = {
        "layers": model.layers, "hidden": model.hidden, "heads": model.attention_heads, "kv_heads": model.kv_heads,
        "vocab": model.vocab, "ffn": max(widths, default=model.hidden), "longest": max(
            served.longest, model.sequence_length), "format": served.placed.layout.stored, "stored": model.stored}
    if isinstance(attention, Attention):
        shape["head_dim"] = attention.head_dim
    if isinstance(attention, LatentAttention):
        shape["latent"] = {"q_lora_rank": attention.q_lora_rank, "kv_lora_rank": attention.kv_lora_rank,
                           "qk_nope_head_dim": attention.qk_nope, "qk_rope_head_dim": attention.qk_rope,
                           "v_head_dim": attention.v_head}
    if mixed is not None:
        shape |= {"experts": mixed.experts, "experts_per_token": mixed.experts_per_token, "expert_ffn": mixed.ffn}
    return shape


def gpu_of(served: EngineGroup) -> dict[str, object]:
    """Return the GPU that stands in for the plan's."""
    return {"name": served.gpu.name, "architecture": served.gpu.architecture, "memory": served.gpu.usable_memory,
            "node": served.node.gpus}


def facts_of(model: Model) -> dict[str, object]:
    """Return what a program that builds the model has to come to, by name; what the catalog does not say is left out.

    Feed-forward widths are those of every width that occurs, in order.
    """
    kinds, said = model.layer_kinds(), model.details
    attention = next((block.attention for block in kinds if block.attention is not None), None)
    mixed = next((block.mlp for block in kinds if isinstance(block.mlp, MoeMlp)), None)
    facts: dict[str, object] = {"heads": model.attention_heads, "vocab": model.vocab, "tied": model.tied,
                                "ffn": next((block.mlp.ffn for block in kinds if isinstance(block.mlp, Mlp)), None),
                                "prediction_layers": model.prediction_layers}
    if isinstance(attention, Attention):
        facts |= {"kv_heads": attention.kv_heads, "head_dim": attention.head_dim, "qk_norm": bool(attention.qk_norm),
                  "qkv_bias": attention.bias != "none", "window": attention.window, "gate": attention.gate}
    if isinstance(attention, LatentAttention):
        facts |= {"q_lora_rank": attention.q_lora_rank, "kv_lora_rank": attention.kv_lora_rank,
                  "qk_nope": attention.qk_nope, "qk_rope": attention.qk_rope, "v_head": attention.v_head}
    if mixed is not None:
        facts |= {"experts": mixed.experts, "experts_per_token": mixed.experts_per_token, "expert_ffn": mixed.ffn,
                  "shared_ffn": mixed.shared_width or None, "sigmoid": mixed.correction_bias,
                  "mixtures": sum(isinstance(block.mlp, MoeMlp) for block in kinds)}
        if said is not None and said.router is not None:
            facts |= {"router_scale": said.router.scale, "groups": said.router.groups,
                      "groups_per_token": said.router.groups_per_token}
    if said is not None:
        facts |= {name: value for name, value in (
            ("rotary_base", said.rotary_base and round(said.rotary_base)), ("norm_epsilon", said.norm_epsilon),
            ("scaled_by", said.scaling.factor if said.scaling else None),
            ("rotary_share", said.rotary_share if model.positions == "rope" else None)) if value is not None}
    return facts

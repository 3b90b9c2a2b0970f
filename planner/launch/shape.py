"""The shape of a model and of its GPU, as checks need it: a parser reads both before it says yes."""

from __future__ import annotations

from planner.catalog.architecture import MoeMlp
from planner.catalog.attention import Attention, LatentAttention
from planner.launch.served import Served


def shape_of(served: Served) -> dict[str, object]:
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


def gpu_of(served: Served) -> dict[str, object]:
    """Return the GPU that stands in for the plan's."""
    return {"name": served.gpu.name, "architecture": served.gpu.architecture, "memory": served.gpu.usable_memory,
            "node": served.node.gpus}

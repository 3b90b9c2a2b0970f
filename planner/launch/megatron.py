"""What Megatron-LM and Megatron-Bridge share: the shape of a model, pipeline layouts and recompute."""

from __future__ import annotations

from collections.abc import Sequence

from planner.catalog.architecture import Block, Mlp, Model, MoeMlp
from planner.catalog.attention import Attention, LatentAttention
from planner.errors import Unsupported
from planner.launch.axes import No
from planner.launch.work import Work

_NORMS = {"rmsnorm": "RMSNorm", "layernorm": "LayerNorm"}
_POSITIONS = {"rope": "rope", "learned": "learned_absolute", "none": "none"}


def layer_string(stages: Sequence[int]) -> str:
    """Return --pipeline-model-parallel-layout of stages without interleaving: `Et*15|t*17L`."""
    parts = [f"t*{layers}" if layers else "" for layers in stages]
    return "|".join(["E" + parts[0], *parts[1:]]) + "L"


def sharding_name(zero: int) -> str:
    """Return Megatron-FSDP's name of a ZeRO stage."""
    return ("no_shard", "optim", "optim_grads", "optim_grads_params")[zero]


def chunked_recompute(work: Work) -> int | No:
    """Return the layers that every chunk of every stage recomputes in full, or why they are not the same."""
    stages, vpp = work.layout.stages, work.layout.vpp
    full = {stage.recompute_layers.full for stage in stages}
    most = -(-max(full) // vpp) * vpp
    if any(stage.recompute_layers.selective for stage in stages):
        return No(f"{work.value('recompute')} layers of the stages (it recomputes parts of all layers, or some layers "
                  "whole)", {"recompute": most})
    if len(full) > 1 or most != max(full):
        return No(f"{work.value('recompute')} layers of the stages (every chunk of every stage recomputes as many)",
                  {"recompute": most})
    return most // vpp


def model_flags(work: Work) -> dict[str, object]:
    """Return the flags that make up a model. Raises Unsupported for a part that pretrain_gpt.py does not build."""
    model = work.model
    kinds = model.layer_kinds()
    first = kinds[0]
    if model.norm not in _NORMS or model.positions not in _POSITIONS:
        raise Unsupported(f"{model.name} in {work.target}: its {model.norm} norms and {model.positions} positions")
    flags: dict[str, object] = {
        "num-layers": model.layers, "hidden-size": model.hidden, **_attention(model, work.target),
        "normalization": _NORMS[model.norm], "position-embedding-type": _POSITIONS[model.positions],
        "attention-dropout": 0.0, "hidden-dropout": 0.0}  # Megatron's own default is 0.1
    if not model.tied:
        flags["untie-embeddings-and-output-weights"] = True
    dense = [block.mlp for block in kinds if isinstance(block.mlp, Mlp)]
    mixed = [block.mlp for block in kinds if isinstance(block.mlp, MoeMlp)]
    if len(set(dense)) > 1 or len(set(mixed)) > 1 or any(block.mlp is None or block.parallel for block in kinds):
        raise Unsupported(f"{model.name} in {work.target}: layers of several widths, or without a feed-forward")
    one = dense[0] if dense else mixed[0]
    flags["ffn-hidden-size"] = one.ffn
    if one.kind == "gated" or (isinstance(one, MoeMlp) and one.gated):
        flags["swiglu"] = True
    if not one.bias and not _biased(first):
        flags["disable-bias-linear"] = True
    if mixed:
        flags |= _mixture(mixed[0], [isinstance(block.mlp, MoeMlp) for block in kinds])
    if model.prediction_layers:
        flags["mtp-num-layers"] = model.prediction_layers
    return flags


def _biased(block: Block) -> bool:
    return isinstance(block.attention, Attention) and block.attention.bias == "qkvo"


def _attention(model: Model, target: str) -> dict[str, object]:
    kinds = {block.attention for block in model.blocks}
    found = next(iter(kinds))
    if len(kinds) > 1 or any(block.recurrence for block in model.blocks):
        raise Unsupported(f"{model.name} in {target}: layers whose attention differs, or that have none")
    if isinstance(found, LatentAttention) and found.indexer is None:
        query = {} if found.q_lora_rank is None else {"q-lora-rank": found.q_lora_rank}
        return {"num-attention-heads": found.heads, "multi-latent-attention": True, **query,
                "kv-lora-rank": found.kv_lora_rank, "qk-head-dim": found.qk_nope, "qk-pos-emb-head-dim": found.qk_rope,
                "v-head-dim": found.v_head}
    if not isinstance(found, Attention) or found.indexer or found.chunk or found.bidirectional or found.borrowed or (
            found.value_dim != found.head_dim or found.sinks or found.qk_norm == "full"):
        raise Unsupported(f"{model.name} in {target}: its attention")
    flags: dict[str, object] = {"num-attention-heads": found.heads, "kv-channels": found.head_dim}
    if found.kv_heads != found.heads:
        flags |= {"group-query-attention": True, "num-query-groups": found.kv_heads}
    if found.bias == "qkv":
        flags["add-qkv-bias"] = True
    if found.qk_norm:
        flags["qk-layernorm"] = True
    if found.gate:
        flags["attention-output-gate"] = True
    if found.window:
        flags["window-size"] = f"{found.window},0"
    return flags


def _mixture(mlp: MoeMlp, mixed: Sequence[bool]) -> dict[str, object]:
    flags: dict[str, object] = {
        "num-experts": mlp.experts, "moe-router-topk": mlp.experts_per_token, "moe-ffn-hidden-size": mlp.ffn,
        "moe-grouped-gemm": True, "moe-token-dispatcher-type": "alltoall",
        "moe-router-load-balancing-type": "aux_loss", "moe-aux-loss-coeff": 1e-3}
    if not all(mixed):
        flags["moe-layer-freq"] = str([int(one) for one in mixed]).replace(" ", "")
    if mlp.shared_experts:
        flags["moe-shared-expert-intermediate-size"] = mlp.shared_width
        if mlp.shared_gate:
            flags["moe-shared-expert-gate"] = True
    if mlp.correction_bias:
        flags |= {"moe-router-enable-expert-bias": True, "moe-router-score-function": "sigmoid"}
    return flags

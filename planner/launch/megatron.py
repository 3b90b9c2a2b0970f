"""What Megatron-LM and Megatron-Bridge share: the shape of a model, pipeline layouts and recompute."""

from __future__ import annotations

from collections.abc import Sequence

from planner.catalog.architecture import Block, Mlp, Model, MoeMlp
from planner.catalog.attention import Attention, LatentAttention
from planner.catalog.buildable import activation_of
from planner.catalog.details import ExpertRouter
from planner.launch.axes import No
from planner.launch.program import Variable
from planner.launch.work import Work

_NORMS = {"rmsnorm": "RMSNorm", "layernorm": "LayerNorm"}
_POSITIONS = {"rope": "rope", "learned": "learned_absolute", "none": "none"}
_ACTIVATIONS: dict[tuple[bool, str], dict[str, object]] = {
    (True, "silu"): {"swiglu": True}, (False, "gelu"): {"no-bias-gelu-fusion": True}, (False, "gelu-tanh"): {},
    (False, "relu2"): {"squared-relu": True}}
"""Whether it is gated, and its function -> flags; the fused GELU is the one by tanh."""
ROTARY_BASE = Variable("ROTARY_BASE", "10000", "rope_theta of the model's config.")


def layer_string(chunks: Sequence[int], prediction: int = 0) -> str:
    """Return --pipeline-model-parallel-layout of chunks, those of the first round of all stages first: `Et*15|t*17L`.

    prediction: layers that predict tokens further ahead, which are with the last: `t*17mL`.
    """
    parts = [f"t*{layers}" if layers else "" for layers in chunks]
    return "|".join(["E" + parts[0], *parts[1:]]) + "m" * prediction + "L"


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
    """Return the flags that make up a model."""
    model = work.model
    kinds = model.layer_kinds()
    first = kinds[0]
    flags: dict[str, object] = {
        "num-layers": model.layers, "hidden-size": model.hidden, **_attention(model),
        "normalization": _NORMS[model.norm], "position-embedding-type": _POSITIONS[model.positions],
        **_detailed(model),
        "attention-dropout": 0.0, "hidden-dropout": 0.0}  # Megatron's own default is 0.1
    if not model.tied:
        flags["untie-embeddings-and-output-weights"] = True
    dense = [block.mlp for block in kinds if isinstance(block.mlp, Mlp)]
    mixed = [block.mlp for block in kinds if isinstance(block.mlp, MoeMlp)]
    one = dense[0] if dense else mixed[0]
    flags["ffn-hidden-size"] = one.ffn
    flags |= _ACTIVATIONS[activation_of(model, one)]
    if not one.bias and not _biased(first):
        flags["disable-bias-linear"] = True
    if mixed:
        flags |= _mixture(mixed[0], [isinstance(block.mlp, MoeMlp) for block in kinds])
        flags |= _routing(mixed[0], model.details.router if model.details else None)
    if model.prediction_layers:
        flags["mtp-num-layers"] = model.prediction_layers
    return flags


def _biased(block: Block) -> bool:
    return isinstance(block.attention, Attention) and block.attention.bias == "qkvo"


def _attention(model: Model) -> dict[str, object]:
    found = model.blocks[0].attention
    if isinstance(found, LatentAttention):
        query = {} if found.q_lora_rank is None else {"q-lora-rank": found.q_lora_rank}
        return {"num-attention-heads": found.heads, "multi-latent-attention": True, **query,
                "kv-lora-rank": found.kv_lora_rank, "qk-head-dim": found.qk_nope, "qk-pos-emb-head-dim": found.qk_rope,
                "v-head-dim": found.v_head, "kv-channels": found.v_head}
    assert isinstance(found, Attention)
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
        "moe-grouped-gemm": True, "moe-permute-fusion": True, "moe-token-dispatcher-type": "alltoall",
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


def _routing(mlp: MoeMlp, router: ExpertRouter | None) -> dict[str, object]:
    if router is None:
        return {}
    flags: dict[str, object] = {}
    if not router.normalized and not mlp.correction_bias:
        flags["moe-router-pre-softmax"] = True
    if router.scale is not None:
        flags["moe-router-topk-scaling-factor"] = router.scale
    if router.groups is not None and router.groups_per_token is not None:
        flags |= {"moe-router-num-groups": router.groups, "moe-router-group-topk": router.groups_per_token}
    return flags


def _detailed(model: Model) -> dict[str, object]:
    """Return the flags of positions and norms that a model's config states; what it leaves open are variables."""
    said = model.details
    if said is None:
        return {}
    flags: dict[str, object] = {"norm-epsilon": said.norm_epsilon} if said.norm_epsilon else {}
    if said.around_one:
        flags["apply-layernorm-1p"] = True
    latent = any(isinstance(block.attention, LatentAttention) for block in model.blocks)
    if said.rotary_base:
        flags["rotary-base"] = round(said.rotary_base)
    if said.rotary_share < 1:
        flags["rotary-percent"] = said.rotary_share
    if said.scaling is None:
        return flags | ({"rope-type": "rope", "no-rope-fusion": True} if latent else {})
    if said.scaling.kind == "llama3":
        return flags | {"use-rope-scaling": True, "rope-scaling-factor": said.scaling.factor}
    return flags | {"rope-type": "yarn", "rotary-scaling-factor": said.scaling.factor, "mscale": said.scaling.mscale,
                    "mscale-all-dim": said.scaling.mscale_all_dim}


def open_details(model: Model) -> dict[str, Variable]:
    """Return flag -> the variable of what no entry of the catalog says of a model, with Megatron's own default."""
    said = model.details
    found = {} if said and said.norm_epsilon else {
        "norm-epsilon": Variable("NORM_EPSILON", "1e-5", "Of the norms, as the model's config has it.")}
    if model.positions == "rope" and not (said and said.rotary_base):
        found["rotary-base"] = ROTARY_BASE
    return found

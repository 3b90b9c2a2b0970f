"""What layers keep for backward: bytes per token by recompute mode, and what one layer holds while it works.

e bytes of an activation (2), t tokens of a micro-batch on a GPU, h hidden, A query width, KV key width, f
feed-forward width. Saved per token and layer: norms 4eh (inputs and outputs), attention e(2A + 2KV) and the
log-sum-exp, feed-forward 3ef gated or 2ef plain. With f = 4h, dropout masks and no flash attention this is 34sbh of
Korthikanti et al. 2022 (arXiv 2205.05198); a test holds that.
"""

from __future__ import annotations

import numpy as np

from planner.layouts.axes import RECOMPUTE
from planner.layouts.table import Floats, Layouts
from planner.physics.layers import LayerKind
from planner.physics.training.parameters import sequence_split
from planner.physics.training.question import Question


def saved_per_token(question: Question, rows: Layouts, kind: LayerKind) -> Floats:
    """Return bytes a layer keeps per token of a GPU's micro-batch, shape (rows, 3): none, selective, full."""
    shape, stack, tuning = question.shape, question.stack, question.tuning
    tp, e = rows.tp.astype(np.float64), question.element_bytes(rows.precision)
    if not kind.runs(question.memory):
        return np.zeros((len(rows), len(RECOMPUTE)))
    keys = kind.keys_and_values(tp)
    if kind.crosses:
        keys = keys * question.memory_positions(rows) / question.tokens(rows)
    if tuning.forward_only:
        # the key-value cache; latent attention caches the latent vector, whole on every rank
        cache = e * kind.latent_width if kind.latent_width else e * keys
        if kind.scan is not None:
            # a recurrence keeps one state a sequence, in 32 bits
            cache = cache + 4 * kind.scan.inner * kind.scan.state / question.sequence_length / tp
        return np.stack([cache * np.ones_like(tp)] * 3, axis=1)
    split = sequence_split(question, rows)
    h = shape.hidden
    narrow = question.input_bytes(rows.precision)
    inputs = kind.norms * e * h / split
    alone, whole = _norms_of_products(kind), np.ones_like(tp)
    outputs = (kind.norms * e - alone * (e - narrow)) * h / (whole if stack.gathered_norm_outputs else split)
    unfused = 0.0 if stack.fused_norm_and_activation else 4 * kind.norms * h / split
    masks = 2 * h / split if shape.dropout else 0.0
    # flash attention keeps a log-sum-exp; unfused attention its scores before and after dropout, and the mask
    scores = question.memory if kind.crosses else question.sequence_length
    core = (4 if stack.fused_attention else (2 * e + 1) * scores) * kind.heads / tp
    over = tp * rows.cp if "ulysses" in stack.repeats_heads else tp
    repeated = np.maximum(1, over / max(1, kind.key_value_heads)) if stack.repeats_heads else 1.0
    attention = e * ((kind.query_width + kind.value_width) / tp + keys * repeated
                     + kind.latent_width) + core
    attention = attention + kind.normed * (e + (0 if stack.fused_norm_and_activation else 4)) / tp
    # attention keeps what it returns as it is, and the product behind it keeps a narrower copy
    attention = attention + np.where(narrow < e, narrow, 0.0) * kind.value_width / tp
    if kind.scan is not None:
        attention = attention + e * (kind.scan.projected + 2 * kind.scan.inner) / tp
    dense, routed = _feed_forward(question, rows, kind)
    k = question.kept_bytes(rows.precision)
    fed = np.minimum(k, narrow)
    mlp, acted = dense + routed, np.zeros_like(tp)
    if kind.experts is not None:
        acted = fed * kind.experts.per_token * kind.experts.ffn / tp
    if not tuning.trains_base:
        outputs, mlp = _frozen(question, kind, tp, outputs, mlp, fed)
        attention = attention + _adapter_inputs(question, kind, tp, e)
        # a frozen norm in plain kernels keeps its 32-bit copy alone
        inputs = inputs * (stack.fused_norm_and_activation or tuning.keeps_frozen_inputs)
    projected = e * kind.attention_width / tp if kind.latent_width else 0.0
    held = stack.norms_in_products * alone * narrow * h / split
    drops = {"core_attn": core, "layernorm": outputs + unfused - held,
             "mlp": mlp if kind.experts is None else dense, "mlp_act": fed * kind.ffn / tp, "moe": routed,
             "moe_act": acted, "mla_up_proj": projected}
    none = inputs + outputs + unfused + masks + attention + mlp
    if stack.selective_recompute == ("every-second-matmul",):
        products = (2 * kind.query_width - kind.value_width + kind.key_value_width / 2 + kind.ffn) / tp
        last, reduced = _row_products(question, h, split)
        selective = e * (h / split + kind.value_width / tp + reduced + (1 - stack.unsaved_products) * (products + last))
    else:
        selective = none - sum((drops[m] for m in stack.selective_recompute), np.zeros_like(tp))
    outputs_kept = {"gate": e * (kind.experts.count if kind.experts else 0), "wo": e * h / split,
                    "wkv_a": e * kind.latent_width}
    # a layer has one checkpoint, ahead of all that it does
    full = _residual(question, rows) * e * h / split * (not kind.crosses) + sum(
        (outputs_kept[product] for product in stack.full_recompute_keeps), np.zeros_like(tp))
    return np.stack([none, selective, full], axis=1)


def _norms_of_products(kind: LayerKind) -> int:
    """Return how many norms of a layer feed one matrix product alone, which keeps its input in its own format.

    A router reads what the experts' norm returns in 16 bits, and the two projections into latent attention each keep a
    copy of their own, which together are as wide.
    """
    return max(0, min(2, kind.norms) - (kind.experts is not None) - bool(kind.latent_width))


def _row_products(question: Question, hidden: int, split: Floats) -> tuple[Floats, Floats]:
    """Return the saved width of the feed-forward's last product, and that of what reduce-scatters return.

    PyTorch saves that product before the ranks sum it, with all tokens, and both sums of a layer beside it (torchtitan
    models/llama3/infra/parallelize.py, _op_sac_save_list).
    """
    if not question.stack.gathered_norm_outputs:
        return hidden / split, np.zeros_like(split)
    return hidden * np.ones_like(split), np.where(split > 1, 2 * hidden / split, 0.0)


def _residual(question: Question, rows: Layouts) -> Floats:
    """Return the width of a checkpoint over that of an activation: twice where PEFT casts beside a quantized base."""
    cast = question.stack.casts_residual and question.tuning.base in question.recipes.cast_bases
    return np.where(rows.zero >= 2, 1.0, 2.0 if cast else 1.0)


def checkpoint_gradients(question: Question, rows: Layouts, kept: Floats) -> Floats:
    """Return what backward holds of the gradients of all checkpoints, where a stack frees them only at its end."""
    tuning = question.tuning
    held = question.stack.keeps_checkpoint_gradients and tuning.adapter is not None
    kept_all: Floats = np.where(held & (rows.zero >= 2), question.shape.layers * kept[:, -1], 0.0)
    return kept_all


def _feed_forward(question: Question, rows: Layouts, kind: LayerKind) -> tuple[Floats, Floats]:
    """Return bytes per token that the dense feed-forward or shared experts save, and those of routed experts."""
    tp, e, k = rows.tp.astype(np.float64), question.element_bytes(rows.precision), question.kept_bytes(rows.precision)
    fed = np.minimum(k, question.input_bytes(rows.precision))
    silu = 0 if question.stack.fused_norm_and_activation or kind.fan == 1 else 2
    dense = kind.ffn * (kind.fan * k + fed + silu) / tp
    if kind.experts is None:
        return dense, np.zeros_like(tp)
    expert, kernels = kind.experts, question.stack.experts
    returned = ((kernels and kernels.weighed) or e) if kernels is None or kernels.keeps_outputs else 0.0
    inner = expert.ffn * (expert.fan * k + fed + silu)
    return dense, expert.per_token * (inner + (fed + returned) * expert.hidden) / tp


def _frozen(question: Question, kind: LayerKind, tp: Floats, outputs: Floats, mlp: Floats,
            fed: Floats) -> tuple[Floats, Floats]:
    """Return the saved outputs of norms and feed-forward under a frozen base, whose products keep no inputs.

    Attention keeps queries, keys, values and context for its own backward, the activation its two inputs.
    """
    tuning = question.tuning
    if question.stack.fused_adapters and tuning.adapter is not None:
        return outputs, mlp - fed * kind.ffn / tp
    if not tuning.keeps_frozen_inputs:
        return 0.0 * outputs, mlp - fed * kind.ffn / tp
    return outputs, mlp


def _adapter_inputs(question: Question, kind: LayerKind, tp: Floats, e: Floats | float) -> Floats:
    """Return what adapters keep of their inputs.

    An adapter keeps what its first product reads: a copy of its own where its input is cast or dropped, and then a byte
    an element for what was dropped; else the input itself, once for matrices of one product. Attention keeps the input
    of its last product in any case, as does a quantized product that keeps its own. LoRA of 8B on one H100, 8,192
    tokens: 47.5 GiB dropped, 42.6 cast alone, 38.2 neither (peft/tuners/lora/layer.py and bnb.py, Linear.forward).
    """
    tuning, total = question.tuning, np.zeros_like(tp)
    if tuning.adapter is None or question.stack.fused_adapters:
        return total
    wide, casting = np.maximum(e, tuning.adapter.weight), question.stack.adapter_casts > 0
    casts = (wide > e) & (casting and not (tuning.quantized and question.stack.autocasts))
    element = e if question.stack.autocasts else np.where(casts, wide, e)
    dropped = tuning.dropout > 0 and not question.shape.experts  # which PEFT drops nothing of (lora.ParamWrapper)
    for linear in kind.linears:
        matrices = tuning.adapted(linear)[0]
        if linear.split == "none" or linear.of_memory or not matrices:
            continue
        width = linear.k / (tp if linear.split == "row" else 1.0)
        kept_anyway = tuning.keeps_frozen_inputs or (linear.split == "row" and linear in kind.attention)
        shared = 0.0 if kept_anyway else e * width
        total = total + np.where(casts | dropped, matrices * width * (element + dropped), shared)
    return total


def _weighed(question: Question) -> float:
    """Return bytes per token of the second gradient of what experts return, where it is cast ahead of their weights."""
    weighed = (question.stack.experts and question.stack.experts.weighed) or 0.0
    return max((weighed * kind.experts.per_token * kind.experts.hidden
                for kind, _ in question.shape.kinds if kind.experts is not None), default=0.0)


def live_layer(question: Question, rows: Layouts, kept: Floats) -> Floats:
    """Return what one layer holds while it works: its saved set and gradients, or forward its widest tensors."""
    tokens = question.tokens(rows)
    if not question.tuning.forward_only:
        # beside what is split: the gathered input of a product, and the gradient before its reduce-scatter
        whole = 2 * question.element_bytes(rows.precision) * question.shape.hidden * (rows.tp > 1)
        live: Floats = kept[:, 0] * question.stack.live_layers + tokens * (whole + _weighed(question))
        if question.stack.live_mlp < 1:
            dense = sum(share * _feed_forward(question, rows, kind)[0] for kind, share in question.shape.kinds)
            live = live - tokens * dense * (1 - question.stack.live_mlp) * question.stack.live_layers
        return live
    width = max(kind.attention_width + kind.fan * kind.ffn + (
        kind.experts.per_token * kind.experts.fan * kind.experts.ffn if kind.experts else 0)
        for kind, _ in question.shape.kinds)
    return tokens * question.element_bytes(rows.precision) * (2 * question.shape.hidden + width / rows.tp)

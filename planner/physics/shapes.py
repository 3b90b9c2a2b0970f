"""Exact parameter counts and FLOPs from a model's blocks.

h hidden, A heads x head_dim, KV kv_heads x head_dim, f feed-forward width, V vocabulary, s sequence length.
Source of the counts: the tensors of the published checkpoints; tests hold them equal to the published totals.
"""

from __future__ import annotations

from planner.catalog.architecture import (
    AnyMlp,
    AnyRecurrence,
    Block,
    Mlp,
    Model,
    MoeMlp,
)
from planner.catalog.attention import AnyAttention, CompressedAttention, Indexer, LatentAttention
from planner.catalog.recurrence import Channels, DeltaNet, Kda, Mamba, Mamba2


def attention_matrices(attention: AnyAttention, hidden: int) -> int:
    """Return the weights of the query, key, value and output projections (and gate, ranks, indexer) of one layer."""
    if isinstance(attention, LatentAttention):
        return _latent_matrices(attention, hidden)
    if isinstance(attention, CompressedAttention):
        return _compressed_matrices(attention, hidden)
    queries, out = attention.heads * attention.head_dim, attention.heads * attention.value_dim
    computed = attention.kv_heads * attention.projected
    index = (attention.indexer.heads + 1) * attention.indexer.head_dim if attention.indexer else 0
    rank = attention.query_rank
    query = hidden * queries if rank is None else rank * (hidden + queries)
    return query + hidden * (computed + out + (out if attention.gate else 0) + index)


def _latent_matrices(attention: LatentAttention, hidden: int) -> int:
    queries, rank = attention.heads * attention.query_dim, attention.kv_lora_rank
    query = hidden * queries if attention.q_lora_rank is None else attention.q_lora_rank * (hidden + queries)
    keys_values = hidden * (rank + attention.qk_rope) + rank * attention.heads * (attention.qk_nope + attention.v_head)
    index = _indexer_matrices(attention.indexer, attention.q_lora_rank or hidden, hidden) if attention.indexer else 0
    return query + keys_values + attention.heads * attention.v_head * hidden + index


def _compressed_matrices(attention: CompressedAttention, hidden: int) -> int:
    wide, index = attention.heads * attention.head_dim, attention.indexer
    queries = attention.q_lora_rank * (hidden + wide)
    output = attention.o_lora_rank * (wide + attention.o_groups * hidden)
    picks = _indexer_matrices(index, attention.q_lora_rank, hidden) - hidden * index.head_dim if index else 0
    pooled = sum(2 * hidden * width for width in _pooled(attention))
    return queries + hidden * attention.head_dim + output + picks + pooled


def _pooled(attention: CompressedAttention) -> tuple[int, ...]:
    """Return the widths that runs of tokens are pooled from: of key and index key, twice where they overlap."""
    if attention.ratio is None:
        return ()
    index = attention.indexer
    return (2 * attention.head_dim, 2 * index.head_dim) if index else (attention.head_dim,)


def _compressed_vectors(attention: CompressedAttention) -> int:
    """Return the norms, sinks and positions inside a run of compressed sparse attention."""
    pooled, index = _pooled(attention), attention.indexer.head_dim if attention.indexer else 0
    norms = attention.q_lora_rank + attention.head_dim + (attention.head_dim + index if pooled else 0)
    return norms + attention.heads + (attention.ratio or 0) * sum(pooled)


def _indexer_matrices(indexer: Indexer, rank: int, hidden: int) -> int:
    if indexer.shared:
        return 0
    return rank * indexer.heads * indexer.head_dim + hidden * (indexer.head_dim + indexer.heads)


def _attention_vectors(attention: AnyAttention, hidden: int) -> int:
    """Return the biases, inner norms and sinks of one layer's attention."""
    if isinstance(attention, LatentAttention):
        index = 2 * attention.indexer.held if attention.indexer else 0
        return (attention.q_lora_rank or 0) + attention.kv_lora_rank + index
    if isinstance(attention, CompressedAttention):
        return _compressed_vectors(attention)
    q, k = attention.heads * attention.head_dim, attention.kv_heads * attention.head_dim
    qkv = q + attention.kv_heads * attention.projected
    biases = {"none": 0, "qkv": qkv, "qkvo": qkv + hidden}[attention.bias]
    qk_norm = {False: 0, True: 2 * attention.head_dim, "full": q + k}[attention.qk_norm]
    qk_norm -= attention.borrowed * (qk_norm - (q if attention.qk_norm == "full" else qk_norm // 2))
    qk_norm += 2 * attention.indexer.head_dim if attention.indexer else 0
    return biases + qk_norm + (attention.heads if attention.sinks else 0) + (attention.query_rank or 0)


def recurrence_matrices(recurrence: AnyRecurrence, hidden: int) -> int:
    """Return the weights of the projections of one recurrent layer."""
    if isinstance(recurrence, Mamba):
        steps = recurrence.dt_rank + 2 * recurrence.state
        return recurrence.inner * (3 * hidden + steps + recurrence.dt_rank)
    if isinstance(recurrence, Mamba2):
        return hidden * (recurrence.inner + _convolved(recurrence) + recurrence.heads + recurrence.inner)
    if isinstance(recurrence, Kda):
        inner, rank = recurrence.inner, recurrence.head_dim
        return hidden * (4 * inner + recurrence.heads + 2 * rank) + 2 * rank * inner
    if isinstance(recurrence, Channels):
        return recurrence.inner * (hidden * (recurrence.inputs + 1) + gate_columns(recurrence))
    values = recurrence.value_heads * recurrence.value_dim
    return hidden * (_convolved(recurrence) + 2 * values + 2 * recurrence.value_heads)


def gate_columns(recurrence: Channels) -> int:
    """Return the weights that the two block-diagonal gates have for each channel."""
    return 2 * recurrence.inner // recurrence.gate_heads if recurrence.gate_heads else 0


def _convolved(recurrence: AnyRecurrence) -> int:
    """Return the channels of the short convolution."""
    if isinstance(recurrence, Mamba | Channels):
        return recurrence.inner
    if isinstance(recurrence, Mamba2):
        return recurrence.inner + 2 * recurrence.groups * recurrence.state
    if isinstance(recurrence, Kda):
        return 3 * recurrence.inner
    return 2 * recurrence.key_heads * recurrence.key_dim + recurrence.value_heads * recurrence.value_dim


def _recurrence_vectors(recurrence: AnyRecurrence) -> int:
    """Return the convolution, decay, skip, step bias and inner norms of one recurrent layer."""
    convolution = recurrence.conv * _convolved(recurrence)
    if isinstance(recurrence, Channels):
        return convolution if recurrence.conv > 1 else 0
    if isinstance(recurrence, DeltaNet):
        return convolution + 2 * recurrence.value_heads + recurrence.value_dim
    if isinstance(recurrence, Kda):
        return convolution + recurrence.inner + recurrence.heads + recurrence.head_dim
    convolution += _convolved(recurrence)
    if isinstance(recurrence, Mamba2):
        return convolution + 3 * recurrence.heads + recurrence.inner * recurrence.normed
    norms = recurrence.dt_rank + 2 * recurrence.state if recurrence.inner_norms else 0
    return convolution + recurrence.inner * (recurrence.state + 2) + norms


def mlp_matrices(mlp: AnyMlp, hidden: int) -> int:
    """Return the weights of the feed-forward matrices of one layer: all experts, shared ones and router."""
    if isinstance(mlp, Mlp):
        return (3 if mlp.kind == "gated" else 2) * hidden * mlp.ffn
    return (mlp.experts * expert_matrices(mlp, hidden) + (3 if mlp.gated else 2) * hidden * mlp.shared_width
            + hidden * (mlp.experts + (1 if mlp.shared_gate else 0) + 2 * (mlp.latent or 0)))


def expert_matrices(mlp: MoeMlp, hidden: int) -> int:
    """Return the weights of the matrices of one routed expert."""
    return (3 if mlp.gated else 2) * (mlp.latent or hidden) * mlp.ffn


def _mlp_vectors(mlp: AnyMlp, hidden: int) -> int:
    """Return the biases of one layer's feed-forward."""
    if isinstance(mlp, Mlp):
        return hidden + mlp.ffn * (2 if mlp.kind == "gated" else 1) if mlp.bias else 0
    return mlp.experts * (_expert_vectors(mlp, hidden) + mlp.router_bias + mlp.correction_bias)


def _expert_vectors(mlp: MoeMlp, hidden: int) -> int:
    return (mlp.latent or hidden) + mlp.ffn * (2 if mlp.gated else 1) if mlp.bias else 0


def norm_width(model: Model) -> int:
    """Return the parameters of one normalization: scale, and shift for layer norm, or neither."""
    return model.hidden * {"layernorm": 2, "unscaled": 0}.get(model.norm, 1)


def layer_matrices(block: Block, model: Model) -> int:
    """Return the weights of all matrices of one layer of `block`."""
    return ((attention_matrices(block.attention, model.hidden) if block.attention else 0)
            + (attention_matrices(block.cross, model.hidden) if block.cross else 0)
            + (recurrence_matrices(block.recurrence, model.hidden) if block.recurrence else 0)
            + (mlp_matrices(block.mlp, model.hidden) if block.mlp else 0)
            + sum(inputs * outputs for inputs, outputs in block.products))


def vector_parameters(block: Block, model: Model) -> int:
    """Return what tensor parallelism does not split evenly in one layer: norms, biases, what a recurrence keeps."""
    return (block.norm_count * norm_width(model) + block.vectors
            + (_attention_vectors(block.attention, model.hidden) if block.attention else 0)
            + (_attention_vectors(block.cross, model.hidden) if block.cross else 0)
            + (_recurrence_vectors(block.recurrence) if block.recurrence else 0)
            + (_mlp_vectors(block.mlp, model.hidden) if block.mlp else 0))


def layer_parameters(block: Block, model: Model) -> int:
    """Return all parameters of one layer of `block`."""
    return layer_matrices(block, model) + vector_parameters(block, model)


def idle_parameters(block: Block, model: Model) -> int:
    """Return the parameters of one layer that a token does not use: experts not chosen, and the choice correction."""
    mlp = block.mlp
    if not isinstance(mlp, MoeMlp):
        return 0
    expert = expert_matrices(mlp, model.hidden) + _expert_vectors(mlp, model.hidden)
    return (mlp.experts - mlp.experts_per_token) * expert + mlp.experts * mlp.correction_bias


def embedding_parameters(model: Model) -> int:
    """Return the token and position tables, the norm behind them, and what else lies ahead of the layers."""
    norm = norm_width(model) if model.embedding_norm else 0
    return (model.vocab + model.position_rows) * model.hidden + norm + model.input_parameters


def head_parameters(model: Model) -> int:
    """Return the final norm, and the output matrix where it is not the token table."""
    return norm_width(model) + model.output_parameters + (0 if model.tied else model.vocab * model.hidden)


def prediction_parameters(model: Model) -> int:
    """Return the multi-token-prediction modules: a joining matrix, a layer and three norms each (DeepSeek-V3)."""
    if not model.prediction_layers:
        return 0
    layer = layer_parameters(model.layer_kinds()[-1], model)
    return model.prediction_layers * (2 * model.hidden**2 + 3 * norm_width(model) + layer)


def parameters(model: Model) -> int:
    """Return the exact number of parameters."""
    layers = sum(block.count * layer_parameters(block, model) for block in model.blocks)
    return embedding_parameters(model) + layers + head_parameters(model) + prediction_parameters(model)


def active_parameters(model: Model) -> int:
    """Return the parameters one token uses: all but the experts not chosen; embedding and head count whole."""
    idle = sum(block.count * idle_parameters(block, model) for block in model.blocks)
    return parameters(model) - prediction_parameters(model) - idle

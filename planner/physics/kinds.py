"""From a model's blocks to the kinds of layers that the physics reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, replace

from planner.catalog.architecture import (
    AnyRecurrence,
    Block,
    Fused,
    Model,
    MoeMlp,
)
from planner.catalog.attention import AnyAttention, Attention, CompressedAttention, Indexer, LatentAttention
from planner.catalog.recurrence import Channels, DeltaNet, Kda, Mamba, Mamba2
from planner.errors import Unsupported
from planner.physics.layers import Experts, LayerKind, Linear, Module, Scan, Shape, Split, feeding
from planner.physics.shapes import (
    embedding_parameters,
    expert_matrices,
    gate_columns,
    head_parameters,
    layer_matrices,
    parameters,
    vector_parameters,
)


def _one(k: int, name: str, columns: int, split: Split) -> Linear:
    return Linear(k, ((name, columns),), split)


def _together(fused: bool, *modules: Module) -> tuple[Module, ...]:
    """Return matrices that read the same input, without those of no columns; as one where they are fused."""
    there = tuple(module for module in modules if module[1])
    return (("+".join(name for name, _ in there), sum(n for _, n in there)),) if fused and there else there


def _gqa(attention: Attention, hidden: int, fused: bool) -> tuple[tuple[Linear, ...], int]:
    queries, out = attention.heads * attention.head_dim, attention.heads * attention.value_dim
    keys = attention.kv_heads * attention.head_dim * (not attention.borrowed)
    values = attention.kv_heads * attention.projected - keys
    read = attention.kv_heads * (attention.head_dim + attention.value_dim)
    shared = attention.projected if attention.kv_heads == 1 and attention.heads > 1 else 0
    if attention.query_rank is not None:
        rank, modules = attention.query_rank, _together(fused, ("k", keys), ("v", values))
        return (Linear(hidden, modules, "column", shared), _one(hidden, "q_a", rank, "none"),
                _one(rank, "q_b", queries, "column"), _one(out, "o", hidden, "row")), read
    modules = _together(fused, ("q", queries + (out if attention.gate else 0)), ("k", keys), ("v", values))
    return (Linear(hidden, modules, "column", shared), _one(out, "o", hidden, "row")), read


def _mla(attention: LatentAttention, hidden: int) -> tuple[tuple[Linear, ...], int]:
    queries = attention.heads * attention.query_dim
    rank, down = attention.kv_lora_rank, attention.kv_lora_rank + attention.qk_rope
    linears = [_one(hidden, "kv_a", down, "none"),
               _one(rank, "kv_b", attention.heads * (attention.qk_nope + attention.v_head), "column"),
               _one(attention.heads * attention.v_head, "o", hidden, "row")]
    if attention.q_lora_rank is None:
        linears.append(_one(hidden, "q", queries, "column"))
    else:
        linears += [_one(hidden, "q_a", attention.q_lora_rank, "none"),
                    _one(attention.q_lora_rank, "q_b", queries, "column")]
    return tuple(linears), queries + attention.heads * attention.v_head


def _attention(attention: AnyAttention, hidden: int, fused: bool) -> tuple[tuple[Linear, ...], int]:
    """Return the products of attention, and the width of a token's expanded keys and values. Raises Unsupported."""
    if isinstance(attention, CompressedAttention):
        raise Unsupported("compressed sparse attention (DeepSeek-V4) is counted but its cost is not modeled")
    return _gqa(attention, hidden, fused) if isinstance(attention, Attention) else _mla(attention, hidden)


def _scan(recurrence: AnyRecurrence, hidden: int, fused: bool) -> tuple[tuple[Linear, ...], Scan]:
    """Return the products of a recurrent layer, and its recurrence."""
    linears: tuple[Linear, ...]
    match recurrence:
        case Mamba():
            steps = recurrence.dt_rank + 2 * recurrence.state
            scan = Scan(recurrence.inner, recurrence.state, recurrence.inner, 2 * recurrence.inner + steps)
            linears = (_one(hidden, "in_proj", 2 * recurrence.inner, "column"),
                       _one(recurrence.inner, "x_proj", steps, "row"),
                       _one(recurrence.dt_rank, "dt_proj", recurrence.inner, "column"))
        case Mamba2():
            channels = recurrence.inner + 2 * recurrence.groups * recurrence.state
            projected = channels + recurrence.inner + recurrence.heads
            scan = Scan(recurrence.inner, recurrence.state, channels, projected)
            linears = (_one(hidden, "in_proj", projected, "column"),)
        case DeltaNet():
            values = recurrence.value_heads * recurrence.value_dim
            channels = 2 * recurrence.key_heads * recurrence.key_dim + values
            projected = channels + values + 2 * recurrence.value_heads
            scan = Scan(values, recurrence.key_dim, channels, projected)
            steps = recurrence.value_heads
            linears = (Linear(hidden, _together(fused, ("in_proj", channels), ("in_proj", values))
                              + _together(fused, ("in_proj", steps), ("in_proj", steps)), "column"),)
        case Channels():
            inner, wide = recurrence.inner, recurrence.inputs * recurrence.inner
            scan = Scan(inner, recurrence.state, inner if recurrence.conv > 1 else 0, wide)
            linears = (_one(hidden, "in_proj", wide, "column"),)
            if recurrence.gate_heads:
                linears += (_one(gate_columns(recurrence), "other", inner, "column"),)
        case Kda():
            # a forget gate and an output gate a channel, each of a rank that every GPU computes whole
            inner, rank = recurrence.inner, recurrence.head_dim
            scan = Scan(inner, rank, 3 * inner, 3 * inner + 2 * inner + recurrence.heads)
            linears = (Linear(hidden, (("q", inner), ("k", inner), ("v", inner), ("in_proj", recurrence.heads)),
                              "column"),
                       Linear(hidden, 2 * (("in_proj", rank),), "none"),
                       Linear(rank, 2 * (("in_proj", inner),), "column"))
    return (*linears, _one(scan.inner, "out_proj", hidden, "row")), scan


@dataclass(frozen=True, slots=True)
class _Mixer:
    """What mixes tokens in one layer: its products and widths, zeros where there is no attention."""

    linears: tuple[Linear, ...] = ()
    heads: int = 0
    query_dim: int = 0
    value_dim: int = 0
    key_value: int = 0
    latent: int = 0
    window: int | None = None
    bidirectional: bool = False
    scan: Scan | None = None
    indexer: Indexer | None = None
    normed: int = 0


def _mixer(block: Block, model: Model, fused: Collection[Fused]) -> _Mixer:
    attention = block.attention
    if attention is None:
        linears, scan = (_scan(block.recurrence, model.hidden, "qkvz" in fused) if block.recurrence
                         else ((), None))
        return _Mixer(linears, scan=scan)
    linears, key_value = _attention(attention, model.hidden, "qkv" in fused)
    if isinstance(attention, LatentAttention):
        index = attention.indexer
        if index is not None and not index.shared:
            linears += (_one(attention.q_lora_rank or model.hidden, "other", index.heads * index.head_dim, "none"),
                        Linear(model.hidden, (("other", index.head_dim), ("other", index.heads)), "none"))
        latent = attention.kv_lora_rank + attention.qk_rope + (attention.q_lora_rank or 0)
        return _Mixer(linears, attention.heads, attention.query_dim, attention.v_head, key_value, latent,
                      indexer=attention.indexer)
    assert isinstance(attention, Attention)
    if attention.indexer is not None:
        index = attention.indexer
        linears += (Linear(model.hidden, (("other", index.heads * index.head_dim), ("other", index.head_dim)), "none"),)
    return _Mixer(linears, attention.heads, attention.head_dim, attention.value_dim, key_value,
                  window=attention.window or attention.chunk, bidirectional=attention.bidirectional,
                  indexer=attention.indexer,
                  normed=(attention.heads + attention.kv_heads) * attention.head_dim if attention.qk_norm else 0)


def counted_layers(model: Model) -> tuple[tuple[Block, int], ...]:
    """Return every kind of layer with how many there are, in the order of the first of each."""
    return _counted(model.layer_kinds())


def _counted(order: tuple[Block, ...]) -> tuple[tuple[Block, int], ...]:
    # by identity: comparing blocks field by field is slow
    kinds, many = {id(block): block for block in order}, Counter(map(id, order))
    return tuple((block, many[key]) for key, block in kinds.items())


def kind_of(block: Block, model: Model, fused: Collection[Fused] = ()) -> LayerKind:
    """Return one block as a layer kind, with products fused as published, and besides as a framework does.

    Raises Unsupported by name for what the physics does not cover.
    """
    fused = {*model.fused, *fused}
    mixer, mlp, h = _mixer(block, model, fused), block.mlp, model.hidden
    ffn, gated, experts, expert = 0, False, None, 0
    further = [_one(inputs, "other", outputs, "none") for inputs, outputs in block.products]
    if isinstance(mlp, MoeMlp):
        ffn, gated = mlp.shared_width, mlp.gated
        experts = Experts(mlp.experts, mlp.experts_per_token, mlp.latent or h, mlp.ffn, mlp.gated,
                          mlp.bias, "experts" in fused)
        further += [_one(h, "other", mlp.experts, "none")]
        if mlp.latent:
            further += [_one(h, "other", mlp.latent, "none"), _one(mlp.latent, "other", h, "none")]
        expert = mlp.experts * expert_matrices(mlp, h)
    elif mlp is not None:
        ffn, gated = mlp.ffn, mlp.kind == "gated"
    dense = [Linear(h, feeding(ffn, gated, "gate-up" in fused), "column"), _one(ffn, "down", h, "row")] if ffn else []
    whole = sum(linear.whole for linear in (*mixer.linears, *further))
    parts = sum(part is not None for part in (block.attention or block.recurrence, mlp))
    return LayerKind(
        attention=mixer.linears, mlp=(*dense, *further), experts=experts, heads=mixer.heads, query_dim=mixer.query_dim,
        value_dim=mixer.value_dim, key_value_width=mixer.key_value, latent_width=mixer.latent, window=mixer.window,
        bidirectional=mixer.bidirectional, norms=block.norm_count, exchanges=1 if block.parallel else parts, ffn=ffn,
        fan=2 if gated else 1, split_matrices=layer_matrices(block, model) - whole - expert, whole_matrices=whole,
        expert_matrices=expert, vectors=vector_parameters(block, model), scan=mixer.scan, indexer=mixer.indexer,
        normed=mixer.normed)


def kinds_of(block: Block, model: Model, fused: Collection[Fused] = ()) -> tuple[LayerKind, ...]:
    """Return one block as layer kinds: one, or what it is without its cross attention and that, which add up to it."""
    cross = block.cross
    if cross is None:
        return (kind_of(block, model, fused),)
    waits = not (block.attention or block.recurrence)
    rest = kind_of(block.model_copy(update={"cross": None, "norms": block.norm_count - 1}), model, fused)
    alone = kind_of(Block(count=1, attention=cross), model, fused)
    queries, keys, values, out = (cross.heads * cross.head_dim, cross.kv_heads * cross.head_dim,
                                  cross.kv_heads * cross.value_dim, cross.heads * cross.value_dim)
    linears = (_one(model.hidden, "q", queries, "column"),
               Linear(model.hidden, (("k", keys), ("v", values)), "column", of_memory=True),
               _one(out, "o", model.hidden, "row"))
    parts = sum(part is not None for part in (block.attention or block.recurrence, block.mlp))
    return (replace(rest, waits=waits, portion=parts / 2),
            replace(alone, attention=linears, crosses=True, waits=waits, portion=1 / 2))


def shape_of(model: Model, fused: Collection[Fused] = ()) -> Shape:
    """Return a model as the physics reads it, as `kind_of` does its layers. Raises Unsupported like it."""
    order = model.layer_kinds()
    lead, rest = order[:model.leading_layers], order[model.leading_layers:]
    counts, leading = _counted(rest), _counted(lead)
    return Shape(
        layers=len(rest), hidden=model.hidden, vocab=model.vocab, tied=model.tied, dropout=model.positions == "learned",
        kinds=tuple((kind, count / len(rest)) for block, count in counts for kind in kinds_of(block, model, fused)),
        lead=tuple((kind, count) for block, count in leading for kind in kinds_of(block, model, fused)),
        embedding=embedding_parameters(model), head=head_parameters(model), total=parameters(model))


"""What a sequence takes of the cache: whole blocks, windows, recurrent states; and tokens as engines print them.

Engines that hold layers by kind share the pool out in groups of equally many layers of one kind (vLLM's hybrid
manager, v1/core/kv_cache_utils.py): the smallest kind gives the size of a group, other kinds are padded to whole ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from planner.catalog.architecture import AnyRecurrence, Model
from planner.catalog.attention import AnyAttention, Attention, CompressedAttention, LatentAttention
from planner.catalog.formats import CacheRules, StoredCache
from planner.catalog.recurrence import Channels, DeltaNet, Kda, Mamba
from planner.errors import Unsupported
from planner.layouts.table import Floats, Ints


def undivided() -> Ints:
    """Return a degree of one for every row."""
    return np.array([1])


@dataclass(frozen=True, slots=True)
class Cut:
    """How layers are cut over GPUs, a row each. Attention data parallelism and decode context are among the tp GPUs."""

    tp: Ints
    pp: Ints = field(default_factory=undivided)
    data: Ints = field(default_factory=undivided)
    """Ranks that each hold all of attention for sequences of their own."""
    context: Ints = field(default_factory=undivided)
    """Ranks that share out the tokens of a sequence."""

    def __len__(self) -> int:
        return int(np.broadcast(self.tp, self.pp, self.data, self.context).size)

    @property
    def heads(self) -> Ints:
        """Ranks that share out the heads of attention."""
        shared: Ints = np.maximum(1, self.tp // self.data)
        return shared


@dataclass(frozen=True, slots=True)
class Paging:
    """How an engine holds sequences. `by_kind` engines let go of what slid out of a window; `step` is in tokens."""

    block: int = 1
    by_kind: bool = False
    step: int = 0


UNPAGED = Paging()
"""Token by token."""


@dataclass(frozen=True, slots=True)
class _Kind:
    """Layers that hold a sequence alike: their number, bytes of a token or of a state in one, and how far back."""

    layers: int
    token: Floats
    state: Floats
    window: int | None = None
    chunk: int | None = None
    crosses: bool = False
    shared: bool = False
    """Whether its layers hold tokens too, in whose room it lies where layers are not held by kind."""

    def pages(self, length: int, memory: int, paging: Paging) -> int:
        """Return the most blocks that a sequence of this length has at once, or the `memory` that it reads."""
        if self.crosses:
            return -(-memory // paging.block)
        if self.window is not None:
            return -(-min(self.window - 1 + paging.step, length) // paging.block) + 1
        if self.chunk is not None:
            return -(-min(self.chunk + paging.step, length) // paging.block)
        return -(-length // paging.block)


def attention_bytes(attention: AnyAttention, cache: StoredCache, cut: Cut) -> Floats:
    """Return bytes that a token takes in one layer on a GPU: heads whole, a latent on every rank."""
    if isinstance(attention, CompressedAttention):
        raise Unsupported("a cache of compressed sparse attention")
    index = attention.indexer.held + cache.index_scale if attention.indexer and attention.indexer.held else 0
    if isinstance(attention, LatentAttention):
        held: Floats = ((attention.kv_lora_rank + attention.qk_rope) * cache.element + index) / cut.context
        return held
    width = attention.head_dim + attention.value_dim
    shared: Floats = (np.ceil(attention.kv_heads / cut.heads) * width * cache.element + index) / cut.context
    return shared


def state_bytes(recurrence: AnyRecurrence, rules: CacheRules, cut: Cut) -> Floats:
    """Return bytes of a sequence's state in one recurrent layer on a GPU."""
    if isinstance(recurrence, Mamba | Channels):
        inner, state, convolved = recurrence.inner, recurrence.state, recurrence.inner
    elif isinstance(recurrence, DeltaNet):
        inner, state = recurrence.value_heads * recurrence.value_dim, recurrence.key_dim
        convolved = inner + 2 * recurrence.key_heads * recurrence.key_dim
    elif isinstance(recurrence, Kda):
        inner, state, convolved = recurrence.inner, recurrence.head_dim, 3 * recurrence.inner
    else:
        inner, state = recurrence.inner, recurrence.state
        convolved = inner + 2 * recurrence.groups * recurrence.state
    kept = inner * state * rules.state[recurrence.kind]
    held: Floats = (kept + convolved * (recurrence.conv - 1) * rules.convolved) / cut.heads
    return held


def slot_bytes(model: Model, cache: StoredCache, cut: Cut) -> Floats:
    """Return the bytes of the recurrent states of one sequence on a GPU, which some engines hold beside the pool."""
    kinds = _kinds(model, cache, cut, 0)
    return _total(kind.layers * kind.state for kind in kinds) * _stage(model, cut)


def token_bytes(model: Model, cache: StoredCache, tp: Ints, pp: Ints, data: Ints | None = None,
                context: Ints | None = None, drafts: int = 0) -> Floats:
    """Return bytes that one more token of a sequence takes on a GPU, windows not yet full, for each row.

    cache: how it is stored; data, context: as in Cut; drafts: layers of a speculative head, like the last.
    """
    cut = Cut(tp, pp, undivided() if data is None else data, undivided() if context is None else context)
    kinds = _kinds(model, cache, cut, drafts)
    return _total(kind.layers * kind.token for kind in kinds if not kind.shared) * _stage(model, cut)


def sequence_bytes(model: Model, length: int, cache: StoredCache, cut: Cut, paging: Paging = UNPAGED,
                   drafts: int = 0, memory: int = 0) -> Floats:
    """Return the bytes that a sequence of a length takes on a GPU, blocks and states whole, for each row.

    memory: positions that its cross attention reads. Where layers are not held by kind, a block has room in all.
    """
    if not paging.by_kind:
        tokens = sum(-(-many // paging.block) * paging.block for many in (length, memory))
        return token_bytes(model, cache, cut.tp, cut.pp, cut.data, cut.context, drafts) * tokens
    kinds = _kinds(model, cache, cut, drafts)
    page = _page_tokens(kinds, paging.block)
    total = np.zeros(len(cut))
    for kind, layers in zip(kinds, _padded(kinds, cache), strict=True):
        if kind.token.any():
            blocks, rows = np.unique(page, return_inverse=True)
            pages = np.array([kind.pages(length, memory, Paging(int(block), True, paging.step)) for block in blocks])
            total = total + layers * pages[rows] * page * kind.token
        else:
            total = total + layers * _page_bytes(kind, kinds, page)
    return total * _stage(model, cut)


def printed_tokens(model: Model, pool: Floats, cache: StoredCache, cut: Cut, paging: Paging,
                   drafts: int = 0) -> Floats:
    """Return the tokens that an engine prints for a pool: as if every group held all of them, in whole blocks.

    None of a model whose layers keep a state for each sequence and nothing for its tokens.
    """
    kinds = _kinds(model, cache, cut, drafts)
    page, each = np.full(len(cut), paging.block), _total(kind.layers * kind.token for kind in kinds)
    if paging.by_kind and len(kinds) > 1:
        page = _page_tokens(kinds, paging.block)
        each = _total(layers * _page_bytes(kind, kinds, page) / page
                      for kind, layers in zip(kinds, _padded(kinds, cache), strict=True))
    held = each * _stage(model, cut)
    most = np.divide(np.maximum(pool, 0.0), held, out=np.zeros(len(cut)), where=held > 0)
    tokens: Floats = np.floor(most / page) * page
    return tokens


def _kinds(model: Model, cache: StoredCache, cut: Cut, drafts: int) -> list[_Kind]:
    """Return the kinds of layers that hold something, as the model's blocks have them."""
    nothing = np.zeros(len(cut))
    kinds: dict[tuple[object, ...], _Kind] = {}
    last = next((block for block in reversed(model.layer_kinds()) if block.attention), None)
    for block in model.blocks:
        layers, held = block.count + (drafts if block == last else 0), list[_Kind]()
        if isinstance(block.attention, Attention):
            if not block.attention.borrowed:
                held.append(_Kind(layers, nothing + attention_bytes(block.attention, cache, cut), nothing,
                                  block.attention.window, block.attention.chunk))
        elif block.attention:
            held.append(_Kind(layers, nothing + attention_bytes(block.attention, cache, cut), nothing))
        elif block.recurrence:
            held.append(_Kind(layers, nothing, nothing + state_bytes(block.recurrence, cache, cut)))
        if block.cross:
            held.append(_Kind(block.count, nothing + attention_bytes(block.cross, cache, cut), nothing, crosses=True,
                              shared=block.attention is not None))
        for kind in held:
            key = (kind.window, kind.chunk, kind.crosses, tuple(kind.token), tuple(kind.state))
            known = kinds.get(key)
            kinds[key] = kind if known is None else replace(known, layers=known.layers + kind.layers)
    return list(kinds.values())


def _padded(kinds: list[_Kind], rules: CacheRules) -> list[int]:
    """Return the layers of every kind with those that fill its last group."""
    counts = [kind.layers for kind in kinds]
    group = max(counts) if max(counts) < rules.nearly_equal * min(counts) else min(counts)
    return [-(-count // group) * group for count in counts]


def _page_tokens(kinds: list[_Kind], block: int) -> Ints:
    """Return the tokens of a block, which grows until attention's holds what a recurrent state needs."""
    token = np.max([kind.token for kind in kinds], axis=0)
    state = np.max([kind.state for kind in kinds], axis=0)
    blocks = np.ceil(np.divide(state, token * block, out=np.ones_like(state), where=token > 0))
    pages: Ints = (np.maximum(1, blocks) * block).astype(np.int64)
    return pages


def _page_bytes(kind: _Kind, kinds: list[_Kind], page: Ints) -> Floats:
    """Return the bytes of a block in one layer; a state's is padded to that of attention."""
    token = kind.token if kind.token.any() else np.max([other.token for other in kinds], axis=0)
    held: Floats = np.maximum(token * page, kind.state)
    return held


def _total(parts: Iterator[Floats]) -> Floats:
    total: Floats = np.sum(list(parts), axis=0)
    return total


def _stage(model: Model, cut: Cut) -> Floats:
    """Return the share of the layers on the fullest stage."""
    share: Floats = np.ceil(model.layers / cut.pp) / model.layers
    return share

"""A transformer or hybrid as its config states it: embeddings, and layers in their order.

A layer is a block: attention or a recurrence (or neither), a feed-forward (or none), and the norms around them.
All widths are in elements, all windows in tokens. Field names follow the published Hugging Face configs.
"""

from __future__ import annotations

from math import gcd
from typing import Annotated, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag, model_validator

from planner.catalog.ranges import Parameters, Width
from planner.catalog.recurrence import DeltaNet, Mamba, Mamba2
from planner.catalog.sourced import Sourced
from planner.catalog.tower import Tower
from planner.yaml_io import Frozen


class Attention(Frozen):
    """Multi-head or grouped-query attention. `window` is the sliding window in tokens, none for full attention."""

    kind: Literal["gqa"] = "gqa"
    heads: int = Field(gt=0, le=100_000)
    kv_heads: int = Field(gt=0, le=100_000)
    head_dim: Width
    v_head_dim: Width | None = None
    """Width of a value head where it is not that of a query and key head."""
    bias: Literal["none", "qkv", "qkvo"] = "none"
    qk_norm: bool | Literal["full"] = False
    """A norm on queries and keys: true for one as wide as a head, full for one over all heads together."""
    gate: bool = False
    """A gate on the output, as wide as the queries and from the same input."""
    sinks: bool = False
    """One learned logit a head that takes probability and gives nothing."""
    window: Width | None = None
    chunk: Width | None = None
    """Attention stays inside fixed chunks of this many tokens."""

    @model_validator(mode="after")
    def _groups(self) -> Attention:
        if self.heads % self.kv_heads:
            raise ValueError(f"heads {self.heads} is not a multiple of kv_heads {self.kv_heads}")
        if self.window and self.chunk:
            raise ValueError("window and chunk exclude each other")
        return self

    @property
    def value_dim(self) -> int:
        """Width of a value head."""
        return self.v_head_dim or self.head_dim


class Indexer(Frozen):
    """The small attention that picks the `top` tokens sparse attention reads (DeepSeek-V3.2, GLM-5)."""

    heads: int = Field(gt=0, le=100_000)
    head_dim: Width
    top: Width


class LatentAttention(Frozen):
    """Multi-head latent attention (MLA): keys and values from one narrow vector a token, norms on the ranks."""

    kind: Literal["mla"]
    heads: int = Field(gt=0, le=100_000)
    q_lora_rank: Width | None = None
    """Rank of the query projection; none for one full matrix."""
    kv_lora_rank: Width
    qk_nope: Width
    qk_rope: Width
    v_head: Width
    indexer: Indexer | None = None

    @model_validator(mode="after")
    def _indexer_reads_the_query_rank(self) -> LatentAttention:
        if self.indexer and self.q_lora_rank is None:
            raise ValueError("an indexer needs q_lora_rank, from which its queries come")
        return self

    @property
    def kv_heads(self) -> int:
        """Key-value heads after expansion: one for each query head."""
        return self.heads

    @property
    def query_dim(self) -> int:
        """Width of a query head."""
        return self.qk_nope + self.qk_rope


class Mlp(Frozen):
    """The feed-forward of a block: plain (two matrices) or gated (three)."""

    kind: Literal["plain", "gated"]
    ffn: int = Field(gt=0, le=10**8)
    bias: bool = False


class MoeMlp(Frozen):
    """A mixture of experts: each token goes to `experts_per_token` of `experts`, and to every shared one."""

    kind: Literal["moe"]
    experts: int = Field(gt=0, le=10**6)
    experts_per_token: Annotated[int, Field(gt=0, le=10**6)]
    ffn: int = Field(gt=0, le=10**8)
    """Width of one routed expert."""
    gated: bool = True
    bias: bool = False
    """Biases in the routed experts."""
    router_bias: bool = False
    correction_bias: bool = False
    """One number an expert that only steers the choice (DeepSeek-V3); stored, not part of the active parameters."""
    shared_experts: Annotated[int, Field(ge=0, le=10_000)] = 0
    shared_ffn: Annotated[int, Field(gt=0, le=10**8)] | None = None
    """Width of one shared expert where it is not that of a routed one."""
    shared_gate: bool = False
    latent: Width | None = None
    """Routed experts work in a space of this width, with a projection before and behind them."""

    @model_validator(mode="after")
    def _choice(self) -> MoeMlp:
        if self.experts_per_token > self.experts:
            raise ValueError(f"experts_per_token {self.experts_per_token} is more than experts {self.experts}")
        if not self.shared_experts and (self.shared_ffn or self.shared_gate):
            raise ValueError("shared_ffn and shared_gate need shared_experts")
        return self

    @property
    def shared_width(self) -> int:
        """Width of the shared experts together."""
        return self.shared_experts * (self.shared_ffn or self.ffn)


def _by_kind(kinds: str, default: str = "") -> Discriminator:
    """Return how pydantic tells one class from another: by `kind`, which may have a default."""
    def kind(value: object) -> str:
        return str(value.get("kind", default) if isinstance(value, dict) else getattr(value, "kind", default))
    return Discriminator(kind, custom_error_type="unknown_kind", custom_error_message=f"expected kind: {kinds}")


AnyAttention: TypeAlias = Annotated[Annotated[Attention, Tag("gqa")] | Annotated[LatentAttention, Tag("mla")],
                                    _by_kind("gqa or mla", default="gqa")]
AnyRecurrence: TypeAlias = Annotated[
    Annotated[Mamba, Tag("mamba")] | Annotated[Mamba2, Tag("mamba2")] | Annotated[DeltaNet, Tag("deltanet")],
    _by_kind("mamba, mamba2 or deltanet")]
AnyMlp: TypeAlias = Annotated[
    Annotated[Mlp, Tag("plain")] | Annotated[Mlp, Tag("gated")] | Annotated[MoeMlp, Tag("moe")],
    _by_kind("plain, gated or moe")]


class Block(Frozen):
    """`count` equal layers: in a row, or where the model's `order` has the block's `symbol`."""

    count: int = Field(gt=0, le=10_000)
    symbol: str | None = Field(default=None, pattern=r"^\S$")
    attention: AnyAttention | None = None
    recurrence: AnyRecurrence | None = None
    mlp: AnyMlp | None = None
    parallel: bool = False
    """Attention and feed-forward read the same input (Falcon, GPT-NeoX, Command-R)."""
    norms: Annotated[int, Field(ge=0, le=100)] | None = None
    """Norms as wide as the model in one layer; by default one for attention or recurrence, one for the mlp."""

    @model_validator(mode="after")
    def _does_something(self) -> Block:
        if self.attention and self.recurrence:
            raise ValueError("a layer has attention or a recurrence, not both: write two blocks")
        if not (self.attention or self.recurrence or self.mlp):
            raise ValueError("a layer needs attention, a recurrence or an mlp")
        if self.parallel and not ((self.attention or self.recurrence) and self.mlp):
            raise ValueError("parallel needs attention or a recurrence, and an mlp")
        return self

    @property
    def norm_count(self) -> int:
        """Norms as wide as the model in one layer."""
        if self.norms is not None:
            return self.norms
        return sum(part is not None for part in (self.attention, self.recurrence, self.mlp))

    @property
    def heads(self) -> tuple[int, int]:
        """Query and key-value heads: what tensor parallelism hands out whole; zeros where a layer has none."""
        mixer = self.attention or self.recurrence
        match mixer:
            case Attention() | LatentAttention():
                return mixer.heads, mixer.kv_heads
            case Mamba2():
                return mixer.heads, mixer.groups
            case DeltaNet():
                return mixer.value_heads, mixer.key_heads
            case _:
                return 0, 0


class Model(Sourced):
    """One model shape, its gaps as in `like`; `parameters` is exact, `nominal` what its makers call it."""

    hf_id: str | None = None
    like: str | None = None
    hidden: int = Field(gt=0, le=10**7)
    vocab: int = Field(gt=0, le=10**9)
    tied: bool
    norm: Literal["rmsnorm", "layernorm", "layernorm-nobias"]
    positions: Literal["rope", "learned", "alibi", "none"] = "rope"
    position_rows: Annotated[int, Field(ge=0, le=10**9)] = 0
    embedding_norm: bool = False
    blocks: tuple[Block, ...] = Field(min_length=1)
    order: str = ""
    """The layers as one symbol each, spaces aside; empty where the blocks simply follow one another."""
    prediction_layers: Annotated[int, Field(ge=0, le=100)] = 0
    """Multi-token-prediction modules that `parameters` includes, each with a layer like the last one."""
    tower: Tower | None = None
    parameters: Parameters | None = None
    stored: Literal["bf16", "fp8", "mxfp4", "w4a16"] = "bf16"
    """Format of the weights as they are published."""
    sequence_length: int = Field(gt=0, le=10**8)
    """Default training length in tokens."""
    global_batch: int = Field(gt=0, le=10**6)
    """Default global batch in sequences of that length."""

    @model_validator(mode="after")
    def _order_names_every_layer(self) -> Model:
        symbols = "".join(self.order.split())
        if not symbols:
            return self
        named = {block.symbol: block for block in self.blocks if block.symbol}
        if len(named) < len(self.blocks):
            raise ValueError("order: every block needs a symbol of its own")
        for symbol in sorted(set(symbols) - set(named)):
            raise ValueError(f"order: no block has the symbol {symbol!r}")
        for symbol, block in named.items():
            if (found := symbols.count(symbol)) != block.count:
                raise ValueError(f"order: {symbol!r} occurs {found} times, its block counts {block.count}")
        return self

    @property
    def layers(self) -> int:
        """Layers, all blocks together; prediction modules not among them."""
        return sum(block.count for block in self.blocks)

    def layer_kinds(self) -> tuple[Block, ...]:
        """Return the block of every layer, first to last."""
        named = {block.symbol: block for block in self.blocks}
        symbols = "".join(self.order.split())
        return (tuple(named[symbol] for symbol in symbols) if symbols
                else tuple(block for block in self.blocks for _ in range(block.count)))

    @property
    def mixes_experts(self) -> bool:
        """Whether any layer is a mixture of experts."""
        return any(isinstance(block.mlp, MoeMlp) for block in self.blocks)

    @property
    def leading_layers(self) -> int:
        """Dense layers before a run of mixtures of experts to the end; none where kinds alternate."""
        mixtures = [isinstance(block.mlp, MoeMlp) for block in self.layer_kinds()]
        first = mixtures.index(True) if True in mixtures else 0
        return first if all(mixtures[first:]) else 0

    @property
    def attention_heads(self) -> int:
        """Largest number that divides the heads of every layer: what tensor parallelism can split them by."""
        return gcd(*(block.heads[0] for block in self.blocks)) or 1

    @property
    def kv_heads(self) -> int:
        """Largest number that divides the key-value heads (or state groups) of every layer."""
        return gcd(*(block.heads[1] for block in self.blocks)) or 1

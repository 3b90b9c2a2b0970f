"""A transformer or hybrid as its config states it: embeddings, and layers in their order.

A layer is a block: attention or a recurrence (or neither), a feed-forward (or none), and the norms around them.
All widths are in elements, all windows in tokens. Field names follow the published Hugging Face configs.
"""

from __future__ import annotations

from math import gcd
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, Tag, model_validator

from planner.catalog.attention import AnyAttention, Attention, CompressedAttention, LatentAttention, by_kind
from planner.catalog.details import Details
from planner.catalog.encoder import Sense, Tower
from planner.catalog.ranges import Parameters, Width
from planner.catalog.recurrence import Channels, DeltaNet, Kda, Mamba, Mamba2
from planner.catalog.sourced import Sourced
from planner.yaml_io import Frozen

AnyRecurrence: TypeAlias = Annotated[
    Annotated[Mamba, Tag("mamba")] | Annotated[Mamba2, Tag("mamba2")] | Annotated[DeltaNet, Tag("deltanet")]
    | Annotated[Kda, Tag("kda")] | Annotated[Channels, Tag("channels")], by_kind(
        "mamba, mamba2, deltanet, kda or channels")]


Fused = Literal["qkv", "gate-up", "experts", "qkvz"]
"""Products held as one matrix, which then has one adapter: of queries, keys and values; into the feed-forward; the same
of each routed expert; into a gated delta rule (all of them, and both of its steps)."""


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

AnyMlp: TypeAlias = Annotated[
    Annotated[Mlp, Tag("plain")] | Annotated[Mlp, Tag("gated")] | Annotated[MoeMlp, Tag("moe")],
    by_kind("plain, gated or moe")]


class Block(Frozen):
    """`count` equal layers: in a row, or where the model's `order` has the block's `symbol`."""

    count: int = Field(gt=0, le=10_000)
    symbol: str | None = Field(default=None, pattern=r"^\S$")
    attention: AnyAttention | None = None
    recurrence: AnyRecurrence | None = None
    cross: Attention | None = None
    """Attention whose keys and values are of what an encoder has read, between that of the tokens and the mlp; a layer
    with no other mixer is left out where there is nothing to read (Llama 3.2 Vision)."""
    mlp: AnyMlp | None = None
    parallel: bool = False
    """Attention and feed-forward read the same input (Falcon, GPT-NeoX, Command-R)."""
    products: tuple[tuple[Width, Width], ...] = ()
    """Inputs and outputs of further products of every token, whole on every rank: gates, joined residual streams."""
    vectors: Annotated[int, Field(ge=0, le=10**9)] = 0
    """Further parameters outside any matrix: scales, inner norms."""
    norms: Annotated[int, Field(ge=0, le=100)] | None = None
    """Norms as wide as the model in one layer; by default one for attention or recurrence, one for the mlp."""

    @model_validator(mode="after")
    def _does_something(self) -> Block:
        if self.attention and self.recurrence:
            raise ValueError("a layer has attention or a recurrence, not both: write two blocks")
        if not (self.attention or self.recurrence or self.cross or self.mlp or self.products):
            raise ValueError("a layer needs attention, a recurrence, an mlp or products")
        crossed = self.cross
        if crossed and (self.parallel or crossed.window or crossed.chunk or crossed.borrowed or crossed.gate or crossed
                        .indexer or crossed.query_rank or crossed.bidirectional or not crossed.value_projection):
            raise ValueError("cross attention has queries, keys and values, reads all of what an encoder has read, and "
                             "stands in no parallel layer")
        if self.parallel and not ((self.attention or self.recurrence) and self.mlp):
            raise ValueError("parallel needs attention or a recurrence, and an mlp")
        return self

    @property
    def norm_count(self) -> int:
        """Norms as wide as the model in one layer."""
        if self.norms is not None:
            return self.norms
        return sum(part is not None for part in (self.attention, self.recurrence, self.cross, self.mlp))

    @property
    def heads(self) -> tuple[int, int]:
        """Query and key-value heads: what tensor parallelism hands out whole; zeros where a layer has none."""
        mixer = self.attention or self.recurrence or self.cross
        match mixer:
            case Attention() if mixer.kv_heads == 1:
                # every rank holds the one key-value head, so that queries can be split by any number
                return mixer.heads, mixer.heads
            case Attention() | LatentAttention() | CompressedAttention():
                return mixer.heads, mixer.kv_heads
            case Mamba2():
                return mixer.heads, mixer.groups
            case DeltaNet():
                return mixer.value_heads, mixer.key_heads
            case Kda():
                return mixer.heads, mixer.heads
            case _:
                return 0, 0


class Model(Sourced):
    """One model shape, its gaps as in `like`; `parameters` is exact, `nominal` what its makers call it."""

    hf_id: str | None = None
    like: str | None = None
    hidden: int = Field(gt=0, le=10**7)
    vocab: int = Field(gt=0, le=10**9)
    tied: bool
    norm: Literal["rmsnorm", "layernorm", "layernorm-nobias", "unscaled"]
    positions: Literal["rope", "learned", "alibi", "none"] = "rope"
    position_rows: Annotated[int, Field(ge=0, le=10**9)] = 0
    embedding_norm: bool = False
    input_parameters: Annotated[int, Field(ge=0, le=10**13)] = 0
    """Ahead of the layers beside token and position table: tables of each layer, projections of the embedding."""
    output_parameters: Annotated[int, Field(ge=0, le=10**13)] = 0
    """Behind the layers beside norm and output matrix: its bias, what joins residual streams."""
    blocks: tuple[Block, ...] = Field(min_length=1)
    order: str = ""
    """The layers as one symbol each, spaces aside; empty where the blocks simply follow one another."""
    embeds: bool = False
    """Made to return vectors: a request is answered with none of its tokens."""
    prediction_layers: Annotated[int, Field(ge=0, le=100)] = 0
    """Multi-token-prediction modules that `parameters` includes, each with a layer like the last one."""
    tower: Tower | None = None
    """What sees images and clips."""
    ear: Tower | None = None
    """What hears."""
    parameters: Parameters | None = None
    stored: Literal["bf16", "fp8", "int8", "mxfp4", "nvfp4", "w4a16"] = "bf16"
    """Format of the weights as they are published."""
    fused: tuple[Fused, ...] = ()
    """Products that the published weights hold as one matrix."""
    details: Details | None = None
    """What no figure depends on, and a program that builds the model has to be told."""
    sequence_length: int = Field(gt=0, le=10**8)
    """Default training length in tokens."""
    context: Annotated[int, Field(gt=0, le=10**8)] | None = None
    """Tokens of a sequence that it is published to take; none where that is not stated."""
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
            if (occurrences := symbols.count(symbol)) != block.count:
                raise ValueError(f"order: {symbol!r} occurs {occurrences} times, its block counts {block.count}")
        return self

    @model_validator(mode="after")
    def _crosses_to_an_encoder(self) -> Model:
        if self.crosses and not any(tower.encoder for tower in self.towers):
            raise ValueError("cross attention needs a tower or an ear whose encoder is told")
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
    def towers(self) -> tuple[Tower, ...]:
        """What sees and what hears, where there is either."""
        return tuple(tower for tower in (self.tower, self.ear) if tower is not None)

    @property
    def mixes_experts(self) -> bool:
        """Whether any layer is a mixture of experts."""
        return any(isinstance(block.mlp, MoeMlp) for block in self.blocks)

    @property
    def recurs(self) -> bool:
        """Whether any layer keeps a state for each sequence in place of its tokens."""
        return any(block.recurrence is not None for block in self.blocks)

    @property
    def crosses(self) -> bool:
        """Whether any layer attends to what an encoder has read, whose tokens then do not stand among those of text."""
        return any(block.cross is not None for block in self.blocks)

    @property
    def attends_to(self) -> Sense | None:
        """What such layers read: images or sound; none without any."""
        if not self.crosses:
            return None
        return "images" if self.tower is not None else "sound"

    @property
    def encodes(self) -> bool:
        """Whether tokens see those behind them, so that the model can generate nothing."""
        return any(isinstance(block.attention, Attention) and block.attention.bidirectional for block in self.blocks)

    @property
    def is_silent(self) -> bool:
        """Whether vectors or scores are all that it answers with: it trains on these, and not on the next token."""
        return self.encodes or self.embeds

    @property
    def leading_layers(self) -> int:
        """Dense layers before a run of mixtures of experts to the end; none where kinds alternate."""
        runs = (((block, 1) for block in self.layer_kinds()) if self.order else
                ((block, block.count) for block in self.blocks))
        first, mixed = 0, False
        for block, count in runs:
            if isinstance(block.mlp, MoeMlp):
                mixed = True
            elif mixed and count:
                return 0  # kinds alternate
            else:
                first += count
        return first if mixed else 0

    @property
    def attention_heads(self) -> int:
        """Largest number that divides the heads of every layer: what tensor parallelism can split them by."""
        return gcd(*(block.heads[0] for block in self.blocks)) or 1

    @property
    def kv_heads(self) -> int:
        """Largest number that divides the key-value heads (or state groups) of every layer."""
        return gcd(*(block.heads[1] for block in self.blocks)) or 1

"""Parameter counts of every kind of layer, against sums done by hand for a model four elements wide."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from planner import plan
from planner.catalog.architecture import Block, Model
from planner.catalog.attention import Attention
from planner.catalog.load import Catalog
from planner.errors import Unsupported
from planner.physics.kinds import shape_of
from planner.physics.shapes import (
    active_parameters,
    embedding_parameters,
    head_parameters,
    layer_parameters,
    parameters,
    prediction_parameters,
)

TABLES = 10 * 4 + 4
"""The tied token table and the final norm."""
PLAIN = {"heads": 2, "kv_heads": 1, "head_dim": 3}
MLA = {"kind": "mla", "heads": 2, "kv_lora_rank": 2, "qk_nope": 2, "qk_rope": 1, "v_head": 2}
MOE = {"kind": "moe", "experts": 3, "experts_per_token": 1, "ffn": 2}


def small(*blocks: dict[str, object], **fields: object) -> Model:
    data = {"name": "small", "source": "by hand", "as_of": "2026", "kind": "assumed", "hidden": 4, "vocab": 10,
            "tied": True, "norm": "rmsnorm", "sequence_length": 8, "global_batch": 1,
            "blocks": [{"count": 1} | block for block in blocks]}
    return Model.model_validate(data | fields)


def layer(**block: object) -> int:
    model = small(block)
    return layer_parameters(model.blocks[0], model) - 4 * model.blocks[0].norm_count


@pytest.mark.parametrize(("extra", "count"), [
    ({}, 24 + 12 + 12 + 24),
    ({"v_head_dim": 2}, 24 + 12 + 8 + 16),
    ({"bias": "qkv"}, 72 + 6 + 3 + 3),
    ({"bias": "qkvo"}, 72 + 6 + 3 + 3 + 4),
    ({"qk_norm": True}, 72 + 3 + 3),
    ({"qk_norm": "full"}, 72 + 6 + 3),
    ({"gate": True}, 72 + 24),
    ({"sinks": True}, 72 + 2),
    ({"window": 4}, 72),
    ({"chunk": 4}, 72),
])
def test_grouped_query_attention(extra: dict[str, object], count: int) -> None:
    assert layer(attention=PLAIN | extra) == count


@pytest.mark.parametrize(("extra", "count"), [
    ({}, 4 * 6 + 4 * 3 + 2 * 2 * 4 + 4 * 4 + 2),
    ({"q_lora_rank": 3}, 3 * 4 + 3 * 6 + 12 + 16 + 16 + 3 + 2),
    ({"q_lora_rank": 3, "indexer": {"heads": 2, "head_dim": 2, "top": 8}}, 79 + 3 * 4 + 4 * 2 + 4 * 2 + 2 * 2),
])
def test_latent_attention(extra: dict[str, object], count: int) -> None:
    assert layer(attention=MLA | extra) == count


@pytest.mark.parametrize(("recurrence", "count"), [
    ({"kind": "mamba2", "heads": 2, "head_dim": 3, "state": 2, "groups": 1, "conv": 4},
     4 * (6 + 10 + 2) + 6 * 4 + 10 * 4 + 10 + 3 * 2 + 6),
    ({"kind": "mamba", "inner": 8, "state": 2, "conv": 4, "dt_rank": 1},
     4 * 16 + 8 * 4 + 8 + 8 * 5 + 8 + 8 + 8 * 2 + 8 + 8 * 4),
    ({"kind": "mamba", "inner": 8, "state": 2, "conv": 4, "dt_rank": 1, "inner_norms": True}, 216 + 1 + 2 + 2),
    ({"kind": "deltanet", "key_heads": 1, "value_heads": 2, "key_dim": 2, "value_dim": 3, "conv": 4},
     4 * 10 + 4 * 6 + 2 * 4 * 2 + 6 * 4 + 10 * 4 + 2 + 2 + 3),
])
def test_recurrent_layers(recurrence: dict[str, object], count: int) -> None:
    assert layer(recurrence=recurrence) == count


@pytest.mark.parametrize(("extra", "count", "idle"), [
    ({}, 3 * 24 + 12, 2 * 24),
    ({"gated": False}, 3 * 16 + 12, 2 * 16),
    ({"bias": True, "router_bias": True}, 84 + 3 * (4 + 4) + 3, 2 * 24 + 2 * 8),
    ({"correction_bias": True}, 84 + 3, 2 * 24 + 3),
    ({"shared_experts": 2}, 84 + 2 * 24, 2 * 24),
    ({"shared_experts": 1, "shared_ffn": 5, "shared_gate": True}, 84 + 60 + 4, 2 * 24),
    ({"latent": 2}, 3 * 12 + 12 + 2 * 4 * 2, 2 * 12),
])
def test_mixtures_of_experts(extra: dict[str, object], count: int, idle: int) -> None:
    model = small({"mlp": MOE | extra})
    assert parameters(model) == TABLES + 4 + count
    assert parameters(model) - active_parameters(model) == idle


@pytest.mark.parametrize(("block", "norm", "norms"), [
    ({"attention": PLAIN}, "rmsnorm", 4),
    ({"attention": PLAIN}, "layernorm", 8),
    ({"attention": PLAIN}, "layernorm-nobias", 4),
    ({"attention": PLAIN, "norms": 4}, "rmsnorm", 16),
])
def test_norms(block: dict[str, object], norm: str, norms: int) -> None:
    model = small(block, norm=norm)
    assert layer_parameters(model.blocks[0], model) == 72 + norms


def test_a_parallel_layer_may_share_one_norm() -> None:
    mlp = {"kind": "plain", "ffn": 5}
    both = small({"attention": PLAIN, "mlp": mlp, "parallel": True})
    assert parameters(both) - parameters(small({"attention": PLAIN, "mlp": mlp, "parallel": True, "norms": 1})) == 4


def test_prediction_modules_count_but_are_not_used_by_a_token() -> None:
    plain, predicting = small({"attention": PLAIN}), small({"attention": PLAIN}, prediction_layers=1)
    assert parameters(predicting) - parameters(plain) == 2 * 4 * 4 + 3 * 4 + (72 + 4)
    assert active_parameters(predicting) == parameters(plain)


def test_layers_keep_their_order() -> None:
    local, full = {"symbol": "L", "attention": PLAIN | {"window": 4}}, {"symbol": "G", "attention": PLAIN}
    model = small(local | {"count": 3}, full | {"count": 2}, order="LLG LG")
    assert [kind.symbol for kind in model.layer_kinds()] == ["L", "L", "G", "L", "G"]
    in_a_row = small(local | {"count": 3}, full | {"count": 2})
    assert [kind.symbol for kind in in_a_row.layer_kinds()] == ["L", "L", "L", "G", "G"]
    assert model.layers == in_a_row.layers == 5


@pytest.mark.parametrize(("block", "fields", "problem"), [
    ({"symbol": "L", "attention": PLAIN}, {"order": "LL"}, "occurs 2 times"),
    ({"symbol": "L", "attention": PLAIN}, {"order": "X"}, "no block has the symbol"),
    ({"attention": PLAIN}, {"order": "L"}, "symbol of its own"),
    ({}, {}, "needs attention, a recurrence, an mlp or products"),
    ({"attention": PLAIN, "parallel": True}, {}, "parallel needs"),
    ({"attention": PLAIN | {"window": 2, "chunk": 2}}, {}, "exclude each other"),
    ({"mlp": MOE | {"experts_per_token": 4}}, {}, "more than experts"),
    ({"mlp": MOE | {"shared_gate": True}}, {}, "need shared_experts"),
])
def test_shapes_that_cannot_be_are_refused(block: dict[str, object], fields: dict[str, object], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        small(block, **fields)


def test_what_the_training_physics_lacks_is_refused_by_name() -> None:
    with pytest.raises(Unsupported, match="sparse attention with an indexer"):
        plan(model="deepseek-v3.2", tokens="1 G", on="dgx-h100")


@pytest.mark.parametrize("name", ["mamba2-2.7b", "nemotron-h-56b", "nemotron-3-nano-30b-a3b", "jamba-v0.1",
                                  "qwen3.5-27b", "qwen3.5-397b-a17b", "llama-3.1-8b", "deepseek-v3", "gpt-oss-20b"])
def test_layer_kinds_hold_every_parameter_of_the_model(name: str) -> None:
    model = Catalog().model(name)
    shape = shape_of(model)
    layers = sum(n * (kind.split_matrices + kind.whole_matrices + kind.expert_matrices + kind.vectors)
                 for kind, n in [*((k, share * shape.layers) for k, share in shape.kinds), *shape.lead])
    assert layers + embedding_parameters(model) + head_parameters(model) + prediction_parameters(
        model) == pytest.approx(parameters(model), rel=1e-12)


def test_a_recurrence_costs_the_same_at_any_length() -> None:
    """Attention grows with the sequence, a scan in chunks does not (Dao and Gu 2024, arXiv 2405.21060)."""
    mamba, llama = shape_of(Catalog().model("mamba2-2.7b")), shape_of(Catalog().model("llama-3.2-3b"))
    assert mamba.model_flops_per_token(65536, 128) == mamba.model_flops_per_token(2048, 128)
    assert llama.model_flops_per_token(65536, 128) > 1.5 * llama.model_flops_per_token(2048, 128)
    active = parameters(Catalog().model("mamba2-2.7b"))
    assert 6 * active < mamba.model_flops_per_token(2048, 128) < 6.6 * active


def test_heads_that_tensor_parallelism_can_split() -> None:
    mamba = {"kind": "mamba2", "heads": 6, "head_dim": 2, "state": 2, "groups": 3, "conv": 4}
    hybrid = small({"attention": PLAIN | {"heads": 8, "kv_heads": 4}}, {"recurrence": mamba})
    assert (hybrid.attention_heads, hybrid.kv_heads) == (2, 1)
    assert (small({"mlp": MOE}).attention_heads, small({"attention": MLA}).kv_heads) == (1, 2)
    assert Block(count=1, attention=Attention(heads=8, kv_heads=2, head_dim=4)).heads == (8, 2)

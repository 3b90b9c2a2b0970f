"""Memory: counted tensors against the published formulas, and what must move which way."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from planner.catalog.architecture import Block, Mlp, Model
from planner.catalog.attention import Attention
from planner.catalog.hardware import Precision
from planner.layouts.table import from_rows
from planner.physics.layers import LayerKind
from planner.physics.training.activations import saved_per_token
from planner.physics.training.evaluate import evaluate_fixed
from planner.physics.training.memory import memory_terms
from planner.physics.training.parameters import layer_parameters
from planner.physics.training.question import Question, question_of
from planner.physics.training.recipes import Recipe, with_recipe
from planner.scenario.workload import Loss, Optimizer
from tests.search_cases import candidate, catalog


def gpt(layers: int = 4, heads: int = 16) -> Model:
    hidden = heads * 64
    block = Block(count=layers, attention=Attention(heads=heads, kv_heads=heads, head_dim=64, bias="qkvo"),
                  mlp=Mlp(kind="plain", ffn=4 * hidden, bias=True))
    return Model(name="gpt", source="made up for a test", as_of="2026", kind="assumed", hidden=hidden, vocab=50304,
                 tied=True, norm="layernorm", positions="learned", position_rows=2048, blocks=(block,),
                 sequence_length=2048, global_batch=8)


def ask(model: Model, stack: str = "megatron-core", batch: int = 64) -> Question:
    return question_of(catalog(), model, (candidate("dgx-h100"),), catalog().stack(stack),
                       sequence_length=2048, global_batch=batch, precisions=("bf16",), method="pretrain",
                       confidence=0.95)


def only(question: Question) -> LayerKind:
    (kind, share), = question.shape.kinds
    assert share == 1
    return kind


def test_selective_recompute_of_pytorch_keeps_partial_sums_and_what_is_left_of_them() -> None:
    """Bytes of a token at 2 each: the checkpoint, every second product and the attention's output, by hand."""
    question = ask(gpt(), "fsdp2")
    h, f, heads = 1024, 4096, 16
    alone, split = (float(saved_per_token(question, from_rows([{"tp": tp, "dp": 4, "sp": tp > 1}], 64),
                                          only(question))[0, 1]) for tp in (1, 4))
    # the attention's output; queries, half of keys and values, and the first product of the feed-forward
    inner = h + (2 * h - h + (h + h) / 2 + f)
    assert alone == pytest.approx(2 * (h + inner + h))
    assert split == pytest.approx(2 * (h / 4 + inner / 4 + h + 2 * h / 4)), "the last product before the ranks sum it"
    assert heads * 64 == h


def test_saved_activations_are_34sbh() -> None:
    """Korthikanti et al. 2022, table 2: 34sbh with dropout, f = 4h and the attention core recomputed."""
    question = ask(gpt())
    for tp in (1, 2, 8):
        rows = from_rows([{"tp": tp}], 64)
        saved = saved_per_token(question, rows, only(question))[0, 0]
        log_sum_exp = 4 * only(question).heads / tp
        assert saved - log_sum_exp == pytest.approx(34 * question.shape.hidden / tp)


@pytest.mark.parametrize(("precision", "narrow"), [
    ("bf16", 2.0), ("fp8", 1.0), ("mxfp8", 1 + 1 / 32), ("fp4", 0.5 + 1 / 16)])
def test_products_keep_their_inputs_as_they_read_them(precision: Precision, narrow: float) -> None:
    """Transformer Engine's performance considerations: what a product saves is quantized, by columns."""
    model = catalog().model("llama-3.1-405b")
    question = question_of(catalog(), model, (candidate("dgx-b200"),), catalog().stack("megatron-core"),
                           sequence_length=8192, global_batch=64, precisions=(precision,), method="pretrain",
                           confidence=0.95)
    saved = saved_per_token(question, from_rows([{"tp": 1, "dp": 8}], 64), only(question))[0, 0]
    h, f, keys = 16384, 53248, 8 * 128
    copy = narrow * h if narrow < 2 else 0
    attention = 2 * (2 * h + 2 * keys) + copy + 4 * 128
    assert saved == pytest.approx(2 * (2 * h + narrow * h) + attention + 2 * 2 * f + narrow * f)


def test_the_router_reads_wide_what_experts_read_narrow() -> None:
    """Qwen3 30B A3B: the norm ahead of the experts is kept in 16 bits for the router, permuted tokens in 8."""
    question = question_of(catalog(), catalog().model("qwen3-30b-a3b"), (candidate("dgx-h100"),),
                           catalog().stack("megatron-bridge"), sequence_length=4096, global_batch=64,
                           precisions=("bf16", "fp8"), method="pretrain", confidence=0.95)
    rows = from_rows([{"dp": 8, "precision": p} for p in (0, 1)], 64)
    wide, narrow = saved_per_token(question, rows, only(question))[:, 0]
    h, heads, permuted, acted = 2048, 32 * 128, 8 * 2048, 8 * 768
    assert wide - narrow == pytest.approx(h - heads + permuted + acted)


def test_what_experts_return_is_not_kept() -> None:
    """Megatron-Bridge docs/training/moe-optimization.md: Qwen3 30B A3B on 16 H100 with EP 16 allocates 61.351 GB."""
    question = question_of(catalog(), catalog().model("qwen3-30b-a3b"), (candidate("dgx-h100"),),
                           catalog().stack("megatron-bridge"), sequence_length=4096, global_batch=1024,
                           precisions=("bf16",), method="pretrain", confidence=0.95)
    memory = evaluate_fixed(question, from_rows([{"ep": 16, "dp": 16, "zero": 1}], 1024), 0).memory
    assert memory.allocated == pytest.approx(61.351e9, rel=0.01)


def test_full_recompute_keeps_the_layer_input() -> None:
    """Same source: 2sbh a layer, over t with sequence parallel."""
    question = ask(gpt())
    rows = from_rows([{"tp": 4}], 64)
    assert saved_per_token(question, rows, only(question))[0, 2] == 2 * question.shape.hidden / 4


@pytest.mark.parametrize(("zero", "dp", "expected"), [(0, 8, 18.0), (1, 8, 6 + 12 / 8), (2, 8, 2 + 16 / 8),
                                                      (3, 8, 18 / 8)])
def test_state_bytes_per_parameter(zero: int, dp: int, expected: float) -> None:
    """Megatron-LM theoretical_memory_usage.py: 18 bytes, 6 + 12/N with the distributed optimizer."""
    question = ask(gpt())
    terms = memory_terms(question, from_rows([{"dp": dp, "zero": zero}], 64))
    parameters = only(question).split_matrices + only(question).vectors
    assert terms.layer.every[0] / parameters == pytest.approx(expected)


def test_layer_size_splits_matrices_not_norms() -> None:
    question = ask(gpt())
    kind = only(question)
    (whole, split), experts = layer_parameters(from_rows([{"tp": 1}, {"tp": 4}], 64), question.shape.kinds)
    assert whole == kind.split_matrices + kind.vectors
    assert split == kind.split_matrices / 4 + kind.vectors
    assert not experts.any()


def peak(row: dict[str, float], stack: str = "megatron-core") -> float:
    return evaluate_fixed(ask(gpt(8), stack), from_rows([row], 64), 0).memory.peak


@pytest.mark.parametrize(("more", "less"), [
    ({"dp": 8, "zero": 0}, {"dp": 8, "zero": 1}), ({"dp": 8, "zero": 1}, {"dp": 8, "zero": 2}),
    ({"dp": 8, "micro_batch": 4}, {"dp": 8, "micro_batch": 2}), ({"tp": 2, "dp": 4}, {"tp": 4, "dp": 4}),
    ({"dp": 8, "recompute": 0}, {"dp": 8, "recompute": 2}), ({"cp": 1, "dp": 8}, {"cp": 2, "dp": 8}),
    ({"dp": 8, "zero": 1, "offload": 0.0}, {"dp": 8, "zero": 1, "offload": 1.0}),
])
def test_what_saves_memory_saves_memory(more: dict[str, float], less: dict[str, float]) -> None:
    assert peak(less) < peak(more)


def test_freed_gradients_never_meet_the_saved_activations() -> None:
    """Plain PyTorch frees gradients at the step, Megatron keeps its buffers (torchtune's ladder shows the maximum)."""
    row = {"dp": 8, "zero": 3, "micro_batch": 8}
    question = ask(gpt(8), "fsdp2")
    found = evaluate_fixed(question, from_rows([row], 64), 0).memory.components
    assert found["gradients"] == 0
    assert found["activations"] + found["logits"] > 0


def test_components_and_stages_add_up() -> None:
    question = ask(gpt(8))
    found = evaluate_fixed(question, from_rows([{"tp": 2, "pp": 4, "dp": 2, "zero": 1}], 64), 0).memory
    assert found.peak == pytest.approx(found.stage_peaks.max())
    assert found.device * question.memory_margins[1] == pytest.approx(found.peak)
    assert found.allocated < found.reserved < found.device


def test_a_row_alone_equals_the_row_in_a_table() -> None:
    rows = [{"tp": t, "pp": p, "dp": d, "zero": z, "micro_batch": m, "cp": c}
            for t in (1, 4) for p in (1, 2) for d in (1, 4) for z in (0, 1) for m in (1, 2) for c in (1, 2)]
    question = ask(gpt(8))
    table = memory_terms(question, from_rows(rows, 64))
    for i, row in enumerate(rows):
        alone = memory_terms(question, from_rows([row], 64))
        for name in ("kept", "live", "logits", "capacity", "gathered"):
            assert np.array_equal(getattr(alone, name)[0], getattr(table, name)[i])
        assert alone.layer.every[0] == table.layer.every[i]


def test_every_optimizer_that_a_scenario_may_name_has_its_states() -> None:
    assert {"adamw", *catalog().recipes.optimizers} == set(get_args(Optimizer))
    assert set(get_args(Loss)) == set(catalog().recipes.losses)


@pytest.mark.parametrize(("optimizer", "expected"), [("adamw", 8.0), ("adamw-8bit", 2.03), ("adamw-4bit", 1.06),
                                                     ("lion", 4.0), ("adafactor", 0.02)])
def test_optimizers_keep_their_states(optimizer: str, expected: float) -> None:
    question = ask(gpt())
    question = replace(question, stack=with_recipe(catalog().recipes, question.stack, gpt(), Recipe(optimizer)))
    terms, rows = memory_terms(question, from_rows([{}], 64)).layer, from_rows([{}], 64)
    count = sum(float(part[0]) for part in layer_parameters(rows, question.shape.kinds))
    assert float(terms.moments[0]) / count == pytest.approx(expected, abs=0.01)


def recipe_memory(**chosen: object) -> dict[str, float]:
    model = catalog().model("llama-3.2-1b")
    question = ask(model, "torchtune", batch=8)
    question = replace(question, stack=with_recipe(catalog().recipes, question.stack, model, Recipe(**chosen)))  # type: ignore[arg-type]
    return evaluate_fixed(question, from_rows([{"micro_batch": 8, "recompute": 2}], 8), 0).memory.components


def test_a_loss_in_chunks_or_fused_saves_its_logits() -> None:
    """Llama 3.2 1B, 16,384 tokens x 128,256: 15, 4 and (8 x 2048 / 128256) bytes a logit."""
    logits = 8 * 2048 * 128256
    held = {loss: recipe_memory(loss=loss)["logits"] for loss in get_args(Loss)}
    assert held["plain"] == pytest.approx(15 * logits)
    assert held["chunked"] == pytest.approx(4 * logits)
    assert held["fused"] == 0  # a layer at work holds more, so the loss is not where memory peaks


def test_an_optimizer_in_backward_holds_no_gradients() -> None:
    """torchtune's ladder: gradients leave, and with them the phase in which they are all there."""
    kept, freed = recipe_memory(loss="fused"), recipe_memory(loss="fused", optimizer_in_backward=True)
    assert freed["gradients"] < 0.01 * (kept["gradients"] or kept["weights"])

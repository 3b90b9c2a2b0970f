"""What adapters hold beside their base: casts, gradients of checkpoints, one matrix expanded; and AdamW's root."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import planner
from planner.catalog.recipes import TrainedBytes
from planner.catalog.stack import Stack
from planner.layouts.axes import RECOMPUTE
from planner.layouts.table import from_rows
from planner.physics.training.memory import MemoryTerms, memory_terms
from tests.physics.test_tuning_speed import question
from tests.search_cases import catalog

LAYERS, HIDDEN, TOKENS = 32, 4096, 4096
CHECKPOINT = 2 * HIDDEN * TOKENS


def terms(method: str, stack: Stack, base: str | None = None, **row: float) -> MemoryTerms:
    asked = question(method, stack)
    if base is not None:
        asked = replace(asked, tuning=replace(asked.tuning, base=base))
    rows = from_rows([{"dp": 8, "micro_batch": 1, "recompute": RECOMPUTE.index("full"), **row}], 64)
    return memory_terms(asked, rows)


@pytest.mark.parametrize(("method", "base", "zero", "width"), [
    ("lora", None, 0, 1), ("qlora", "nf4-dq", 0, 2), ("qlora", "int8", 0, 2), ("qlora", "int4-gptq", 0, 1),
    ("qlora", "nf4-dq", 3, 1)])
def test_a_checkpoint_is_in_32_bits_beside_a_base_that_peft_casts(method: str, base: str | None, zero: int,
                                                                  width: int) -> None:
    found = terms(method, catalog().stack("hf-peft"), base, zero=zero)
    assert found.kept[0, RECOMPUTE.index("full")] == pytest.approx(width * CHECKPOINT)


@pytest.mark.parametrize(("method", "zero", "held"), [("lora", 3, LAYERS), ("qlora", 3, LAYERS), ("lora", 0, 0),
                                                      ("full", 3, 0)])
def test_backward_under_fsdp_holds_the_gradients_of_all_checkpoints_beside_adapters(method: str, zero: int,
                                                                                   held: int) -> None:
    stack = catalog().stack("hf-peft")
    without = stack.model_copy(update={"keeps_checkpoint_gradients": False})
    more = terms(method, stack, zero=zero).live - terms(method, without, zero=zero).live
    assert more[0] == pytest.approx(held * CHECKPOINT)


def test_a_quantized_base_is_expanded_one_matrix_at_a_time() -> None:
    found = terms("qlora", catalog().stack("hf-peft"), zero=0)
    assert found.gathered[0] == pytest.approx(2 * 4096 * 14336)


def test_an_optimizer_over_many_tensors_holds_a_copy_instead_of_a_layer_at_work() -> None:
    stack = catalog().stack("trl")
    own = stack.model_copy(update={"states": {p: s.model_copy(update={"step": 2.0}) for p, s in stack.states.items()}})
    plain, held = (terms("full", one, zero=3).live[0] for one in (stack, own))
    parameters = question("full", stack).shape.total / 8
    assert held == pytest.approx(max(plain, 2 * parameters), rel=1e-6)
    assert np.all(terms("lora", own, zero=3).live == terms("lora", stack, zero=3).live)


@pytest.mark.parametrize(("gib", "tokens"), [(12, 21_848), (16, 40_724), (24, 78_475), (40, 153_977), (48, 191_728),
                                             (80, 342_733)])
def test_unsloth_trains_the_published_lengths_on_the_published_memory(gib: int, tokens: int) -> None:
    """Llama 3.1 8B, QLoRA of rank 32 on all linear layers, batch 1 (docs.unsloth.ai, benchmarks)."""
    made = planner.estimate(model="llama-3.1-8b", method="qlora", lora_rank=32, node="h100-sxm-1x", stack="unsloth",
                            seq_len=tokens, global_batch=1, layout="micro_batch=1,recompute=full,offload_activations=1")
    assert made.memory.median.device / 2**30 == pytest.approx(gib, rel=0.06)


def test_logits_of_preferences_are_made_where_those_of_text_are_not() -> None:
    plain = planner.estimate(model="llama-3.1-8b", method="qlora", node="h100-sxm-1x", stack="unsloth")
    pairs = planner.estimate(model="llama-3.1-8b", method="dpo", tuning="qlora", node="h100-sxm-1x", stack="unsloth",
                             samples=1000)
    assert plain.memory.components.logits == 0 < pairs.memory.components.logits


@pytest.mark.parametrize(("method", "dropout", "adapter", "widths"), [
    ("lora", 0.05, 4, 9.5 * 3), ("lora", 0, 4, 9.5 * 2), ("lora", 0, 2, 5.5 * 2), ("lora", 0.05, 2, 9.5 * 3),
    ("qlora", 0, 4, 5.5 * 2), ("qlora", 0.05, 4, 9.5 * 3)])
def test_an_adapter_keeps_a_copy_of_its_input_where_that_is_cast_or_dropped(method: str, dropout: float, adapter: int,
                                                                           widths: float) -> None:
    """Seven adapters of a layer of Llama 3 8B, in widths of the model: q, k, v, o, gate and up one each, down 3.5."""
    stack = catalog().stack("hf-peft")
    asked = question(method, stack)
    none = replace(asked.tuning, targets=frozenset({"no such module"}), dropout=dropout)
    held = replace(none, targets=None, adapter=replace_bytes(asked.tuning.adapter, adapter))
    rows = from_rows([{"dp": 8, "micro_batch": 1, "recompute": RECOMPUTE.index("none")}], 64)
    more = [memory_terms(replace(asked, tuning=one), rows).kept[0, RECOMPUTE.index("none")] for one in (none, held)]
    assert more[1] - more[0] == pytest.approx(widths * HIDDEN * TOKENS)


def replace_bytes(adapter: TrainedBytes | None, weight: int) -> TrainedBytes:
    assert adapter is not None
    return adapter.model_copy(update={"weight": weight})


def test_adapters_without_autocast_keep_32_bits() -> None:
    stack = catalog().stack("hf-peft")
    rows = from_rows([{"dp": 8, "micro_batch": 1, "recompute": RECOMPUTE.index("none")}], 64)
    kept = [memory_terms(question("lora", one), rows).kept[0, RECOMPUTE.index("none")] for one in (
        stack, stack.model_copy(update={"autocasts": False}))]
    assert kept[1] - kept[0] == pytest.approx(2 * 9.5 * HIDDEN * TOKENS)


@pytest.mark.parametrize(("method", "gib"), [("lora", 47.46), ("qlora", 37.23)])
def test_trl_takes_what_it_took_on_one_h100(method: str, gib: float) -> None:
    """Llama 3.1 8B, rank 16 on all linear layers, two samples of 2,048 tokens, dropout 0.05 (H100-001 and H100-005)."""
    made = planner.estimate(model="llama-3.1-8b", method=method, lora_rank=16, node="h100-sxm-1x", stack="trl",
                            seq_len=2048, global_batch=2, layout="micro_batch=2,recompute=none")
    assert made.memory.median.allocated / 2**30 == pytest.approx(gib, rel=0.04)


def test_a_base_beside_adapters_is_as_wide_as_a_question_in_32_bits() -> None:
    narrow, wide = (planner.estimate(model="llama-3.1-8b", method="lora", node="h200-sxm-1x", stack="hf-peft",
                                     precision=precision, seq_len=512, global_batch=1).memory.components.weights
                    for precision in ("bf16", "fp32"))
    assert wide - narrow == pytest.approx(2 * 8.03e9, rel=0.01)

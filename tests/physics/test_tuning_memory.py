"""What adapters hold beside their base: casts, gradients of checkpoints, one matrix expanded; and AdamW's root."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import planner
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

"""Time: one formula for a row and a table, published step times, and what must move which way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.catalog.stack import Stack
from planner.layouts.table import from_rows
from planner.physics.training.compute import gemm, layer_times, machine
from planner.physics.training.estimate import faster_whole, time_terms
from planner.physics.training.evaluate import Evaluation, evaluate_fixed
from planner.physics.training.question import question_of
from planner.physics.training.schedule import even_layers, in_flight_chunks, pipeline_seconds
from tests.search_cases import candidate, catalog


def run(row: dict[str, float], *, node: str = "dgx-h100", model: str = "llama-3.1-70b", sequence: int = 8192,
        batch: int = 128, precision: str = "bf16", stack: str = "megatron-core") -> Evaluation:
    question = question_of(catalog(), catalog().model(model), (candidate(node),), catalog().stack(stack),
                           sequence_length=sequence, global_batch=batch, precisions=(precision,), method="pretrain",
                           confidence=0.95)
    return evaluate_fixed(question, from_rows([row], batch), 0)


@pytest.mark.parametrize(("measured", "tolerance", "row", "batch"), [
    (14.66, 0.05, {"tp": 4, "pp": 4, "vpp": 5, "cp": 2, "dp": 2, "zero": 1}, 128),
    (14.66, 0.05, {"tp": 4, "pp": 4, "vpp": 5, "cp": 2, "dp": 64, "zero": 1}, 4096),
])
def test_llama_70b_on_h100(measured: float, tolerance: float, row: dict[str, float], batch: int) -> None:
    """NVIDIA DGX Cloud benchmarking v25.02, Llama 3.1 70B bf16: 14.66 s at 64 and at 2,048 H100, weak scaling."""
    assert run(row, batch=batch, stack="megatron-bridge").step.seconds == pytest.approx(measured, rel=tolerance)


def test_main_shape_lies_in_the_published_range() -> None:
    """Published runs of 70B at 8,192 tokens in bf16 on H100: 1,030 to 1,120 tokens/s per GPU."""
    found = run({"tp": 4, "pp": 4, "vpp": 5, "cp": 2, "dp": 2, "zero": 1})
    assert 1030 * 0.95 < found.tokens_per_second_per_gpu < 1120 * 1.05
    assert 0.30 < found.mfu < 0.58


def test_components_add_up_and_flops_agree() -> None:
    found = run({"tp": 4, "pp": 4, "dp": 4, "zero": 1, "recompute": 2})
    assert sum(found.step.components.values()) == pytest.approx(found.step.seconds)
    per_token = 6 * 70.55e9
    assert found.model_flops_per_gpu / found.tokens_per_second_per_gpu == pytest.approx(per_token, rel=0.15)
    assert found.mfu == pytest.approx(found.model_flops_per_gpu / 989e12)


def test_packed_samples_attend_to_themselves_alone() -> None:
    """Seconds of attention go by span over its share of the rate, s / 2 x (s + 256) / s: 456 of 4,352 parts."""
    question = question_of(catalog(), catalog().model("llama-3.1-8b"), (candidate("dgx-h100"),),
                           catalog().stack("megatron-bridge"), sequence_length=4096, global_batch=32,
                           precisions=("fp8",), method="full", confidence=0.95)
    rows = from_rows([{"dp": 8, "zero": 1}], 32)
    whole, packed, longer = (layer_times(replace(question, attended=tokens), rows) for tokens in (None, 200, 8192))
    launch = question.kernels.launch
    assert (packed.attention_core - launch) / (whole.attention_core - launch) == pytest.approx(456 / 4352)
    assert (packed.attention_linear, packed.mlp) == (whole.attention_linear, whole.mlp)
    assert longer.attention_core == whole.attention_core


def test_full_recompute_costs_about_a_forward() -> None:
    plain, full = (run({"tp": 8, "pp": 4, "dp": 2, "zero": 1, "recompute": r}).step for r in (0, 2))
    assert 1.15 < full.seconds / plain.seconds < 1.40


def test_fp8_helps_by_less_than_half() -> None:
    """FP8 gives 1.3 to 1.6 times over bf16 end to end (dgxc-benchmarking 70B: 14.66 to 9.86 s), not twice."""
    row = {"tp": 4, "pp": 4, "vpp": 5, "cp": 2, "dp": 2, "zero": 1}
    ratio = run(row).step.seconds / run(row, precision="fp8").step.seconds
    assert 1.25 < ratio < 1.65


@pytest.mark.parametrize(("faster", "slower"), [
    ({"tp": 2, "dp": 8}, {"tp": 8, "dp": 2}),
    ({"tp": 4, "pp": 4, "vpp": 5, "dp": 4}, {"tp": 4, "pp": 4, "vpp": 1, "dp": 4}),
    ({"tp": 4, "pp": 2, "dp": 8}, {"tp": 4, "pp": 8, "dp": 2}),
])
def test_layouts_rank_as_known(faster: dict[str, float], slower: dict[str, float]) -> None:
    """Less tensor parallelism, more interleaving and a shorter pipeline are faster, memory aside."""
    assert run(faster, batch=64).step.seconds < run(slower, batch=64).step.seconds


def test_a_row_alone_equals_the_row_in_a_table() -> None:
    rows = [{"tp": t, "pp": p, "dp": d, "zero": z, "micro_batch": m, "cp": c}
            for t in (1, 8) for p in (1, 4) for d in (2, 16) for z in (0, 1, 3) for m in (1, 2) for c in (1, 2)]
    question = question_of(catalog(), catalog().model("llama-3.1-8b"), (candidate("dgx-h100"),),
                           catalog().stack("megatron-core"), sequence_length=8192, global_batch=64,
                           precisions=("bf16",), method="pretrain", confidence=0.95)
    table = time_terms(question, from_rows(rows, 64))
    for i, row in enumerate(rows):
        alone = time_terms(question, from_rows([row], 64))
        for name in ("layer", "modes", "step", "first", "last", "jitter"):
            np.testing.assert_array_equal(getattr(alone, name)[0], getattr(table, name)[i])


def test_large_products_reach_the_measured_share_of_peak() -> None:
    """aiconfigurator large-GEMM medians: 771 of 989 TFLOP/s on H100 in bf16; ours stays below the best shape."""
    question = question_of(catalog(), catalog().model("llama-3.1-8b"), (candidate("dgx-h100"),),
                           catalog().stack("megatron-core"), sequence_length=8192, global_batch=64,
                           precisions=("bf16",), method="pretrain", confidence=0.95)
    on = machine(question, np.zeros(1, np.int64), np.zeros(1, np.int64))
    n = np.array([8192.0])
    rate = 2 * 8192.0**3 / gemm(question, on, on.matrix, n, n, n)[0]
    assert 0.60 < rate / 989e12 < 0.80


def test_in_flight_follows_the_schedules() -> None:
    """1F1B holds p - stage; interleaved p(1 + (p-1)/(pv)) micro-batches on the first stage (Narayanan et al. 2021)."""
    assert [int(in_flight_chunks(4, 1, 64, s)) for s in range(4)] == [4, 3, 2, 1]
    assert [int(in_flight_chunks(4, 1, 2, s)) for s in range(4)] == [2, 2, 2, 1]
    assert int(in_flight_chunks(8, 4, 64, 0)) / 4 == pytest.approx(8 * (1 + 7 / (8 * 4)), abs=0.26)


def test_bubble_is_p_minus_one_over_vm() -> None:
    for p, v, m in ((4, 1, 16), (8, 2, 32)):
        steady, bubble = pipeline_seconds(np.array([1.0]), np.array([float(p)]), np.array([v]), np.array([m]))
        assert bubble[0] / steady[0] == pytest.approx((p - 1) / (v * m))


def test_default_split_counts_embedding_and_head() -> None:
    assert even_layers(80, 4).tolist() == [20, 20, 20, 20]
    assert even_layers(126, 16).tolist() == [7] + [8] * 14 + [7]
    assert even_layers(80, 3).sum() == 80


def test_gradients_are_accumulated_through_memory() -> None:
    """Megatron's fused accumulation reads and writes a weight's gradient each micro-batch: 4 bytes wide, or 2."""
    row = {"tp": 4, "pp": 4, "vpp": 5, "dp": 4, "zero": 1}
    wide, narrow = (run(row, stack=stack).step.components["compute"] for stack in ("megatron-core", "megatron-bridge"))
    parameters = catalog().model("llama-3.1-70b").parameters / 16
    per_step = 2 * 2 * parameters * (128 / 4) / (3350e9 * catalog().rates("hopper").memory)
    assert wide - narrow == pytest.approx(per_step, rel=0.10)


def test_scales_by_block_cost_no_less_than_scales_by_tensor() -> None:
    row = {"tp": 1, "pp": 1, "dp": 8, "zero": 1}
    found = {p: run(row, node="dgx-b200", model="llama-3.1-8b", precision=p, stack="megatron-bridge").step.seconds
             for p in ("bf16", "fp8", "mxfp8", "fp4")}
    assert found["fp4"] < found["fp8"] <= 1.02 * found["mxfp8"] < found["bf16"]


def test_dropping_an_activation_costs_less_than_dropping_the_feed_forward() -> None:
    def recompute(*modules: str) -> float:
        stack = catalog().stack("llmq").model_copy(update={"selective_recompute": modules})
        question = question_of(catalog(), catalog().model("qwen2.5-7b"), (candidate("dgx-h100"),), stack,
                               sequence_length=1024, global_batch=512, precisions=("bf16",), method="pretrain",
                               confidence=0.95)
        row = {"dp": 8, "zero": 1, "micro_batch": 8, "recompute": 1}
        return evaluate_fixed(question, from_rows([row], 512), 0).step.components["recompute"]
    assert 0 < recompute("mlp_act") < 0.2 * recompute("mlp")
    assert recompute("layernorm", "mlp_act") == pytest.approx(recompute("mlp_act") + recompute("layernorm"))


def test_a_tensor_parallel_rank_sends_its_part_where_the_stack_cuts_sends() -> None:
    row = {"tp": 8, "pp": 4, "dp": 2, "zero": 1, "micro_batch": 2}
    cut = run(row, node="dgx-a100", model="gpt-3-175b", sequence=2048, precision="fp16", stack="megatron-deepspeed")
    stack = catalog().stack("megatron-deepspeed").model_copy(update={"scatter_gather": False})
    question = question_of(catalog(), catalog().model("gpt-3-175b"), (candidate("dgx-a100"),), stack,
                           sequence_length=2048, global_batch=128, precisions=("fp16",), method="pretrain",
                           confidence=0.95)
    whole = evaluate_fixed(question, from_rows([row], 128), 0)
    assert whole.step.components["pipeline_p2p"] > 4 * cut.step.components["pipeline_p2p"]


def test_heads_off_the_tensor_cores_are_slow_without_flash_attention() -> None:
    """BLOOM's search for a shape: 128 heads of 108 take 157 s a step, 96 of 144 take 118 s."""
    row = {"tp": 8, "pp": 6, "dp": 8, "zero": 1, "micro_batch": 4, "recompute": 2}
    slow, fast = (from_heads(heads, row) for heads in (128, 96))
    assert 1.15 < slow / fast < 1.5


def from_heads(heads: int, row: dict[str, float]) -> float:
    model = catalog().model("gpt-3-175b")
    block = model.blocks[0]
    shape = block.attention.model_copy(update={"heads": heads, "kv_heads": heads, "head_dim": 13824 // heads})
    changed = model.model_copy(update={"hidden": 13824, "blocks": (block.model_copy(update={
        "count": 78, "attention": shape, "mlp": block.mlp.model_copy(update={"ffn": 55296})}),)})
    question = question_of(catalog(), changed, (candidate("dgx-a100"),), catalog().stack("megatron-deepspeed"),
                           sequence_length=2048, global_batch=2048, precisions=("fp16",), method="pretrain",
                           confidence=0.95)
    return evaluate_fixed(question, from_rows([row], 2048), 0).step.seconds


def test_a_layer_takes_no_less_than_its_launches() -> None:
    """125M on one H100 at 512 tokens: about 20 us of work a layer, behind 0.4 ms of host time."""
    row = {"tp": 1, "pp": 1, "dp": 1, "zero": 0}
    small = run(row, node="h100-sxm-1x", model="gpt-3-125m", sequence=512, batch=8)
    large = run(row, node="h100-sxm-1x", model="gpt-3-125m", sequence=512, batch=16)
    assert (large.step.seconds - small.step.seconds) / 8 > 12 * catalog().stack("megatron-core").launch_layer


def test_gathered_keys_are_exposed_where_a_ring_hides_them() -> None:
    row = {"tp": 8, "cp": 4, "dp": 1, "zero": 3}
    stack = catalog().stack("fsdp2")
    gathered, ring = (context_seconds(stack.model_copy(update={"context_gathered": value}), row)
                      for value in (True, False))
    assert gathered > 2 * ring


def context_seconds(stack: Stack, row: dict[str, float]) -> float:
    question = question_of(catalog(), catalog().model("llama-3.1-70b"), (candidate("dgx-h100"),), stack,
                           sequence_length=131072, global_batch=4, precisions=("bf16",), method="pretrain",
                           confidence=0.95)
    return evaluate_fixed(question, from_rows([row], 4), 0).step.components["context_parallel"]


def test_sequence_parallelism_is_left_out_only_where_no_recompute_makes_it_slower() -> None:
    """8B on eight B200 at 1,024 tokens: with full recompute a layer is faster whole, without recompute it is not."""
    stack = catalog().stack("megatron-core")
    question = question_of(catalog(), catalog().model("llama-3.1-8b"), (candidate("dgx-b200"),), stack,
                           sequence_length=1024, global_batch=64, precisions=("bf16",), method="pretrain",
                           confidence=0.95)
    table = from_rows([{"tp": 8, "micro_batch": b, "sp": sp} for b in (1, 2, 4, 8) for sp in (0, 1)], 64)
    terms = time_terms(question, table)
    layer = (terms.layer[:, None] + terms.modes)[:, [0, 2]]
    faster = (layer[::2] < layer[1::2] * (1 - 1e-9)).any(axis=1)
    named = faster_whole(question, table.take(np.arange(1, 8, 2)))
    assert not (faster & ~named).any()


def test_no_product_is_faster_than_the_datasheet() -> None:
    for node in ("rtx-5090-1x", "rtx-4090-1x", "dgx-h100", "gb300-nvl72"):
        question = question_of(catalog(), catalog().model("llama-3.2-1b"), (candidate(node),),
                               catalog().stack("llmq"), sequence_length=1024, global_batch=64,
                               precisions=("bf16", "fp8"), method="pretrain", confidence=0.95)
        for precision in ("bf16", "fp8"):
            assert question.matrix_rate(0, precision) <= question.peak_rate(0, precision)
        assert question.matrix_rate(0, "fp16") == pytest.approx(question.matrix_rate(0, "bf16"), rel=0.05)


def test_modules_that_predict_further_tokens_take_layers_and_heads_of_their_own() -> None:
    """On the last stage alone; the joining matrix of 2 x hidden x hidden is a head of as many columns."""
    asked = question_of(catalog(), catalog().model("llama-3.1-8b"), (candidate("dgx-h100"),),
                        catalog().stack("megatron-core"), sequence_length=8192, global_batch=64, precisions=("bf16",),
                        method="pretrain", confidence=0.95)
    rows = from_rows([{"pp": 4, "dp": 2}], 64)
    plain, more = (time_terms(one, rows) for one in (asked, replace(asked, predictions=2, prediction_layers=4)))
    by_hand = plain.last * (1 + 2 * (1 + 2 * 4096 / 128256)) + 4 * (plain.compute + plain.tensor + plain.context)
    assert more.last == pytest.approx(by_hand)
    assert (more.first, more.compute) == (plain.first, plain.compute)

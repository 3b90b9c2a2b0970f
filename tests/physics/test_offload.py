"""Offload, hybrid sharding, sequence parallelism and Ulysses: published runs, and what must move which way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.catalog.price import Host
from planner.layouts.table import from_rows
from planner.physics.training.communication import ring, swaps_heads, ulysses
from planner.physics.training.compute import layer_times
from planner.physics.training.estimate import faster_whole, time_terms
from planner.physics.training.evaluate import Evaluation, evaluate_fixed
from planner.physics.training.memory import memory_terms
from planner.physics.training.question import Question, question_of
from tests.search_cases import candidate, catalog

FULL = 2
INFINITY = {"dp": 512, "zero": 3, "recompute": FULL, "offload": 1, "offload_parameters": 1, "offload_activations": 1}


def ask(model: str, node: str, stack: str, batch: int, length: int, precision: str = "bf16") -> Question:
    return question_of(catalog(), catalog().model(model), (candidate(node),), catalog().stack(stack),
                       sequence_length=length, global_batch=batch, precisions=(precision,), method="pretrain",
                       confidence=0.95)


def trillion(**changes: float) -> Evaluation:
    question = ask("gpt-1t", "dgx-2", "deepspeed", 2560, 1024, "fp16")
    return evaluate_fixed(question, from_rows([INFINITY | changes], 2560), 0)


def test_a_trillion_parameters_on_512_v100_run_at_the_published_speed() -> None:
    """Over 25 petaflops on 512 V100, 40% of peak, recompute counted (Rajbhandari et al. 2021, arXiv 2104.07857)."""
    found = trillion(nvme=1)
    assert found.memory.fits == "fits"
    with_recompute = 512 * found.model_flops_per_gpu * 4 / 3
    assert with_recompute == pytest.approx(25e15, rel=0.35)
    assert trillion().step.seconds < found.step.seconds


def test_states_lie_where_the_layout_says() -> None:
    """1 T parameters in 2 + 12 bytes each, a pinned gradient of 4 besides, over 32 nodes; half more of it is pinned."""
    host, flash = trillion(), trillion(nvme=1)
    for one in (host, flash):
        assert one.memory.components["weights"] == one.memory.components["optimizer"] == 0
    bytes_of_states = catalog().model("gpt-1t").layers * 12 * 25600**2 * 18 / 32
    assert flash.memory.nvme_per_node == pytest.approx(bytes_of_states, rel=0.01)
    checkpoints = 16 * 128 * 2 * 1024 * 25600
    assert flash.memory.host_per_node == pytest.approx(checkpoints)
    assert host.memory.host_per_node == pytest.approx(1.5 * bytes_of_states + checkpoints, rel=0.01)
    assert host.memory.nvme_per_node == 0


def test_a_model_larger_than_host_and_flash_does_not_fit() -> None:
    """16.9 TB of states on one DGX-2: more than its 1.5 TiB of memory, less than its 30.7 TB of flash."""
    assert trillion(dp=16).memory.fits == "does not fit"
    assert trillion(dp=16, nvme=1).memory.fits == "fits"


def test_gpus_under_one_switch_share_its_uplink() -> None:
    row = from_rows([{"dp": 8, "zero": 1, "offload": 1}], 64)
    shared = ask("llama-3.1-8b", "dgx-h100", "deepspeed", 64, 2048)
    pcie = shared.candidates[0].node.pcie
    one = replace(shared.candidates[0], node=shared.candidates[0].node.model_copy(
        update={"pcie": pcie.model_copy(update={"switches": 2})}))
    slower = replace(shared, candidates=(one,))
    assert time_terms(slower, row).offload[0] > time_terms(shared, row).offload[0]


@pytest.mark.parametrize(("node", "gpus", "batch", "published"), [("dgx-a100", 128, 256, 4550),
                                                                  ("dgx-h100", 96, 192, 9600)])
def test_hybrid_sharding_runs_at_the_published_speed(node: str, gpus: int, batch: int, published: float) -> None:
    """foundation-model-stack/fms-fsdp README: Llama 2 7B, hybrid shard within a node, micro-batch 2, compiled."""
    question = ask("llama-2-7b", node, "fsdp2", batch, 4096)
    rows = from_rows([{"dp": gpus, "zero": 3, "hsdp": gpus // 8, "micro_batch": 2}], batch)
    assert evaluate_fixed(question, rows, 0).tokens_per_second_per_gpu == pytest.approx(published, rel=0.15)


def test_hybrid_sharding_holds_the_states_of_fewer_shards() -> None:
    question = ask("llama-3.1-70b", "dgx-h100", "fsdp2", 512, 8192)
    rows = from_rows([{"dp": 512, "zero": 3, "recompute": FULL, "hsdp": copies} for copies in (1, 8, 64)], 512)
    states = memory_terms(question, rows).layer.every
    assert list(states) == sorted(states)
    assert list(rows.shard) == [512, 64, 8]
    assert states[2] == pytest.approx(64 * states[0])


def test_without_sequence_parallel_norms_are_kept_whole() -> None:
    question = ask("llama-3.1-70b", "dgx-h100", "megatron-core", 64, 8192)
    rows = from_rows([{"tp": 8, "sp": sp} for sp in (1, 0)], 64)
    kept = memory_terms(question, rows).kept[:, 0]
    assert kept[1] > 1.5 * kept[0]
    split, whole = time_terms(question, rows).layer
    assert bool(faster_whole(question, rows)[0]) == (whole < split)


def test_the_faster_kind_of_context_parallelism_is_taken() -> None:
    """Ulysses moves a part of the tokens, a ring all keys and values; heads must divide (arXiv 2309.14509)."""
    question = ask("llama-2-7b", "dgx-h100", "megatron-core", 64, 8192)
    rows = from_rows([{"cp": cp, "tp": tp} for cp in (2, 8, 16) for tp in (1, 8)], 64)
    kinds, times = question.shape.kinds, layer_times(question, rows)
    by_ring, by_heads = ring(question, rows, times, kinds), ulysses(question, rows, kinds)
    assert np.isinf(by_heads).tolist() == [False, False, False, True, False, True]
    np.testing.assert_array_equal(time_terms(question, rows).context, np.minimum(by_ring, by_heads))
    assert swaps_heads(question, rows).tolist() == (by_heads < by_ring).tolist()
    without = replace(question, stack=question.stack.model_copy(update={"ulysses": False}))
    assert not swaps_heads(without, rows).any()


def test_few_threads_of_a_host_step_the_optimizer_as_fast_as_they_can() -> None:
    """8B on a rented instance: 4 threads at 1e8 parameters/s take 20 s, and 96 leave it to memory bandwidth."""
    model, row = catalog().model("llama-3.1-8b"), from_rows([{"zero": 0, "offload": 1, "recompute": FULL}], 8)
    node = candidate("rtx-4090-1x")
    few, many, unknown = (evaluate_fixed(replace(question_of(
        catalog(), model, (replace(node, node=Host(vcpus=threads).of(node.node)),), catalog().stack("deepspeed"),
        sequence_length=2048, global_batch=8, precisions=("bf16",), method="full", confidence=0.95)), row, 0)
        .step.components["offload"] for threads in (4, 96, None))
    assert many == unknown
    assert few - many == pytest.approx(model.parameters * (1 / 4e8 - 37.5 / node.node.cpu.memory_bandwidth), rel=0.02)

"""Published figures that the predictions must meet, each with its source and tolerance; and the files as a whole."""

import math

import numpy as np
import pytest

from planner.evidence.compare import compare
from planner.evidence.degrees import degrees_of
from planner.evidence.hardware import candidate_of
from planner.evidence.prediction import predict
from planner.evidence.reading import read_evidence
from planner.evidence.shape import model_of
from planner.evidence.software import stack_of
from planner.evidence.summary import errors
from planner.physics.memory import saved_per_token
from planner.physics.question import question_of
from planner.units import GIB
from tests.evidence_tests.csv_file import DATA, catalog


@pytest.fixture(scope="module")
def evidence():
    return {name: read_evidence(DATA / f"{name}.csv") for name in ("train_throughput", "train_memory")}


@pytest.fixture(scope="module")
def compared(evidence):
    return {name: compare(held, catalog()) for name, held in evidence.items()}


def run_of(evidence, identifier):
    return next(row.run for held in evidence.values() for row in held.rows if row.id == identifier)


# NVIDIA/dgxc-benchmarking, v25.04 and v25.05: Llama 3 70B bf16, 64 H100, TP4 PP4 CP2 VPP5
def test_dgx_cloud_llama_70b_takes_14_66_seconds(tmp_path):
    from planner.evidence.validate import validate_file
    from tests.evidence_tests.csv_file import THROUGHPUT, write

    (entry,) = validate_file(write(tmp_path / "runs.csv", THROUGHPUT), catalog())["rows"]
    assert entry["measured"] == 14.66
    assert abs(entry["error"]) < 0.05


# Korthikanti et al. 2022 (arXiv 2205.05198), figure 1: activations with sequence parallelism and selective recompute
@pytest.mark.parametrize(("identifier", "gib", "in_flight_layers"), [
    ("KOR-002", 9.5625, 48), ("KOR-004", 12.3515625, 96 * (1 + 7 / (8 * 3))), ("KOR-008", 26.5625, 128)])
def test_korthikanti_activation_bars(evidence, identifier, gib, in_flight_layers):
    run, assumed = run_of(evidence, identifier), []
    model, stack = model_of(run, catalog(), assumed), stack_of(run, catalog(), assumed)
    degrees = degrees_of(run, stack, assumed)
    question = question_of(catalog(), model, (candidate_of(run, stack, catalog(), assumed),), stack,
                           sequence_length=run.seq_len, global_batch=run.global_batch_seqs, precisions=("fp16",),
                           method="pretrain", confidence=0.95)
    selective = saved_per_token(question, degrees.table)[0, 1]
    tokens = run.seq_len * run.micro_batch
    assert selective * tokens * in_flight_layers / GIB == pytest.approx(gib, rel=0.01)


# SimuMax B200 measurements v1.2: Megatron-LM, Llama 3 70B cut to 12 layers, allocated
@pytest.mark.parametrize(("identifier", "gib"), [
    ("B200MC-llama3_70b_l12_tp1_pp2_dp4_mbc4_cef", 66.55), ("B200MC-llama3_70b_tp2_pp1_dp4_l12_mbc4_cef", 60.68),
    ("B200MC-llama3_70b_l12_tp4_pp1_dp2_mbc4_cef", 39.07), ("B200MC-llama3_70b_l12_tp8_pp1_dp1_mbc4_cef", 28.29)])
def test_megatron_memory_within_four_percent(evidence, identifier, gib):
    found = predict(run_of({"m": evidence["train_memory"]}, identifier), catalog(), memory_only=True)
    assert found.memory_gib("allocated") == pytest.approx(gib, rel=0.04)


# torchtitan benchmarks/llama3_h100_202412_torchtitan.md: context parallelism keeps memory level, 83.9 to 84.5 GiB
@pytest.mark.parametrize("identifier", ["titan-007", "titan-008", "titan-009", "titan-010"])
def test_torchtitan_context_parallel_memory_within_five_percent(evidence, identifier):
    found = predict(run_of(evidence, identifier), catalog(), memory_only=True)
    assert found.memory_gib("reserved") == pytest.approx(84.2, rel=0.05)


def test_every_row_is_predicted_or_skipped_with_a_reason(evidence, compared):
    for name, held in evidence.items():
        ids = [o.row.id for o in compared[name].outcomes] + [i for i, _ in compared[name].skipped]
        assert sorted(ids) == sorted(row.id for row in held.rows)
        assert all(reason for _, reason in compared[name].skipped)
        for outcome in compared[name].outcomes:
            assert math.isfinite(outcome.prediction.evaluation.step.seconds)
            assert all(math.isfinite(e.error) for e in outcome.entries if e.error is not None)


@pytest.mark.parametrize(("stack", "median"), [
    ("megatron-core", 0.07), ("llm-foundry", 0.08), ("fsdp2", 0.12), ("internevo", 0.12), ("llmq", 0.12),
    ("megatron-deepspeed", 0.15)])
def test_step_time_by_stack_stays_as_good_as_it_is(compared, stack, median):
    entries = [e for o in compared["train_throughput"].outcomes if o.prediction.stack == stack for e in o.entries
               if e.quantity == "tokens_per_s_per_gpu"]
    assert len(entries) > 30
    assert errors(entries)["median_abs_error"] < median


def test_nvidias_runs_fit_where_they_ran(compared):
    """Every Megatron-Core run of the tables ran: the median prediction leaves none far outside its GPU."""
    memory = [o.prediction.evaluation.memory for o in compared["train_throughput"].outcomes
              if o.prediction.stack == "megatron-core"]
    shares = np.array([m.device / m.usable for m in memory])
    assert len(shares) > 80
    assert np.percentile(shares, 90) < 1.0
    assert shares.max() < 1.15


def test_no_run_that_failed_is_said_to_fit(compared):
    failed = [e for o in compared["train_memory"].outcomes for e in o.entries
              if e.quantity == "fits" and e.measured == "no"]
    assert len(failed) > 8
    assert not [e.id for e in failed if e.predicted == "fits"]

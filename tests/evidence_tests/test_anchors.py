"""Published figures that the predictions must meet, each with its source and tolerance; and the files as a whole."""

import math
import re

import numpy as np
import pytest

from planner.catalog.stack import Stack
from planner.evidence.degrees import degrees_of
from planner.evidence.hardware import candidate_of
from planner.evidence.prediction import predict
from planner.evidence.reading import read_evidence
from planner.evidence.shape import _in_catalog, model_of
from planner.evidence.software import stack_of
from planner.evidence.summary import errors
from planner.fit.knobs import knobs_of
from planner.physics.training.activations import saved_per_token
from planner.physics.training.question import question_of
from planner.units import GIB
from tests.evidence_tests.csv_file import DATA, catalog
from tests.evidence_tests.csv_file import compared as against_predictions


@pytest.fixture(scope="module")
def evidence():
    return {name: read_evidence(DATA / f"{name}.csv")
            for name in ("train_throughput", "train_memory", "finetune_throughput")}


@pytest.fixture(scope="module")
def compared(evidence):
    return {name: against_predictions(name) for name in evidence}


def run_of(evidence, identifier):
    return next(row.run for held in evidence.values() for row in held.rows if row.id == identifier)


# NVIDIA/dgxc-benchmarking, v25.04 and v25.05: Llama 3 70B bf16, 64 H100, TP4 PP4 CP2 VPP5
def test_dgx_cloud_llama_70b_takes_14_66_seconds(tmp_path):
    from tests.evidence_tests.csv_file import THROUGHPUT, validated, write

    (entry,) = validated(write(tmp_path / "runs.csv", THROUGHPUT))["rows"]
    assert entry["measured"] == 14.66
    assert abs(entry["error"]) < 0.05


# Korthikanti et al. 2022 (arXiv 2205.05198), figure 1: activations with sequence parallelism and selective recompute
@pytest.mark.parametrize(("identifier", "gib", "in_flight_layers"), [
    ("KOR-002", 9.5625, 48), ("KOR-004", 12.3515625, 96 * (1 + 7 / (8 * 3))), ("KOR-008", 26.5625, 128)])
def test_korthikanti_activation_bars(evidence, identifier, gib, in_flight_layers):
    run, assumed = run_of(evidence, identifier), []
    model = model_of(run, catalog(), assumed)
    stack = stack_of(run, model, catalog(), assumed)
    degrees = degrees_of(run, model, stack, catalog().sources, assumed)
    hardware = candidate_of(run, stack, catalog(), assumed, gpus=degrees.gpus)
    question = question_of(catalog(), model, (hardware,), stack,
                           sequence_length=run.seq_len, global_batch=run.global_batch_seqs, precisions=("fp16",),
                           method="pretrain", confidence=0.95)
    selective = saved_per_token(question, degrees.table, question.shape.kinds[0][0])[0, 1]
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


def test_every_shipped_constant_is_one_that_may_be_fitted(compared):
    """And lies over the entry it names: a renamed field would silently drop it."""
    (fitted,) = catalog().fitted
    outcomes = [*compared["train_throughput"].outcomes, *compared["finetune_throughput"].outcomes]
    known = {(knob.place, knob.field) for knob in knobs_of(catalog(), outcomes)}
    for place, fields in fitted.values.items():
        assert {(place, field) for field in fields} <= known
    assert catalog().stack("llmq").slowdown == fitted.values["stacks/llmq"]["slowdown"].value
    assert catalog().stack("llmq").provenance("slowdown").kind == "fitted"
    assert all(isinstance(stack, Stack) for stack in catalog().all("stacks", Stack))


STACKS = {"megatron-core": ("megatron-core", "megatron-bridge"),
          "fsdp2": ("fsdp2", "fsdp2-eager", "fsdp2-async-tp", "fsdp2-rowwise")}
"""Stacks that are another with facts of their own: NVIDIA's recipes, torchtitan's options."""


LATER, LATEST = ("ML51", "PRI", "FAP"), ("ML60", "OLC", "NSUM", "FLA", "SAI", "MLL", "DLP", "TTP", "PTH")
"""Sources that came in after these bounds, with bounds of their own."""


def speeds(compared, stack, architecture=None, *, experts=False, method="pretrain", later=False):
    return [e for o in compared["train_throughput"].outcomes for e in o.entries
            if (o.row.prefix in LATER) == later and o.row.prefix not in LATEST
            and o.prediction.stack in STACKS.get(stack, (stack,))
            and architecture in (None, o.prediction.architecture)
            and bool(o.row.run.experts) == experts and o.prediction.method == method
            and e.quantity == "tokens_per_s_per_gpu"]


@pytest.mark.parametrize(("stack", "architecture", "median"), [
    ("megatron-core", "hopper", 0.05), ("llm-foundry", "ampere", 0.04), ("llm-foundry", "hopper", 0.04),
    ("fsdp2", "hopper", 0.10), ("internevo", "ampere", 0.05), ("llmq", None, 0.05),
    ("megatron-deepspeed", "ampere", 0.06), ("megatron-core", "blackwell", 0.07)])
def test_step_time_by_stack_stays_as_good_as_it_is(compared, stack, architecture, median):
    entries = speeds(compared, stack, architecture)
    assert len(entries) > 30
    assert errors(entries)["median_abs_error"] < median


@pytest.mark.parametrize(("stack", "architecture", "rows", "median"), [
    ("megatron-core-2025", "blackwell", 70, 0.09), ("megatron-core-2025", "hopper", 15, 0.12),
    ("megatron-core", "blackwell", 20, 0.15)])
def test_step_time_of_mixtures_of_experts_stays_as_good_as_it_is(compared, stack, architecture, rows, median):
    entries = speeds(compared, stack, architecture, experts=True)
    assert len(entries) > rows
    assert errors(entries)["median_abs_error"] < median


@pytest.mark.parametrize(("architecture", "method", "rows", "median"), [
    ("blackwell", "pretrain", 25, 0.06), ("blackwell", "lora", 25, 0.06), ("hopper", "lora", 8, 0.05),
    ("cdna3", "lora", 12, 0.09), ("cdna4", None, 10, 0.09)])
def test_step_time_of_mlperf_5_1_stays_as_good_as_it_is(compared, architecture, method, rows, median):
    entries = [e for one in ((method,) if method else ("pretrain", "lora"))
               for e in speeds(compared, "megatron-core", architecture, method=one, later=True)]
    assert len(entries) > rows
    assert errors(entries)["median_abs_error"] < median


@pytest.mark.parametrize(("prefix", "rows", "median", "kinds"), [
    # taken for the slow experts of releases before 26.06: 16%
    ("ML60", 29, 0.09, {"megatron-bridge", "megatron-core"}), ("OLC", 8, 0.08, {"fsdp2"}),
    ("NSUM", 26, 0.07, {"megatron-bridge", "megatron-core-2025"}), ("FLA", 5, 0.12, {"fsdp2"}),
    ("DLP", 14, 0.12, {"megatron-deepspeed"}),
    # attending on B200 as FlashAttention 2 does on Hopper, which torchtitan has cuDNN for: half as fast as it ran
    ("PTH", 1, 0.10, {"fsdp2"})])
def test_a_source_is_read_as_the_stack_that_its_configs_run(compared, prefix, rows, median, kinds):
    outcomes = [o for o in compared["train_throughput"].outcomes if o.row.prefix == prefix]
    assert len(outcomes) == rows
    assert {o.prediction.stack for o in outcomes} == kinds
    assert errors([e for o in outcomes for e in o.entries if e.quantity == "tokens_per_s_per_gpu"])[
        "median_abs_error"] < median


@pytest.mark.parametrize("architecture", ["hopper", "blackwell"])
def test_step_time_of_adapters_stays_as_good_as_it_is(compared, architecture):
    entries = speeds(compared, "megatron-core", architecture, method="lora")
    assert len(entries) > 12
    assert errors(entries)["median_abs_error"] < 0.09


@pytest.mark.parametrize(("method", "rows", "median"), [
    ("pretrain", 45, 0.10), ("full", 30, 0.10), ("lora", 50, 0.11), ("qlora", 30, 0.12)])
def test_memory_by_method_stays_as_good_as_it_is(compared, method, rows, median):
    entries = [e for o in compared["train_memory"].outcomes for e in o.entries
               if o.prediction.method == method and o.row.stated and e.quantity == "peak_mem_gib"]
    assert len(entries) > rows
    assert errors(entries)["median_abs_error"] < median


@pytest.mark.parametrize(("architectures", "rows", "typical", "most", "worst"), [
    (("hopper", "ampere"), 70, 0.95, 1.0, 1.15),
    # recipes of Blackwell offload activations of up to 40 layers, which the tables do not say
    (("blackwell",), 90, 0.95, 1.2, 2.0)])
def test_nvidias_dense_runs_fit_where_they_ran(compared, architectures, rows, typical, most, worst):
    """Every Megatron-Core run of the tables ran: the median prediction leaves none far outside its GPU."""
    memory = [o.prediction.evaluation.memory for o in compared["train_throughput"].outcomes
              if o.prediction.stack in STACKS["megatron-core"] and not o.row.run.experts
              and o.prediction.method == "pretrain" and o.prediction.architecture in architectures]
    shares = np.array([m.device / m.usable for m in memory])
    assert len(shares) > rows
    assert np.median(shares) < typical
    assert np.percentile(shares, 90) < most
    assert shares.max() < worst


@pytest.mark.parametrize("name", ["train_throughput", "train_memory"])
def test_at_most_a_tenth_of_the_usable_rows_is_skipped(evidence, compared, name):
    skipped = {identifier for identifier, _ in compared[name].skipped}
    usable = [row.id for row in evidence[name].rows if is_usable(row)]
    assert len(usable) > 300
    assert len(skipped.intersection(usable)) < 0.1 * len(usable)


def is_usable(row):
    """Say whether a row states model shape (or a catalog model), GPU, GPU count, batch and length, and is sound."""
    run, measured = row.run, row.measured
    shape = _in_catalog(run.model or "", catalog()) or (run.layers and run.hidden and run.heads)
    quantities = (measured.tokens_per_s_per_gpu, measured.step_time_s, measured.peak_mem_gib, measured.fits)
    return bool(shape and run.gpu and run.gpus and run.seq_len and (run.micro_batch or run.global_batch_seqs)
                and not row.suspect and any(q is not None for q in quantities))


def test_no_run_that_failed_is_said_to_fit(compared):
    failed = [e for o in compared["train_memory"].outcomes for e in o.entries
              if e.quantity == "fits" and e.measured == "no"]
    assert len(failed) > 8
    assert not [e.id for e in failed if e.predicted == "fits"]


def test_hybrids_with_state_space_layers_run_as_published(compared):
    """Nemotron 3 Nano on four kinds of GPU; the passes of its recurrences are fitted to these rows."""
    entries = [e for o in compared["train_throughput"].outcomes for e in o.entries
               if "Nemotron3-Nano" in (o.row.run.model or "") and e.quantity == "tokens_per_s_per_gpu"]
    assert len(entries) >= 19
    assert errors(entries)["median_abs_error"] < 0.08


def test_jobs_of_three_kinds_of_groups_hold_what_nvidia_smi_showed(compared):
    """BigScience's log of BLOOM's trials (TP x PP x DP, ZeRO-1, full recompute), readings in the notes of its rows."""
    shares = []
    for outcome in compared["train_throughput"].outcomes:
        read = re.search(r"nvidia-smi (\d+)GB", outcome.row.run.notes or "")
        if read:
            shares.append(outcome.prediction.evaluation.memory.device / (int(read.group(1)) * GIB))
    assert len(shares) > 35
    assert np.median(np.abs(np.array(shares) - 1)) < 0.05
    assert np.percentile(np.abs(np.array(shares) - 1), 90) < 0.10


def test_a_shape_is_taken_for_a_model_of_its_family_alone(evidence):
    # MPT 3B has every width of Pythia 2.8B, whose positions are rotary and whose blocks run side by side
    model = model_of(run_of(evidence, "LLMF-041"), catalog(), [])
    pythia = catalog().model("pythia-2.8b")
    assert (model.hidden, model.layers) == (pythia.hidden, pythia.layers)
    assert (model.positions, model.layer_kinds()[-1].parallel) == ("alibi", False)

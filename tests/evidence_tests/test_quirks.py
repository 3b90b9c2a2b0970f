"""What sources leave to their words is data: rules with provenance, in linear time, that no measurement can enter."""

import importlib
import pkgutil
import re
from typing import get_args

import pytest

import planner.evidence
from planner.catalog.load import Catalog
from planner.catalog.quirk import COLUMNS, KNOWN, Question, Quirks, bounded
from planner.errors import InputError
from planner.evidence.posttraining import RlMeasured
from planner.evidence.prediction import predict
from planner.evidence.reading import read_evidence
from planner.evidence.rl_rows import RlRun
from planner.evidence.rows import ServeMeasured, ServeRun, TrainMeasured, TrainRun
from planner.evidence.whole_rows import StatedWholeRun, WholeMeasured
from tests.evidence_tests.csv_file import DATA, MEMORY, THROUGHPUT, catalog, validated, write

HEAD = "name: lab\nsource: our own\nas_of: 2026-11\nkind: quoted\nquirks:\n"


def own(tmp_path, *rules):
    (tmp_path / "lab" / "evidence").mkdir(parents=True)
    (tmp_path / "lab" / "evidence" / "lab.yaml").write_text(HEAD + "".join(f"  {rule}\n" for rule in rules))
    return Catalog([tmp_path / "lab"])


def test_a_rule_reads_what_was_run_and_nothing_measured():
    kinds = (TrainMeasured, ServeMeasured, WholeMeasured, RlMeasured)
    measured = {name for kind in kinds for name in kind.model_fields}
    assert StatedWholeRun.model_fields.keys() | ServeRun.model_fields.keys() | RlRun.model_fields.keys() >= COLUMNS
    assert not (COLUMNS | KNOWN) & measured


def test_every_question_has_rules_and_no_pattern_is_written_twice_alike():
    files = catalog().all("evidence", Quirks)
    assert {question for file in files for question in file.quirks} == set(get_args(Question))
    for file in files:
        for question, rules in file.quirks.items():
            conditions = [tuple(rule.when.items()) for rule in rules]
            assert len(set(conditions)) == len(conditions), question


@pytest.mark.parametrize("pattern", [
    "a*b", "a+", ".*", "(a|b)+", "(ab){2}", r"\d{2,}", "[ab]*", ".{0,99}" * 4, "(a?){1,9}", "(", "x" * 401])
def test_a_pattern_that_could_take_more_than_linear_time_is_refused(tmp_path, pattern):
    rules = own(tmp_path, f"tuned: [{{when: {{notes: '{pattern}'}}, source: our own, kind: quoted}}]")
    with pytest.raises(InputError, match=r"lab.yaml:6: quirks.tuned.0.when.notes: ") as caught:
        _ = rules.sources
    assert pattern[:20] in str(caught.value) or "400 characters" in str(caught.value)


@pytest.mark.parametrize("pattern", [r"\*\+", "[*+]{1,9}", "(a)?b?", r"\d{1,9}", "(?i:a)|(?<!b)c", r"[\]+]"])
def test_a_bounded_pattern_is_accepted(pattern):
    assert bounded(pattern) == pattern


def test_no_pattern_in_the_code_of_evidence_repeats_without_a_bound():
    patterns = {module.name: [value.pattern for value in vars(importlib.import_module(
        f"planner.evidence.{module.name}")).values() if isinstance(value, re.Pattern)]
        for module in pkgutil.iter_modules(planner.evidence.__path__)}
    assert all(bounded(pattern) for some in patterns.values() for pattern in some)
    # what logs look like is their programs' format; what sources mean is data
    assert sum(len(some) for name, some in patterns.items() if not name.endswith("_logs")) < 10


@pytest.mark.parametrize(("rule", "expected"), [
    ("stak: [{source: our own, kind: quoted}]", "quirks: no question 'stak'; did you mean stack?"),
    ("tuned: [{when: {noets: x}, source: our own, kind: quoted}]", "no column 'noets' that a rule may read; did you"),
    ("tuned: [{when: {mfu: x}, source: our own, kind: quoted}]", "no column 'mfu' that a rule may read"),
    ("vpp: [{value: two, source: our own, kind: quoted}]", "vpp is answered by a number, got 'two'"),
    ("tuned: [{when: {notes: x}, kind: quoted}]", "quirks.tuned.0.source: required, but missing"),
    ("tuned: [{when: {notes: x}, source: our own}]", "quirks.tuned.0.kind: required, but missing")])
def test_a_wrong_rule_names_file_line_and_key(tmp_path, rule, expected):
    with pytest.raises(InputError) as caught:
        validated(write(tmp_path / "runs.csv", THROUGHPUT), own(tmp_path, rule))
    assert re.search("lab.yaml:[56]: quirks", str(caught.value))
    assert expected in str(caught.value)


def test_a_rule_of_your_own_answers_before_the_shipped_ones(tmp_path):
    row = THROUGHPUT | {"framework": "NeMo of our lab", "recompute": "", "source": "our wiki"}
    path = write(tmp_path / "runs.csv", row)
    ours = own(tmp_path, "usual_recompute: [{when: {source: our wiki}, value: full, source: the wiki, kind: quoted}]")
    (before,), (after,) = (validated(path, known)["rows"] for known in (catalog(), ours))
    assert (before["assumed"], after["assumed"]) == (["recompute=none"], ["recompute=full"])
    assert after["predicted"] > before["predicted"]


def test_conditions_are_patterns_bounds_numbers_and_nothing_stated(tmp_path):
    rules = ", ".join(f"{{when: {when}, value: {value}, source: our own, kind: quoted}}" for when, value in (
        ("{year: '>= 2026', gpus: 8}", "both"), ("{year: <= 2019}", "old"), ("{framework or source: ^b}", "first"),
        ("{source and notes: b c}", "joined"), ("{framework: null, source: ^a}", "open")))
    said = own(tmp_path, f"stack: [{rules}]").sources
    for run, expected in ((TrainRun(year=2026, gpus=8), "both"), (TrainRun(year=2010, gpus=80), "old"),
                          (TrainRun(source="B"), "first"), (TrainRun(framework="a", source="b", notes="c"), "joined"),
                          (TrainRun(source="a"), "open"), (TrainRun(year=2020, framework="none of all"), None)):
        assert said.word("stack", run) == expected


@pytest.mark.parametrize(("change", "least", "most"), [
    # attention in 8 bits, of which Megatron-Core's stack names no kernel: a fifth off a tenth of the step
    ({"notes": "FP8 attention"}, 1.01, 1.08),
    # norms, activations and casts fused: half of a tenth, and of the casts of 8 bits
    ({"source": "MLPerf Training v6.0", "framework": "NeMo"}, 1.03, 1.12),
    # the same with tensor parallelism, where the configs turn it off
    ({"source": "MLPerf Training v6.0", "framework": "NeMo", "tp": "2", "dp": "4"}, 1, 1)])
def test_what_a_config_turns_on_makes_the_run_faster(tmp_path, change, least, most):
    base = THROUGHPUT | dict.fromkeys(("vpp", "layers", "hidden", "ffn", "heads", "kv_heads"), "") | {
        "framework": "NeMo", "source": "NVIDIA", "model": "Llama3.1-8B", "gpu": "b200", "gpus": "8",
        "gpus_per_node": "8", "tp": "1", "cp": "1", "pp": "1", "dp": "8", "seq_len": "8192",
        "global_batch_seqs": "16", "micro_batch": "2", "precision": "fp8", "recompute": "none"}
    plain = base | {key: value for key, value in change.items() if key in ("tp", "dp")}
    path = write(tmp_path / "runs.csv", plain, plain | {"id": "on"} | change)
    before, after = (row["predicted"] for row in validated(path, catalog())["rows"])
    assert least <= before / after <= most


def test_an_optimizer_on_the_host_steps_with_the_threads_that_its_processes_have():
    """LLaMA-7B on eight A800: eight threads at 1e8 parameters/s step 6.74e9 in 8.4 s."""
    rows = {row.id: row.run for row in read_evidence(DATA / "finetune_throughput.csv").rows}
    alone = rows["FCY-003"]
    shared = alone.model_copy(update={"notes": "optimizer on the host"})
    one, all_of_them = (predict(run, catalog()).evaluation.step.components["offload"] for run in (alone, shared))
    assert one == pytest.approx(6.74e9 / (8 * 1e8), rel=0.05)
    assert all_of_them < one / 5


@pytest.mark.parametrize(("scaleout", "name"), [
    ("Slingshot 11 2x200Gb", "slingshot-11"), ("Slingshot 11 2x200Gb by TCP sockets", "slingshot-11-sockets")])
def test_a_network_without_its_plugin_is_another_one(scaleout, name):
    assert catalog().sources.word("fabric", TrainRun(scaleout=scaleout), nic_gbit="200") == name


def test_a_number_is_caught_from_the_text():
    said = catalog().sources
    assert said.whole("vpp", TrainRun(notes="1F1B, VPP = 5")) == 5
    assert said.several("workers", ServeRun(notes="prefill 3x(TP8 DP1 EP8) decode 2x(TP16 DP4 EP16)")) == (
        "3", "8", "1", "8", "2", "16", "4", "16")
    assert said.number("vpp", TrainRun(notes="no such thing")) is None


def test_a_layout_without_a_finite_prediction_is_skipped(tmp_path):
    """InternEvo shards over 4 ranks, where experts are spread over 8."""
    row = THROUGHPUT | {"model": "house-made", "experts": "8", "experts_per_token": "2", "moe_ffn": "14336", "ep": "8",
                        "notes": "zero1=4", "dp": "16", "cp": "1", "gpus": "256"}
    (skipped,) = validated(write(tmp_path / "runs.csv", row), catalog())["skipped"]
    assert skipped["reason"] == "ep 8 is wider than a shard group of 4"


@pytest.mark.parametrize(("change", "reason"), [
    ({"model": "BERT-Large"}, "architecture of BERT-Large is not modeled"),
    ({"model": "house-made", "heads": "48"}, "heads 48 and kv_heads 8 do not divide hidden 4096"),
    ({"gpu_mem_gib": "0"}, "line 3: column gpu_mem_gib: expected a number above zero, got '0'"),
    ({"gpu": "gb999"}, "GPU gb999 is not in the catalog"),
    ({"scaleout": "IB 0x0Gb"}, "bandwidth: ")])
def test_whatever_is_wrong_with_a_row_is_its_reason(tmp_path, change, reason):
    row = MEMORY | {"gpu_mem_gib": "", "scaleout": ""}
    found = validated(write(tmp_path / "m.csv", row, row | {"id": "wrong"} | change), catalog())
    assert [entry["id"] for entry in found["rows"]] == ["titan-1"]
    (skipped,) = found["skipped"]
    assert skipped["id"] == "wrong"
    assert skipped["reason"].startswith(reason)


@pytest.mark.parametrize(("notes", "layers"), [
    ("36 layers checkpointed", 36), ("selective checkpointing, 36 of 80 layers", 36), ("num_ckpt_layers=36", 36),
    ("activation checkpointing on 36 layers", 36), ("36/80 layers with activation checkpointing", 36),
    ("layers to checkpoint: 36", 36), ("partial checkpointing (36 layers)", 36), ("0 checkpointed layers", 0),
    ("checkpoint every 2 layers", None), ("activation checkpointing 50%", None)])
def test_layers_that_are_recomputed_are_read_from_the_text(notes, layers):
    assert catalog().sources.whole("recompute_layers", TrainRun(notes=notes)) == layers


def test_some_recomputed_layers_take_a_time_between_none_and_all():
    def seconds(**said):
        run = TrainRun(framework="PyTorch FSDP", model="llama-2-7b", gpu="a100-sxm-80gb", gpus=64, seq_len=2048,
                       micro_batch=1, global_batch_seqs=64, sharding="zero3/fsdp", **said)
        return predict(run, catalog()).evaluation.step.seconds

    none, full = seconds(recompute="none"), seconds(recompute="full")
    some = seconds(recompute="selective", notes="8 of 32 layers checkpointed")
    assert seconds(recompute="selective", notes="0 layers checkpointed") == pytest.approx(none)
    assert some - none == pytest.approx((full - none) / 4, rel=0.05)

"""Serving speed: the whole file within its documented errors, inputs that are never measurements, rows one by one."""

import random
from dataclasses import replace

import pytest

from planner.evidence.compare import compare
from planner.evidence.ranking import rank_served
from planner.evidence.reading import read_evidence
from planner.evidence.residuals import speed_samples
from planner.evidence.serve_run import measured_by
from planner.evidence.summary import errors
from planner.fit.serving_rows import serving_rows
from tests.evidence_tests.csv_file import DATA, catalog, rows_of, validated, write

MEASURED = ("output_tok_s_total", "output_tok_s_per_gpu", "total_tok_s_per_gpu", "ttft_ms", "tpot_ms",
            "interactivity_tok_s_user", "peak_mem_gib", "request_rate")
ROW = {"id": "x-1", "source": "house", "engine": "vLLM", "engine_version": "0.17.0", "gpu": "h100-sxm", "gpus": "4",
       "model": "Llama-3.3-70B-Instruct", "weight_precision": "fp8", "tp": "4", "pp": "1", "ep": "", "dp": "",
       "disaggregated": "0", "isl": "2000", "osl": "300", "concurrency": "32", "max_batch": "",
       "output_tok_s_total": "", "output_tok_s_per_gpu": "", "total_tok_s_per_gpu": "", "ttft_ms": "500",
       "tpot_ms": "25", "notes": "", "suspect": ""}


@pytest.fixture(scope="module")
def compared():
    """Every fourth row, and all of MLPerf, whose rates within limits are few; docs/validation.md is of all."""
    evidence = read_evidence(DATA / "serve_throughput.csv")
    rows = [row for at, row in enumerate(evidence.rows) if at % 4 == 0 or "MLPerf" in (row.run.source or "")]
    return compare(replace(evidence, rows=rows), catalog())


def predicted(tmp_path, *rows):
    return validated(write(tmp_path / "s.csv", *rows))


def test_few_usable_rows_are_skipped(compared):
    """A usable row states its lengths and a model, and is not suspect."""
    reasons = [reason for _, reason in compared.skipped if "not stated" not in reason and reason != "marked suspect"]
    assert len(reasons) < 10
    assert len(compared.speeds) > 5500 / 4


@pytest.mark.parametrize(("quantity", "regimes", "median", "p90"), [
    ("output_tok_s_per_gpu", ("static", "offline", "closed"), 0.10, 0.40), ("tpot_ms", ("closed",), 0.105, 0.35),
    ("ttft_ms", ("closed",), 0.28, 0.95), ("output_tok_s_per_gpu", ("server",), 0.20, 0.55),
    ("tpot_ms", ("server",), 0.25, 0.55), ("ttft_ms", ("server",), 0.30, 0.75),
    ("output_tok_s_per_gpu", ("decode",), 0.20, 0.65)])
def test_the_file_is_within_its_documented_errors(compared, quantity, regimes, median, p90):
    regime = {row.id: speed.row.regime for row, speed in compared.speeds}
    found = errors([e for e in compared.served if e.quantity == quantity and regime[e.id] in regimes])
    assert found["median_abs_error"] < median
    assert found["p90_abs_error"] < p90
    # intervals are made to hold 90% of a source that took no part, so that they hold more of those that did
    assert found["interval90_coverage"] > 0.86


def test_published_runs_in_4_bits_are_within_what_others_are(compared):
    """On A100, H20, L4, RTX 3060, 3090, 4090 and PRO 6000, of vLLM and SGLang."""
    format_of = {row.id: speed.row.format for row, speed in compared.speeds if speed.row.engine in ("vllm", "sglang")}
    found = errors([e for e in compared.served if format_of.get(e.id) in ("int4", "w4a16")
                    and e.quantity in ("output_tok_s_per_gpu", "tpot_ms")])
    assert found["n"] > 20
    assert found["median_abs_error"] < 0.12
    assert abs(found["bias"]) < 0.1


def test_layouts_come_out_in_order(compared):
    found = rank_served(compared.speeds)
    assert found["groups"] > 20
    assert found["median_spearman"] > 0.85
    assert found["mean_top1_regret"] < 0.05


def test_predictions_do_not_change_when_measurements_do(tmp_path):
    rows = rows_of("serve_throughput")[::61]
    before = predictions(predicted(tmp_path, *rows))
    mixed = [dict(row) for row in rows]
    for column in MEASURED:
        values = [row[column] for row in rows]
        random.Random(7).shuffle(values)
        for row, value in zip(mixed, values, strict=True):
            row[column] = value
    after = predictions(predicted(tmp_path, *mixed))
    both = before.keys() & after.keys()
    assert len(both) > 40
    assert {key: before[key] for key in both} == {key: after[key] for key in both}


def test_a_row_is_predicted_alike_alone_and_among_others(tmp_path):
    rows = rows_of("serve_throughput")[::97]
    together = predictions(predicted(tmp_path, *rows))
    for row in rows[::6]:
        for key, (value, assumed) in predictions(predicted(tmp_path, row)).items():
            assert value == pytest.approx(together[key][0], rel=1e-9)
            assert assumed == together[key][1]


def predictions(result):
    return {(row["id"], row["quantity"]): (row["predicted"], row["assumed"]) for row in result["rows"]}


def test_entries_are_named_as_their_columns(tmp_path):
    found = predicted(tmp_path, ROW | {"output_tok_s_per_gpu": "300"})["rows"]
    assert [e["quantity"] for e in found] == ["output_tok_s_per_gpu", "ttft_ms", "tpot_ms"]
    assert all(e["interval90"][0] < e["predicted"] < e["interval90"][1] for e in found)
    assert found[0]["assumed"] == ["kv_precision=bf16"]


def test_a_row_whose_engine_nobody_states_counts_in_no_class(tmp_path):
    """MLPerf's submissions are known by their vendor; where no row of a file states an engine all count."""
    vendors = ROW | {"id": "x-3", "engine": "", "source": "MLPerf Inference v5.0"}
    rows = [ROW | {"id": "x-2", "engine": ""}, vendors, ROW]
    found = compare(read_evidence(write(tmp_path / "s.csv", *rows)), catalog())
    engines = {row.id: speed.row.engine for row, speed in found.speeds}
    assert engines == {"x-1": "vllm", "x-2": "vllm", "x-3": "tensorrt-llm"}
    assert {key: sample.is_open for key, _, sample in speed_samples(found, "tpot_ms", catalog().sources)} == {
        "x-1 tpot_ms": False, "x-2 tpot_ms": True, "x-3 tpot_ms": False}
    alone = compare(read_evidence(write(tmp_path / "a.csv", rows[0])), catalog())
    assert [sample.is_open for _, _, sample in speed_samples(alone, "tpot_ms", catalog().sources)] == [False]


def test_a_file_that_gathers_runs_of_two_measurers_is_two_sources(tmp_path):
    """And one measurer in two files is one, so that what is left out together is a site."""
    file, more = "ai-dynamo/aiconfigurator silicon_sample.csv", "SemiAnalysisAI/InferenceX experimental/x.csv"
    rows = [ROW | {"id": "x-1", "source": file, "source_detail": "InferenceX export 2026-04-06.csv measured 2025"},
            ROW | {"id": "x-2", "source": file, "source_detail": "NVIDIA gap-analysis 1.0.0rc3/Qwen_Qwen3-32B.csv"},
            ROW | {"id": "x-3", "source": more}, ROW | {"id": "x-4", "source": "a blog"}]
    found = read_evidence(write(tmp_path / "s.csv", *rows))
    by = {row.id: measured_by(row, catalog().sources) for row in found.rows}
    assert len({by["x-1"], by["x-2"], by["x-4"]}) == 3
    assert (by["x-3"], by["x-4"]) == (by["x-1"], "a blog")
    assert set(serving_rows([found], catalog()).row_sources) <= set(by.values())
    assert {sample.source for *_, sample in speed_samples(compare(found, catalog()), "tpot_ms", catalog().sources)
            } <= set(by.values())


def of_two_engines(quantity):
    """Return what many ran, and what nobody ran."""
    found = catalog().serving_residuals(quantity)
    assert {"SemiAnalysisAI/InferenceX", "NVIDIA gap analysis"} <= set(found.sources)
    return [found.at({"engine": engine, "kind": "dense", "architecture": "hopper", "regime": "closed", "tuned": "no"})
            for engine in ("tensorrt-llm", "llama-cpp")]


def test_intervals_of_first_tokens_follow_how_many_sources_ran_the_like():
    """Of InferenceX's and NVIDIA's runs in one file each counts; what nobody ran is the widest."""
    alike = of_two_engines("ttft_ms")
    assert alike[0].backing >= 2 > alike[1].backing == 0
    few = [sum(value for name, value in one.causes if name.startswith("few ")) for one in alike]
    assert few[1] == pytest.approx(2 * alike[0].backing * few[0])
    assert alike[1].q95 / alike[1].q05 > 1.2 * alike[0].q95 / alike[0].q05


@pytest.mark.parametrize("quantity", ["output_tok_s_per_gpu", "tpot_ms"])
def test_what_nobody_ran_is_wider(quantity):
    known, new = of_two_engines(quantity)
    assert "regime" in new.unseen
    assert new.q95 / new.q05 > 1.05 * known.q95 / known.q05


def test_output_is_a_share_of_both_directions_by_length(tmp_path):
    total, output = predicted(tmp_path, ROW | {"total_tok_s_per_gpu": "2300", "ttft_ms": "", "tpot_ms": ""})["rows"]
    assert (total["quantity"], output["quantity"]) == ("total_tok_s_per_gpu", "output_tok_s_per_gpu")
    assert output["measured"] == pytest.approx(300)
    assert total["error"] == pytest.approx(output["error"])


def test_lengths_that_are_drawn_below_what_is_stated_are_their_mean(tmp_path):
    """InferenceX draws from 80% to 100% of the lengths that it states."""
    drawn = ROW | {"source_detail": "InferenceX db-dump 2026-04-27", "kv_precision": "fp8"}
    means = ROW | {"id": "x-2", "isl": "1800", "osl": "270", "kv_precision": "fp8"}
    one, other = ([each["predicted"] for each in predicted(tmp_path, row)["rows"]] for row in (drawn, means))
    assert one
    assert one == pytest.approx(other)


def test_a_queue_that_is_full_has_no_time_to_the_first_token(tmp_path):
    row = ROW | {"notes": "offline maximum", "output_tok_s_per_gpu": "300", "concurrency": ""}
    assert "ttft_ms" not in [e["quantity"] for e in predicted(tmp_path, row)["rows"]]


@pytest.mark.parametrize(("change", "reason"), [
    ({"isl": ""}, "prompt or output length not stated"), ({"gpu": "gb999"}, "GPU gb999 is not in the catalog"),
    ({"engine": "homemade"}, "engine homemade is not modeled"), ({"suspect": "yes"}, "marked suspect"),
    ({"model": "unheard-of"}, "shape is not stated"), ({"weight_precision": "int3"}, "weights in int3 are not modeled"),
    ({"kv_precision": "q8_0"}, "a cache in q8_0 is not modeled"), ({"gpus": "-4"}, "line 2: column gpus: expected"),
    ({"disaggregated": "1"}, "its workers are not stated"), ({"ttft_ms": "", "tpot_ms": ""}, "no quantity stated")])
def test_a_skipped_row_says_why(tmp_path, change, reason):
    result = predicted(tmp_path, ROW | change)
    assert result["rows"] == []
    assert reason in result["skipped"][0]["reason"]


def test_three_layouts_of_one_question_are_ranked(tmp_path):
    rows = [ROW | {"id": f"x-{tp}", "tp": str(tp), "gpus": str(tp), "tpot_ms": str(60 / tp)} for tp in (2, 4, 8)]
    assert predicted(tmp_path, *rows)["summary"]["rank"]["groups"] == 1
    assert predicted(tmp_path, *rows[:2])["summary"]["rank"]["groups"] == 0


def test_an_interval_is_there_for_every_engine():
    for engine in ("vllm", "sglang", "tensorrt-llm", "llama-cpp", "none-such"):
        for mixture in (False, True):
            found = catalog().tpot_residuals.at({"engine": engine, "architecture": "hopper",
                                                 "kind": "moe" if mixture else "dense"})
            assert 0 < found.q05 < 1.2
            assert found.q05 < found.q95
            assert ("engine" in found.unseen) == (engine == "none-such")


# evidence/serving.md section 7: Llama 70B in fp8 on H100 at 1,000/1,000, TensorRT-LLM 0.20: one GPU holds few sequences
def test_a_starved_cache_costs_most_of_the_speed(tmp_path):
    row = ROW | {"engine": "TensorRT-LLM", "engine_version": "0.20", "isl": "1000", "osl": "1000", "concurrency": "",
                 "notes": "offline maximum", "ttft_ms": "", "tpot_ms": ""}
    one, two = predicted(tmp_path, row | {"id": "x-1", "gpus": "1", "tp": "1", "output_tok_s_per_gpu": "742"},
                         row | {"id": "x-2", "gpus": "2", "tp": "2", "output_tok_s_per_gpu": "2102"})["rows"]
    assert abs(one["error"]) < 0.3
    assert abs(two["error"]) < 0.2

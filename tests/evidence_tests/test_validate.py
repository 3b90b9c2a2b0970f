"""What validate_file returns: the contract's shape, one entry a stated quantity, a reason for each skipped row."""


import pytest

from tests.evidence_tests.csv_file import DATA, MEMORY, THROUGHPUT, validated, write


def test_the_json_has_the_contracts_shape(tmp_path):
    row = THROUGHPUT | {"tokens_per_s_per_gpu": "1118", "peak_mem_gib": "60"}
    result = validated(write(tmp_path / "runs.csv", row))
    assert list(result) == ["schema", "rows", "skipped", "summary"]
    assert result["schema"] == "planner.validation/1"
    assert [r["quantity"] for r in result["rows"]] == ["tokens_per_s_per_gpu", "step_time_s", "peak_mem_gib"]
    for entry in result["rows"]:
        assert list(entry) == ["id", "quantity", "predicted", "measured", "error", "interval90", "assumed"]
        assert entry["error"] == pytest.approx(entry["predicted"] / entry["measured"] - 1)
        assert entry["interval90"][0] < entry["interval90"][1]
    assert result["rows"][2]["assumed"] == ["mem_kind=reserved"]


def test_a_verdict_has_no_error(tmp_path):
    (entry,) = validated(write(tmp_path / "m.csv", MEMORY))["rows"]
    assert entry["quantity"] == "fits"
    assert (entry["predicted"], entry["measured"], entry["error"]) == ("fits", "yes", None)


@pytest.mark.parametrize(("recompute", "verdict"), [("", "tight"), ("none", "does not fit"), ("full", "fits")])
def test_a_verdict_heeds_the_recompute_that_a_row_leaves_open(tmp_path, recompute, verdict):
    row = MEMORY | {"source": "an example", "model": "Llama3-70B", "params_b": "70.6", "layers": "80", "hidden": "8192",
                    "ffn": "28672", "heads": "64", "gpus": "64", "tp": "4", "pp": "4", "dp": "4",
                    "sharding": "distopt", "weights_dtype": "bf16", "master_dtype": "fp32", "grad_accum": "32",
                    "micro_batch": "2", "recompute": recompute}
    (entry,) = validated(write(tmp_path / "m.csv", row))["rows"]
    assert (entry["quantity"], entry["predicted"]) == ("fits", verdict)


def test_a_reading_before_a_failure_is_no_need(tmp_path):
    row = MEMORY | {"peak_mem_gib": "60"}
    for fits, quantities in (("yes", ["peak_mem_gib", "fits"]), ("no", ["fits"])):
        result = validated(write(tmp_path / "m.csv", row | {"fits": fits}))
        assert [entry["quantity"] for entry in result["rows"]] == quantities


def test_tflops_and_mfu_are_not_compared(tmp_path):
    row = THROUGHPUT | {"step_time_s": "", "tflops_per_gpu": "400", "mfu": "0.4"}
    result = validated(write(tmp_path / "runs.csv", row))
    assert result["rows"] == []
    assert result["skipped"] == [{"id": "DGXC-1", "reason": "no quantity stated that is compared"}]


def test_the_interval_of_speed_is_that_of_time_turned_over(tmp_path):
    row = THROUGHPUT | {"tokens_per_s_per_gpu": "1118"}
    speed, step = validated(write(tmp_path / "runs.csv", row))["rows"]
    assert speed["predicted"] / speed["interval90"][1] == pytest.approx(step["interval90"][0] / step["predicted"])


@pytest.mark.parametrize(("change", "reason"), [
    ({"suspect": "yes"}, "marked suspect"), ({"gpu": "gb999"}, "GPU gb999 is not in the catalog"),
    ({"gpu": ""}, "GPU not stated"), ({"seq_len": ""}, "sequence length not stated"),
    ({"global_batch_seqs": "", "micro_batch": ""}, "batch not stated"),
    ({"precision": "fp4"}, "GPU h100-sxm has no fp4 rate"),
    ({"model": "Nemotron-H-8B"}, "its recurrent layers are not stated"),
    ({"model": "unheard-of", "layers": ""}, "shape is not stated (layers)"),
    ({"sharding": "mics"}, "sharding mics is not modeled"), ({"dp": "4"}, "= 128 where the row has 64 GPUs"),
    ({"global_batch_seqs": "129"}, "no multiple of dp 2 x micro-batch 1"),
    ({"gpu": "a100-sxm-80gb", "precision": "fp8"}, "no fp8 rate")])
def test_a_skipped_row_says_why(tmp_path, change, reason):
    result = validated(write(tmp_path / "runs.csv", THROUGHPUT | change))
    assert result["rows"] == []
    assert reason in result["skipped"][0]["reason"]


@pytest.mark.parametrize(("change", "reason"), [
    ({"method": "qlora", "base_quantization": "nf3"}, "base_quantization nf3 is not modeled"),
    ({"method": "rlhf"}, "method rlhf is not modeled"), ({"optimizer": "GaLore"}, "optimizer GaLore is not modeled"),
    ({"sharding": "device_map"}, "sharding device_map is not modeled"),
    ({"weights_dtype": "int3"}, "weights_dtype int3 is not modeled")])
def test_a_skipped_memory_row_says_why(tmp_path, change, reason):
    assert validated(write(tmp_path / "m.csv", MEMORY | change))["skipped"][0]["reason"] == reason


def test_a_mixture_of_experts_is_its_columns(tmp_path):
    row = THROUGHPUT | {"model": "house-made", "experts": "8", "experts_per_token": "2", "moe_ffn": "14336", "ep": "4"}
    (entry,) = validated(write(tmp_path / "runs.csv", row))["rows"]
    assert entry["assumed"] == ["tied_embeddings=no"]
    (dense,) = validated(write(tmp_path / "dense.csv", THROUGHPUT))["rows"]
    assert entry["predicted"] > dense["predicted"]


def test_experts_over_the_tensor_parallel_ranks_are_whole(tmp_path):
    row = THROUGHPUT | {"model": "house-made", "experts": "16", "experts_per_token": "2", "moe_ffn": "14336",
                        "ep": "16"}
    (entry,) = validated(write(tmp_path / "runs.csv", row))["rows"]
    assert "expert_tp=1" in entry["assumed"]
    assert validated(write(tmp_path / "no.csv", row | {"ep": "3"}))["skipped"][0]["reason"] == (
        "ep 3 does not divide tp x dp x cp = 16")


def test_a_job_on_racks_fills_equal_parts_of_them(tmp_path):
    row = THROUGHPUT | {"gpu": "gb200", "gpus_per_node": "4", "gpus": "128", "dp": "4", "scaleout": "IB NDR 4x400Gb"}
    (entry,) = validated(write(tmp_path / "runs.csv", row))["rows"]
    assert entry["assumed"] == ["nvlink_domain=64"]


def test_adapters_and_their_base_take_less_than_full_training(tmp_path):
    row = MEMORY | {"peak_mem_gib": "20", "sharding": "none", "gpus": "1", "dp": "1", "fits": "", "lora_targets": "",
                    "source": "huggingface/peft", "notes": "packed", "weights_dtype": "", "gradients_dtype": "",
                    "master_dtype": "", "moments_dtype": "", "base_quantization": ""}
    peaks = [validated(write(tmp_path / "m.csv", row | change))["rows"][0]["predicted"] for change in (
        {"method": "full"}, {"method": "lora", "lora_rank": "16"},
        {"method": "qlora", "lora_rank": "16", "base_quantization": "nf4"})]
    assert peaks[0] > 3 * peaks[1] > 3 * peaks[2]


def test_memory_of_engines_is_predicted_as_their_logs_print_it():
    """The targets of the summary: half of the weights within 1%, half of the caches within 3%."""
    summary = validated(DATA / "serve_memory.csv")["summary"]
    assert summary["weights_gib"]["n"] > 90
    assert summary["weights_gib"]["median_abs_error"] < 0.01
    for name, rows in ("kv_cache_gib", 70), ("kv_tokens_or_blocks", 90), ("max_concurrency", 75):
        assert summary[name]["n"] > rows
        assert summary[name]["median_abs_error"] < 0.01
        assert summary[name]["interval90_coverage"] > 0.85


def test_few_rows_of_engine_memory_are_skipped():
    """None but what states no model, no GPU and no weights, or contradicts itself."""
    result = validated(DATA / "serve_memory.csv")
    assert len(result["skipped"]) <= 14


def test_blocks_are_compared_as_blocks(tmp_path):
    row = {"id": "a", "model": "llama-3.1-8b", "gpu": "h100-sxm", "gpus": "1", "tp": "1", "engine": "vllm",
           "engine_version": "0.19.0", "weight_precision": "bf16", "kv_precision": "bf16", "block_size": "16",
           "gpu_memory_utilization": "0.95", "max_model_len": "8192", "weights_gib": "14.99", "kv_cache_gib": "58.11"}
    blocks = write(tmp_path / "b.csv", row | {"kv_tokens_or_blocks": "29750", "notes": "kv column counts BLOCKS"})
    tokens = write(tmp_path / "t.csv", row | {"kv_tokens_or_blocks": "476000", "notes": "kv column counts TOKENS"})
    found = [next(e for e in validated(path)["rows"] if e["quantity"] == "kv_tokens_or_blocks")
             for path in (blocks, tokens)]
    assert found[0]["predicted"] * 16 == found[1]["predicted"]
    assert abs(found[0]["error"]) < 0.01


def test_every_default_is_named(tmp_path):
    row = THROUGHPUT | {"vpp": "", "micro_batch": "", "sharding": "", "recompute": "", "precision": ""}
    (entry,) = validated(write(tmp_path / "runs.csv", row))["rows"]
    assert entry["assumed"] == ["vpp=20", "micro_batch=1", "zero=1", "recompute=none", "precision=bf16"]


def test_a_model_that_the_catalog_lacks_is_its_shape_columns(tmp_path):
    known = validated(write(tmp_path / "a.csv", THROUGHPUT))["rows"][0]
    named = THROUGHPUT | {"model": "house-made", "params_b": "70.55"}
    alike = validated(write(tmp_path / "a.csv", named))["rows"][0]
    assert (alike["predicted"], alike["assumed"]) == (known["predicted"], [])
    unknown = validated(write(tmp_path / "b.csv", named | {"ffn": "28160"}))["rows"][0]
    assert unknown["predicted"] == pytest.approx(known["predicted"], rel=0.02)
    assert unknown["assumed"] == ["tied_embeddings=no"]


def test_a_gpu_of_which_only_the_memory_is_known_still_has_a_verdict(tmp_path):
    row = MEMORY | {"gpu": "imaginary", "gpu_mem_gib": "16"}
    (entry,) = validated(write(tmp_path / "m.csv", row))["rows"]
    assert entry["predicted"] == "does not fit"
    assert "usable_memory=16 GiB" in entry["assumed"]


SPEED = {"id": "a-1", "model": "llama-3.1-8b", "gpu": "h100-sxm", "gpus": "1", "tp": "1", "engine": "vLLM",
         "isl": "1000", "osl": "200", "concurrency": "8", "kv_precision": "", "output_tok_s_per_gpu": "900"}


@pytest.mark.parametrize(("said", "reason"), [
    ("int4", "a cache in int4 is not modeled"), ("q8_0", "a cache in q8_0 is not modeled"), ("²", "a cache in ²"),
    ("FP8", None), ("fp8_e4m3", None), ("BF16", None), ("bfloat16", None)])
def test_a_cache_format_is_read_however_it_is_spelled_or_its_row_is_skipped(tmp_path, said, reason):
    result = validated(write(tmp_path / "s.csv", SPEED, SPEED | {"id": "a-2", "kv_precision": said}))
    assert [row["id"] for row in result["rows"]] == ["a-1", "a-2"][:1 if reason else 2]
    assert all(reason in skip["reason"] for skip in result["skipped"])
    assert len(result["skipped"]) == bool(reason)


@pytest.mark.parametrize("change", [{"gpus": "many"}, {"gpus_per_node": "999999999"}, {"layers": "1e6", "model": "x"},
                                    {"notes": "VPP=0", "vpp": ""}, {"notes": "VPP=" + "9" * 5000, "vpp": ""},
                                    {"hidden": "1e9", "model": "x"}, {"id": ""}])
def test_one_row_that_cannot_be_read_leaves_the_others(tmp_path, change):
    result = validated(write(tmp_path / "runs.csv", THROUGHPUT | change, THROUGHPUT))
    assert len(result["rows"]) + len(result["skipped"]) == 2
    assert result["rows"][-1]["id"] == "DGXC-1"
    assert result["skipped"][0]["reason"]

"""Manifests and scripts that start engines, as their projects publish them, and configs that scripts write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.scenario.configs.read import read_config
from planner.scenario.flags import FLAGS

CONFIGS = Path(__file__).parent / "configs"
CATALOG = Catalog()
FOUND: list[tuple[str, dict[str, Any], dict[str, str], int | None]] = [
    ("srt_slurm.yaml", {"engine": "sglang", "model": "deepseek-ai/DeepSeek-R1", "max_model_len": 16384, "gpus": 8},
     {"tp": "1", "dp": "8", "ep": "8"}, None),
    ("kubeai.yaml", {"engine": "vllm", "model": "neuralmagic/Meta-Llama-3.1-405B-Instruct-FP8", "kv_cache": "fp8"},
     {"tp": "8"}, None),
    ("llmisvc.yaml", {"model": "RedHatAI/NVIDIA-Nemotron-3-Ultra-550B-A55B-FP8-block", "gpus": 8}, {"tp": "8"}, None),
    ("chart.yaml", {"model": "facebook/opt-125m", "engine": "vllm"}, {"tp": "1"}, None),
    ("compose_script.yaml", {"engine": "vllm", "max_model_len": 176000, "engine_version": "0.22.0", "kv_cache": "fp8"},
     {"tp": "1"}, None),
    ("vllm_options.yaml", {"engine": "vllm", "max_model_len": 32768, "gpus": 8}, {"tp": "8"}, None),
    ("heredoc.sh", {"engine": "tensorrt-llm", "kv_cache": "fp8", "memory_fraction": 0.8, "gpus": 4},
     {"tp": "1", "dp": "4", "ep": "4"}, None),
    # a recipe by its name was read as Megatron's arguments, in fp32 and with nothing sharded
    ("perf.sh", {"stack": "megatron-bridge", "model": "qwen3-235b-a22b", "precision": "fp8", "gpus": 128,
                 "seq_len": 4096}, {"pp": "8", "ep": "16", "vpp": "3", "zero": "1", "mbs": "1"}, 2048)]


@pytest.mark.parametrize(("name", "values", "layout", "batch"), FOUND)
def test_published_manifests_are_read(name: str, values: dict[str, Any], layout: dict[str, str], batch: int | None):
    stated = {"workload.model": "llama-3.1-8b"} if name == "vllm_options.yaml" else {}
    found, axes = read_config(str(CONFIGS / name)).asked(stated, {}, 8, CATALOG)
    assert {key: found.get(FLAGS[key]) for key in values} == values
    assert {axis: axes.get(axis) for axis in layout} == layout
    assert found.get("workload.global_batch") == batch


@pytest.mark.parametrize("line", [
    "vllm serve Qwen/Qwen3-8B --tensor-parallel-size $TP",
    "python -m sglang.launch_server --model Qwen/Qwen3-8B --tp $TP"])
def test_a_degree_that_a_variable_holds_is_asked_for(line: str):
    config = read_config(line)
    with pytest.raises(InputError, match=r"\$TP is not set in the file: give --layout tp=N"):
        config.asked({}, {}, 8, CATALOG)
    values, axes = config.asked({}, {"tp": "4"}, 8, CATALOG)
    assert axes["tp"] == "4"
    assert "limits.gpus" not in values


@pytest.mark.parametrize(("text", "tp", "version"), [
    ("image: vllm/vllm-openai:perf-x86_64-13.0.1\ncommand: [vllm, serve, Qwen/Qwen3-8B, -tp, '2']\n", "2", None),
    ("type: service\nname: a\nimage: vllm/vllm-openai:v0.11.0\ncommands: ['vllm serve Qwen/Qwen3-8B --tensor-parallel "
     "$DSTACK_GPUS_NUM']\nresources: {gpu: 'MI300X:8'}\n", "8", "0.11.0"),
    ("services: {a: {image: 'vllm/vllm-openai:v0.11.0', entrypoint: [bash, -c, 'exec vllm serve \"$$@\"', --], "
     "command: [--model, Qwen/Qwen3-8B, --tensor-parallel-size, '${TP:-4}']}}\n", "4", "0.11.0")])
def test_degrees_and_releases_are_those_that_run(text: str, tp: str, version: str | None, tmp_path: Path):
    (tmp_path / "service.yaml").write_text(text)
    reading = read_config(str(tmp_path / "service.yaml")).reading
    assert reading.layout["tp"] == tp
    assert reading.values.get("workload.engine_version") == version

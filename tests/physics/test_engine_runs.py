"""What engines have kernels for: combinations that run, and those refused with what does run."""

from __future__ import annotations

import pytest

from planner.catalog.load import Catalog

ENGINES = ("vllm", "sglang", "tensorrt-llm", "llama-cpp")


@pytest.mark.parametrize(("engine", "architecture", "weights", "cache", "version", "reason"), [
    ("vllm", "hopper", "fp8", "bf16", None, None),
    ("vllm", "ampere", "fp8", "bf16", None, None),
    ("vllm", "turing", "fp8", "bf16", None, "no fp8 weights on turing GPUs: it has bf16"),
    ("vllm", "volta", "fp8", "bf16", "0.19.0", "no fp8 weights on volta GPUs"),
    ("vllm", "volta", "bf16", "bf16", "0.19.0", None),
    ("vllm", "volta", "bf16", "bf16", "0.20", "releases before 0.20 do (engine_version 0.19.0)"),
    ("vllm", "volta", "bf16", "bf16", None, "releases before 0.20 do (engine_version 0.19.0)"),
    ("vllm", "hopper", "nvfp4", "bf16", None, "no nvfp4 weights on hopper GPUs: it has bf16, fp8"),
    ("vllm", "cdna3", "nvfp4", "bf16", None, "no nvfp4 weights on cdna3 GPUs"),
    ("vllm", "blackwell", "nvfp4", "fp8", None, None),
    ("vllm", "blackwell", "int8", "bf16", None, "no int8 weights on blackwell GPUs"),
    ("vllm", "pascal", "bf16", "bf16", None, "does not run on pascal GPUs: it runs on ada, ampere"),
    ("vllm", "hopper", "mxfp4", "bf16", "0.10.1", None),
    ("vllm", "hopper", "mxfp4", "bf16", "0.10.0", "0.10.1 and later have"),
    ("vllm", "hopper", "bf16", "nvfp4", None, "no nvfp4 cache on hopper GPUs: it has bf16, fp8"),
    ("tensorrt-llm", "cdna3", "bf16", "bf16", None, "does not run on cdna3 GPUs: it runs on ada, ampere, blackwell"),
    ("tensorrt-llm", "hopper", "fp8", "fp8", None, None),
    ("sglang", "volta", "bf16", "bf16", None, "does not run on volta"),
    ("llama-cpp", "pascal", "int4", "bf16", None, None)])
def test_what_runs_where(engine: str, architecture: str, weights: str, cache: str, version: str | None,
                         reason: str | None) -> None:
    found = Catalog().engine(engine).lacks(architecture, weights, cache, version)
    assert found is None if reason is None else reason in (found or "")


@pytest.mark.parametrize("engine", ENGINES)
def test_the_names_in_the_table_are_known(engine: str) -> None:
    catalog = Catalog()
    gpus = {catalog.gpu(name).architecture for name in catalog.names("gpus")}
    for row in catalog.engine(engine).runs:
        assert set(row.on) <= gpus
        assert set(row.weights) <= {*catalog.formats.weights, *catalog.formats.gguf}
        assert set(row.cache) <= set(catalog.formats.cached)

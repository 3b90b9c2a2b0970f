"""What each engine runs: models that it has no code for, and prefill apart from decode."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

import planner
from planner.catalog.load import Catalog
from planner.errors import InputError, Unsupported

CATALOG = Catalog()
ENGINES = sorted(CATALOG.names("engines"))


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_engine_lacks_is_in_the_catalog(engine: str) -> None:
    for without in CATALOG.engine(engine).without:
        for pattern in without.models:
            assert any(fnmatchcase(name, pattern) for name in CATALOG.names("models")), pattern


@pytest.mark.parametrize(("engine", "model", "version", "runs"), [
    ("vllm", "grok-1", "0.24", True), ("vllm", "grok-1", "0.25", False), ("vllm", "grok-1", None, False),
    ("vllm", "mpt-7b", "0.28.1", True), ("vllm", "qwen-7b", None, False), ("vllm", "qwen2-audio-7b", None, True),
    ("vllm", "mamba2-2.7b", None, True), ("vllm", "recurrentgemma-2b", "0.6", False),
    ("sglang", "mamba2-2.7b", None, True), ("sglang", "falcon-h1-7b", None, True), ("sglang", "bloom-7b1", None, False),
    ("sglang", "jamba-v0.1", None, False), ("sglang", "grok-1", None, True),
    ("tensorrt-llm", "mamba2-2.7b", None, False), ("tensorrt-llm", "nemotron-h-56b", None, True),
    ("tensorrt-llm", "falcon-7b", "0.12", True), ("tensorrt-llm", "falcon-7b", "1.0", False),
    ("tensorrt-llm", "falcon3-7b", None, True), ("tensorrt-llm", "falcon-h1-7b", None, False)])
def test_models_that_releases_have_code_for(engine: str, model: str, version: str | None, runs: bool) -> None:
    said = CATALOG.engine(engine).lacks_model(CATALOG.model(model), version)
    assert (said is None) is runs
    assert said is None or f"does not run {model}" in said


def test_a_model_that_is_gone_says_which_releases_have_it() -> None:
    with pytest.raises(Unsupported, match=r"does not run mpt-7b: releases before 0\.29 do"):
        planner.estimate("mpt-7b", "h100-sxm-1x", engine="vllm", input=100, output=100, concurrency=1)


def test_who_names_no_engine_gets_one_that_runs_the_model() -> None:
    assert planner.estimate("mpt-7b", "h100-sxm-1x", input=100, output=100, concurrency=1).stack == "llama-cpp"
    assert planner.estimate("qwen-7b", "h100-sxm-1x", input=100, output=100, concurrency=1).stack == "sglang"


def test_a_model_that_no_engine_runs_is_refused() -> None:
    with pytest.raises(Unsupported, match="does not run recurrentgemma-2b"):
        planner.estimate("recurrentgemma-2b", "h100-sxm-1x", input=100, output=100, concurrency=1)


@pytest.mark.parametrize(("engine", "version", "parts"), [
    ("vllm", None, True), ("vllm", "0.8.5", False), ("sglang", "0.4.6", True), ("sglang", "0.4.5", False),
    ("tensorrt-llm", "0.20", False), ("tensorrt-llm", None, True), ("llama-cpp", None, False)])
def test_releases_that_have_prefill_apart(engine: str, version: str | None, parts: bool) -> None:
    assert CATALOG.engine(engine).parts_in(version) is parts


def test_a_release_without_prefill_apart_is_refused_with_those_that_have_it() -> None:
    with pytest.raises(InputError, match=r"vllm 0\.8\.5 answers requests whole: .*vllm from 0\.9 on"):
        planner.plan(model="llama-3.1-8b", on=["h100-sxm-1x"], rate=1, input=1000, output=100, ttft="1 s",
                     disaggregated="only", engine_version="0.8.5")


@pytest.mark.parametrize(("engine", "staged"), [("vllm", set()), ("sglang", {"prefill"}),
                                                ("tensorrt-llm", {"prefill", "decode"})])
def test_who_may_be_in_stages_when_apart(engine: str, staged: set[str]) -> None:
    found = CATALOG.engine(engine)
    assert {role for role in ("prefill", "decode") if found.stages_of(role)} == staged
    assert found.stages_of("whole")

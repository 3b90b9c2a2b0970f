"""The published runs that a page shows are those that the answer's interval stands on."""

from __future__ import annotations

import re

import pytest

import planner
from planner.catalog.addresses import address_in
from planner.catalog.load import Catalog
from planner.catalog.published import PublishedRun
from planner.render.report.runs import published_runs

ANSWERS = {
    "training": {"model": "llama-3.1-70b", "node": "dgx-h100", "gpus": 64, "method": "pretrain"},
    "tuning": {"model": "llama-3.1-8b", "node": "dgx-a100", "method": "qlora"},
    "serving": {"model": "llama-3.1-8b", "node": "dgx-h100", "gpus": 1, "input": 1000, "output": 200,
                "concurrency": 16},
    "learning": {"model": "qwen2.5-7b", "method": "grpo", "node": "dgx-h100"},
    "making": {"model": "flux.1-dev", "method": "inference", "node": "h100-sxm-1x"},
    "diffusion": {"model": "flux.1-dev", "method": "lora", "node": "h100-sxm-1x"},
}


@pytest.mark.parametrize("question", ANSWERS)
def test_as_many_are_drawn_and_told_as_are_counted(question: str) -> None:
    answer = planner.estimate(**ANSWERS[question])
    evidence = answer.time.evidence
    assert evidence is not None
    assert evidence.validated
    page = published_runs(answer, Catalog())
    assert page is not None
    told = int(re.search(r"the ([0-9]+) published figures most like", page)[1])  # type: ignore[index]
    assert page.count('r="4.5"') == told
    if question not in ("serving", "making"):  # rows with output alone; calls shared by GPUs or offloaded
        assert told == evidence.rows
    assert page.count("<tr>") == 1 + min(6, told)
    if question in ("learning", "making", "diffusion"):
        assert page.count('rel="noreferrer"') == min(6, told)


def test_nothing_is_shown_where_nothing_was_measured() -> None:
    answer = planner.estimate(**ANSWERS["training"])
    none = answer.time.model_copy(update={"evidence": answer.time.evidence.model_copy(update={"alike": None})})
    assert published_runs(answer.model_copy(update={"time": none}), Catalog()) is None


@pytest.mark.parametrize(("source", "where", "link"), [
    ("Qwen README profiling", "QwenLM/Qwen@2df8e8ac45:README.md#L877",
     "https://github.com/QwenLM/Qwen/blob/2df8e8ac45/README.md#L877"),
    ("InternEvo", "InternLM/InternEvo doc/en/train_performance.md throughput table",
     "https://github.com/InternLM/InternEvo/blob/HEAD/doc/en/train_performance.md"),
    ("DGX Cloud", "NVIDIA/dgxc-benchmarking v25.04 nemotron4 15b", "https://github.com/NVIDIA/dgxc-benchmarking"),
    ("Exxact", "https://www.exxactcorp.com/blog/x table 2", "https://www.exxactcorp.com/blog/x"),
    ("LLM-Inference-Bench", "arXiv 2411.00136 repo", "https://arxiv.org/abs/2411.00136"),
    ("ai-dynamo/aiconfigurator silicon_sample.csv (Apache-2.0)", "InferenceX export",
     "https://github.com/ai-dynamo/aiconfigurator"),
    ("huggingface/diffusers pull request 11682", "", "https://github.com/huggingface/diffusers/issues/11682"),
    ("mlcommons/training_results_v5.1 NVIDIA/results/hpg.dgxb200x8.n16/flux1", "",
     "https://github.com/mlcommons/training_results_v5.1"),
    ("Korthikanti et al. 2022", "Table 5", None),
    ("SimuMax", "docs/b200 summary, tp1", None)])
def test_a_source_that_is_an_address_is_a_link(source: str, where: str, link: str | None) -> None:
    assert PublishedRun({}, "m on g", 8, 1.0, 1.0, "s a step", source, where).link == link


@pytest.mark.parametrize(("source", "address"), [
    ("lambda.ai/instances as transcribed by api-evangelist/lambda-labs plans; skypilot-org/skypilot-catalog v9 "
     "lambda/vms.csv @2c3d7ea agrees (2026-09-20)", "https://lambda.ai/instances"),
    ("skypilot-org/skypilot-catalog catalogs/v9/aws/vms.csv @2c3d7ea (2026)",
     "https://github.com/skypilot-org/skypilot-catalog/blob/2c3d7ea/catalogs/v9/aws/vms.csv"),
    ("host of skypilot-org/skypilot-catalog v9 gcp/vms.csv @2c3d7ea and 8 x 2.93391",
     "https://github.com/skypilot-org/skypilot-catalog/tree/2c3d7ea"),
    ("NVIDIA whitepaper as quoted in NVIDIA/cudnn-frontend pull request 1164",
     "https://github.com/NVIDIA/cudnn-frontend/pull/1164"),
    ("Google Cloud Billing Catalog API, in the dataset huggingface.co/datasets/tanod/cloud-gpu-list-prices",
     "https://huggingface.co/datasets/tanod/cloud-gpu-list-prices"),
    ("litgpt 0.5.13 litgpt/config.py", None), ("recalled from the vendor datasheet, not re-read", None)])
def test_where_a_price_or_fact_comes_from_is_a_link_where_its_source_says_it(source: str, address: str | None) -> None:
    assert address_in(source) == address

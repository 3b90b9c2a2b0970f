"""Prompts that wait for those on other copies of attention, against published runs that had them do so."""

import numpy as np
import pytest

from planner.catalog.load import Catalog
from planner.jobs.serving.deployed import deployment, held
from planner.jobs.serving.service import service_of
from planner.layouts.table import Floats
from planner.money.rent import usual_candidate
from planner.physics.serving.deployment import Replicas
from planner.physics.serving.steady import RequestMix, closed
from planner.scenario.serving import Serving

CATALOG = Catalog()
MEASURED = {64: 39.75, 128: 61.2, 256: 101.8}
"""TPOT in ms by clients: DeepSeek-R1 in fp8 on eight H200, TensorRT-LLM 1.1 with enable_balance and timeout_iters 60,
prompts of 8,192 and answers of 1,024 tokens (InferenceX, by ai-dynamo/aiconfigurator silicon_sample.csv).
"""


def per_token(delay: int) -> Floats:
    """Return seconds per output token at each of the loads measured."""
    service = service_of(Serving.model_validate({
        "model": "deepseek-r1", "rate": 1, "input": 8192, "output": 1024, "quantization": ["fp8"],
        "engine": "tensorrt-llm", "engine_version": "1.1", "prefill_delay": delay}), CATALOG)
    d = deployment(CATALOG, service, usual_candidate(CATALOG.node("dgx-h200"), CATALOG), "fp8")
    clients = np.array([float(many) for many in MEASURED])
    rows, same = Replicas(*(np.full(len(clients), one) for one in (0, 1, 1, 8, 8))), np.ones(len(clients))
    most = np.minimum(held(CATALOG, service, d, rows, service.mean_length).concurrency, d.engine.sequences * rows.dp)
    return closed(d, rows, RequestMix(8192 * same, 1024 * same, clients), most).tpot


def test_published_runs_are_as_fast_as_prompts_that_wait_have_them() -> None:
    measured = np.array([*MEASURED.values()]) / 1000
    assert per_token(60) == pytest.approx(measured, rel=0.3)
    assert (per_token(0) > 1.6 * measured).all()

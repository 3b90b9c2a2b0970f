"""Experts spread over ranks: the fullest decides, by how few rows there are; and what early engines did with MLA."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.catalog.load import Catalog
from planner.physics.serving.deployment import Replicas
from planner.physics.serving.points import on_fullest
from planner.physics.serving.step import StepLoad, StepTimes, least_seconds, step_times
from tests.physics.test_serving_speed import deployment


def times(rows: float, ranks: int, version: str | None = None) -> StepTimes:
    """Return a step of DeepSeek-V3 on H200 with so many sequences on each of `ranks` copies of attention."""
    d = deployment("deepseek-v3", "h200-sxm", "fp8")
    d = replace(d, engine=Catalog().speeds("vllm").release(version, "hopper"))
    layout = Replicas(*(np.array([degree]) for degree in (0, 1, 1, ranks, ranks)))
    zero = np.zeros(1)
    return step_times(d, layout, StepLoad(np.array([rows * ranks]), np.array([2000.0]), zero, zero))


# drawn by hand: 16 of 256 experts a rank, tokens that choose 8 at random
@pytest.mark.parametrize("rows", [16, 64, 256])
def test_the_fullest_rank_has_what_draws_give_it(rows: int) -> None:
    random, ranks, experts, chosen = np.random.default_rng(0), 16, 256, 8
    different = round((rows * ranks) ** Catalog().serving_law.alike)
    drawn = []
    for _ in range(200):
        picks = np.argsort(random.random((different, experts)), axis=1)[:, :chosen]
        drawn.append(max(len(np.unique(mine)) for mine in (
            picks[picks // (experts // ranks) == rank] for rank in range(ranks))))
    share = 1 - (1 - chosen / experts) ** different
    fullest = on_fullest(np.array([experts / ranks]), np.array([share]), np.array([float(ranks)]))
    assert fullest[0] == pytest.approx(np.mean(drawn), rel=0.08)


def test_narrow_slices_of_experts_are_read_more_slowly_than_whole_ones() -> None:
    d, zero = deployment("deepseek-v3", "h200-sxm", "fp8"), np.zeros(1)
    d = replace(d, law=d.law.model_copy(update={"expert_passes": 0.0, "imbalance": 1.0}))
    # rows enough that all experts are read, and few enough that reading them decides
    slices, whole = (float(step_times(d, Replicas(*(np.array([degree]) for degree in (0, 8, 1, ranks, 1))),
                                      StepLoad(np.array([256.0]), np.array([1.0]), zero, zero)).experts[0])
                     for ranks in (1, 8))
    # by hand: up over 7,168 and down over 256 or 2,048, twice as many weights up
    up, half = 7168 + 179, 179
    expected = (2 * up / 7168 + (256 + half) / 256) / (2 * up / 7168 + (2048 + half) / 2048)
    assert slices / whole == pytest.approx(expected, rel=0.1)


def test_rows_pass_through_memory_as_often_as_the_engine_has_them() -> None:
    d, zero = deployment("deepseek-v3", "h200-sxm", "fp8"), np.zeros(1)
    layout, rows = Replicas(*(np.array([degree]) for degree in (0, 8, 1, 1, 1))), 4096
    load = StepLoad(np.full(1, float(rows)), np.ones(1), zero, zero)
    often, seldom = (float(step_times(replace(d, engine=d.engine.model_copy(update={"expert_passes": passes})), layout,
                                      load).experts[0]) for passes in (7.0, 2.0))
    # 58 layers, 8 experts a row, 7,168 in and out and a slice of 256, of 2 bytes each
    moved = 5 * 58 * rows * 8 * (7168 + 256) * 2
    memory = d.candidates[0].gpu.memory_bandwidth * d.rates[0].memory
    assert often - seldom == pytest.approx(moved / memory, rel=1e-6)
    # kernels that permute rows there and back pass them more often than those that gather them on the way
    permuting, law = Catalog().speeds("tensorrt-llm").release(None, "hopper"), Catalog().serving_law
    assert d.engine.expert_passes is None
    assert permuting.expert_passes is not None
    assert permuting.expert_passes > law.expert_passes


def test_what_no_engine_can_be_below_knows_no_share_that_kernels_reach() -> None:
    d, zero = deployment("deepseek-v3", "h200-sxm", "fp8"), np.zeros(1)
    slower = replace(d, kernels=d.kernels.model_copy(update={"half_k": 5000.0}),
                     law=d.law.model_copy(update={"latent": 0.01, "expert_passes": 50.0}))
    layout = Replicas(*(np.array([degree]) for degree in (0, 8, 1, 1, 1)))
    load = StepLoad(np.full(1, 64.0), np.full(1, 4e3), zero, zero)
    assert least_seconds(slower, layout, load) == least_seconds(d, layout, load)
    assert step_times(slower, layout, load).total > 1.5 * step_times(d, layout, load).total


def test_more_rows_even_out() -> None:
    each = [float(times(rows, 8).experts[0]) / rows for rows in (16, 64, 256, 1024)]
    assert each == sorted(each, reverse=True)


def test_releases_before_kernels_for_latent_attention_are_slow() -> None:
    early, later = (float(times(16, 8, version).total[0]) for version in ("0.7.0", "0.7.1"))
    assert early == pytest.approx(Catalog().speeds("vllm").early.times * later)

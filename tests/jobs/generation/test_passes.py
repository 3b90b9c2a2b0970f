"""Two passes of guidance, halves and singles, and the host's memory: what they change of running a diffusion model."""

from __future__ import annotations

from dataclasses import replace

import pytest

import planner
from planner.catalog.load import Catalog
from planner.cli.main import main
from planner.jobs.generation.options import pictures
from planner.physics.diffusion.generate import CallSplit, call_seconds, moments
from planner.physics.diffusion.rates import Rates
from planner.scenario.generation import Generation

CATALOG = Catalog()
LAW = CATALOG.generation_law


def test_passes_of_one_call_take_twice_the_memory_of_passes_in_turn() -> None:
    (apart,) = pictures(Generation(model="wan2.1-14b"), CATALOG)
    sampling = apart.model.sampling
    assert not sampling.together
    joined = replace(apart, model=apart.model.model_copy(update={
        "sampling": sampling.model_copy(update={"together": True})}))
    one, two = (moments(each, CallSplit(), LAW)["denoise"].activations for each in (apart, joined))
    assert two == pytest.approx(2 * one)


def test_an_image_takes_as_long_as_the_host_launches_kernels() -> None:
    """SDXL with one image on an H100 that was measured: 1.50 s of 20 steps, whatever the GPU computes."""
    (one,) = pictures(Generation(model="sdxl", steps=20), CATALOG)
    gpu = CATALOG.gpu("h100-sxm")
    rates = Rates(gpu, CATALOG.rates(gpu.architecture))

    def denoise(batch: int, compiled: bool) -> float:
        return call_seconds(replace(one, compiled=compiled), CallSplit(batch), LAW, rates, lambda *_: 0.0)["denoise"]

    assert denoise(1, compiled=False) == pytest.approx(20 * 2145 * LAW.host_launch) == pytest.approx(1.498, rel=0.07)
    assert denoise(4, compiled=False) > 1.5 * denoise(1, compiled=False)
    assert denoise(1, compiled=True) < 0.7 * denoise(1, compiled=False)


def test_a_gpu_without_fast_halves_runs_in_singles() -> None:
    """Pascal multiplies halves at 1/64 of singles."""
    gpu = CATALOG.gpu("gtx-1080-ti")
    rates = Rates(gpu, CATALOG.rates(gpu.architecture))
    assert 0.3 * gpu.peak["fp32"] < rates.products() <= gpu.peak["fp32"]
    made = planner.estimate("sd-1.5", "gtx-1080-ti", method="inference", steps=20)
    assert made.time.step_seconds < 30


def test_what_only_the_host_lacks_memory_for_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    main(["estimate", "--model", "wan2.2-a14b", "--method", "inference", "--node", "rtx-4090"])
    assert "of host memory and the node has" in " ".join(capsys.readouterr().out.split())


def test_sdxl_fits_twelve_gigabytes() -> None:
    assert planner.estimate("sdxl", "rtx-3060", method="inference").memory.fits == "fits"


@pytest.mark.parametrize(("steps", "kind"), [(28, "serving"), ("28", "serving"), (2000, "diffusion")])
def test_few_steps_are_those_of_an_image_and_many_are_training(steps: object, kind: str) -> None:
    found = planner.estimate("sdxl", "rtx-4090", steps=steps)
    assert found.kind == kind


def test_matrix_units_that_are_small_keep_near_to_their_peak() -> None:
    shares = {}
    for name in ("rtx-3090", "rtx-4090", "h20", "a100-sxm-80gb", "h100-sxm"):
        gpu = CATALOG.gpu(name)
        rates = Rates(gpu, CATALOG.rates(gpu.architecture))
        assert gpu.halves is not None
        shares[name] = rates.denoising(LAW, LAW.formats["bf16"], unet=True) / gpu.halves
    assert min(shares["rtx-3090"], shares["rtx-4090"], shares["h20"]) > 1.5 * max(
        shares["a100-sxm-80gb"], shares["h100-sxm"])


def test_what_fits_a_cache_is_moved_less() -> None:
    gpu = CATALOG.gpu("rtx-4090")
    small, large = (Rates(gpu.model_copy(update={"cache": cache}), CATALOG.rates(gpu.architecture)).holds(20e6)
                    for cache in (6e6, 72e6))
    assert small == pytest.approx(6e6 / 80e6)
    assert large == pytest.approx(0.9)

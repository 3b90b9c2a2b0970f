"""Plans of training a diffusion model: proven over every way there is, and what a "no" says."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.answer.assignment import DiffusionAssignment
from planner.answer.schema import to_json
from planner.catalog.load import Catalog
from planner.cli.main import main
from planner.errors import InputError, PlannerError
from planner.jobs.diffusion.assignment import verdict
from planner.jobs.diffusion.options import option, tunings
from planner.money.rent import usual_candidate
from planner.physics.diffusion.step import StepSplit
from planner.scenario.load import load_question
from tests.answered import shipped_answer

SDXL: dict[str, Any] = {"model": "sdxl", "samples": 2000, "epochs": 10, "batch": 4}


def test_the_fastest_way_of_all_is_found() -> None:
    """Every split, written out by hand, is no faster than what an estimate chooses."""
    catalog = Catalog()
    question, _ = load_question(None, {f"workload.{key}": value for key, value in SDXL.items()}, catalog)
    candidate = usual_candidate(catalog.node("rtx-4090-1x"), catalog)
    (tuning,) = tunings(question.workload, catalog)  # type: ignore[arg-type,union-attr]
    ways = [option(catalog, (candidate,), 0, tuning, StepSplit(1, 1, size, 4 // size, share, swapped=out,
                                                               spilled=spilled))
            for size, share, out, spilled in product((1, 2, 4), (0.0, 0.5, 1.0), (0.0, 0.5, 1.0), (False, True))]
    best = min(way.step for way in ways if verdict(way, candidate, catalog.diffusion_law, 0.95) == "fits")
    assert planner.estimate("sdxl", "rtx-4090", batch=4).time.step_seconds == pytest.approx(best)


def test_a_clip_that_24_gigabytes_are_known_to_train_fits() -> None:
    """tdrussell/diffusion-pipe issue 129: 512 x 512 x 81 on 24 GB, with blocks and checkpoints on the host."""
    made = planner.estimate("wan2.1-14b", "rtx-4090", method="lora", resolution="512x512", frames=81,
                            quantization="fp8-weights")
    assert isinstance(made, DiffusionAssignment)
    assert made.memory.fits == "fits"
    assert (made.checkpoints, made.swapped) == (1, 1)
    kept = planner.estimate("wan2.1-14b", "rtx-4090", {"offload_checkpoints": 0}, method="lora", resolution="512x512",
                            frames=81, quantization="fp8-weights")
    assert kept.memory.fits != "fits"


def test_a_plan_is_the_cheapest_of_its_candidates() -> None:
    plan = planner.plan(**SDXL, on="rtx-4090,l40s,a100-sxm-80gb")
    assert plan.status == "optimal"
    (best,) = plan.assignments
    alone = [planner.plan(**SDXL, on=gpu).assignments[0].cost_usd for gpu in ("rtx-4090", "l40s", "a100-sxm-80gb")]
    assert best.cost_usd == min(alone, key=float)  # type: ignore[arg-type]
    assert best.time.steps == 5000
    assert isinstance(best, DiffusionAssignment)
    assert best.duration_days == pytest.approx(5000 * best.time.step_seconds / (best.goodput or 1) / 86400)


def test_the_same_is_asked_by_a_file_and_by_python() -> None:
    asked = {"workload": {"kind": "diffusion", **SDXL}, "hardware": {"candidates": ["rtx-4090"]}}
    by_file, by_name = planner.plan(asked), planner.plan(**SDXL, on="rtx-4090")
    assert by_file.assignments[0].cost_usd == by_name.assignments[0].cost_usd


def test_several_gpus_share_a_batch() -> None:
    one, four = (planner.plan(**SDXL, on="dgx-h100", gpus=gpus).assignments[0] for gpus in (1, 4))
    assert (four.layout.dp, four.layout.micro_batch * four.layout.micro_batches) == (4, 1)
    assert four.time.step_seconds < one.time.step_seconds


def test_gpus_of_a_node_share_a_clip_that_none_of_them_holds() -> None:
    asked: dict[str, Any] = {"model": "hunyuan-video", "steps": 1000, "on": "rtx-4090-8x"}
    shared = planner.plan(**asked).assignments[0]
    assert (shared.layout.dp, shared.layout.cp, shared.layout.cp_method) == (1, 8, "all-to-all")
    alone = planner.estimate("hunyuan-video", "rtx-4090-8x", method="lora", gpus=1)
    assert alone.memory.fits == "does not fit"
    # 12 heads are whole on four GPUs, and images are not shared
    for model, degree in (("wan2.1-1.3b", "8"), ("sdxl", "2")):
        with pytest.raises(InputError, match="cp"):
            planner.estimate(model, "dgx-h100", method="lora", gpus=8, layout={"cp": degree})
    assert planner.estimate("wan2.1-1.3b", "dgx-h100", method="lora", gpus=4, layout={"cp": "4"}).layout.cp == 4


def test_a_no_says_what_would_do_and_it_does() -> None:
    asked: dict[str, Any] = {"model": "wan2.1-14b", "steps": 100, "on": "rtx-4090", "frames": 81,
                             "resolution": "832x480", "quantization": "bf16"}
    plan = planner.plan(**asked)
    assert plan.status == "infeasible"
    assert plan.infeasible is not None
    changes = {relaxation.limit: relaxation.to for relaxation in plan.infeasible.relaxations}
    assert {"frames", "resolution"} <= changes.keys()
    for key in ("frames", "resolution"):
        assert planner.plan(**asked | {key: changes[key]}).status == "optimal"


@pytest.mark.parametrize(("asked", "told"), [
    ({"steps": 3}, "steps and epochs"),
    ({"resolution": "wide"}, "1024x1024"), ({"frames": 9}, "one frame"),
    ({"method": "full", "quantization": "nf4"}, "trains all weights"), ({"rate": 2}, "epochs: applies to training"),
    ({"tokens": "1G"}, "applies to training"), ({"optimizer": "muon"}, "adamw")])
def test_what_is_wrong_is_said(asked: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        planner.plan(**SDXL | asked, on="rtx-4090")


@pytest.mark.parametrize(("model", "told"), [("resnet-50", "classifier"), ("vit-b16", "vision transformer"),
                                             ("openai/clip-vit-large-patch14", "not modeled"),
                                             ("musicgen-large", "codec"), ("audioldm2", "pictures of sound"),
                                             ("wan2.2-s2v-14b", "follows sound"),
                                             ("deepfloyd-if-xl", "cascade")])
def test_other_models_of_images_are_refused_by_name(model: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        planner.plan(model=model, tokens="1 G", on="rtx-4090")


@pytest.mark.parametrize(("model", "told"), [("musicgen", "codec"), ("wav2vec2-large", "model of speech")])
def test_what_a_model_is_comes_before_its_keys(model: str, told: str) -> None:
    """Steps are no key of training a language model, and that is not what is wrong."""
    for asked in ({"steps": 100}, {"rate": 2}, {"method": "lora", "samples": 100}):
        with pytest.raises(InputError, match=told):
            planner.plan(model=model, on="rtx-4090", **asked)  # type: ignore[arg-type]


def test_a_file_of_another_kind_is_told_which_it_is() -> None:
    with pytest.raises(InputError, match="kind: diffusion"):
        planner.plan({"workload": {"kind": "training", "model": "sdxl", "tokens": "1 G"}})


@pytest.mark.parametrize("name", ["sdxl-lora-on-4090", "flux-lora-12-gb"])
def test_shipped_scenarios_are_proven(name: str) -> None:
    plan = shipped_answer(name)
    assert (plan.status, plan.objective.gap) == ("optimal", 0)
    assert all(made.memory.fits == "fits" for made in plan.assignments)


def test_a_gpu_without_fp8_has_no_base_that_is_multiplied_in_it() -> None:
    with pytest.raises(PlannerError, match="fp8"):
        planner.estimate("flux.1-dev", "rtx-3090", quantization="fp8")
    assert planner.estimate("flux.1-dev", "rtx-3090", quantization="fp8-weights").memory.fits == "fits"
    best = planner.plan(model="flux.1-dev", steps=1000, own="1xrtx-3090-1x", quantization="fp8,int8").assignments[0]
    assert isinstance(best, DiffusionAssignment)
    assert best.base == "int8"
    none = planner.plan(model="flux.1-dev", steps=1000, own="1xrtx-3090-1x", quantization="fp8")
    assert none.infeasible is not None
    assert "multiplies in fp8" in none.infeasible.because[0]


def test_a_plan_is_read_back_for_its_page(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(to_json(planner.plan(**SDXL, on="rtx-4090")))
    assert main(["report", str(file), "-o", str(tmp_path / "plan.html")]) == 0
    assert "1024x1024" in (tmp_path / "plan.html").read_text()
    assert main(["launch", str(file), "-o", str(tmp_path / "out")]) == 0
    assert "sdxl" in (tmp_path / "out" / "config.json").read_text()

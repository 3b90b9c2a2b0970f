"""Refusals of services and of media name the nearest plan in words that a question of their kind takes."""

import pytest

from planner.jobs.diffusion.options import AXES as DIFFUSION
from planner.jobs.generation.options import AXES as GENERATION
from planner.jobs.serving.job import AXES as SERVING
from planner.launch.axes import CannotExpress
from planner.launch.nearest import typed
from planner.scenario.flags import NAMES
from tests.launch import test_media as media
from tests.launch import test_services as services
from tests.launch.media import changed
from tests.launch.services import MIXTURE, otherwise, served

MORE = {True: ({"layout": {"precision": "fp8"}}, {"base": "int2"}, {"asked": {"optimizer": "paged-adamw"}},
               {"layout": {"recompute": "mixed"}, "recomputed": 0.37}, {"asked": {"lora_targets": ("gate",)}}),
        False: ({"layout": {"precision": "int2"}}, {"made": {"passes": 2}}, {"asked": {"guidance": 0.5}})}
"""Of training diffusion models, and of making images: what no other test refuses."""
MODEL = "model"
"""Of it no nearest is named, and all that there are."""


def refused(emit):
    """Return what a target refuses of a plan."""
    try:
        emit()
    except CannotExpress as error:
        return error.refused
    return {}


def held(said, layout):
    """Hold a refusal to words of the question: axes of its layout, and flags."""
    for axis, one in said.items():
        if axis == MODEL:
            assert "it has" in one.reason
            continue
        assert {*one.instead} <= {*layout, *NAMES}, (axis, one)
        assert typed(one.instead), (axis, one)


def test_values_are_typed_as_a_question_takes_them():
    assert typed({"offload_activations": 0.0, "adapters": None}) == "--layout offload_activations=0, without --adapters"


@pytest.mark.parametrize("target", services.EMITTERS)
def test_services(target):
    copies = services.CATALOG.engine(services.CATALOG.releases.target(target).stacks[0]).copies != "none"
    plain = served(target, "tp=2", gpus="2")
    mixed = served(target, "tp=1,ep=1,dp=8" if copies else "tp=8", gpus="8", **MIXTURE)
    seen = {}
    for axis, other in services.OTHER.items():
        base = mixed if axis in ("dp", "ep", "expert_tp") else plain
        one = otherwise(base, **other)
        seen |= refused(lambda one=one: services.EMITTERS[target].emit([one]))
    held(seen, SERVING)
    assert seen or target == "vllm", "it tests nothing"


@pytest.mark.parametrize("target", [*media.TRAINERS, *media.MAKERS])
def test_media(target):
    trains = target in media.TRAINERS
    base = media.trained(target) if trains else media.made(target)
    emitter = (media.TRAINERS if trains else media.MAKERS)[target]
    seen = set()
    for other in (*(media.OTHER_TRAINED if trains else media.OTHER_MADE).values(), *MORE[trains]):
        one = changed(base, **{name: value for name, value in (other or {}).items() if name != MODEL})
        said = refused(lambda one=one: emitter.emit(one if trains else [one]))
        held(said, DIFFUSION if trains else GENERATION)
        seen |= {*said}
    assert len(seen) > 3, "it tests nothing"

"""Manifests by Kubernetes' own schemas and Kubeflow's own models: accepted, of the plan's nodes, and a slip refused."""

import sys

import pytest

from planner.launch.check import manifest_of, misplaced, parsed
from planner.launch.folder import launched
from planner.launch.given import estimated
from planner.launch.place import place_of
from tests.launch.media import media_given
from tests.launch.services import serving
from tests.launch.test_services import apart
from tests.launch.works import CATALOG, given

pytest.importorskip("kubernetes_validate")
pytest.importorskip("kubeflow_trainer_api")


def served(*placed):
    return estimated(*placed)


CASES = {
    "job of one node": ("kubernetes", "megatron-lm", lambda: given("tp=2,dp=4")),
    "job of two": ("kubernetes", "megatron-lm", lambda: given("tp=2,dp=8")),
    "train job": ("trainjob", "megatron-lm", lambda: given("tp=2,dp=8")),
    "train job of images": ("trainjob", "diffusers", lambda: media_given(model="sdxl", method="inference")),
    "replicas": ("kubernetes", "vllm", lambda: served(serving("tp=2", gpus="16"))),
    "over nodes": ("kubernetes", "vllm", lambda: served(serving("tp=8,pp=2", gpus="16"))),
    "apart": ("kubernetes", "vllm", lambda: served(*apart("tp=8", "8"))),
    "graph": ("dynamo", "vllm", lambda: served(*apart("tp=8", "8"))),
    "graph over nodes": ("dynamo", "sglang", lambda: served(serving("tp=8,pp=2", gpus="16", engine="sglang"))),
}
SLIPS = {"kubernetes": ("kubernetes.yaml", "containers:", "containrs:"), "trainjob": (
    "kubernetes.yaml", "numNodes:", "numNode:"), "dynamo": ("dynamo.yaml", "components:", "component:")}


@pytest.mark.parametrize("scheduler", SLIPS)
def test_manifests_are_accepted_and_of_the_plan(scheduler, tmp_path):
    """One process reads them all: its modules take longer to load than manifests to check."""
    place, cases, folders = place_of(scheduler), [case for case in CASES if CASES[case][0] == scheduler], []
    file, key, slip = SLIPS[scheduler]
    for case in cases:
        _, target, asked = CASES[case]
        files = launched(asked(), CATALOG, target, scheduler).files
        assert "&id" not in files[file], "what is shared is written out"
        for kind in ("as planned", "broken"):
            folders.append(tmp_path / case / kind)
            folders[-1].mkdir(parents=True)
            for name, text in files.items():
                whole = text.replace(key, slip) if kind == "broken" and name == file else text
                (folders[-1] / name).write_text(whole)
    found = parsed(place.check, place.package, folders, sys.executable)
    assert len(found) == 2 * len(cases)
    for case, folder, good, bad in zip(cases, folders[::2], found[::2], found[1::2], strict=True):
        assert not good.missing, case
        assert not good.error, case
        assert list(misplaced(manifest_of(folder), good.resolved)) == [], case
        assert bad.error, f"the check of {case} can fail"

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


@pytest.mark.parametrize("case", CASES)
def test_manifests_are_accepted_and_of_the_plan(case, tmp_path):
    scheduler, target, asked = CASES[case]
    files = launched(asked(), CATALOG, target, scheduler).files
    place = place_of(scheduler)
    file, key, slip = SLIPS[scheduler]
    folders = [tmp_path / "as-planned", tmp_path / "broken"]
    for folder in folders:
        folder.mkdir()
        for name, text in files.items():
            whole = text.replace(key, slip) if folder.name == "broken" and name == file else text
            (folder / name).write_text(whole)
    good, bad = parsed(place.check, place.package, folders, sys.executable)
    assert not good.missing
    assert not good.error
    assert list(misplaced(manifest_of(folders[0]), good.resolved)) == []
    assert bad.error, "the check can fail"

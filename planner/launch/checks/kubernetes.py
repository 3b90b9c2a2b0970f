"""Kubernetes' own schemas of a folder's manifests, strictly: what is unknown is wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import kubernetes_validate
from kubernetes_validate.utils import yaml

VERSION = "1.33"
CRDS = "PLANNER_CRDS"
"""Folder with the CRDs (YAML) of what is neither core nor in kubeflow-trainer-api: the LeaderWorkerSet."""


def resolve(folder: Path) -> dict[str, object]:
    """Return copies, nodes and GPUs of each part that the manifests come to."""
    found: dict[str, object] = {}
    with (folder / "kubernetes.yaml").open() as file:
        objects = list(yaml.safe_load_all(file))
    for one in objects:
        _valid(one)
        made = _parts(one)
        found |= made
    names = [one["metadata"]["name"] for one in objects]
    assert len(names) == len({(one["kind"], one["metadata"]["name"]) for one in objects}), "two objects have one name"
    assert all(len(name) <= 52 for name in names), "a name leaves no room for those of its pods"
    return found


def _valid(one: dict[str, Any]) -> None:
    from kubeflow_trainer_api import models

    kinds = {"JobSet": "JobsetV1alpha2JobSet", "TrainJob": "TrainerV1alpha1TrainJob"}
    if one["kind"] in kinds:
        read = getattr(models, kinds[one["kind"]]).from_dict(one)
        assert read.to_dict() == one, f"{one['kind']}: keys that it does not know"
    elif one["kind"] == "LeaderWorkerSet":
        group = one["spec"]["leaderWorkerTemplate"]
        for template in (group["leaderTemplate"], group["workerTemplate"]):
            kubernetes_validate.validate({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, **template},
                                         VERSION, strict=True)
        _by_crd(one, "leaderworkersets")
    else:
        kubernetes_validate.validate(one, VERSION, strict=True)


def _by_crd(one: dict[str, Any], plural: str) -> None:
    """Hold an object against its CRD, where that is at hand."""
    path = next(iter(Path(os.environ[CRDS]).glob(f"*{plural}.yaml")), None) if CRDS in os.environ else None
    if path is None:
        return
    from jsonschema import Draft202012Validator

    with path.open() as file:
        crd = yaml.safe_load(file)
    version = one["apiVersion"].split("/")[1]
    schema = next(each for each in crd["spec"]["versions"] if each["name"] == version)["schema"]["openAPIV3Schema"]
    schema["properties"]["metadata"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    Draft202012Validator(_strict(schema)).validate(one)


def _strict(schema: Any) -> Any:  # noqa: ANN401 - a schema is any JSON
    """Return the schema with unknown keys forbidden, and Kubernetes' own words in those of JSON Schema."""
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _strict(value) for key, value in schema.items()}
    if "properties" in made and made.get("type") == "object" and not made.get("x-kubernetes-preserve-unknown-fields"):
        made.setdefault("additionalProperties", False)
    if made.pop("x-kubernetes-int-or-string", None):
        made.pop("anyOf", None)
        made["type"] = ["integer", "string"]
    return made


def gpus_of(container: dict[str, Any]) -> int:
    """Return the GPUs that a container asks for."""
    limits = container.get("resources", {}).get("limits", {})
    return sum(int(value) for key, value in limits.items() if key.endswith("/gpu"))


def _parts(one: dict[str, Any]) -> dict[str, object]:
    spec = one.get("spec", {})
    if one["kind"] == "JobSet":
        (job,) = spec["replicatedJobs"]
        inner = job["template"]["spec"]
        assert inner["parallelism"] == inner["completions"], "some nodes would not run at once"
        (container,) = inner["template"]["spec"]["containers"]
        return {job["name"]: [job["replicas"], inner["parallelism"], gpus_of(container)]}
    if one["kind"] == "TrainJob":
        trainer = spec["trainer"]
        gpus = gpus_of({"resources": trainer["resourcesPerNode"]})
        assert gpus == trainer["numProcPerNode"], "a process for each GPU"
        script = str(trainer["command"][-1]).rsplit("/", 1)[-1]
        return {script.removesuffix(".sh"): [1, trainer["numNodes"], gpus]}
    if one["kind"] == "LeaderWorkerSet":
        group = spec["leaderWorkerTemplate"]
        (gpus,) = {gpus_of(group[kind]["spec"]["containers"][0]) for kind in ("leaderTemplate", "workerTemplate")}
        return {group["leaderTemplate"]["spec"]["containers"][0]["name"]: [spec["replicas"], group["size"], gpus]}
    if one["kind"] in ("Deployment", "StatefulSet"):
        container = spec["template"]["spec"]["containers"][0]
        return {container["name"]: [spec["replicas"], 1, gpus_of(container)]}
    return {}

"""A Dynamo graph by the keys of its CRD (nvidia.com/v1beta1), and its pods by Kubernetes' own schemas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
from kubernetes_validate.utils import yaml

from planner.launch.checks.kubernetes import VERSION, gpus_of

COMPONENT = {"name", "type", "replicas", "multinode", "sharedMemorySize", "podTemplate"}
TYPES = {"frontend", "worker", "prefill", "decode", "planner", "epp"}


def resolve(folder: Path) -> dict[str, object]:
    """Return copies, nodes and GPUs of each part that the graph comes to."""
    with (folder / "dynamo.yaml").open() as file:
        graph = yaml.safe_load(file)
    assert (graph["apiVersion"], graph["kind"]) == ("nvidia.com/v1beta1", "DynamoGraphDeployment")
    assert set(graph["spec"]) == {"backendFramework", "components"}
    assert graph["spec"]["backendFramework"] in ("vllm", "sglang", "trtllm")
    components = graph["spec"]["components"]
    assert len({one["name"] for one in components}) == len(components), "two components have one name"
    return {one["name"]: _part(one) for one in components if one["type"] != "frontend"}


def _part(one: dict[str, Any]) -> list[int]:
    assert set(one) <= COMPONENT, f"keys that a component does not have: {set(one) - COMPONENT}"
    assert one["type"] in TYPES, one["type"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": one["name"]}, **one["podTemplate"]}
    kubernetes_validate.validate(pod, VERSION, strict=True)
    nodes = one.get("multinode", {}).get("nodeCount", 1)
    assert "multinode" not in one or nodes >= 2, "one node is not several"
    return [one["replicas"], nodes, gpus_of(one["podTemplate"]["spec"]["containers"][0])]

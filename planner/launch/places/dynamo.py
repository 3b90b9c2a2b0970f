"""NVIDIA Dynamo on Kubernetes: a graph of a frontend and the plan's replicas, prefill and decode apart or not."""

from __future__ import annotations

from collections.abc import Mapping

from planner.answer.assignment import Assignment
from planner.errors import Unsupported
from planner.launch.place import Place
from planner.launch.places.kubernetes import label
from planner.launch.program import Part, Program, Start
from planner.launch.title import title
from planner.yaml_io import dump

GRAPH, RELEASE = "dynamo.yaml", "1.6.1"
_ENGINES = {"vllm": ("dynamo.vllm", "--model"), "sglang": ("dynamo.sglang", "--model-path")}
"""Target -> module of its worker, and what names the checkpoint."""
_OWN = ("kv-transfer-config", "disaggregation-mode")
"""Options that the graph says by the type of a component."""


def job(program: Program, assignment: Assignment) -> Start:
    """Return the graph. Raises Unsupported for engines whose options are other ones there."""
    if program.target not in _ENGINES:
        raise Unsupported(f"{program.target} in a Dynamo graph (it has {', '.join(_ENGINES)})")
    if assignment.serving is not None and not assignment.serving.writes:
        raise Unsupported("vectors in a Dynamo graph, whose workers here write tokens")
    name, names = label(title(assignment)), {one.name: one.default for one in program.variables}
    image = f"nvcr.io/nvidia/ai-dynamo/{program.target}-runtime:{RELEASE}"
    frontend = _component("frontend", "frontend", 1, {
        "name": "main", "image": image, "command": ["python3", "-m", "dynamo.frontend"],
        "args": ["--http-port", names["PORT"]]})
    workers = [_worker(part, program, names, image) for part in program.parts if part.port]
    made = {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "metadata": {"name": name},
            "spec": {"backendFramework": program.target, "components": [frontend, *workers]}}
    return Start({GRAPH: dump(made)}, f"kubectl apply -f {GRAPH}", notes=(
        f"Dynamo {RELEASE}: its operator has to be installed; its image brings its own release of {program.target}.",
        "What variables.sh names stands in the graph, which does not read it. A secret `hf-token` with the key `token` "
        "opens gated checkpoints."))


def _component(name: str, kind: str, replicas: int, container: dict[str, object], **more: object) -> dict[str, object]:
    return {"name": name, "type": kind, "replicas": replicas, **more,
            "podTemplate": {"spec": {"containers": [container]}}}


def _worker(part: Part, program: Program, names: Mapping[str, str], image: str) -> dict[str, object]:
    module, option = _ENGINES[program.target]
    if not names[part.model]:
        raise Unsupported("a checkpoint that has no published name in a Dynamo graph, which has to name it")
    words = [option, names[part.model], "--served-model-name", names["NAME"]]
    for key, value in part.options.items():
        if key not in _OWN:
            words += [f"--{key}"] if value is True else [f"--{key}", str(value)]
    if part.role != "whole":
        words += ["--disaggregation-mode", part.role]
    token = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "token", "optional": True}}}
    several = {"multinode": {"nodeCount": part.nodes}} if part.nodes > 1 else {}
    return _component(part.name, "worker" if part.role == "whole" else part.role, part.copies, {
        "name": "main", "image": image, "command": ["python3", "-m", module], "args": words, "env": [token],
        "resources": {"limits": {program.resource: str(part.gpus)}}}, **several, sharedMemorySize="80Gi")


PLACE = Place("dynamo", job, "dynamo", "kubernetes-validate")

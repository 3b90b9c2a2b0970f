"""Kubeflow Trainer: a TrainJob over the ClusterTrainingRuntime that it brings for PyTorch."""

from __future__ import annotations

from planner.answer.assignment import Assignment
from planner.errors import Unsupported
from planner.launch.place import Place
from planner.launch.places.kubernetes import FILES, MANIFEST, QUEUE, TOKEN, TOKEN_NOTE, applied, label, logs, prepared
from planner.launch.program import PORT, Program, Start
from planner.launch.title import title
from planner.yaml_io import dump

RUNTIME = "torch-distributed"


def job(program: Program, assignment: Assignment) -> Start:
    """Return the TrainJob. Raises Unsupported for a service, which is no job."""
    if program.serves:
        raise Unsupported(f"{program.target} under Kubeflow Trainer, which trains")
    part, name = program.parts[0], label(title(assignment))
    words = (f'NNODES="$PET_NNODES" NODE_RANK="$PET_NODE_RANK" '
             f'MASTER_ADDR="$PET_MASTER_ADDR" MASTER_PORT="${{PET_MASTER_PORT:-{PORT}}}" '
             f"exec bash {FILES}/{part.script}")
    mounts = [{"name": "files", "mountPath": FILES}, {"name": "memory", "mountPath": "/dev/shm"}]
    volumes = [{"name": "files", "configMap": {"name": name}}, {"name": "memory", "emptyDir": {"medium": "Memory"}}]
    patch = {"manager": "planner.dev/launch", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [
        {"name": "node", "template": {"spec": {"template": {"spec": {
            "volumes": volumes, "containers": [{"name": "node", "volumeMounts": mounts}]}}}}}]}}}}
    made = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
            "metadata": {"name": name, "labels": {QUEUE: "default"}},
            "spec": {"runtimeRef": {"name": RUNTIME}, "runtimePatches": [patch],
                     "trainer": {"image": program.image, "command": ["bash", "-c", prepared(program, words)],
                                 "env": [TOKEN], "numNodes": part.nodes, "numProcPerNode": part.gpus,
                                 "resourcesPerNode": {"limits": {program.resource: str(part.gpus)}}}}}
    return Start({MANIFEST: dump(made)}, applied(program, name), gather=logs(name), notes=(
        f"Kubeflow Trainer: the ClusterTrainingRuntime is {RUNTIME}, which it installs.", TOKEN_NOTE))


PLACE = Place("trainjob", job, "kubernetes", "kubernetes-validate")

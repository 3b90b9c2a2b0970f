"""Kubernetes: a JobSet for a training job; for a service Deployments, or LeaderWorkerSets over several nodes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy

from planner.answer.assignment import Assignment
from planner.errors import Unsupported
from planner.launch.place import Place
from planner.launch.program import PORT, VARIABLES, Part, Program, Start
from planner.launch.routers import ROUTER
from planner.launch.title import title
from planner.yaml_io import dump

MANIFEST = "kubernetes.yaml"
FILES = "/launch"
"""Where pods see the folder's files."""
QUEUE = "kueue.x-k8s.io/queue-name"
SERVES = 8000
"""Port of the service."""
WORK = "/work"
"""Where they write."""
Object = dict[str, object]
TOKEN: Object = {"name": "HF_TOKEN",
                 "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "token", "optional": True}}}
HUGGING_FACE: tuple[Object, ...] = ({"name": "HF_HOME", "value": f"{WORK}/huggingface"}, TOKEN)
TOKEN_NOTE = ("A secret `hf-token` with the key `token` opens gated checkpoints: `kubectl create secret generic "
              "hf-token --from-literal=token=$HF_TOKEN`.")


def job(program: Program, assignment: Assignment) -> Start:
    """Return the manifests, and the line that applies them with the files as a ConfigMap."""
    name = label(title(assignment))
    objects = _service(program, name) if program.serves else [_job_set(program, name)]
    return Start({MANIFEST: "---\n".join(dump(one) for one in objects)}, applied(program, name),
                 notes=tuple(_notes(program, name)), gather=logs(name))


def applied(program: Program, name: str) -> str:
    """Return the line that applies the manifest, with the program's files as a ConfigMap."""
    given = " ".join(f"--from-file={file}" for file in [VARIABLES, *program.files])
    return (f"kubectl create configmap {name} {given} --dry-run=client -o yaml | kubectl apply -f - && "
            f"kubectl apply -f {MANIFEST}")


def logs(name: str) -> str:
    """Return the line that gathers what the pods of a JobSet print."""
    return f"kubectl logs -l jobset.sigs.k8s.io/jobset-name={name} --tail=-1 > train.log"


def label(name: str) -> str:
    """Return a name as Kubernetes takes one, short enough for what is added to it."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:30].strip("-") or "planner"


def _notes(program: Program, name: str) -> list[str]:
    kinds = {part.node for part in program.parts if part.port}
    notes = [f"Kubernetes: the label {QUEUE} is of Kueue, and does nothing without it; its LocalQueue is `default`.",
             TOKEN_NOTE,
             f"What pods write is in an emptyDir at {WORK}, the models that they load too: put a claim in its place to "
             "keep it. RDMA devices, and the host network they may need, are the cluster's own."]
    if program.serves:
        notes.append(f"The service is {name}:{SERVES} in the cluster; `kubectl port-forward service/{name} {SERVES}` "
                     "brings it here.")
    if len(kinds) > 1:
        notes += [f"Nodes differ: `kubectl label node NAME planner/node={kind}` for those of {kind}."
                  for kind in sorted(kinds)]
    return notes


def prepared(program: Program, words: str) -> str:
    """Return what a container runs: first what installs the program, where the image does not have it."""
    return f"bash {FILES}/{program.prepare} && {words}" if program.prepare else words


def _variable(name: str, value: str) -> Object:
    return {"name": name, "value": value}


def _pod(program: Program, part: Part, words: str, environment: Sequence[Object], name: str, *,
         selects: bool = False) -> Object:
    """Return the pod that runs a part's script."""
    gpus = {"limits": {program.resource: str(part.gpus)}} if part.gpus else {}
    if not program.image:
        raise Unsupported(f"{program.target} in Kubernetes: no image is known that has it")
    container: Object = {
        "name": part.name, "image": program.image, "command": ["bash", "-c", prepared(program, words)],
        "workingDir": WORK,
        "env": [*environment, *HUGGING_FACE], **({"resources": gpus} if gpus else {}),
        "volumeMounts": [{"name": "files", "mountPath": FILES}, {"name": "work", "mountPath": WORK},
                         {"name": "memory", "mountPath": "/dev/shm"}]}
    if part.port or part.role == "router":
        container |= {"ports": [{"containerPort": SERVES}],
                      "readinessProbe": {"httpGet": {"path": "/health", "port": SERVES}, "periodSeconds": 10,
                                         "failureThreshold": 360}}
    return {"containers": [container],
            **({"nodeSelector": {"planner/node": part.node}} if selects and part.node else {}),
            "volumes": [{"name": "files", "configMap": {"name": name}}, {"name": "work", "emptyDir": {}},
                        {"name": "memory", "emptyDir": {"medium": "Memory"}}]}


def _job_set(program: Program, name: str) -> Object:
    part = program.parts[0]
    words = (f'NODE_RANK="$JOB_COMPLETION_INDEX" exec bash {FILES}/{part.script}')
    pod = _pod(program, part, words, [
        _variable("NNODES", str(part.nodes)), _variable("MASTER_ADDR", f"{name}-{part.name}-0-0.{name}"),
        _variable("MASTER_PORT", str(PORT))], name)
    template: Object = {"spec": {
        "parallelism": part.nodes, "completions": part.nodes, "completionMode": "Indexed", "backoffLimit": 0,
        "template": {"spec": {"restartPolicy": "Never", **pod}}}}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
            "metadata": {"name": name, "labels": {QUEUE: "default"}},
            "spec": {"network": {"enableDNSHostnames": True}, "successPolicy": {"operator": "All"},
                     "failurePolicy": {"maxRestarts": 100},
                     "replicatedJobs": [{"name": part.name, "replicas": 1, "template": template}]}}


def _service(program: Program, name: str) -> list[Object]:
    served = [part for part in program.parts if part.port]
    apart = any(part.role != "whole" for part in served)
    several = len({part.node for part in served}) > 1
    objects: list[Object] = []
    for part in served:
        objects += (_groups if part.nodes > 1 else _replicas)(program, part, name, several, apart)
    if apart:
        objects.append(_router(program, served, name))
    answers = {"app": name, "answers": "router" if apart else "requests"}
    return [*objects, _address(name, answers)]


def _address(name: str, selector: Mapping[str, str], *, headless: bool = False) -> Object:
    spec: Object = {"selector": dict(selector), "ports": [{"name": "http", "port": SERVES, "targetPort": SERVES}]}
    if headless:
        spec |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def _labels(name: str, part: Part) -> dict[str, str]:
    return {"app": name, "part": part.name, "answers": "router" if part.role == "router" else "requests"}


def _replicas(program: Program, part: Part, name: str, several: bool, named: bool) -> list[Object]:
    """Return replicas that are on one node each: pods alike, or with names of their own for a router."""
    full, labels = f"{name}-{part.name}", _labels(name, part)
    address: list[Object] = [{"name": "VLLM_NIXL_SIDE_CHANNEL_HOST",
                              "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]
    pod = _pod(program, part, f"exec bash {FILES}/{part.script}",
               [_variable("REPLICA_PORT", str(SERVES)), *(address if named else [])], name, selects=several)
    spec: Object = {"replicas": part.copies, "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": dict(labels)}, "spec": pod}}
    kind: Object = {"apiVersion": "apps/v1", "kind": "StatefulSet" if named else "Deployment",
                    "metadata": {"name": full, "labels": {QUEUE: "default"}}}
    if not named:
        return [{**kind, "spec": spec}]
    return [{**kind, "spec": {"serviceName": full, "podManagementPolicy": "Parallel", **spec}},
            _address(full, labels, headless=True)]


def _groups(program: Program, part: Part, name: str, several: bool, named: bool) -> list[Object]:
    """Return replicas that are on several nodes each."""
    words = ('NNODES="$LWS_GROUP_SIZE" NODE_RANK="$LWS_WORKER_INDEX" MASTER_ADDR="$LWS_LEADER_ADDRESS" '
             f"exec bash {FILES}/{part.script}")
    pod = _pod(program, part, words, [_variable("REPLICA_PORT", str(SERVES)), _variable("MASTER_PORT", str(PORT))],
               name, selects=several)
    worker = deepcopy(pod)  # YAML would have what both share once, and names for it
    for one in worker["containers"]:  # type: ignore[attr-defined]
        one.pop("ports", None)
        one.pop("readinessProbe", None)
    return [{"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet",
             "metadata": {"name": f"{name}-{part.name}", "labels": {QUEUE: "default"}},
             "spec": {"replicas": part.copies, "leaderWorkerTemplate": {
                 "size": part.nodes, "restartPolicy": "RecreateGroupOnPodRestart",
                 "leaderTemplate": {"metadata": {"labels": _labels(name, part)}, "spec": pod},
                 "workerTemplate": {"spec": worker}}}}]


def _router(program: Program, served: Sequence[Part], name: str) -> Object:
    """Return the pod that sends a prompt to one replica, and its answer to another."""
    urls = {role: " ".join(f"http://{name}-{part.name}-{copy}.{name}-{part.name}:{SERVES}" for part in served
                           if part.role == role for copy in range(part.copies)) for role in ("prefill", "decode")}
    router = next(part for part in program.parts if part.role == "router")
    pod = _pod(program, router, f"exec bash {FILES}/{ROUTER}", [
        _variable("PORT", str(SERVES)), _variable("PREFILL", urls["prefill"]), _variable("DECODE", urls["decode"])],
        name)
    labels = _labels(name, router)
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": f"{name}-router"},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": dict(labels)}, "spec": pod}}}


PLACE = Place("kubernetes", job, "kubernetes", "kubernetes-validate")

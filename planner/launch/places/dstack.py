"""dstack: a task of as many nodes, on the plan's own offer where it has one."""

from __future__ import annotations

from planner.answer.assignment import Assignment
from planner.errors import Unsupported
from planner.launch.place import Place
from planner.launch.places.kubernetes import SERVES, label
from planner.launch.program import PORT, Program, Start
from planner.launch.replicas import NODE, node_script, placed_on_nodes
from planner.launch.title import title
from planner.yaml_io import dump

TASK = ".dstack.yml"
BACKENDS = ("aws", "azure", "gcp", "lambda", "nebius", "oci", "runpod", "verda")
"""Providers of the catalog that dstack 0.22 knows (dstack/_internal/core/models/backends), by the same names."""

USUAL = 100
"""GB of the disk that it rents where nobody says."""
SHARED = "16GB"
"""Of memory that processes share, as dstack's pages have it; its containers have 64 MB where nobody says, on which
NCCL stops."""


def job(program: Program, assignment: Assignment) -> Start:
    """Return the task. Raises Unsupported for nodes that differ."""
    part, files = program.parts[0], {}
    nodes, gpus = part.nodes, part.gpus
    run = ['export NNODES="$DSTACK_NODES_NUM" NODE_RANK="$DSTACK_NODE_RANK" MASTER_ADDR="$DSTACK_MASTER_NODE_IP"',
           f'export MASTER_PORT="{PORT}"', f"bash {part.script}"]
    if program.serves:
        groups, _ = placed_on_nodes(program)
        if len({group.node for group in groups}) > 1:
            raise Unsupported("nodes of several types in one task of dstack")
        nodes, gpus, files = sum(group.nodes for group in groups), part.node_gpus, {NODE: node_script(program)}
        run = ['export NODE="$DSTACK_NODE_RANK" NODES="$(paste -sd" " <<< "$DSTACK_NODES_IPS")"', f"bash {NODE}"]
    if program.prepare:
        run.insert(0, f"bash {program.prepare}")
    offer = program.offer
    wanted: object = gpus
    if called := program.called.get("dstack"):
        name, _, memory = called.partition("-")
        wanted = {"name": name, "count": gpus, **({"memory": memory} if memory else {})}
    task: dict[str, object] = {"type": "task", "name": label(title(assignment)), "nodes": nodes,
                               **({"image": program.image} if program.image else {}), "env": ["HF_TOKEN="],
                               "repos": ["."], "commands": run,
                               **({"ports": [SERVES]} if program.serves else {}),
                               "resources": {"gpu": wanted, "shm_size": SHARED, **(
                                   {"disk": f"{program.disk}GB.."} if program.disk > USUAL else {})}}
    if offer is not None and offer.provider in BACKENDS:
        task |= {"backends": [offer.provider], **({"instance_types": [offer.instance]} if offer.named else {}),
                 **({"regions": [offer.region]} if "-" in offer.region else {}),
                 "spot_policy": "spot" if offer.term == "spot" else "on-demand"}
    files[TASK] = dump(task)
    # without a job's number it has the log of the first node's alone
    several = f"for node in $(seq 0 {nodes - 1}); do dstack logs --job $node {task['name']}; done > train.log"
    gather = several if nodes > 1 else f"dstack logs {task['name']} > train.log"
    return Start(files, f'dstack apply -f {TASK} -e HF_TOKEN="${{HF_TOKEN:-}}"', gather=gather, notes=(
        "dstack: nodes of one task are of one fleet. " + (
            "The offer is the plan's." if "backends" in task else
            "The plan has no offer that dstack knows: its fleet decides which nodes, by the "
            + ("GPU and their number." if called else "number of GPUs alone.")),))


PLACE = Place("dstack", job, "dstack", "dstack")

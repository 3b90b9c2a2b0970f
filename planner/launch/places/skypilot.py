"""SkyPilot: a task on the plan's own offer, its provider, region, instance and whether it is spot."""

from __future__ import annotations

from collections.abc import Sequence

from planner.answer.assignment import Assignment
from planner.errors import Unsupported
from planner.launch.place import Place
from planner.launch.places.kubernetes import SERVES, label
from planner.launch.program import INSTALL, PORT, Program, Start
from planner.launch.replicas import NODE, node_script, placed_on_nodes
from planner.launch.title import title
from planner.yaml_io import dump

TASK = "sky.yaml"
CLOUDS = ("aws", "azure", "gcp", "lambda", "nebius", "oci", "runpod", "verda")
"""Providers of the catalog that SkyPilot 0.14 knows (sky/clouds), by the same names."""

USUAL = 256
"""GB of the disk that it rents where nobody says."""
ON_NODE = ('export NODE="$SKYPILOT_NODE_RANK" NODES="$(paste -sd" " <<< "$SKYPILOT_NODE_IPS")"', f"bash {NODE}")
"""Starts what the plan has on a node."""


def job(program: Program, assignment: Assignment) -> Start:
    """Return the task. Raises Unsupported for nodes that differ, and for what is not rented from a cloud it knows."""
    nodes, port = program.parts[0].nodes, 0
    files: dict[str, str] = {}
    run: Sequence[str] = (
        'export MASTER_ADDR="$(head -n 1 <<< "$SKYPILOT_NODE_IPS")"',
        f'export NNODES="$SKYPILOT_NUM_NODES" NODE_RANK="$SKYPILOT_NODE_RANK" MASTER_PORT="{PORT}"',
        f"bash {program.parts[0].script}")
    if program.serves:
        groups, _ = placed_on_nodes(program)
        if len({group.node for group in groups}) > 1:
            raise Unsupported("nodes of several types in one task of SkyPilot")
        nodes, port, files, run = sum(group.nodes for group in groups), SERVES, {NODE: node_script(program)}, ON_NODE
    made = task(program, assignment, nodes, port, run)
    files[TASK] = dump(made)
    name = made["name"]
    return Start(files, f'HF_TOKEN="${{HF_TOKEN:-}}" sky launch -c {name} --secret HF_TOKEN {TASK}', notes=(
        f"{rents(program)} `sky launch --dryrun` says what would be rented.",),
        gather=f"sky logs {name} --no-follow --tail 0 > train.log")


def rents(program: Program) -> str:
    """Return what a note says of the offer."""
    offer = program.offer
    return "" if offer is None else (
        f"SkyPilot: {offer.provider} {offer.instance}, {offer.region}, {offer.term}, as the plan has it.")


def task(program: Program, assignment: Assignment, nodes: int, port: int, run: Sequence[str]) -> dict[str, object]:
    """Return a task on the plan's offer. Raises Unsupported for what is not rented from a cloud that it knows."""
    offer = program.offer
    if offer is None:
        raise Unsupported(f"{assignment.offer or 'an estimate without an offer'} with SkyPilot: it rents; plan with "
                          "rented nodes")
    if offer.provider not in CLOUDS:
        raise Unsupported(f"{offer.provider} with SkyPilot: it has {', '.join(CLOUDS)}")
    if not offer.named and not offer.skypilot:
        raise Unsupported(f"{offer.provider} {offer.instance} with SkyPilot: neither the instance nor its GPU has a "
                          "name there")
    # names such as `us` and `any` are the catalog's, for prices that hold in several regions
    region = f"/{offer.region}" if "-" in offer.region else ""
    gpus = max(part.node_gpus or part.gpus for part in program.parts)
    what: dict[str, object] = {"instance_type": offer.instance} if offer.named else {
        "accelerators": f"{offer.skypilot}:{gpus}"}
    resources: dict[str, object] = {"infra": f"{offer.provider}{region}", **what,
                                    "use_spot": offer.term == "spot"}
    if program.image:
        resources["image_id"] = f"docker:{program.image}"
    if program.disk > USUAL:
        resources["disk_size"] = program.disk
    if port:
        resources["ports"] = [port]
    made: dict[str, object] = {"name": label(title(assignment)), "num_nodes": nodes, "resources": resources,
                               "workdir": ".", "secrets": {"HF_TOKEN": None}}
    if program.prepare or not program.image:
        made["setup"] = f"bash {INSTALL}\n"
    made["run"] = "\n".join(run) + "\n"
    return made


PLACE = Place("skypilot", job, "skypilot", "skypilot")

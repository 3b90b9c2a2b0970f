"""SkyPilot: a task on the plan's own offer, its provider, region, instance and whether it is spot."""

from __future__ import annotations

from planner.answer.assignment import Assignment
from planner.errors import Unsupported
from planner.launch.place import Place
from planner.launch.places.kubernetes import SERVES, label
from planner.launch.program import INSTALL, PORT, Job, Program
from planner.launch.replicas import NODE, node_script, placed_on_nodes
from planner.yaml_io import dump

TASK, SERVICE = "sky.yaml", "service.yaml"
CLOUDS = ("aws", "azure", "gcp", "lambda", "nebius", "oci", "runpod", "verda")
"""Providers of the catalog that SkyPilot 0.14 knows (sky/clouds), by the same names."""


def job(program: Program, assignment: Assignment) -> Job:
    """Return the task. Raises Unsupported for nodes that differ, and for what is not rented from a cloud it knows."""
    offer = program.offer
    if offer is None:
        raise Unsupported(f"{assignment.offer or 'an estimate without an offer'} with SkyPilot: it rents; plan with "
                          "rented nodes")
    if offer.provider not in CLOUDS:
        raise Unsupported(f"{offer.provider} with SkyPilot: it has {', '.join(CLOUDS)}")
    if not offer.named and not offer.accelerator:
        raise Unsupported(f"{offer.provider} {offer.instance} with SkyPilot: neither the instance nor its GPU has a "
                          "name there")
    nodes, port, files = program.parts[0].nodes, 0, {}
    run = ['export MASTER_ADDR="$(head -n 1 <<< "$SKYPILOT_NODE_IPS")"',
           f'export NNODES="$SKYPILOT_NUM_NODES" NODE_RANK="$SKYPILOT_NODE_RANK" MASTER_PORT="{PORT}"',
           f"bash {program.parts[0].script}"]
    if program.serves:
        groups, _ = placed_on_nodes(program)
        if len({group.node for group in groups}) > 1:
            raise Unsupported("nodes of several types in one task of SkyPilot")
        nodes, port, files = sum(group.nodes for group in groups), SERVES, {NODE: node_script(program)}
        run = ['export NODE="$SKYPILOT_NODE_RANK" NODES="$(paste -sd" " <<< "$SKYPILOT_NODE_IPS")"', f"bash {NODE}"]
    # names such as `us` and `any` are the catalog's, for prices that hold in several regions
    region = f"/{offer.region}" if "-" in offer.region else ""
    gpus = max(part.node_gpus or part.gpus for part in program.parts)
    what: dict[str, object] = {"instance_type": offer.instance} if offer.named else {
        "accelerators": f"{offer.accelerator}:{gpus}"}
    resources: dict[str, object] = {"infra": f"{offer.provider}{region}", **what,
                                    "use_spot": offer.term == "spot"}
    if program.image:
        resources["image_id"] = f"docker:{program.image}"
    if port:
        resources["ports"] = [port]
    task: dict[str, object] = {"name": label(assignment.workload), "num_nodes": nodes, "resources": resources,
                               "workdir": ".", "secrets": {"HF_TOKEN": None}}
    if program.prepare or not program.image:
        task["setup"] = f"bash {INSTALL}\n"
    task["run"] = "\n".join(run) + "\n"
    files[TASK] = dump(task)
    return Job(files, f'HF_TOKEN="${{HF_TOKEN:-}}" sky launch -c {task["name"]} --secret HF_TOKEN {TASK}', notes=(
        f"SkyPilot: {offer.provider} {offer.instance}, {offer.region}, {offer.term}, as the plan has it. `sky launch "
        "--dryrun` says what would be rented.",))


PLACE = Place("skypilot", job, "skypilot", "skypilot")

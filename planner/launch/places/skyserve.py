"""SkyServe: a service whose replicas are what one node, or one group of nodes, of the plan holds."""

from __future__ import annotations

from dataclasses import replace

from planner.answer.assignment import Assignment
from planner.errors import Unsupported
from planner.launch.place import Place
from planner.launch.places.kubernetes import SERVES
from planner.launch.places.skypilot import ON_NODE, rents, task
from planner.launch.program import Program, Start
from planner.launch.replicas import NODE, node_script
from planner.launch.routers import STARTUP
from planner.units import plural
from planner.yaml_io import dump

SERVICE = "service.yaml"


def job(program: Program, assignment: Assignment) -> Start:
    """Return the service. Raises Unsupported for what trains, and for replicas that differ."""
    served = [part for part in program.parts if part.port]
    if not served:
        raise Unsupported(f"{program.target} under SkyServe, which serves")
    if len(served) > 1 or served[0].role != "whole":
        raise Unsupported("replicas that differ under SkyServe: its replicas are alike")
    (part,) = served
    each = max(1, part.node_gpus // part.gpus) if part.nodes == 1 else 1
    each = min(each, part.copies)
    one = replace(program, parts=(replace(part, copies=each), *(
        other for other in program.parts if other.role == "router" and each > 1)))
    made = task(program, assignment, part.nodes, SERVES, ON_NODE)
    made["service"] = {"readiness_probe": {"path": "/health", "initial_delay_seconds": STARTUP},
                       "replicas": -(-part.copies // each)}
    return Start({SERVICE: dump(made), NODE: node_script(one)},
                 f'HF_TOKEN="${{HF_TOKEN:-}}" sky serve up -n {made["name"]} --secret HF_TOKEN {SERVICE}', notes=(
        f"{rents(program)} A replica of SkyServe is {plural(part.nodes, 'node')} with {each} of the plan's; "
        f"`sky serve status {made['name']}` says where it answers.",))


PLACE = Place("skyserve", job, "skypilot", "skypilot")

"""Ray: a job that starts each node's script on a node of its own, or what runs on Ray on the cluster that is there."""

from __future__ import annotations

from planner.answer.assignment import Assignment
from planner.launch.place import Place
from planner.launch.program import PORT, VARIABLES, Program, Start, Variable
from planner.launch.replicas import NODE, node_script, placed_on_nodes

DRIVER = "ray_job.py"
ADDRESS = Variable("RAY_ADDRESS", "http://127.0.0.1:8265", "Of the Ray cluster's dashboard.")
_TEXT = '''"""Starts a script on every node of the plan, each on a node of its own of the Ray cluster."""

import os
import subprocess

import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

GPUS = {gpus}
"""That the plan uses of each node."""


@ray.remote(num_cpus=1)
def address():
    """Return where the node is."""
    return ray.util.get_node_ip_address()


@ray.remote(num_cpus=1)
def start(rank, addresses):
    """Run what each node runs; Ray has set which GPUs it sees."""
    ours = {environment}
    subprocess.run(["bash", "-c", "{words}"], check=True, env={{**os.environ, **ours}})


def main():
    """Place the nodes, and wait for all."""
    ray.init()
    group = placement_group([{{"CPU": 1, "GPU": each}} for each in GPUS], strategy="STRICT_SPREAD")
    ray.get(group.ready())

    def on(rank, gpus):
        where = PlacementGroupSchedulingStrategy(placement_group=group, placement_group_bundle_index=rank)
        return {{"scheduling_strategy": where, "num_gpus": gpus}}

    addresses = ray.get([address.options(**on(rank, 0)).remote() for rank in range(len(GPUS))])
    ray.get([start.options(**on(rank, each)).remote(rank, addresses) for rank, each in enumerate(GPUS)])
    remove_placement_group(group)
{then}

if __name__ == "__main__":
    main()
'''
_ON_CLUSTER = '''    ray.shutdown()
    subprocess.run(["bash", "{script}"], check=True, env={{**os.environ, "RAY_STARTED": "1"}})
'''
"""Follows where the program has the cluster's nodes to itself."""


def job(program: Program, assignment: Assignment) -> Start:
    """Return the driver, and the line that submits it with the folder."""
    part, files = program.parts[0], {}
    gpus = [part.gpus] * part.nodes
    environment = ('{"NNODES": str(len(GPUS)), "NODE_RANK": str(rank), "MASTER_ADDR": addresses[0], '
                   f'"MASTER_PORT": "{PORT}"}}')
    script = part.script
    if program.serves:
        groups, _ = placed_on_nodes(program)
        gpus = [group.gpus for group in groups for _ in range(group.nodes)]
        environment, script, files = '{"NODE": str(rank), "NODES": " ".join(addresses)}', NODE, {
            NODE: node_script(program)}
    words = f"bash {program.prepare} && exec bash {script}" if program.prepare else f"exec bash {script}"
    then = _ON_CLUSTER.format(script=script) if program.on_ray else ""
    if program.on_ray:
        words = " && ".join(f"bash {one}" for one in (program.prepare, program.on_each) if one) or "true"
    files[DRIVER] = _TEXT.format(gpus=gpus, environment=environment, words=words, then=then)
    start = (f'source {VARIABLES} && ray job submit --address "$RAY_ADDRESS" --working-dir . -- python3 {DRIVER} '
             f"2>&1 | tee {part.name}.log")
    own = (f"{program.target} runs on the cluster itself, which has the plan's nodes and no others.",)
    return Start(files, start, (ADDRESS,), (
        "Ray: nodes of the cluster have the plan's GPUs; those of several types are taken as they come. Their "
        f"environment has HF_TOKEN where a model is gated, and all else is read from {VARIABLES} as it is submitted.",
        *(own if program.on_ray else ())))


PLACE = Place("ray", job, "ray_job", "ray")

"""Programs that run on Ray: one node starts the cluster and the program, the others join and wait for its end.

Within a job of Ray the cluster is there, which $RAY_STARTED says, and the program alone is started.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.launch.program import script

JOIN = "join.py"
PORT = 6379
"""On which the nodes of a cluster meet, as Ray has it."""
_JOIN = '''"""Waits until so many nodes have joined Ray."""

import sys
import time

import ray

ray.init(address="auto", logging_level="ERROR")
while sum(node["Alive"] for node in ray.nodes()) < int(sys.argv[1]):
    time.sleep(2)
'''


def on_ray(head: str, nodes: int, gpus: int, environment: Mapping[str, str], lines: Sequence[str],
           program: Sequence[str]) -> dict[str, str]:
    """Return train.sh, and what waits for the nodes: `lines` set up what `program`, the last words, is run with."""
    start = f"ray start --head --port={PORT} --num-gpus={gpus}"
    several = ['if [[ "${NODE_RANK:?}" != 0 ]]; then', f'  until ray start --address="${{MASTER_ADDR:?}}:{PORT}" '
               f"--num-gpus={gpus} --block; do sleep 5; done", "  exit", "fi", start,
               f'python3 "$here/{JOIN}" {nodes}'] if nodes > 1 else [start]
    several.append("trap 'ray stop' EXIT")
    cluster = ['if [[ -z "${RAY_STARTED:-}" ]]; then', *(f"  {line}" for line in several), "fi"]
    body = [*lines, *cluster, " \\\n  ".join(program)]
    return {"train.sh": script(head, environment, body), **({JOIN: _JOIN} if nodes > 1 else {})}

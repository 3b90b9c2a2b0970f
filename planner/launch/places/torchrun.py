"""No scheduler: the scripts, started by hand on one node, or over ssh on each of several."""

from __future__ import annotations

from planner.answer.assignment import Assignment
from planner.errors import Unsupported
from planner.launch.place import Place
from planner.launch.program import PORT, VARIABLES, Job, Program, Variable

START = "start.sh"
HOSTS = Variable("HOSTS", "hosts", "File with the name of one node a line, the first where the others meet.")


def job(program: Program, assignment: Assignment) -> Job:
    """Return the line that starts one node, or a script that starts all over ssh."""
    if len(program.parts) > 1:
        raise Unsupported(f"several parts of {program.target} without a scheduler")
    part = program.parts[0]
    if part.nodes == 1:
        return Job({}, f"bash {part.script} 2>&1 | tee {part.name}.log")
    lines = ["#!/usr/bin/env bash", f"# Starts {part.script} over ssh on every node of $HOSTS.", "set -euo pipefail",
             'here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"', f'source "$here/{VARIABLES}"',
             'mapfile -t hosts < "$HOSTS"', f"if (( ${{#hosts[@]}} < {part.nodes} )); then",
             f'  echo "$HOSTS names ${{#hosts[@]}} nodes; the plan has {part.nodes}" >&2', "  exit 1", "fi",
             f"for rank in $(seq 0 {part.nodes - 1}); do",
             f'  ssh "${{hosts[rank]}}" "cd \'$here\' && NNODES={part.nodes} NODE_RANK=$rank'
             f' MASTER_ADDR=${{hosts[0]}} MASTER_PORT={PORT} bash {part.script}" > "{part.name}-$rank.log" 2>&1 &',
             "done", "wait"]
    return Job({START: "\n".join(lines) + "\n"}, f"bash {START}", (HOSTS,), (
        "ssh: this folder is at the same path on every node.",))


PLACE = Place("torchrun", job)

"""No scheduler: the scripts, started by hand on one node, or over ssh on each of several."""

from __future__ import annotations

from dataclasses import replace

from planner.answer.assignment import Assignment
from planner.launch.place import Place
from planner.launch.program import PORT, VARIABLES, Program, Start, Variable
from planner.launch.replicas import NODE, alone, ended, node_script, placed_on_nodes

START = "start.sh"
HOSTS = Variable("HOSTS", "hosts", "File with the name of one node a line, the first where the others meet.")


def job(program: Program, assignment: Assignment) -> Start:
    """Return the line that starts one node, or a script that starts all over ssh."""
    if program.serves:
        return _service(program)
    part = program.parts[0]
    if part.nodes == 1:
        return Start({}, f"bash {part.script} 2>&1 | tee {part.name}.log")
    return _over_ssh(program, f"{part.script} on every node", part.nodes, [
        f"for rank in $(seq 0 {part.nodes - 1}); do",
        f'  ssh "${{hosts[rank]}}" "cd \'$here\' && $told NNODES={part.nodes} NODE_RANK=$rank'
        f' MASTER_ADDR=${{hosts[0]}} MASTER_PORT={PORT} bash {part.script}" > "{part.name}-$rank.log" 2>&1 &'],
        gather=f"cat {part.name}-*.log > {part.name}.log  # of every node: some print a step on the last alone")


def _service(program: Program) -> Start:
    part = program.parts[0]
    if alone(program):
        return Start({}, f"bash {part.script} 2>&1 | tee {part.name}.log")
    groups, _ = placed_on_nodes(program)
    nodes = sum(group.nodes for group in groups)
    files = {NODE: node_script(program)}
    if nodes == 1:
        return Start(files, f"bash {NODE}")
    made = _over_ssh(program, "the replicas of every node", nodes, [
        f"for node in $(seq 0 {nodes - 1}); do",
        f'  ssh "${{hosts[node]}}" "cd \'$here\' && $told NODE=$node NODES=\'${{hosts[*]}}\' bash {NODE}" '
        '> "node-$node.log" 2>&1 &'])
    order = "; ".join(f"{group.nodes} of {group.node} for {group.name}" for group in groups)
    return replace(made, files={**files, **made.files}, notes=(*made.notes, f"$HOSTS names, in this order: {order}."))


def _over_ssh(program: Program, what: str, nodes: int, loop: list[str], gather: str = "") -> Start:
    told = " ".join(f'"{one.name}=${one.name}"' for one in program.variables)
    lines = ["#!/usr/bin/env bash", f"# Starts {what} of $HOSTS over ssh.", "set -euo pipefail",
             'here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"', f'source "$here/{VARIABLES}"',
             'mapfile -t hosts < "$HOSTS"', f"if (( ${{#hosts[@]}} < {nodes} )); then",
             f'  echo "$HOSTS names ${{#hosts[@]}} nodes; the plan has {nodes}" >&2', "  exit 1", "fi",
             "# ssh takes no environment along", f"told=\"$(printf '%q ' {told})\"", "pids=()", *loop,
             '  pids+=("$!")', "done", *ended("pids")]
    return Start({START: "\n".join(lines) + "\n"}, f"bash {START}", (HOSTS,), (
        "ssh: this folder is at the same path on every node. HF_TOKEN is not sent along: `hf auth login` on each.",),
        gather=gather)


PLACE = Place("torchrun", job)

"""Replicas on nodes: which GPUs of which node each is on, and the script that starts those of a node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.errors import InputError
from planner.launch.program import PORT, VARIABLES, Part, Program
from planner.launch.routers import ROUTER

NODE = "node.sh"
APART = 10
"""Ports between those on which the processes of two replicas meet."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One replica's share of one node."""

    part: Part
    node: int
    gpus: tuple[int, ...]
    replica: int
    """Its number among those of the node."""
    copy: int
    """Among all."""
    rank: int
    """Of the node among those of the replica."""
    head: int
    """The replica's first node."""


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes of one type that hold the same parts."""

    name: str
    node: str
    nodes: int
    gpus: int
    """That are used of each, at most."""
    first: int
    """Number of its first node."""


def placed_on_nodes(program: Program) -> tuple[list[Group], list[Slot]]:
    """Return the groups of nodes and what runs on each; the largest replicas are placed first, each where room is."""
    groups: dict[tuple[str, str], list[Part]] = {}
    for part in program.parts:
        if part.port:
            whole = part.gpus == part.node_gpus
            groups.setdefault((part.node, part.name if whole and part.role != "whole" else ""), []).append(part)
    made: list[Group] = []
    slots: list[Slot] = []
    first = copy = 0
    for (node, _), parts in groups.items():
        free: list[int] = []
        before = len(slots)
        for part in sorted(parts, key=lambda part: -part.gpus * part.nodes):
            for _each in range(part.copies):
                slots += _fit(part, free, first, copy, slots)
                copy += 1
        used = max(free[at] for at in range(len(free)))
        made.append(Group("-".join(part.name for part in parts), node, len(free), used, first))
        first += len(free)
        assert len(slots) > before
    return made, slots


def _fit(part: Part, free: list[int], first: int, copy: int, there: Sequence[Slot]) -> list[Slot]:
    """Return the slots of one replica; `free` counts the GPUs used of each node so far, and grows."""
    at = next((at for at, used in enumerate(free) if part.nodes == 1 and used + part.gpus <= part.node_gpus), len(free))
    made = []
    for rank in range(part.nodes):
        if at + rank == len(free):
            free.append(0)
        start, node = free[at + rank], first + at + rank
        free[at + rank] += part.gpus
        number = sum(slot.node == node for slot in there)
        made.append(Slot(part, node, tuple(range(start, start + part.gpus)), number, copy, rank, first + at))
    return made


def nodes_of(program: Program) -> int:
    """Return the nodes of all that is started."""
    return sum(group.nodes for group in placed_on_nodes(program)[0]) if program.serves else program.nodes


def node_script(program: Program) -> str:
    """Return the script that starts what is on a node: of $NODE, its number, and $NODES, the names of all."""
    _, slots = placed_on_nodes(program)
    if len(slots) > 1 and max(slot.replica for slot in slots) * APART > 1000:
        raise InputError("more replicas on a node than ports are set apart for")
    routed = any(part.role == "router" for part in program.parts)
    # a replica alone answers where the service does
    rows = [f'  "{slot.node} {slot.part.script} {",".join(map(str, slot.gpus))} '
            f'{slot.part.port if routed else "$PORT"} {slot.replica} '
            f'{slot.copy} {slot.rank} {slot.part.nodes} {slot.head} {slot.part.role}"' for slot in slots]
    lines = [
        "#!/usr/bin/env bash", "# Starts the replicas of this node: NODE is its number, NODES the names of all nodes.",
        "set -euo pipefail", 'here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"', f'source "$here/{VARIABLES}"',
        'read -ra hosts <<< "${NODES:-127.0.0.1}"', "# node script gpus port replica copy rank nodes head role",
        "SLOTS=(", *rows, ")", 'urls() {', "  local node script gpus port replica copy rank nodes head role",
        '  for slot in "${SLOTS[@]}"; do', "    read -r node script gpus port replica copy rank nodes head role <<< "
        '"$slot"', '    if [[ "$rank" == 0 && "$role" == "$1" ]]; then',
        '      echo "http://${hosts[node]}:$((port + replica))"', "    fi", "  done | paste -sd' '", "}", *given_gpus(),
        "pids=()",
        'for slot in "${SLOTS[@]}"; do',
        '  read -r node script gpus port replica copy rank nodes head role <<< "$slot"',
        '  if [[ "$node" == "${NODE:-0}" ]]; then',
        '    CUDA_VISIBLE_DEVICES="$(given "$gpus")" REPLICA="$replica" REPLICA_PORT="$((port + replica))" \\',
        '      NNODES="$nodes" NODE_RANK="$rank" MASTER_ADDR="${hosts[head]}" \\',
        f'      MASTER_PORT="$(({PORT} + {APART} * copy))" \\',
        '      bash "$here/$script" > "${script%.sh}-$copy-$rank.log" 2>&1 &', '    pids+=("$!")', "  fi", "done"]
    if routed:
        lines += ['if [[ "${NODE:-0}" == 0 ]]; then',
                  '  WORKERS="$(urls whole)" PREFILL="$(urls prefill)" DECODE="$(urls decode)" \\',
                  f'    bash "$here/{ROUTER}" > router.log 2>&1 &', '  pids+=("$!")', "fi"]
    return "\n".join([*lines, *ended("pids")]) + "\n"


def given_gpus() -> list[str]:
    """Return lines of shell with `given`: GPUs by their numbers, as a place names those that it gives of a node."""
    return ['IFS=, read -ra seen <<< "${CUDA_VISIBLE_DEVICES:-}"', "given() {", "  local IFS=, at all=()",
            '  for at in $1; do all+=("${seen[at]:-$at}"); done', '  echo "${all[*]}"', "}"]


def ended(pids: str) -> list[str]:
    """Return lines of shell that wait for the processes of an array, and fail where one failed."""
    return ["failed=0", f'for pid in "${{{pids}[@]}}"; do', '  wait "$pid" || failed=1', "done", 'exit "$failed"']


def alone(program: Program) -> bool:
    """Say whether it is one replica on one node, which needs nothing around it."""
    return len(program.parts) == 1 and program.parts[0].copies == 1 and program.parts[0].nodes == 1

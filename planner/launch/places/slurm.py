"""Slurm: an sbatch file that runs each part's script once on every node of it."""

from __future__ import annotations

from planner.answer.assignment import Assignment
from planner.errors import Unsupported
from planner.launch.place import Place
from planner.launch.program import PORT, VARIABLES, Job, Program

JOB = "job.sbatch"


def job(program: Program, assignment: Assignment) -> Job:
    """Return the sbatch file. Raises Unsupported for several kinds of nodes."""
    if len(program.parts) > 1:
        raise Unsupported(f"several parts of {program.target} under Slurm")
    part = program.parts[0]
    name = "".join(c if c.isalnum() or c in "-._" else "-" for c in assignment.workload.lower())[:64]
    options = {"job-name": name, "nodes": part.nodes, "ntasks-per-node": 1, "gpus-per-node": part.gpus,
               "exclusive": None, "mem": 0, "time": _limit(assignment), "output": "%x-%j.log", "open-mode": "append",
               "requeue": None}
    lines = ["#!/usr/bin/env bash"]
    lines += [f"#SBATCH --{key}" + ("" if value is None else f"={value}") for key, value in options.items()
              if value != ""]
    lines += [
        "# SBATCH_ACCOUNT and SBATCH_PARTITION in the environment of sbatch say whose time it is, and where.",
        "set -euo pipefail", 'here="${SLURM_SUBMIT_DIR:-$PWD}"', f'source "$here/{VARIABLES}"',
        'MASTER_ADDR="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"',
        f'export MASTER_ADDR MASTER_PORT="${{MASTER_PORT:-{PORT}}}" NNODES="$SLURM_JOB_NUM_NODES"',
        "container=()", 'if [[ -n "$IMAGE" ]] && srun --help | grep -q -- --container-image; then',
        '  container=(--container-image="$IMAGE" --container-mounts="$here:$here" --container-workdir="$here")', "fi",
        'srun --kill-on-bad-exit=1 --ntasks-per-node=1 --cpus-per-task="$SLURM_CPUS_ON_NODE" "${container[@]}" \\',
        f"  bash -c 'NODE_RANK=\"$SLURM_NODEID\" exec bash \"$0/{part.script}\"' \"$here\""]
    return Job({JOB: "\n".join(lines) + "\n"}, f"sbatch {JOB}", notes=(
        "Slurm: sbatch is run in this folder, on storage that all nodes see. Where a limit is shorter than the run, "
        f"`sbatch --time=1-00:00:00 {JOB}` several times: each goes on from the last checkpoint. Images need pyxis.",))


def _limit(assignment: Assignment) -> str:
    """Return the time limit, the later end of what whole runs took; none where no duration is planned."""
    spread = getattr(assignment, "duration_interval90_days", None)
    days = spread[1] if spread else assignment.duration_days
    if days is None or assignment.kind == "serving":
        return ""
    hours = max(1, -(-round(days * 24 * 60) // 60))
    return f"{hours // 24}-{hours % 24:02d}:00:00"


PLACE = Place("slurm", job)

"""Slurm: an sbatch file that runs each part's script once on every node of it."""

from __future__ import annotations

from planner.answer.assignment import Assignment
from planner.launch.place import Place
from planner.launch.program import PORT, VARIABLES, Program, Start, Variable
from planner.launch.replicas import NODE, node_script, placed_on_nodes
from planner.launch.title import title

JOB = "job.sbatch"
MOUNTS = Variable("MOUNTS", "", "Folders that a container sees beside this one and $HF_HOME, where models are kept: "
                  "/data:/data,/models:/models.")


def job(program: Program, assignment: Assignment) -> Start:
    """Return the sbatch file; heterogeneous where nodes differ, or prefill and decode are on nodes of their own."""
    if program.serves:
        return _service(program, assignment)
    part = program.parts[0]
    lines = ["#!/usr/bin/env bash", *_options(assignment, part.nodes, part.gpus),
             "#SBATCH --open-mode=append", "#SBATCH --requeue", *_HEAD,
             'MASTER_ADDR="$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)"',
             f'export MASTER_ADDR MASTER_PORT="${{MASTER_PORT:-{PORT}}}" NNODES="$SLURM_JOB_NUM_NODES"',
             *_container(program),
             'srun --kill-on-bad-exit=1 --ntasks-per-node=1 --cpus-per-task="$SLURM_CPUS_ON_NODE" "${container[@]}" \\',
             f"  bash -c '$PREPARE && NODE_RANK=\"$SLURM_NODEID\" exec bash \"$0/{part.script}\"' \"$here\""]
    return Start({JOB: "\n".join(lines) + "\n"}, f"sbatch {JOB}", notes=(
        "Slurm: sbatch is run in this folder, on storage that all nodes see. Where a limit is shorter than the run, "
        f"`sbatch --time=1-00:00:00 {JOB}` several times: each goes on from the last checkpoint. Images need pyxis.",),
        variables=(MOUNTS,), log=f'"$(ls -t {_name(assignment)}-*.log | head -n 1)"')


def _service(program: Program, assignment: Assignment) -> Start:
    groups, _ = placed_on_nodes(program)
    several = len(groups) > 1
    lines = ["#!/usr/bin/env bash"]
    for group in groups:
        lines += [*(["#SBATCH hetjob"] if group.first else []), f"# {group.node}: {group.name}",
                  *_options(assignment, group.nodes, group.gpus, several=bool(group.first))]
    names = [f"$SLURM_JOB_NODELIST_HET_GROUP_{at}" for at in range(len(groups))] if several else ["$SLURM_JOB_NODELIST"]
    lines += [*_HEAD, "export NODES", "NODES=\"$(for list in " + " ".join(f'"{name}"' for name in names)
              + '; do scontrol show hostnames "$list"; done | paste -sd\' \')"', *_container(program)]
    for at, group in enumerate(groups):
        chosen = f"--het-group={at} " if several else ""
        # of a component its own: the batch script is on a node of the first
        cpus = f"${{SLURM_JOB_CPUS_PER_NODE_HET_GROUP_{at}%%[(,]*}}" if several else "$SLURM_CPUS_ON_NODE"
        lines += [f'srun {chosen}--ntasks-per-node=1 --cpus-per-task="{cpus}" "${{container[@]}}" \\',
                  f"  bash -c '$PREPARE && NODE=$((SLURM_NODEID + {group.first})) exec bash \"$0/{NODE}\"' \"$here\""
                  + (" &" if several else "")]
    lines += ["# the first component that ends, ends the job", "wait -n"] if several else []
    differ = [f"Nodes differ: {JOB} has a component for each type, and a cluster has its own words for it, such as "
              "`#SBATCH --constraint=h100` or a partition: add them under the comment that names the type."] if len(
        {group.node for group in groups}) > 1 else []
    return Start({JOB: "\n".join(lines) + "\n", NODE: node_script(program)}, f"sbatch {JOB}", (MOUNTS,), (
        "Slurm: sbatch is run in this folder, on storage that all nodes see; the service answers on $PORT of the first "
        "node. Images need pyxis.", *differ))


def _options(assignment: Assignment, nodes: int, gpus: int, *, several: bool = False) -> list[str]:
    """Return the options of a job, or of a further component of one."""
    own: dict[str, object] = {"job-name": _name(assignment), "time": _limit(assignment), "output": "%x-%j.log"}
    each: dict[str, object] = {"nodes": nodes, "ntasks-per-node": 1, "gpus-per-node": gpus, "exclusive": None, "mem": 0}
    options = each if several else own | each
    return [f"#SBATCH --{key}" + ("" if value is None else f"={value}") for key, value in options.items()
            if value != ""]


_HEAD = ("# SBATCH_ACCOUNT and SBATCH_PARTITION in the environment of sbatch say whose time it is, and where.",
         "set -euo pipefail", 'here="${SLURM_SUBMIT_DIR:-$PWD}"', f'source "$here/{VARIABLES}"')


def _name(assignment: Assignment) -> str:
    return "".join(c if c.isalnum() or c in "-._" else "-" for c in title(assignment).lower())[:64]


def _container(program: Program) -> list[str]:
    """Return lines that say which container runs the scripts, and what it runs before them."""
    prepare = [f'  PREPARE="bash {program.prepare}"'] if program.prepare else []
    return ["export PREPARE=:", "container=()",
            'if [[ -n "$IMAGE" && "$(srun --help)" == *--container-image* ]]; then',
            '  export HF_HOME="${HF_HOME:-$here/huggingface}"',
            '  mkdir -p "$HF_HOME"',
            "  # pyxis wants a # between a registry and its image",
            '  [[ -e "$IMAGE" || "${IMAGE%%/*}" != *.* ]] || IMAGE="${IMAGE/\\//#}"',
            '  container=(--container-image="$IMAGE" --container-workdir="$here"',
            '    --container-mounts="$here:$here,$HF_HOME:$HF_HOME${MOUNTS:+,$MOUNTS}")',
            *prepare, "fi"]


def _limit(assignment: Assignment) -> str:
    """Return the time limit, the later end of what whole runs took; none where no duration is planned."""
    spread = getattr(assignment, "duration_interval90_days", None)
    days = spread[1] if spread else assignment.duration_days
    if days is None or assignment.kind == "serving":
        return ""
    hours = max(1, -(-round(days * 24 * 60) // 60))
    return f"{hours // 24}-{hours % 24:02d}:00:00"


PLACE = Place("slurm", job)

"""What is to run, whatever the stack and the scheduler: scripts, the nodes that run them, files and variables.

A script runs once on every node of its part. Where it is one of several nodes, the place tells it the node's number and
the address of the first: `NODE_RANK`, `MASTER_ADDR`, `MASTER_PORT`, and `NNODES`, how many they are.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

VARIABLES, INSTALL = "variables.sh", "install.sh"
"""The file with every variable, which every script reads; and the script that installs what the plan needs."""
PORT = 29500
"""On which the processes of a job meet, as torchrun has it."""


@dataclass(frozen=True, slots=True)
class Variable:
    """What the plan cannot know: a name for the environment, the value it has where nothing is set, and what it is."""

    name: str
    default: str
    meaning: str


def of_training(rate: str, whose: str = "Peak of the learning rate") -> tuple[Variable, ...]:
    """Return the variables that every training has; {steps} of the plan are to be filled in."""
    return (Variable("CHECKPOINTS", "checkpoints", "Folder on storage that all nodes share."),
            Variable("LEARNING_RATE", rate, f"{whose}; the plan does not depend on it."),
            Variable("STEPS", "{steps}", "Steps of the run: those of the plan."))


@dataclass(frozen=True, slots=True)
class Part:
    """Nodes that run one script: those of a training job, or of one kind of replica."""

    name: str
    """`train`, `serve`, `prefill`, `decode`, `router`."""
    script: str
    nodes: int
    """Of one copy; a router takes none of its own: 0."""
    gpus: int
    """Of each node."""
    copies: int = 1
    port: int | None = None
    """On which a service answers."""
    node: str = ""
    """Type of its nodes, where copies share nodes; with how many GPUs each."""
    node_gpus: int = 0
    role: str = "whole"
    """Of a replica: whole, prefill or decode; or router."""
    options: Mapping[str, object] = field(default_factory=dict)
    """Of the engine, by their names, for places that start it themselves."""
    model: str = ""
    """Variable that names its checkpoint."""
    facts: Mapping[str, object] = field(default_factory=dict)
    """What a check has to know of it: the shape of the model, the GPU."""


@dataclass(frozen=True, slots=True)
class Rented:
    """What the plan rents."""

    provider: str
    instance: str
    region: str
    term: str
    accelerator: str = ""
    """The GPU, as clouds' catalogs name it; empty where they have no name for it."""
    skypilot: str = ""
    """The same as SkyPilot names it at this provider."""

    @property
    def named(self) -> bool:
        """Whether the instance is the provider's name of it, and not that of a price list."""
        return " " not in self.instance


@dataclass(frozen=True, slots=True)
class Program:
    """What one target starts of a plan."""

    target: str
    parts: tuple[Part, ...]
    files: Mapping[str, str]
    """Path in the folder -> text: scripts and configs."""
    variables: tuple[Variable, ...] = ()
    notes: tuple[str, ...] = ()
    """What the files cannot say, or a reader has to know before the start."""
    image: str = ""
    """Container that has it."""
    offer: Rented | None = None
    resource: str = "nvidia.com/gpu"
    """What Kubernetes calls its GPUs."""
    called: Mapping[str, str] = field(default_factory=dict)
    """Scheduler -> what that calls them; without those that have no name for them."""
    install: tuple[str, ...] = ()
    """Lines of a shell that install what it needs beside its target: a router, a tokenizer."""
    prepare: str = ""
    """Script that a new machine or container runs first; empty where the image has everything."""
    feedback: str = ""
    """The log of a run that `planner validate` reads."""
    disk: int = 0
    """GB that the disk of a rented node has to hold; nothing where that is not known."""
    on_ray: bool = False
    """Whether it starts a cluster of Ray, where none is told it is there: $RAY_STARTED."""
    on_each: str = ""
    """Script that such a program has every node of a cluster run first, which its own script runs where it is."""

    @property
    def nodes(self) -> int:
        """Nodes of all parts and copies, at least: copies smaller than a node share one."""
        return sum(-(-part.nodes * part.copies * part.gpus // (part.node_gpus or part.gpus)) for part in self.parts
                   if part.nodes)

    @property
    def serves(self) -> bool:
        """Whether it answers requests."""
        return any(part.port for part in self.parts)


@dataclass(frozen=True, slots=True)
class Start:
    """A program at a place: the files of the place, and the line that starts them."""

    files: Mapping[str, str]
    start: str
    variables: tuple[Variable, ...] = ()
    notes: tuple[str, ...] = field(default=())
    log: str = "train.log"
    """Where what a training job prints comes to lie, as a word of a shell."""
    gather: str = ""
    """The line that brings it there; empty where it lies there already."""


def variables_file(variables: Sequence[Variable]) -> str:
    """Return the shell file with every variable: what the environment sets holds, else the value here."""
    lines = ["# What the plan cannot know. A value in the environment goes before the one here."]
    for one in variables:
        lines += [f"# {one.meaning}", f': "${{{one.name}:={one.default}}}"']
    if variables:
        lines.append("export " + " ".join(one.name for one in variables))
    return "\n".join(lines) + "\n"


def script(head: str, environment: Mapping[str, str], body: Sequence[str]) -> str:
    """Return a bash script: what it is, the variables, the environment of its processes, and what it runs."""
    return "\n".join([
        "#!/usr/bin/env bash", f"# {head}", "set -euo pipefail", 'here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"',
        f'source "$here/{VARIABLES}"', *(f"export {name}={shlex.quote(value)}" for name, value in environment.items()),
        "", *body]) + "\n"


def array(name: str, settings: Mapping[str, object]) -> list[str]:
    """Return a shell array of options: True is an option alone, a list several words."""
    lines = [f"{name}=("]
    for key, value in settings.items():
        words = [] if value is True else list(value) if isinstance(value, list) else [value]
        lines.append("  " + " ".join([f"--{key}", *(shlex.quote(str(word)) for word in words)]))
    return [*lines, ")"]


def torchrun(gpus: int, nodes: int) -> list[str]:
    """Return the words that start a process for each GPU, node by node in the order of their numbers."""
    if nodes == 1:
        return ["torchrun", "--standalone", "--nnodes=1", f"--nproc-per-node={gpus}"]
    return ["torchrun", f'--nnodes="${{NNODES:-{nodes}}}"', f"--nproc-per-node={gpus}", '--node-rank="${NODE_RANK:?}"',
            '--master-addr="${MASTER_ADDR:?}"', f'--master-port="${{MASTER_PORT:-{PORT}}}"']


def with_host_threads(program: Program, gpus: int) -> Program:
    """Return a program whose processes on a node, one a GPU, share its cores to step the optimizer on the host."""
    threads = Variable("OMP_NUM_THREADS", f"$(( ($(nproc) + {gpus - 1}) / {gpus} ))",
                       "Threads of a process, for the optimizer on the host; torchrun alone gives it one")
    return replace(program, variables=(*program.variables, threads))


def filled(file: str, keys: Mapping[str, str], words: Mapping[str, str] | None = None) -> list[str]:
    """Return lines of a script that put variables into a copy of a config, `$config`: by key, and by a word in it.

    The copy stays with what the run leaves behind; each node has one of its own, as nodes may share that folder.
    """
    stem, _, suffix = file.partition(".")
    by_key = [f'-e "s|^\\( *\\){key}:.*|\\1{key}: ${name}|"' for key, name in keys.items()]
    by_word = [f'-e "s|{word}|${name}|"' for word, name in (words or {}).items()]
    return ['mkdir -p "$CHECKPOINTS"', f'config="$CHECKPOINTS/{stem}-${{NODE_RANK:-0}}.{suffix}"',
            "sed " + " ".join([*by_key, *by_word]) + f' "$here/{file}" > "$config"']

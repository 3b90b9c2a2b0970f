"""What emitters of inference engines share: a script for each kind of replica, the router before them, a load test."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from planner.launch.axes import Settings, TableOf, settings_of
from planner.launch.program import Part, Program, Variable, array, script
from planner.launch.routers import ROUTER, RouterKind
from planner.launch.served import EngineGroup
from planner.launch.shape import gpu_of, shape_of

BENCH, RESULT = "bench.sh", "bench.json"
CHECKPOINTS = ("int8", "int4", "w4a16", "gptq-int8", "nvfp4", "mxfp4")
"""Formats that a checkpoint brings: the engine reads them from its config."""
ADAPTERS = Variable("ADAPTERS", "", "Adapters as name=path, with spaces between them.")
NIXL = "pip install nixl==1.5.1"
"""Moves keys and values from prefill to decode; images of the engines have it, and their packages do not ask for it."""
FIRST_PORT = 8001
"""Of replicas, where a router stands before them; the service itself answers on $PORT."""
LOAD = 1000
"""Requests of the load test where the question says no rate: as many at once as the plan's replicas hold."""
BENCH_SECONDS = 120
ROUNDS = 3
"""Requests one after another, where as many as fit are answered at once: the first and the last are not of a full load.
"""


@dataclass(frozen=True, slots=True)
class Command:
    """How an engine is started: the words before its options, and lines of shell that add to `RUN`."""

    words: str
    address: str
    """Options that say where it listens, of $port."""
    several_nodes: Sequence[str]
    """Lines for a replica of several nodes: of $NNODES, $NODE_RANK, $MASTER_ADDR, $MASTER_PORT."""
    router: RouterKind
    bench: Callable[[EngineGroup, int, int, float | None], str]
    """The load test, of prompt and answer tokens and requests/s."""
    online: Sequence[str] = ("bf16",)
    """Formats into which it turns weights in 16 bits as it loads them."""
    published: bool = True
    """Whether it loads what is published, and not a file of its own kind."""
    settings: Callable[[EngineGroup, str, Settings], Settings] = field(default=lambda served, name, settings: settings)
    """What of the settings of a kind of replica, by its name, are options."""
    lines: Callable[[EngineGroup], Sequence[str]] = field(default=lambda served: ())
    environment: Mapping[str, str] = field(default_factory=dict)
    variables: Sequence[Variable] = ()
    model: str = "Checkpoint: a Hugging Face name or a folder."
    transfer: str = ""
    """What installs the library that moves keys and values, where prefill and decode are apart; "" if it is there."""


def any_number(served: EngineGroup) -> Settings:
    """Return nothing: it is of which requests come, and when, of which an engine is not told; a note says it."""
    return {}


def program_of(served: Sequence[EngineGroup], table: TableOf[EngineGroup], command: Command) -> Program:
    """Return the program of all kinds of replicas that serve together. Raises CannotExpress."""
    first, names = served[0], names_of(served)
    parts, files = [], {}
    models = _models(served, command)
    for one, name, variable in zip(served, names, models, strict=True):
        settings = command.settings(one, name, settings_of(one, table))
        files[f"{name}.sh"] = script(
            f"{one.target} {one.release.release}: runs on every node of a replica ({name})", command.environment,
            _body(one, settings, command, variable))
        parts.append(Part(name, f"{name}.sh", one.nodes, min(one.gpus, one.node.gpus), one.serving.replicas,
                          port=FIRST_PORT, node=one.placed.node, node_gpus=one.node.gpus, role=one.serving.role,
                          options=settings, model=variable, facts={"model": shape_of(one), "gpu": gpu_of(one)}))
    apart = any(one.serving.role != "whole" for one in served)
    routed = sum(part.copies for part in parts) > 1
    if routed:
        files[ROUTER] = command.router.script(first, apart=apart)
        parts.append(Part("router", ROUTER, 0, 0, role="router"))
    if (bench := _bench(first, served, command)) is not None:
        files[BENCH] = bench
    return Program(target=first.target, parts=tuple(parts), files=files, variables=_variables(served, models, command),
                   notes=tuple(_notes(served, names)),
                   install=tuple(filter(None, (command.transfer if apart else "",
                                               command.router.install if routed else ""))),
                   feedback=RESULT if BENCH in files else "")


def names_of(served: Sequence[EngineGroup]) -> list[str]:
    """Return a name for each kind of replica: what it does, numbered where several do."""
    roles = ["serve" if one.serving.role == "whole" else one.serving.role for one in served]
    return [role if roles.count(role) == 1 else f"{role}-{roles[:at + 1].count(role)}" for at, role in enumerate(roles)]


def _body(served: EngineGroup, settings: Settings, command: Command, variable: str) -> list[str]:
    what = f"a checkpoint of {served.checkpoint} in {served.placed.layout.stored}"
    required = [] if loads_any(served, command) else [f': "${{{variable}:?{what}}}"']
    if variable != "MODEL":
        required.append(f'MODEL="${variable}"')
    lines = [*required, 'port="${REPLICA_PORT:-$PORT}"', *array("LAYOUT", settings), f"RUN=({command.address})",
             *command.lines(served)]
    if served.nodes > 1:
        lines += ['if [[ "${NNODES:-1}" != ' + f"{served.nodes} ]]; then",
                  f'  echo "a replica is on {served.nodes} nodes: start it on each" >&2', "  exit 1", "fi",
                  *command.several_nodes]
    return [*lines, "", f'exec {command.words} "${{LAYOUT[@]}}" "${{RUN[@]}}"']


def loads_any(served: EngineGroup, command: Command) -> bool:
    """Say whether the published checkpoint is what runs: as it is, or turned into the format as it loads."""
    return command.published and (served.published or (
        served.model.stored == "bf16" and served.placed.layout.stored in command.online))


def _models(served: Sequence[EngineGroup], command: Command) -> list[str]:
    """Return the variable that names the checkpoint of each: one for all that load the same."""
    loaded = ["" if loads_any(one, command) else one.placed.layout.stored for one in served]
    first = loaded[0]
    return ["MODEL" if one == first else "MODEL_" + re.sub("[^A-Z0-9]", "_", (one or "published").upper())
            for one in loaded]


def _variables(served: Sequence[EngineGroup], models: Sequence[str], command: Command) -> tuple[Variable, ...]:
    made = {}
    for one, name in zip(served, models, strict=True):
        default = one.checkpoint if loads_any(one, command) else ""
        what = command.model if default else f"{command.model} In {one.placed.layout.stored}: there is no default."
        made[name] = Variable(name, default, what)
    return (*made.values(), Variable("NAME", served[0].model.name, "What requests call the model."),
            Variable("PORT", "8000", "On which the service answers."), *command.variables)


def _bench(first: EngineGroup, served: Sequence[EngineGroup], command: Command) -> str | None:
    asked = first.asked
    if asked is None or asked.input is None or asked.output is None or not asked.output.mean:
        return None
    rate = sum(one.serving.requests_per_second for one in served if one.serving.decodes) if asked.rate else None
    line = command.bench(first, round(asked.input.mean), round(asked.output.mean), rate)
    return script(f"{first.target} {first.release.release}: a load test at the plan's rate", {}, [line])


def load(served: EngineGroup, rate: float | None) -> str:
    """Return how many requests a load test sends, and how fast: two minutes of a rate, or as many at once as fit."""
    if rate:
        return f"--request-rate {rate:.6g} --num-prompts {max(LOAD, round(rate * BENCH_SECONDS))}"
    at_once = served.serving.max_batch * served.serving.replicas
    return f"--max-concurrency {at_once} --num-prompts {max(LOAD, ROUNDS * at_once)}"


def half(served: EngineGroup) -> str:
    """Return the format of 16 bits that the GPU has."""
    return "bfloat16" if "bf16" in served.gpu.peak else "float16"


def with_adapters(served: EngineGroup, option: str) -> list[str]:
    """Return lines of shell that name the adapters of $ADAPTERS; none where the plan has none."""
    return ['if [[ -n "$ADAPTERS" ]]; then', '  read -ra adapters <<< "$ADAPTERS"',
            f'  RUN+=({option} "${{adapters[@]}}")', "fi"] if served.serving.adapters else []


def _notes(served: Sequence[EngineGroup], names: Sequence[str]) -> list[str]:
    notes = ["HF_TOKEN in the environment opens gated checkpoints."]
    for one, name in zip(served, names, strict=True):
        if one.serving.prompts is not None:
            low, high = one.serving.prompts
            notes.append(f"{name}: for prompts of {low:,} tokens and more" + (f", up to {high:,}" if high else "")
                         + "; who asks has to send them here, and others elsewhere.")
        hours = one.serving.replicas_by_hour
        if hours is not None:
            notes.append(f"{name}: replicas by hour from midnight: {', '.join(map(str, hours))}. The files start the "
                         f"most, {one.serving.replicas}.")
        elif one.serving.nodes_by_hour is not None:
            notes.append(f"{name}: nodes by hour from midnight: {', '.join(map(str, one.serving.nodes_by_hour))}. The "
                         "files start the most.")
        version = one.asked.engine_version if one.asked else None
        if version is not None and version != one.release.release:
            notes.append(f"The plan is of {one.placed.stack} {version}; the files are for {one.release.release}, and "
                         "spell the defaults of the former out.")
    return notes


def as_json(value: object) -> str:
    """Return a value as one word of JSON."""
    return json.dumps(value, separators=(",", ":"))


def quoted(value: object) -> str:
    """Return a value as a word of a shell."""
    return shlex.quote(str(value))

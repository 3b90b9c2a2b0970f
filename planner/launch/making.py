"""What programs that make images and clips share: the scripts around one, for a batch and for a service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from planner.errors import Unsupported
from planner.launch.generated import Generated
from planner.launch.program import Part, Program, Variable, script
from planner.launch.replicas import ended, given_gpus

SETTINGS, SCRIPT, PROMPTS = "settings.json", "generate.py", "prompts.txt"
FIRST_PORT = 8001
"""Of replicas, counted up on a node."""
PROMPT = "a lighthouse on a cliff at dusk, photographed from the sea"
"""A prompt for a first start, which nobody has to have."""


def script_text(name: str) -> str:
    """Return a script of ours as it is written out."""
    return (Path(__file__).parent / "scripts" / name).read_text()


def variables(work: Generated, *, batch: bool) -> tuple[Variable, ...]:
    """Return what the plan cannot know of it."""
    model = Variable("MODEL", work.model.hf_id or "", "Pipeline: a Hugging Face name or a folder.")
    if not batch:
        return model, Variable("PORT", f"{FIRST_PORT}", "On which the first replica of a node answers; others follow.")
    return (model, Variable("PROMPTS", PROMPTS, "File with a prompt a line; samples take them in turn."),
            Variable("SAMPLES", f"{work.samples}", "How many are made."),
            Variable("OUTPUT", "output", "Folder for what is made."))


def program(served: Sequence[Generated], files: Mapping[str, str], start: str, notes: Sequence[str] = ()) -> Program:
    """Return the program of a batch, or of replicas that answer requests. start: of one replica, without its output.

    Raises Unsupported for a batch over several kinds of nodes.
    """
    first = served[0]
    batch = first.asked.rate is None
    if len(served) > 1:
        raise Unsupported(f"{len(served)} kinds of replicas in one folder: plan with one node type (--on)")
    head = f"{first.target} {first.release.release}"
    made = {**files, PROMPTS: PROMPT + "\n"} if batch else dict(files)
    if batch:
        name, part = "generate.sh", Part("generate", "generate.sh", first.placed.nodes, first.on_node * first.gpus)
        made[name] = script(f"{head}: runs on every node", {}, _copies(first, start))
    else:
        name = "serve.sh"
        part = Part("serve", name, 1, first.gpus, first.serving.replicas, port=FIRST_PORT, node=first.placed.node,
                    node_gpus=first.node.gpus, model="MODEL")
        made[name] = script(f"{head}: runs one replica", {}, [
            f'exec {start} --port "${{REPLICA_PORT:-$PORT}}"'])
    spread = () if batch or first.serving.replicas == 1 else (
        f"The plan has one queue before its {first.serving.replicas} replicas: who asks sends each request to one that "
        "is free. POST /generate {\"prompt\": \"...\"} is answered with the file.",)
    return Program(target=first.target, parts=(part,), files=made, variables=variables(first, batch=batch),
                   notes=(*notes, *spread, "HF_TOKEN in the environment opens gated weights."),
                   feedback="output/run-0.csv" if batch and SETTINGS in files else "")


def _copies(work: Generated, start: str) -> list[str]:
    """Return lines that start a node's replicas, each with its GPUs and its share, and fail where one failed."""
    each, total, gpus = work.on_node, work.serving.replicas, work.gpus
    return ['mkdir -p "$OUTPUT"', '[[ -e "$PROMPTS" ]] || PROMPTS="$here/$PROMPTS"', "export PROMPTS",
            *given_gpus(), "pids=()",
            f"for local in $(seq 0 {each - 1}); do", f'  copy="$((${{NODE_RANK:-0}} * {each} + local))"',
            f'  (( copy < {total} )) || continue',
            f'  CUDA_VISIBLE_DEVICES="$(given "$(seq -s , $((local * {gpus})) $((local * {gpus} + {gpus - 1})))")" \\',
            f'    COPY="$copy" COPIES={total} MASTER_PORT="$((29500 + local))" \\',
            f'    {start} "$OUTPUT" > "$OUTPUT/copy-$copy.log" 2>&1 &', '  pids+=("$!")', "done", *ended("pids")]

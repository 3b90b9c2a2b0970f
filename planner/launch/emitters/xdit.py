"""xDiT: the arguments of its runner, several GPUs of a node for each image or clip of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from planner.launch.axes import No, Settings, TableOf, only, settings_of
from planner.launch.emitter import GenerationEmitter
from planner.launch.generated import Generated
from planner.launch.making import program
from planner.launch.program import Program, array

OFFLOADS: dict[str, dict[str, bool]] = {
    "none": {}, "model": {"enable_model_cpu_offload": True}, "sequential": {"enable_sequential_cpu_offload": True}}


def _names(work: Generated) -> dict[str, str]:
    return work.release.models.get(work.model.name, {})


def _model(work: Generated) -> Settings | No:
    name = _names(work).get("name")
    return {"model": name} if name else No(f"{work.model.name} (it has {', '.join(sorted(work.release.models))})")


def _degree(axis: str, key: str, *, flag: bool = False) -> Callable[[Generated], Settings | No]:
    """Return what to say of a number of GPUs that only some models can be shared by."""
    def say(work: Generated) -> Settings | No:
        degree = int(str(work.value(axis)))
        names, always = _names(work), ("ulysses", "ring")
        can = axis not in names.get("lacks", "") if axis in always else axis in names.get("shares", "").split("+")
        if degree > 1 and not can:
            return No(f"{degree} (of {work.model.name} it has none)", {axis: 1})
        return ({key: True} if degree > 1 else {}) if flag else {key: degree}
    return say


def _precision(work: Generated) -> Settings | No:
    value = work.placed.layout.precision
    if value == "bf16":
        return {}
    if value == "fp8" and "fp8" in _names(work).get("formats", ""):
        return {"gemm_quantization": "fp8"}
    return No(f"{value} (of {work.model.name} it has bf16{', fp8' * ('fp8' in _names(work).get('formats', ''))})",
              {"quantization": "bf16"})


def _extent(work: Generated) -> Settings:
    width, height = work.size
    frames = {"num_frames": work.made.frames} if work.made.media == "video" else {}
    return {"height": height, "width": width, **frames}


def _guidance(work: Generated) -> Settings:
    return {"guidance_scale": work.guidance}


TABLE: TableOf[Generated] = {
    ("model",): _model,
    ("candidate", "replicas"): lambda w: {},
    ("rate",): only("rate", False, reason="its runner makes a batch, and answers nobody: samples"),
    ("precision",): _precision,
    ("resolution", "frames"): _extent,
    ("steps",): lambda w: {"num_inference_steps": w.made.steps},
    ("guidance", "passes"): _guidance,
    ("batch",): lambda w: {"batch_size": w.made.batch},
    ("offload",): lambda w: OFFLOADS[w.made.offload],
    ("vae",): lambda w: {"enable_tiling": True} if w.made.vae == "tiled" else {},
    ("compile",): lambda w: {"use_torch_compile": True} if w.asked.compile else {},
    ("step_cache",): only("step_cache", "none", reason="which models it caches differs by release",
                          instead={"step_cache": "none"}),
    ("cfg",): _degree("cfg", "use_cfg_parallel", flag=True),
    ("ulysses",): _degree("ulysses", "ulysses_degree"),
    ("ring",): _degree("ring", "ring_degree"),
    ("pipefusion",): _degree("pipefusion", "pipefusion_parallel_degree"),
}


def emit(served: Sequence[Generated]) -> Program:
    """Return the runner's arguments, and what starts it on the GPUs of every replica."""
    first = served[0]
    arguments = array("LAYOUT", settings_of(first, TABLE))
    lines = ["#!/usr/bin/env bash", f"# xDiT {first.release.release}: makes one replica's share of the batch in $1",
             "set -euo pipefail", *arguments, 'mapfile -t prompts < "$PROMPTS"', "mine=()",
             'for (( at = COPY; at < SAMPLES; at += COPIES )); do', '  mine+=("${prompts[at % ${#prompts[@]}]}")',
             "done",
             '(( ${#mine[@]} )) || exit 0', 'mkdir -p "$1/copy-$COPY"',
             f'exec torchrun --nnodes=1 --nproc-per-node={first.gpus} --master-addr=127.0.0.1 '
             '--master-port="$MASTER_PORT" \\',
             '  -m xfuser.runner "${LAYOUT[@]}" --output_directory "$1/copy-$COPY" --prompt "${mine[@]}"']
    note = "Weights are those that xDiT has under the model's name; MODEL is not read."
    return program(served, {"replica.sh": "\n".join(lines) + "\n"}, 'bash "$here/replica.sh"', (note,))


EMITTER = GenerationEmitter("xdit", TABLE, emit)

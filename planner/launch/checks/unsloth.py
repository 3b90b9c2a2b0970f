"""TRL's parser of what unsloth's trainer is told; and unsloth's own source, for what the script calls in it."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

from planner.launch.checks.started import started
from planner.launch.checks.trainer import trained
from planner.launch.checks.words import NEUTRAL

PARTS = {"from_pretrained": "loader.py", "get_peft_model": "llama.py"}
"""Function that the script calls -> where unsloth, which no machine without a GPU imports, has it."""


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that they come to."""
    call = started(folder, "train.sh", "torchrun")
    _known_words(Path(call.program[0]))
    arguments, _, axes = trained(["-m", "trl.scripts.sft", *call.program[1:]], call.environment)
    return {**NEUTRAL, **axes, "gpus": call.world, "dp": call.world, "zero": 0, "offload": 0.0,
            "offload_parameters": 0.0, "global_batch": call.world * arguments.per_device_train_batch_size
            * arguments.gradient_accumulation_steps}


def _known_words(script: Path) -> None:
    spec = find_spec("unsloth")
    if spec is None or spec.origin is None:
        raise ImportError("unsloth")
    models = Path(spec.origin).with_name("models")
    calls = {node.func.attr: {word.arg for word in node.keywords} for node in ast.walk(ast.parse(script.read_text()))
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PARTS}
    assert set(calls) == set(PARTS), "the script calls other functions of unsloth"
    for name, words in calls.items():
        source = ast.parse((models / PARTS[name]).read_text())
        known = {one.arg for node in ast.walk(source) if isinstance(node, ast.FunctionDef) and node.name == name
                 for one in (*node.args.args, *node.args.kwonlyargs)}
        assert words <= known, f"{name} of unsloth has no {', '.join(sorted(str(word) for word in words - known))}"

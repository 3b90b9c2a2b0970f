"""litgpt's own parser of its recipes (jsonargparse), up to the point where it would load the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser
from litgpt.__main__ import PARSER_DATA
from litgpt.config import name_to_config

from planner.launch.checks.started import started

METHODS = {"finetune_full": "full", "finetune_lora": "lora"}


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that the YAML comes to."""
    call = started(folder, "train.sh", "torchrun")
    assert call.program[:2] == ["-m", "litgpt"], call.program
    recipe, *words = call.program[2:]
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--config", action="config")
    parser.add_function_arguments(PARSER_DATA[recipe])
    found = parser.parse_args(words)
    checkpoint = Path(found.checkpoint_dir).name
    known = {*name_to_config, *(one["hf_config"]["name"] for one in name_to_config.values())}
    assert checkpoint in known, f"litgpt has no {checkpoint}"
    world = int(found.devices) * found.num_nodes
    assert world == call.world, f"{world} devices, torchrun starts {call.world}"
    train = found.train
    each, micro = train.global_batch_size // world, train.micro_batch_size
    method = "qlora" if METHODS[recipe] == "lora" and found.quantize else METHODS[recipe]
    return {"gpus": world, "dp": world, "tp": 1, "pp": 1, "cp": 1, "ep": 1, "micro_batch": micro,
            "micro_batches": each // micro, "global_batch": train.global_batch_size,
            "sequence_length": train.max_seq_length, "method": method, "zero": 3 if world > 1 else 0,
            "precision": {"bf16-true": "bf16", "16-true": "fp16", "32-true": "fp32"}[found.precision],
            **({"lora_rank": found.lora_r, "adapted": _adapted(found)} if method != "full" else {})}


def _adapted(found: Any) -> list[str]:  # noqa: ANN401 - the stack's own class
    """Return the modules that have adapters, by the names that most stacks have for them."""
    parts = {"query": ["q_proj"], "key": ["k_proj"], "value": ["v_proj"], "projection": ["o_proj"],
             "mlp": ["gate_proj", "up_proj", "down_proj"]}
    return [name for part, names in parts.items() if getattr(found, f"lora_{part}") for name in names]

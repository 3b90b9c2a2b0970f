"""unsloth's own program, which reads its YAML and says what it would do (`--dry-run`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from planner.launch.checks.started import started

PROGRAM = Path(sys.executable).with_name("unsloth")
PATIENCE = 120


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that the YAML comes to."""
    call = started(folder, "train.sh", "unsloth")
    ran = subprocess.run([str(PROGRAM), *call.words, "--dry-run"], capture_output=True, text=True, timeout=PATIENCE,
                         check=False, env={**os.environ, "NO_COLOR": "1"})
    if ran.returncode:
        raise RuntimeError((ran.stderr or ran.stdout)[-300:])
    # what it prints is the config that it has made of the file
    config = json.loads(ran.stdout) if ran.stdout.lstrip().startswith("{") else _shown(ran.stdout)
    training, lora = config["training"], config["lora"]
    kept = str(training["gradient_checkpointing"]).lower()
    tuned = training["training_type"]
    method = "full" if tuned == "full" else "qlora" if training["load_in_4bit"] else "lora"
    return {"gpus": 1, "dp": 1, "tp": 1, "pp": 1, "cp": 1, "ep": 1, "zero": 0, "offload": 0.0,
            "micro_batch": training["batch_size"], "micro_batches": training["gradient_accumulation_steps"],
            "sequence_length": training["max_seq_length"], "recompute": "none" if kept == "none" else "full",
            "offload_activations": float(kept == "unsloth"), "method": method,
            "packing": "packed" if training["packing"] else "padded",
            **({"lora_rank": lora["lora_r"]} if method != "full" else {})}


def _shown(text: str) -> dict[str, dict[str, object]]:
    start = next((at for at, line in enumerate(text.splitlines()) if line.startswith(("model:", "data:"))), 0)
    found = import_module("yaml").safe_load("\n".join(text.splitlines()[start:]))
    assert isinstance(found, dict), text[-300:]
    return found

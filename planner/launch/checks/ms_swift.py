"""ms-swift's own parser of its YAML, on the config of a small model that the check writes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from planner.launch.checks.small import CONFIG
from planner.launch.checks.stand_ins import install
from planner.launch.checks.started import started
from planner.launch.checks.words import NEUTRAL, OPTIMIZERS, adapted

install("trl.experimental.ppo")  # of a newer trl than it asks for
from swift.arguments import RLHFArguments, SftArguments  # noqa: E402 - what stands in has to be there first
from swift.cli.main import parse_yaml_args  # noqa: E402
from swift.utils import parse_args  # noqa: E402

from planner.launch.checks.trainer import sharded  # noqa: E402 - what it makes up of GPUs comes after swift has looked


def arguments(kind: str, words: list[str]) -> Any:  # noqa: ANN401 - the stack's own class
    """Return what `swift sft` or `swift rlhf` makes of its YAML, of the model in it as of a small one."""
    before = dict(os.environ)
    try:
        parse_yaml_args(words)
        args, unknown = parse_args({"sft": SftArguments, "rlhf": RLHFArguments}[kind],
                                   [*words, "--model_type", "llama", "--template", "llama3"])
    finally:
        os.environ.clear()
        os.environ.update(before)
    assert not unknown, f"keys that ms-swift would let by: {', '.join(unknown)}"
    return args


def resolve(folder: Path) -> dict[str, object]:
    """Return the axes that it comes to."""
    with TemporaryDirectory() as place:
        (Path(place) / "config.json").open("w").write(json.dumps(CONFIG))
        call = started(folder, "train.sh", "swift", environment={"MODEL": place, "CHECKPOINTS": place})
        args = arguments(call.words[0], call.words[1:])
    training = args.training_args
    world = int(call.environment.get("NPROC_PER_NODE", "1")) * int(call.environment.get("NNODES", "1"))
    method = "qlora" if args.quant_bits == 4 else args.tuner_type
    micro, batches = training.per_device_train_batch_size, training.gradient_accumulation_steps
    return {**NEUTRAL, **sharded(training), "gpus": world, "dp": world, "micro_batch": micro, "micro_batches": batches,
            "global_batch": micro * batches * world, "sequence_length": args.max_length,
            "precision": _precision(training), "method": method, "offload_activations": 0.0,
            "recompute": _recompute(training),
            "optimizer": OPTIMIZERS[str(getattr(training.optim, "value", training.optim))],
            **({"preference": None, "packing": "packed" if args.packing else "padded"} if call.words[0] == "sft" else
               {"preference": _preference(args)}),
            **({"lora_rank": args.lora_rank, "adapted": adapted(args.target_modules)} if method != "full" else {})}


def _preference(args: Any) -> str:  # noqa: ANN401 - the stack's own class
    kind = str(args.rlhf_type)
    return "simpo" if kind == "cpo" and "simpo" in args.loss_type else {"rm": "reward-model"}.get(kind, kind)


def _recompute(training: Any) -> str:  # noqa: ANN401 - the stack's own class
    how = training.fsdp_config or {} if training.fsdp else {}
    assert not (training.fsdp and training.gradient_checkpointing), "the layers would be wrapped twice"
    return "full" if training.gradient_checkpointing or how.get("activation_checkpointing") else "none"


def _precision(training: Any) -> str:  # noqa: ANN401
    if training.bf16 or training.fp16:
        return "bf16" if training.bf16 else "fp16"
    return "tf32" if training.tf32 else "fp32"

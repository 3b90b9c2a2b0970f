"""ms-swift's lines: `swift sft`, `swift rlhf`, `swift pt`, and those of Megatron-SWIFT."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from planner.scenario.configs import trainer
from planner.scenario.configs.launchers import launched
from planner.scenario.configs.readers import megatron, trl
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

_PROGRAMS = ("swift", "megatron")
_KINDS = ("tuner_type", "train_type", "rlhf_type")
"""Options that a file of them is told by."""
VERBS = ("sft", "rlhf", "pt")
METHODS = {"dpo": "dpo", "kto": "kto", "orpo": "orpo", "simpo": "simpo", "cpo": "simpo", "rm": "reward-model"}
"""Of `rlhf_type`; CPO is SimPO with another loss."""
GKD = "gkd"
DRAWS = ("grpo", "rloo", GKD)
"""Of `rlhf_type`, by the trainers of TRL."""


def tells(source: Source) -> bool:
    """Say whether it is one, by the program and its verb, or as a file of its options."""
    if source.form == "yaml":
        return source.has("model") and any(map(source.has, _KINDS)) and not source.has("base_model")
    return source.form == "command" and _verb(source) is not None


def _verb(source: Source) -> str | None:
    """Return what it does: swift sft, swift/cli/sft.py, -m swift.cli.sft."""
    words = list(source.every_word())
    paths = [word.removesuffix(".py").replace(".", "/").split("/") for word in words]
    named = (path[-1] for path in paths if len(path) > 2 and path[-3] in _PROGRAMS and path[-2] == "cli")
    return next((verb for verb in (*(verb for program, verb in pairwise(source.words) if program in _PROGRAMS), *named)
                 if verb in VERBS), None)


def read(reading: Reading) -> None:
    """Read model, method, batch, lengths, sharding or degrees, precision and recompute."""
    _as_line(reading)
    verb = _verb(reading.source)
    by_megatron = "megatron" in reading.source.words
    reading.put("workload.model", reading.text("model"), "model")
    kind = reading.word("tuner-type", "train-type") or ("full" if by_megatron or verb == "pt" else "lora")
    if kind not in ("lora", "full"):
        raise reading.wrong(("tuner-type", "train-type"), kind, "lora or full")
    four = reading.number("quant-bits") == 4
    whole = "pretrain" if verb == "pt" else "full"
    trainer.adapter(reading, whole if kind == "full" else "qlora" if four else "lora", "lora-rank", "tuner-type")
    if kind == "lora":
        if reading.number("lora-rank") is None:
            reading.put("workload.lora_rank", 8, "lora-rank")
            reading.defaults.append("lora-rank 8")
        trainer.adapted(reading, "target-modules", experts=True)
    reading.put("workload.sequence_length", reading.number("max-length"), "max-length")
    reading.of_samples = {"workload.epochs": reading.get("num-train-epochs", "max-epochs") or 3}
    if reading.on("packing"):
        reading.of_samples["workload.packing"] = True
    if verb == "rlhf" and _draws(reading):
        return
    if reading.word("torch-dtype") in ("float16", "float32"):
        reading.put("workload.precision", {"float16": "fp16", "float32": "fp32"}[reading.word("torch-dtype") or ""],
                    "torch-dtype")
    if by_megatron:
        _by_megatron(reading)
        return
    trainer.batch(reading, "per-device-train-batch-size", default=1)
    trainer.recompute(reading, reading.word("gradient-checkpointing") != "false", "gradient-checkpointing")
    if reading.on("use-liger-kernel"):
        reading.put("workload.loss", "fused", "use-liger-kernel")
    reading.gpus = launched(reading)
    trainer.sharding(reading, "ms-swift")


def _as_line(reading: Reading) -> None:
    """Have the options of a file, or of one that a line names, stand as those of a line."""
    if reading.source.form == "yaml":
        keys = {key.replace("_", "-"): value for key, value in reading.source.keys.items()}
        does = "rlhf" if "rlhf-type" in keys else "sft"
        reading.source = replace(reading.source, form="command", keys=keys, words=("swift", does))
    if file := next((word for word in reading.source.words if word.endswith((".yaml", ".yml", ".json"))), ""):
        reading.under("config", word=file)


def _by_megatron(reading: Reading) -> None:
    """Read degrees, sharding and offload, by Megatron-SWIFT's defaults."""
    reading.put("workload.stack", "megatron-swift", "the program")
    reading.axis("mbs", reading.number("micro-batch-size") or 1, "micro-batch-size")
    reading.put("workload.global_batch", reading.number("global-batch-size") or 16, "global-batch-size")
    megatron.parallelism(reading)
    megatron.offloaded(reading)
    if not reading.source.has("use-distributed-optimizer"):
        reading.axis("zero", 1, "use-distributed-optimizer")
        reading.defaults.append("use_distributed_optimizer true")
    reading.gpus = launched(reading)


def _draws(reading: Reading) -> bool:
    """Read by what answers are preferred, and say whether they are drawn as it trains."""
    asked = reading.word("rlhf-type") or "dpo"
    if asked in DRAWS:
        if "megatron" in reading.source.words:
            size = reading.number("global-batch-size") or 16
            answers = size * (reading.number("steps-per-generation") or 1)
            reading.get("micro-batch-size")
        else:
            trainer.batch(reading, "per-device-train-batch-size", default=1)
            trainer.recompute(reading, reading.word("gradient-checkpointing") != "false", "gradient-checkpointing")
            answers = None
        trl.drawing(reading, "grpo" if asked == GKD else asked, "rlhf-type", prompt="max_length", answers=answers,
                    each=1 if asked == GKD else None)
        if asked == GKD:
            reading.put("workload.method", "on-policy-distillation", "rlhf-type")
            reading.put("workload.reward_model", reading.text("teacher-model"), "teacher-model")
            reading.counted.append("lmbda: every answer is the policy's own")
        return True
    if asked not in METHODS:
        raise reading.wrong(("rlhf-type",), asked, ", ".join((*METHODS, *DRAWS)))
    trainer.preferences(reading, METHODS[asked], "rlhf-type", copied="ref-model")
    return False


READER = Reader("a line of ms-swift", tells, read)

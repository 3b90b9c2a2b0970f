"""ms-swift's lines: `swift sft`, `swift rlhf`, `swift pt`, and those of Megatron-SWIFT."""

from __future__ import annotations

from itertools import pairwise

from planner.scenario.configs import trainer
from planner.scenario.configs.readers import megatron, trl
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

VERBS = ("sft", "rlhf", "pt")
METHODS = {"dpo": "dpo", "kto": "kto", "orpo": "orpo", "simpo": "simpo", "cpo": "simpo", "rm": "reward-model"}
"""Of `rlhf_type`; CPO is SimPO with another loss."""
DRAWS = ("grpo", "rloo")
"""Of `rlhf_type`, by the trainers of TRL."""


def tells(source: Source) -> bool:
    """Say whether it is one, by the program and its verb."""
    return source.form == "command" and _verb(source) is not None


def _verb(source: Source) -> str | None:
    words = source.words
    return next((verb for program, verb in pairwise(words)
                 if program in ("swift", "megatron") and verb in VERBS), None)


def read(reading: Reading) -> None:
    """Read model, method, batch, lengths, sharding or degrees, precision and recompute."""
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
        reading.put("workload.stack", "megatron-swift", "the program")
        reading.axis("mbs", reading.number("micro-batch-size") or 1, "micro-batch-size")
        reading.put("workload.global_batch", reading.number("global-batch-size") or 16, "global-batch-size")
        megatron.parallelism(reading)
        return
    trainer.batch(reading, "per-device-train-batch-size", default=1)
    trainer.recompute(reading, reading.word("gradient-checkpointing") != "false", "gradient-checkpointing")
    if reading.on("use-liger-kernel"):
        reading.put("workload.loss", "fused", "use-liger-kernel")
    trainer.sharding(reading, "ms-swift")


def _draws(reading: Reading) -> bool:
    """Read by what answers are preferred, and say whether they are drawn as it trains."""
    asked = reading.word("rlhf-type") or "dpo"
    if asked in DRAWS:
        trainer.batch(reading, "per-device-train-batch-size", default=1)
        trl.drawing(reading, asked, "rlhf-type", prompt="max_length")
        return True
    if asked not in METHODS:
        raise reading.wrong(("rlhf-type",), asked, ", ".join((*METHODS, *DRAWS)))
    trainer.preferences(reading, METHODS[asked], "rlhf-type", copied="ref-model")
    return False


READER = Reader("a line of ms-swift", tells, read)

"""slime's lines (train.py, scripts/run-*.sh): Megatron's arguments, SGLang's with a prefix, and its own."""

from __future__ import annotations

from pathlib import PurePosixPath

from planner.scenario.configs import reinforced
from planner.scenario.configs.launchers import NODE
from planner.scenario.configs.readers import megatron
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source


def tells(source: Source) -> bool:
    """Say whether it is one: answers of a step among Megatron's arguments."""
    return source.form == "command" and source.has("rollout-batch-size", "hf-checkpoint")


def read(reading: Reading) -> None:
    """Read the policy, the method, the answers of a step, degrees and GPUs."""
    named = reading.named("hf-checkpoint") or ""
    reading.names = (named, PurePosixPath(named).name)
    reinforced.method(reading, reading.word("advantage-estimator"), "advantage-estimator", "grpo")
    reinforced.answers(reading, ("rollout-batch-size",), ("n-samples-per-prompt",), (32, 1))
    reinforced.lengths(reading, ("rollout-max-prompt-len",), ("rollout-max-response-len",))
    with_kl = reading.on("use-kl-loss") or reading.text("kl-coef") not in (None, "0", "0.0", "0.00")
    reading.put("workload.reference", "initial" if with_kl else "none", "use-kl-loss")
    reinforced.by_megatron(reading, "")
    granularity = reading.word("recompute-granularity")
    reading.axis("recompute", granularity or "none", "recompute-granularity")
    megatron.offloaded(reading)
    trains = (reading.number("actor-num-nodes") or 1) * (reading.number("actor-num-gpus-per-node") or NODE)
    reading.axis("rollout_tp", reading.number("rollout-num-gpus-per-engine") or 1, "rollout-num-gpus-per-engine")
    if named.upper().endswith("-FP8"):  # the engine draws with the files as they are
        reading.axis("rollout_format", "fp8", "hf-checkpoint")
    reinforced.sized(reading, reading.number("max-tokens-per-gpu") if reading.on("use-dynamic-batch-size") else None,
                     "max-tokens-per-gpu", fraction="sglang-mem-fraction-static")
    if reading.on("colocate"):
        reading.put("workload.placement", "colocated", "colocate")
        reading.gpus = trains
    else:
        reinforced.apart(reading, trains, reading.number("rollout-num-gpus") or trains, "rollout-num-gpus")
    reading.put("workload.steps", reading.number("num-rollout"), "num-rollout")
    reading.put("workload.stack", "slime", "the program")
    reading.put("workload.engine", "sglang", "the program")


READER = Reader("a line of slime", tells, read)

"""OpenRLHF's lines: `python -m openrlhf.cli.train_ppo_ray --actor.model_name_or_path ...`, and flags as before 0.9."""

from __future__ import annotations

from planner.scenario.configs import reinforced, trainer
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

PROGRAM = "openrlhf.cli.train_"
TUNING = {"sft": None, "dpo": "dpo", "kto": "kto", "rm": "reward-model"}


def _verb(source: Source) -> str | None:
    """Return what is trained: ppo_ray, sft, dpo, rm."""
    held = [value if isinstance(value, list) else [value] for value in source.keys.values()]
    words = [*source.words, *(str(word) for values in held for word in values)]
    return next((word.removeprefix(PROGRAM) for word in words if word.startswith(PROGRAM)), None)


def tells(source: Source) -> bool:
    """Say whether it is one, by its program."""
    return source.form == "command" and _verb(source) is not None


def read(reading: Reading) -> None:
    """Read the policy, the method, batches, lengths, what trains, sharding and GPUs."""
    if _verb(reading.source) in TUNING:
        _tuned(reading, _verb(reading.source) or "")
        return
    reading.put("workload.model", reading.text("actor.model-name-or-path", "pretrain"), "pretrain")
    estimator = reading.word("algo.advantage.estimator", "advantage-estimator")
    reinforced.method(reading, estimator, "advantage-estimator", "gae")
    reinforced.answers(reading, ("rollout.batch-size", "rollout-batch-size"),
                       ("rollout.n-samples-per-prompt", "n-samples-per-prompt"), (1024, 1))
    reinforced.lengths(reading, ("prompt-max-len", "data.max-prompt-len"), (
        "rollout.max-new-tokens", "generate-max-len"))
    rank = reinforced.rank_of(reading, "ds.lora.rank", "lora-rank")
    reinforced.adapters(reading, rank, "lora-rank", four_bits=reading.on("ds.load-in-4bit", "load-in-4bit"))
    judge = reading.text("reward.model-name-or-path", "reward-pretrain")
    reading.put("workload.reward_model", judge, "reward-pretrain")
    if reading.text("algo.kl.init-coef", "init-kl-coef") in ("0", "0.0"):
        reading.put("workload.reference", "none", "init-kl-coef")
    if reading.on("train.colocate-all", "colocate-all-models"):
        reading.put("workload.placement", "colocated", "colocate-all-models")
        reinforced.together(reading, ("actor.num-nodes", "actor-num-nodes"), (
            "actor.num-gpus-per-node", "actor-num-gpus-per-node"), 8)
    else:
        reading.counted.append("GPUs of each model of its own: all are counted together, --gpus says how many")
    reading.put("workload.stack", "openrlhf", "the program")


def _tuned(reading: Reading, verb: str) -> None:
    """Read tuning on samples or preferences."""
    model = reading.text("model.model-name-or-path", "pretrain")
    reading.put("workload.model", model, "pretrain")
    rank = reinforced.rank_of(reading, "ds.lora.rank", "lora-rank")
    four = reading.on("ds.load-in-4bit", "load-in-4bit")
    reading.put("workload.method", ("qlora" if four else "lora") if rank else "full", "lora-rank")
    reading.put("workload.lora_rank", rank, "lora-rank")
    length = reading.number("data.max-len", "max-len")
    reading.put("workload.sequence_length", length or 2048, "max-len")
    reading.put("workload.global_batch", reading.number("train.batch-size", "train-batch-size") or 128,
                "train-batch-size")
    reading.axis("mbs", reading.number("train.micro-batch-size", "micro-train-batch-size") or 8,
                 "micro-train-batch-size")
    trainer.recompute(reading, reading.on("model.gradient-checkpointing-enable", "gradient-checkpointing"),
                      "gradient-checkpointing")
    reading.axis("zero", reading.text("ds.zero-stage", "zero-stage") or "2", "zero-stage")
    if reading.on("ds.adam-offload", "adam-offload"):
        reading.axis("offload_optimizer", 1, "adam-offload")
    reading.of_samples = {"workload.epochs": reading.number("train.max-epochs", "max-epochs") or 2}
    if reading.on("ds.packing-samples", "packing-samples"):
        reading.of_samples["workload.packing"] = True
    if (method := TUNING[verb]) is not None:
        trainer.preferences(reading, method, "the program")
    reading.put("workload.stack", "deepspeed", "the program")
    per_node = reading.number("num-gpus")
    reading.gpus = per_node


READER = Reader("a line of OpenRLHF", tells, read)

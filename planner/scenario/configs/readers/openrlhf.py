"""OpenRLHF's lines: `python -m openrlhf.cli.train_ppo_ray --actor.model_name_or_path ...`, and flags as before 0.9."""

from __future__ import annotations

from planner.scenario.configs import reinforced, trainer
from planner.scenario.configs.launchers import NODE
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

PROGRAM = "openrlhf.cli.train_"
EVERY = 10**8
"""Of --max-samples: all there are, as its default is."""
KEYS = reinforced.KeyNames(
    model=("actor.model-name-or-path", "pretrain"), estimator=("algo.advantage.estimator", "advantage-estimator"),
    usual="gae", counts=(1024, 1),
    prompts=("rollout.batch-size", "rollout-batch-size"), each=("rollout.n-samples-per-prompt", "n-samples-per-prompt"),
    prompt=("prompt-max-len", "data.max-prompt-len"), answer=("rollout.max-new-tokens", "generate-max-len"),
    rank=("ds.lora.rank", "lora-rank"), four_bits=("ds.load-in-4bit", "load-in-4bit"),
    checkpointing=("actor.gradient-checkpointing-enable", "gradient-checkpointing"))
TUNING = {"sft": None, "dpo": "dpo", "kto": "kto", "rm": "reward-model"}


def _verb(source: Source) -> str | None:
    """Return what is trained: ppo_ray, sft, dpo, rm."""
    return next((word.removeprefix(PROGRAM) for word in source.every_word() if word.startswith(PROGRAM)), None)


def tells(source: Source) -> bool:
    """Say whether it is one, by its program."""
    return source.form == "command" and _verb(source) is not None


def read(reading: Reading) -> None:
    """Read the policy, the method, batches, lengths, what trains, sharding and GPUs."""
    if _verb(reading.source) in TUNING:
        _tuned(reading, _verb(reading.source) or "")
        return
    reinforced.policy(reading, KEYS)
    judge = reading.text("reward.model-name-or-path", "reward-pretrain", "remote-rm-url")
    judged = judge is not None and "://" not in judge and not judge.endswith(".py")
    reading.put("workload.reward_model", judge if judged else None, "reward-pretrain")
    if reading.values["workload.method"] == "ppo":
        critic = reading.text("critic.model-name-or-path", "critic-pretrain") or (judge if judged else None)
        reading.put("workload.critic", critic, "critic-pretrain" if reading.source.has("critic-pretrain") else
                    "reward-pretrain, which starts the critic")
    if reading.text("algo.kl.init-coef", "init-kl-coef") in ("0", "0.0"):
        reading.put("workload.reference", "none", "init-kl-coef")
    _placed(reading)
    reading.axis("tp", reading.number("ds.tensor-parallel-size", "ds-tensor-parallel-size") or 1,
                 "ds-tensor-parallel-size")
    reading.axis("cp", reading.number("ds.ring-attn-size", "ring-attn-size") or 1, "ring-attn-size")
    reading.axis("pp", 1, "the program")
    reinforced.sized(reading, None, "", fraction="vllm.gpu-memory-utilization" if reading.source.has(
        "vllm.gpu-memory-utilization") else "vllm-gpu-memory-utilization")
    if not reading.on("train.dynamic-batch-enable", "use-dynamic-batch"):
        reading.micro_answers = reading.number("train.micro-batch-size", "micro-train-batch-size")
    if "recompute" not in reading.layout:
        reading.axis("recompute", "none", "gradient-checkpointing")
    if (stage := reading.text("ds.zero-stage", "zero-stage")) not in (None, "3"):
        reading.counted.append(f"zero-stage {stage}: as ZeRO-3")
    samples = reading.number("data.max-samples", "max-samples")
    reading.put("workload.samples", samples if samples and samples < EVERY else None, "max-samples")
    if samples and samples < EVERY and (times := reading.number("num-episodes")):
        reading.put("workload.epochs", times, "num-episodes")
    reading.put("workload.stack", "openrlhf", "the program")


def _placed(reading: Reading) -> None:
    """Count the GPUs of all models, and those of the rollouts among them."""

    def gpus(role: str) -> int:
        return (reading.number(f"{role}.num-nodes", f"{role}-num-nodes") or 1) * (
            reading.number(f"{role}.num-gpus-per-node", f"{role}-num-gpus-per-node") or NODE)

    actor, reference = gpus("actor"), gpus("ref")
    engines = reading.number("vllm.num-engines", "vllm-num-engines") or 0
    wide = reading.number("vllm.tensor-parallel-size", "vllm-tensor-parallel-size") or 1
    if engines:
        reading.axis("rollout_tp", wide, "vllm-tensor-parallel-size")
    late = _lag(reading)
    if reading.on("train.colocate-all", "colocate-all-models") and not late:
        reading.axis("swap", int(reading.on("ds.enable-sleep", "deepspeed-enable-sleep")), "deepspeed-enable-sleep")
        reading.put("workload.placement", "colocated", "colocate-all-models")
        reading.gpus = actor
        return
    roles = {"actor": actor}
    if not reading.on("train.colocate-actor-ref", "colocate-actor-ref", "train.colocate-all", "colocate-all-models"
                      ) and (
            reading.values.get("workload.reference") != "none"):
        roles["ref"] = reference
    has_critic, has_judge = "workload.critic" in reading.values, "workload.reward_model" in reading.values
    critic, judge = gpus("critic"), gpus("reward")
    if has_critic:
        roles["critic"] = critic
    if has_judge and not (has_critic and reading.on("train.colocate-critic-reward", "colocate-critic-reward")):
        roles["reward"] = judge
    if engines:
        reading.put("workload.placement", "disaggregated", "vllm-num-engines")
        reading.axis("rollout_gpus", engines * wide, "vllm-num-engines")
    turns = sum(roles.values())
    if turns > NODE:  # whole machines, as those of its examples are
        turns -= turns % NODE
    reading.gpus = turns + engines * wide
    if len(roles) > 1:
        reading.counted.append(f"GPUs of {', '.join(f'{role} {count}' for role, count in roles.items())}: as "
                               f"{turns} that take turns")


def _lag(reading: Reading) -> bool:
    """Put down how far rollouts run ahead, and say whether they do; and what is updated on the host."""
    reading.axis("offload_optimizer", int(reading.on("ds.adam-offload", "adam-offload")), "adam-offload")
    late = reading.on("train.async-enable", "async-train")
    if late:
        reading.put("workload.policy_lag", reading.number("train.async-queue-size", "async-queue-size") or 1,
                    "async-train")
    return late


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

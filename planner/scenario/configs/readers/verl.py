"""verl's lines and files (verl/trainer/config/ppo_trainer.yaml): Hydra's `actor_rollout_ref.model.path=...`."""

from __future__ import annotations

from math import prod

from planner.scenario.configs import reinforced
from planner.scenario.configs.launchers import NODE
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

MODEL = "actor_rollout_ref.model.path"
KEYS = reinforced.KeyNames(
    model=(MODEL,), estimator=("algorithm.adv_estimator",), usual="gae", counts=(1024, 1),
    prompts=("data.train_batch_size",), each=("actor_rollout_ref.rollout.n",), prompt=("data.max_prompt_length",),
    answer=("data.max_response_length",), critic=("critic.model.path",),
    rank=("actor_rollout_ref.model.lora_rank", "actor_rollout_ref.model.lora.rank"),
    checkpointing=("actor_rollout_ref.model.enable_gradient_checkpointing",), epochs="trainer.total_epochs",
    steps="trainer.total_training_steps")


def tells(source: Source) -> bool:
    """Say whether it is one: the policy under verl's name."""
    return source.has(MODEL)


def read(reading: Reading) -> None:
    """Read the policy, the method, the answers of a step, who judges, what trains, and the GPUs."""
    reinforced.policy(reading, KEYS)
    held = reading.on("actor_rollout_ref.actor.use_kl_loss"), reading.on("algorithm.use_kl_in_reward")
    reading.put("workload.reference", "initial" if any(held) else "none", "actor_rollout_ref.actor.use_kl_loss")
    judge = next((key for key in ("reward.reward_model.model_path", "reward_model.model.path")
                  if reading.source.has(key)), None)
    if judge is not None and (reading.on("reward_model.enable", "reward.reward_model.enable")):
        reading.put("workload.reward_model", reading.named(judge), judge)
    reinforced.together(reading, ("trainer.nnodes",), ("trainer.n_gpus_per_node",))
    rollout = "actor_rollout_ref.rollout."
    if reading.word("actor_rollout_ref.hybrid_engine") == "false" and reading.gpus:
        draws = (reading.number(f"{rollout}nnodes") or 1) * (reading.number(f"{rollout}n_gpus_per_node") or NODE)
        reinforced.apart(reading, reading.gpus, draws, "actor_rollout_ref.hybrid_engine")
        lag = reading.text("trainer.v1.separate_async.num_warmup_batches")
        reading.put("workload.policy_lag", int(lag) if lag and lag.isdecimal() else None, "num_warmup_batches")
    elif reading.gpus:
        reading.put("workload.placement", "colocated", "hybrid_engine")
    reading.put("workload.stack", "verl", "the program")
    _held(reading)
    reading.get("m")
    engine = reading.word("actor_rollout_ref.rollout.name")
    if engine in ("vllm", "sglang"):
        reading.put("workload.engine", engine, "actor_rollout_ref.rollout.name")


def _held(reading: Reading) -> None:
    """Put down the axes of trainer and rollouts: FSDP, which splits no matrix, unless Megatron trains."""
    actor = "actor_rollout_ref.actor"
    by_megatron = reading.word(f"{actor}.strategy") == "megatron" or reading.source.has(f"{actor}.megatron") or (
        "megatron" in (reading.word("config_name") or ""))
    for axis, key in (("tp", "tensor_model_parallel_size"), ("pp", "pipeline_model_parallel_size"),
                      ("ep", "expert_model_parallel_size")):
        reading.axis(axis, (reading.number(f"{actor}.megatron.{key}") or 1) if by_megatron else 1, key)
    reading.axis("cp", reading.number(f"{actor}.megatron.context_parallel_size" if by_megatron else
                                      f"{actor}.ulysses_sequence_parallel_size") or 1, "ulysses_sequence_parallel_size")
    reading.axis("rollout_tp", reading.number("actor_rollout_ref.rollout.tensor_model_parallel_size"),
                 "actor_rollout_ref.rollout.tensor_model_parallel_size")
    away = f"{actor}.{'megatron' if by_megatron else 'fsdp_config'}.optimizer_offload"
    core = f"{actor}.optim.override_optimizer_config.optimizer_"
    share = reading.text(f"{core}offload_fraction") if reading.on(f"{core}cpu_offload") else None
    policy = f"{actor}.fsdp_config.offload_policy"
    reading.axis("offload_optimizer", f"{float(share):g}" if share else int(reading.on(policy)), policy)
    # what waits on the host while answers are drawn comes back to be updated
    reading.axis("swap", int(reading.on(away)), away)
    most = f"{actor}.ppo_max_token_len_per_gpu"
    reinforced.sized(reading, reading.number(most) if reading.on(f"{actor}.use_dynamic_bsz") else None, most,
                     fraction="actor_rollout_ref.rollout.gpu_memory_utilization")
    reading.axis("trainer", "megatron" if by_megatron else "fsdp", f"{actor}.strategy")
    _micro_batch(reading, actor)
    granularity = f"{actor}.megatron.override_transformer_config.recompute_granularity"
    if by_megatron:
        reading.axis("recompute", reading.word(granularity) or "none", granularity)


def _micro_batch(reading: Reading, actor: str) -> None:
    """Count the answers of a micro-batch: as many as are said, and no more than one copy has of an update."""
    degrees = [int(reading.layout.get(axis, "1")) for axis in ("tp", "pp", "cp")]
    copies = max(1, (reading.gpus or 0) // prod(degrees))
    each, mini = reading.values.get("workload.samples_per_prompt"), reading.number(f"{actor}.ppo_mini_batch_size")
    most = -(-mini * int(str(each)) // copies) if mini and reading.gpus else None
    if not reading.on(f"{actor}.use_dynamic_bsz"):
        whole = reading.text(f"{actor}.ppo_micro_batch_size")  # of all copies, as in older scripts
        mine = -(-int(whole) // copies) if whole and whole.isdecimal() and reading.gpus else None
        micro = reading.number(f"{actor}.ppo_micro_batch_size_per_gpu") or mine
        most = micro and min(filter(None, (most, micro)))
    reading.micro_answers = most


READER = Reader("a config of verl", tells, read)

"""prime-rl's TOML (examples/*/rl.toml): trainer, orchestrator and inference by their tables."""

from __future__ import annotations

from planner.scenario.configs import reinforced
from planner.scenario.configs.launchers import NODE
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

LENGTHS = ("orchestrator.train.sampling.max_completion_tokens", "orchestrator.sampling.max_tokens",
           "orchestrator.sampling.max_completion_tokens")
"""Of an answer, by release."""


def tells(source: Source) -> bool:
    """Say whether it is one: what draws answers, in batches."""
    return source.form == "toml" and source.has("orchestrator.batch_size")


def read(reading: Reading) -> None:
    """Read the policy, the answers of a step, what trains, degrees and GPUs."""
    named = ("model.name", "trainer.model.name", "orchestrator.model.name")
    reading.put("workload.model", reading.text(*named), "model.name")
    reinforced.method(reading, "grpo", "the program", "grpo")
    batch = reading.number("orchestrator.batch_size") or 1
    each = reading.number("orchestrator.group_size", "orchestrator.rollouts_per_example")
    if each is None:
        reading.defaults.append("group_size 16")
    each = each or 16
    reading.put("workload.samples_per_prompt", each, "orchestrator.group_size")
    reading.put("workload.prompts", max(1, batch // each), "orchestrator.batch_size")
    reading.counted.append(f"prompts of a step: {batch} answers, {each} to each")
    whole = reading.number("seq_len", "orchestrator.seq_len", "trainer.model.seq_len")
    reading.longest_answer = reading.number(*LENGTHS) or whole
    reading.put("workload.max_model_len", whole, "seq_len")
    rank = "trainer.model.lora.rank"
    reinforced.adapters(reading, reinforced.rank_of(reading, rank), rank)
    reading.put("workload.reference", "none", "the program")
    for axis in ("tp", "cp", "ep"):
        reading.axis(axis, reading.number(f"trainer.model.{axis}") or 1, f"trainer.model.{axis}")
    reading.axis("rollout_tp", reading.number("inference.parallel.tp", "inference.vllm.tensor_parallel_size") or 1,
                 "inference.parallel.tp")
    if any(key.startswith(("trainer.model.ac.", "trainer.model.ac_offloading")) for key in reading.source.keys):
        reading.axis("recompute", "full", "trainer.model.ac")
    if any(key.startswith("trainer.model.ac_offloading") for key in reading.source.keys):
        reading.axis("offload_activations", 1, "trainer.model.ac_offloading")
    if whole:  # which a micro-batch packs, and GPUs that share sequences have a part of
        reading.axis("micro_batch_tokens", -(-whole // int(reading.layout["cp"])), "seq_len")
    away = reading.on("trainer.model.optim_cpu_offload") or reading.on("trainer.model.full_offload")
    reading.axis("offload_optimizer", 1 if away else None, "trainer.model.optim_cpu_offload")
    _placed(reading)
    reading.put("workload.steps", reading.number("max_steps"), "max_steps")
    lag = reading.number("max_async_level", "orchestrator.max_async_level")
    if lag is None:
        reading.defaults.append("max_async_level 1")
    reading.put("workload.policy_lag", lag or 1, "max_async_level")
    reading.put("workload.stack", "prime-rl", "the kind of file")
    reading.put("workload.engine", "vllm", "the kind of file")


def _placed(reading: Reading) -> None:
    """Count the GPUs that train and those that draw: whole nodes, or GPUs of one."""
    parts = ("deployment.num_train_", "deployment.num_infer_")
    nodes = [reading.number(f"{part}nodes") for part in parts]
    each = reading.number("deployment.gpus_per_node") or NODE
    trains, draws = (count * each if count else reading.number(f"{part}gpus") or 1
                     for count, part in zip(nodes, parts, strict=True))
    # of nodes for each replica
    replicas = reading.number("deployment.num_infer_replicas") or 1 if nodes[1] else 1
    reinforced.apart(reading, trains, draws * replicas, "deployment")


READER = Reader("a config of prime-rl", tells, read)

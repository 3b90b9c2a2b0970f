"""AReaL's YAML (examples/*.yaml): actor, rollout and answers by their blocks, degrees as `fsdp:d4p1t1`."""

from __future__ import annotations

import re

from planner.scenario.configs import reinforced
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

KEYS = reinforced.KeyNames(
    model=("actor.path",), estimator=("critic.path",), usual="grpo", counts=(32, 1),
    prompts=("train_dataset.batch_size",), each=("gconfig.n_samples",), prompt=("train_dataset.max_length",),
    answer=("gconfig.max_new_tokens",),
    rank=("actor.lora_rank",), adapts="actor.use_lora", critic=("critic.path",),
    checkpointing=("actor.gradient_checkpointing",), epochs="total_train_epochs", steps="total_train_steps")
_DEGREE = re.compile(r"([a-z])(\d{1,6})")
_AXES = {"t": "tp", "p": "pp", "c": "cp", "e": "ep"}


def tells(source: Source) -> bool:
    """Say whether it is one: a policy, and how its answers are drawn."""
    return source.form == "yaml" and source.has("actor.path", "gconfig")


def read(reading: Reading) -> None:
    """Read the policy, the answers of a step, what trains, degrees and GPUs."""
    reinforced.policy(reading, KEYS, estimator="ppo" if reading.source.has("critic.path") else "grpo")
    kl = reading.text("actor.kl_ctl")
    reading.put("workload.reference", "none" if kl in ("0", "0.0") else "initial", "actor.kl_ctl")
    mode = (reading.text("allocation_mode") or "").split("+")
    rollout = reading.text("rollout.backend") or mode[0]
    actor = reading.text("actor.backend") or (mode[1] if len(mode) > 1 else "")
    drawn, trained = _degrees(rollout), _degrees(actor)
    for letter, axis in _AXES.items():
        reading.axis(axis, trained.get(letter, 1), "actor.backend")
    reading.axis("rollout_tp", drawn.get("t", 1), "rollout.backend")
    reading.axis("rollout_pp", drawn.get("p", 1), "rollout.backend")
    if actor.startswith(("fsdp", "megatron")):
        reading.axis("trainer", actor.partition(":")[0], "actor.backend")
    tokens = reading.number("actor.mb_spec.max_tokens_per_mb")
    reinforced.sized(reading, tokens and -(-tokens // trained.get("c", 1)), "actor.mb_spec.max_tokens_per_mb",
                     fraction="sglang.mem_fraction_static" if rollout.startswith("sglang") else
                     "vllm.gpu_memory_utilization")
    engine = rollout.partition(":")[0].partition(".")[0]
    reading.put("workload.engine", engine if engine in ("vllm", "sglang") else None, "rollout.backend")
    nodes, each = reading.number("cluster.n_nodes"), reading.number("cluster.n_gpus_per_node")
    if drawn and trained:
        reinforced.apart(reading, _gpus(trained), _gpus(drawn), "rollout.backend")
        reading.put("workload.policy_lag", reading.number("rollout.max_head_offpolicyness"),
                    "rollout.max_head_offpolicyness")
    elif each:
        reading.gpus = each * (nodes or 1)
    reading.put("workload.stack", "areal", "the kind of file")


def _degrees(said: str) -> dict[str, int]:
    """Return degrees by their letters: sglang:d4p1t1, d2t2, megatron:(attn:d4p4t2|ffn:d2p4e4), of that the first."""
    parts = [{letter: int(count) for letter, count in _DEGREE.findall(part.rpartition(":")[2])}
             for part in said.replace(".", ":").rstrip(")").split("|")]
    return parts[0] | {letter: count for letter, count in parts[-1].items() if letter == "e"}


def _gpus(degrees: dict[str, int]) -> int:
    return degrees.get("d", 1) * degrees.get("t", 1) * degrees.get("p", 1) * degrees.get("c", 1)


READER = Reader("a config of AReaL", tells, read)

"""NeMo RL's YAML (examples/configs): GRPO, DPO and supervised tuning, over the file that `defaults` names."""

from __future__ import annotations

from dataclasses import replace

from planner.scenario.configs import reinforced, trainer
from planner.scenario.configs.launchers import NODE
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.shell import DEEPEST
from planner.scenario.configs.source import Source, interpolated

MODEL = "policy.model_name"
VERBS = ("grpo", "ppo", "dpo", "sft", "rm", "distillation")
DRAWN = ("grpo", "ppo", "distillation")
"""Blocks that say what is trained, of which a file has one, and those that draw answers."""
OWN = (*VERBS, "policy", "value", "cluster", "loss_fn", "data", "data_plane")
"""Blocks of a recipe over another file, of which it has some."""
CORE, FSDP, DRAWS = "policy.megatron_cfg.", "policy.dtensor_cfg.", "policy.generation."


def tells(source: Source) -> bool:
    """Say whether it is one: a policy with NeMo RL's keys, or a recipe over another file with some of them."""
    policy = source.has(MODEL) and any(map(source.has, (*VERBS, "policy.tokenizer", "cluster")))
    over = source.has("defaults") and any(map(source.has, OWN))
    return (source.form == "yaml" and (policy or over)) or (source.form == "command" and policy)


def read(reading: Reading) -> None:
    """Read the policy, what is trained and on what, and the GPUs."""
    if reading.source.form == "command":  # of the checkout's own file there is no more than what the line says
        reading.get("m", "config", "project")
        reading.source = replace(reading.source, form="yaml", keys={
            key.replace("-", "_"): None if value == "null" else value for key, value in reading.source.keys.items()})
    _inherit(reading)
    reading.put("workload.model", reading.text(MODEL), MODEL)
    verb = next((verb for verb in VERBS if any(key.startswith(f"{verb}.") for key in reading.source.keys)), "grpo")
    if verb in DRAWN:
        _drawn(reading, verb)
    else:
        _tuned(reading, verb)
    reinforced.together(reading, ("cluster.num_nodes",), ("cluster.gpus_per_node",), NODE)
    if verb in DRAWN and reading.word(f"{DRAWS}colocated.enabled") == "false":
        whole, colocated = reading.gpus or NODE, f"{DRAWS}colocated.resources."
        each = reading.number(f"{colocated}gpus_per_node") or NODE
        draws = each * (reading.number(f"{colocated}num_nodes") or 1)
        reinforced.apart(reading, max(1, whole - draws), draws, f"{DRAWS}colocated.enabled")
        late = f"{verb}.async_{verb}."
        if reading.on(f"{late}enabled"):
            reading.put("workload.policy_lag", reading.number(f"{late}max_trajectory_age_steps"),
                        f"{late}max_trajectory_age_steps")
    elif verb in DRAWN and reading.on(f"{DRAWS}colocated.enabled"):
        reading.put("workload.placement", "colocated", f"{DRAWS}colocated.enabled")


def _inherit(reading: Reading) -> None:
    """Put the keys of the files that `defaults` names, one over the other, under those of the config."""
    source = reading.source
    keys = dict(source.raw or source.keys)
    for _ in range(DEEPEST + 4):
        inner = Reading(source)
        base = inner.file("defaults")
        reading.counted += inner.counted
        if base is None:
            break
        keys, source = {**(base.raw or base.keys), **keys}, base
    reading.source = replace(reading.source, keys=interpolated(keys))
    reading.get("defaults")


def _drawn(reading: Reading, verb: str) -> None:
    estimator = reading.word(f"{verb}.adv_estimator.name")
    named = verb if verb == "ppo" else estimator if estimator in reinforced.METHODS else "grpo"
    reinforced.method(reading, named, f"{verb}.adv_estimator", "grpo")
    if verb == "ppo":
        reading.put("workload.critic", reading.text("value.model_name"), "value.model_name")
    if verb == "distillation":
        reading.put("workload.method", "on-policy-distillation", verb)
        reading.put("workload.reward_model", reading.text("teacher.model_name"), "teacher.model_name")
    reinforced.answers(reading, (f"{verb}.num_prompts_per_step",), (f"{verb}.num_generations_per_prompt",), (32, 16))
    whole = reading.number("policy.max_total_sequence_length") or 512
    answer, prompt = reading.number(f"{DRAWS}max_new_tokens"), reading.number("data.max_input_seq_length")
    reading.longest_answer = min(answer or whole, whole)
    reading.longest_prompt = min(prompt or whole, whole - 1)
    reading.put("workload.max_model_len", whole, "policy.max_total_sequence_length")
    penalty = "loss_fn.reference_policy_kl_penalty"
    weight = reading.text(penalty)
    reading.put("workload.reference", None if verb == "distillation" else "none" if weight in ("0", "0.0") else
                "initial", penalty)
    core = _axes(reading)
    rank, key = _adapters(reading, core)
    reinforced.adapters(reading, rank, key)
    _engine(reading)
    _micro_batch(reading, whole)
    if reading.number("policy.logprob_chunk_size") or reading.on(f"{CORE}use_fused_linear_logprobs"):
        reading.axis("loss", "chunked", "policy.logprob_chunk_size")
    steps = reading.number(f"{verb}.max_num_steps")
    reading.put("workload.steps", steps if steps and steps < 10**6 else None, f"{verb}.max_num_steps")
    reading.put("workload.stack", "nemo-rl", "the kind of file")
    reading.put("workload.engine", "vllm" if reading.word(f"{DRAWS}backend") == "vllm" else None, f"{DRAWS}backend")


def _engine(reading: Reading) -> None:
    """Put down the degrees of the rollouts, and their share of a GPU: vLLM's experts lie on copies of attention."""
    mine = f"{DRAWS}vllm_cfg."
    tp, ep = (reading.number(f"{mine}{axis}_parallel_size") or 1 for axis in ("tensor", "expert"))
    if reading.word(f"{DRAWS}backend") == "megatron":
        core = f"{DRAWS}mcore_generation_config."
        tp, ep = (reading.number(f"{core}{axis}_model_parallel_size") or 1 for axis in ("tensor", "expert"))
    reading.axis("rollout_tp", tp, f"{mine}tensor_parallel_size")
    reading.axis("rollout_dp", max(1, ep // tp), f"{mine}expert_parallel_size")
    reading.axis("rollout_pp", reading.number(f"{mine}pipeline_parallel_size") or 1, f"{mine}pipeline_parallel_size")
    if reading.word(f"{mine}precision") == "fp8":
        reading.axis("rollout_format", "fp8", f"{mine}precision")
    reading.axis("memory_fraction", reading.share(f"{mine}gpu_memory_utilization"), f"{mine}gpu_memory_utilization")


def _micro_batch(reading: Reading, whole: int) -> None:
    """Put down the tokens of a micro-batch: as they are packed, else those of its longest sequences."""
    each = reading.number("policy.train_micro_batch_size")
    tokens = None if each is None else each * whole
    for how in ("dynamic_batching", "sequence_packing"):
        most = reading.text(f"policy.{how}.train_mb_tokens")
        if reading.on(f"policy.{how}.enabled") and most and most.isdecimal():
            tokens = int(most)
    copies = int(reading.layout.get("cp", "1"))  # which each take a part of every sequence
    reading.axis("micro_batch_tokens", None if tokens is None else -(-tokens // copies),
                 "policy.train_micro_batch_size")


def _axes(reading: Reading) -> str:
    """Put down degrees and recompute of what trains, and return before which keys they stand."""
    core = CORE if reading.on(f"{CORE}enabled") else FSDP
    if reading.values.get("workload.kind") == "posttraining":
        reading.axis("trainer", "megatron" if core == CORE else "fsdp", f"{core}enabled")
    if core == CORE:
        reinforced.by_megatron(reading, CORE)
    else:
        reading.axis("tp", reading.number(f"{FSDP}tensor_parallel_size") or 1, f"{FSDP}tensor_parallel_size")
        reading.axis("cp", reading.number(f"{FSDP}context_parallel_size") or 1, f"{FSDP}context_parallel_size")
        reading.axis("pp", 1, f"{FSDP}enabled")
        reading.axis("ep", reading.number(f"{FSDP}expert_parallel_size"), f"{FSDP}expert_parallel_size")
    reading.axis("recompute", "full" if reading.on(f"{core}activation_checkpointing") else "none",
                 f"{core}activation_checkpointing")
    if core == CORE and reading.on(f"{CORE}optimizer.optimizer_cpu_offload"):
        away = reading.share(f"{CORE}optimizer.optimizer_offload_fraction") or 1.0
    else:
        away = float(core == FSDP and reading.on(f"{FSDP}cpu_offload"))
    reading.axis("offload_optimizer", f"{away:g}", f"{core}cpu_offload")
    return core


def _adapters(reading: Reading, core: str) -> tuple[int | None, str]:
    """Return the rank of adapters, if they train, and the key that says so."""
    block = f"{core}{'lora_cfg' if core == FSDP else 'peft'}"
    return reinforced.rank_of(reading, f"{block}.dim") if reading.on(f"{block}.enabled") else None, f"{block}.dim"


def _tuned(reading: Reading, verb: str) -> None:
    core = _axes(reading)
    rank, key = _adapters(reading, core)
    reading.put("workload.method", "lora" if rank else "full", key if rank else verb)
    reading.put("workload.lora_rank", rank, key)
    reading.put("workload.sequence_length", reading.number("policy.max_total_sequence_length"),
                "policy.max_total_sequence_length")
    reading.put("workload.global_batch", reading.number("policy.train_global_batch_size"),
                "policy.train_global_batch_size")
    reading.axis("mbs", reading.number("policy.train_micro_batch_size") or 1, "policy.train_micro_batch_size")
    reading.axis("zero", 1 if core == CORE else 3, core)
    reading.accumulation = 1
    reading.put("workload.stack", "nemo-rl-megatron" if core == CORE else "nemo-rl-fsdp", core)
    steps = reading.number(f"{verb}.max_num_steps")
    reading.steps = steps if steps and steps < 10**6 else None
    if verb in ("dpo", "rm"):
        trainer.preferences(reading, "dpo" if verb == "dpo" else "reward-model", verb)


READER = Reader("a config of NeMo RL", tells, read)

"""NeMo RL's YAML (examples/configs): GRPO, DPO and supervised tuning, over the file that `defaults` names."""

from __future__ import annotations

from dataclasses import replace

from planner.scenario.configs import reinforced, trainer
from planner.scenario.configs.launchers import NODE
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.shell import DEEPEST
from planner.scenario.configs.source import Source, interpolated

MODEL = "policy.model_name"
VERBS = ("grpo", "dpo", "sft", "rm", "distillation")
"""Blocks that say what is trained, of which a file has one."""
CORE, FSDP, DRAWS = "policy.megatron_cfg.", "policy.dtensor_cfg.", "policy.generation."


def tells(source: Source) -> bool:
    """Say whether it is one: a policy with NeMo RL's keys, or a recipe over another file with some of them."""
    policy = source.has(MODEL) and any(map(source.has, (*VERBS, "policy.tokenizer", "cluster")))
    over = source.has("defaults") and any(map(source.has, (*VERBS, "policy", "cluster", "loss_fn")))
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
    if verb in ("grpo", "distillation"):
        _drawn(reading, verb)
    else:
        _tuned(reading, verb)
    reinforced.together(reading, ("cluster.num_nodes",), ("cluster.gpus_per_node",), NODE)
    if verb in ("grpo", "distillation") and reading.word(f"{DRAWS}colocated.enabled") == "false":
        whole, colocated = reading.gpus or NODE, f"{DRAWS}colocated.resources."
        each = reading.number(f"{colocated}gpus_per_node") or NODE
        draws = each * (reading.number(f"{colocated}num_nodes") or 1)
        reinforced.apart(reading, max(1, whole - draws), draws, f"{DRAWS}colocated.enabled")
        if reading.on("grpo.async_grpo.enabled"):
            reading.put("workload.policy_lag", reading.number("grpo.async_grpo.max_trajectory_age_steps"),
                        "grpo.async_grpo.max_trajectory_age_steps")
    elif verb in ("grpo", "distillation") and reading.on(f"{DRAWS}colocated.enabled"):
        reading.put("workload.placement", "colocated", f"{DRAWS}colocated.enabled")


def _inherit(reading: Reading) -> None:
    """Put the keys of the files that `defaults` names, one over the other, under those of the config."""
    keys, source = dict(reading.source.keys), reading.source
    for _ in range(DEEPEST + 4):
        inner = Reading(source)
        base = inner.file("defaults")
        reading.counted += inner.counted
        if base is None:
            break
        keys, source = {**base.keys, **keys}, base
    reading.source = replace(reading.source, keys=interpolated(keys))
    reading.get("defaults")


def _drawn(reading: Reading, verb: str) -> None:
    estimator = reading.word(f"{verb}.adv_estimator.name")
    named = estimator if estimator in reinforced.METHODS else "grpo"
    reinforced.method(reading, named, f"{verb}.adv_estimator", "grpo")
    if verb == "distillation":
        reading.put("workload.method", "on-policy-distillation", verb)
        reading.put("workload.reward_model", reading.text("teacher.model_name"), "teacher.model_name")
    reinforced.answers(reading, (f"{verb}.num_prompts_per_step",), (f"{verb}.num_generations_per_prompt",), (32, 16))
    whole = reading.number("policy.max_total_sequence_length") or 512
    answer, prompt = reading.number(f"{DRAWS}max_new_tokens"), reading.number("data.max_input_seq_length")
    reading.longest_answer = min(answer or whole, whole)
    reading.longest_prompt = prompt if prompt and prompt < whole else None
    reading.put("workload.max_model_len", whole, "policy.max_total_sequence_length")
    penalty = "loss_fn.reference_policy_kl_penalty"
    reading.put("workload.reference", "none" if reading.text(penalty) in ("0", "0.0") else "initial", penalty)
    core = _axes(reading)
    rank = f"{core}lora_cfg.dim" if core == FSDP else f"{core}peft.dim"
    switch = f"{core}lora_cfg.enabled" if core == FSDP else f"{core}peft.enabled"
    reinforced.adapters(reading, reinforced.rank_of(reading, rank) if reading.on(switch) else None, rank)
    reading.axis("rollout_tp", reading.number(f"{DRAWS}vllm_cfg.tensor_parallel_size") or 1,
                 f"{DRAWS}vllm_cfg.tensor_parallel_size")
    steps = reading.number(f"{verb}.max_num_steps")
    reading.put("workload.steps", steps if steps and steps < 10**6 else None, f"{verb}.max_num_steps")
    reading.put("workload.stack", "nemo-rl", "the kind of file")
    reading.put("workload.engine", "vllm" if reading.word(f"{DRAWS}backend") == "vllm" else None, f"{DRAWS}backend")


def _axes(reading: Reading) -> str:
    """Put down degrees and recompute of what trains, and return before which keys they stand."""
    core = CORE if reading.on(f"{CORE}enabled") else FSDP
    if core == CORE:
        reinforced.by_megatron(reading, CORE)
    else:
        reading.axis("tp", reading.number(f"{FSDP}tensor_parallel_size") or 1, f"{FSDP}tensor_parallel_size")
        reading.axis("cp", reading.number(f"{FSDP}context_parallel_size") or 1, f"{FSDP}context_parallel_size")
        reading.axis("pp", 1, f"{FSDP}enabled")
    reading.axis("recompute", "full" if reading.on(f"{core}activation_checkpointing") else "none",
                 f"{core}activation_checkpointing")
    if core == CORE and reading.on(f"{CORE}optimizer.optimizer_cpu_offload"):
        away = reading.share(f"{CORE}optimizer.optimizer_offload_fraction") or 1.0
    else:
        away = float(core == FSDP and reading.on(f"{FSDP}cpu_offload"))
    reading.axis("offload_optimizer", f"{away:g}", f"{core}cpu_offload")
    return core


def _tuned(reading: Reading, verb: str) -> None:
    core = _axes(reading)
    reading.put("workload.method", "full", verb)
    reading.put("workload.sequence_length", reading.number("policy.max_total_sequence_length"),
                "policy.max_total_sequence_length")
    reading.put("workload.global_batch", reading.number("policy.train_global_batch_size"),
                "policy.train_global_batch_size")
    reading.axis("mbs", reading.number("policy.train_micro_batch_size") or 1, "policy.train_micro_batch_size")
    reading.axis("zero", 1 if core == CORE else 3, core)
    reading.accumulation = 1
    reading.put("workload.stack", "megatron-bridge" if core == CORE else "nemo-automodel", core)
    steps = reading.number(f"{verb}.max_num_steps")
    reading.steps = steps if steps and steps < 10**6 else None
    if verb in ("dpo", "rm"):
        trainer.preferences(reading, "dpo" if verb == "dpo" else "reward-model", verb)


READER = Reader("a config of NeMo RL", tells, read)

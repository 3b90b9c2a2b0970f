"""TRL's YAML, or line, of its scripts: their Config and ModelConfig beside the Trainer's arguments."""

from __future__ import annotations

from planner.scenario.configs import reinforced, trainer
from planner.scenario.configs.launchers import NODE, launched
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source
from planner.scenario.tuned import ADAPTERS

SCRIPTS = {"sft": None, "grpo": "grpo", "rloo": "rloo", "dpo": "dpo", "kto": "kto",
           "reward": "reward-model", "orpo": "orpo", "cpo": "simpo"}
"""Of TRL -> the method; CPOTrainer with loss_type simpo."""
OWN = {"desirable_weight": "kto", "undesirable_weight": "kto", "cpo_alpha": "simpo", "simpo_gamma": "simpo",
       "center_rewards_coefficient": "reward-model", "precompute_ref_log_probs": "dpo", "ref_model_init_kwargs": "dpo",
       "max_prompt_length": "dpo", "rpo_alpha": "dpo"}
"""Keys that only one of their configs has, or that two have and mostly dpo states."""


OTHERS = ("finetuning_type", "stage", "infer_backend")
"""Keys of LLaMA-Factory, which has the names of the Trainer's arguments too."""
BATCH = "per_device_train_batch_size"
"""Of a file that names no model, as the line that starts it does."""
MODELS = ("model", "base_model", "model_id", "tuner_type", "train_type", "rlhf_type", "training", "train")
"""Keys of others that have that one too."""


def _script(source: Source) -> str | None:
    """Return the script of TRL that a line starts: trl dpo, -m trl.scripts.dpo, examples/scripts/dpo.py."""
    words = list(source.every_word())
    if source.words[:1] == ("trl",):
        return next((word for word in words[1:] if word in SCRIPTS), None)
    paths = [word.removesuffix(".py").replace(".", "/").split("/") for word in words]
    return next((path[-1] for path in paths if path[-1] in SCRIPTS and "scripts" in path), None)


def tells(source: Source) -> bool:
    """Say whether it is one: a model under the Trainer's name, without LLaMA-Factory's stage and tuning."""
    if source.form == "command":
        return source.has("model_name_or_path") and _script(source) is not None
    if source.form not in ("yaml", "json") or any(map(source.has, OTHERS)):
        return False
    return source.has("model_name_or_path") or (source.has(BATCH) and not any(map(source.has, MODELS)))


def read(reading: Reading) -> None:
    """Read model, method, batch, lengths, sharding, precision and recompute."""
    reading.under("config")
    reading.put("workload.model", reading.text("model_name_or_path"), "model_name_or_path")
    four = reading.on("load_in_4bit")
    if reading.on("use_peft"):
        trainer.adapter(reading, "qlora" if four else "lora", "lora_r", "use_peft")
        trainer.adapted(reading, "lora_target_modules", experts=True)
    else:
        trainer.adapter(reading, "full", "lora_r", "no use_peft")
    trainer.arguments(reading, ("max_length", "max_seq_length", "max_seq_len"), "true",
                      recomputes=reading.word("gradient_checkpointing") != "false")
    script = _script(reading.source)
    method = SCRIPTS[script] if script else next((OWN[key] for key in OWN if reading.source.has(key)), None)
    if (script in reinforced.METHODS) or reading.source.has("num_generations"):
        drawing(reading, script or "grpo", "the script")
        return
    if method is None and script is None and reading.source.has("beta") and not reading.source.has("num_generations"):
        method = "dpo"
    if method is not None:
        trainer.preferences(reading, method, "the script" if script else "its keys",
                            precomputed="precompute_ref_log_probs")
    reading.gpus = launched(reading)
    trainer.sharding(reading, "trl")


def drawing(reading: Reading, method: str, said: str, prompt: str = "max_prompt_length",
            answers: int | None = None, each: int | None = None) -> None:
    """Read GRPO and RLOO: a step has the answers that all GPUs take at once, and each of its micro-batches.

    prompt: the key of the longest prompt; answers of a step, and to each prompt, where other keys than TRL's say them.
    """
    trains = reading.values.pop("workload.method")
    each = each or reading.number("num_generations") or 8
    gpus = launched(reading) or NODE
    rounds = reading.number("steps_per_generation") or reading.accumulation or 1
    micro = int(reading.layout.pop("mbs", 1)) * rounds
    batch = answers or reading.number("generation_batch_size")
    reinforced.method(reading, method, said, "grpo")
    reading.put("workload.tuning", trains if trains in ADAPTERS else None, "use_peft")
    reading.put("workload.samples_per_prompt", each, "num_generations")
    reading.put("workload.prompts", max(1, (batch or micro * gpus) // each), "per_device_train_batch_size")
    reading.counted.append(f"prompts of a step: {batch or f'{micro} answers on each of {gpus} GPUs'}, {each} to each")
    reinforced.lengths(reading, (prompt,), ("max_completion_length",))
    held = reading.text("beta")
    reading.put("workload.reference", "initial" if held not in (None, "0", "0.0") else "none", "beta")
    for idle in ("workload.sequence_length", "workload.packing", "workload.optimizer", "workload.precision",
                 "workload.loss", "workload.lora_targets"):
        reading.values.pop(idle, None)
    _held(reading)
    reading.defaults = [said for said in reading.defaults if not said.startswith(("max_length", "max_seq_length"))]
    reading.steps, steps = None, reading.steps
    reading.accumulation = None
    reading.put("workload.steps", steps, "max_steps")
    reading.put("workload.stack", "trl", "the kind of file")
    reading.gpus = gpus


def _held(reading: Reading) -> None:
    """Leave the axes of trainer and rollouts: copies that split no matrix, and engines on the same GPUs."""
    recompute, origin = reading.layout.get("recompute"), reading.origin.get("recompute", "gradient_checkpointing")
    trainer.sharding(reading, "trl")
    away = reading.layout.get("offload_optimizer", "0")
    reading.layout.clear()
    for axis in ("tp", "pp", "cp", "ep"):
        reading.axis(axis, 1, "the kind of file")
    reading.axis("recompute", recompute, origin)
    reading.axis("offload_optimizer", away, "deepspeed")
    if reading.on("use_vllm") and reading.word("vllm_mode") != "server":
        reading.put("workload.placement", "colocated", "vllm_mode")
        reading.axis("rollout_tp", reading.number("vllm_tensor_parallel_size") or 1, "vllm_tensor_parallel_size")


READER = Reader("a TRL config", tells, read)

"""TRL's YAML, or line, of its scripts: their Config and ModelConfig beside the Trainer's arguments."""

from __future__ import annotations

from planner.scenario.configs import trainer
from planner.scenario.configs.reading import Reader, Reading
from planner.scenario.configs.source import Source

SCRIPTS = {"sft": None, "dpo": "dpo", "kto": "kto", "reward": "reward-model", "orpo": "orpo", "cpo": "simpo"}
"""Of TRL -> the method; CPOTrainer with loss_type simpo."""
OWN = {"desirable_weight": "kto", "undesirable_weight": "kto", "cpo_alpha": "simpo", "simpo_gamma": "simpo",
       "center_rewards_coefficient": "reward-model", "precompute_ref_log_probs": "dpo", "ref_model_init_kwargs": "dpo",
       "max_prompt_length": "dpo", "rpo_alpha": "dpo"}
"""Keys that only one of their configs has, or that two have and mostly dpo states."""


def _script(source: Source) -> str | None:
    """Return the script of TRL that a line starts: trl dpo, -m trl.scripts.dpo, examples/scripts/dpo.py."""
    # a script may stand behind the value of a launcher's flag
    held = (value if isinstance(value, list) else [value] for value in source.keys.values())
    words = [*source.words, *(str(word) for values in held for word in values)]
    if source.words[:1] == ("trl",):
        return next((word for word in words[1:] if word in SCRIPTS), None)
    paths = [word.removesuffix(".py").replace(".", "/").split("/") for word in words]
    return next((path[-1] for path in paths if path[-1] in SCRIPTS and "scripts" in path), None)


def tells(source: Source) -> bool:
    """Say whether it is one: a model under the Trainer's name, without LLaMA-Factory's stage and tuning."""
    if source.form == "command":
        return source.has("model_name_or_path") and _script(source) is not None
    return source.form in ("yaml", "json") and source.has("model_name_or_path") and not (
        source.has("finetuning_type") or source.has("stage") or source.has("infer_backend"))


def read(reading: Reading) -> None:
    """Read model, method, batch, lengths, sharding, precision and recompute."""
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
    if method is None and script is None and reading.source.has("beta") and not reading.source.has("num_generations"):
        method = "dpo"
    if method is not None:
        trainer.preferences(reading, method, "the script" if script else "its keys",
                            precomputed="precompute_ref_log_probs")
    trainer.sharding(reading, "trl")


READER = Reader("a TRL config", tells, read)

"""What each target is told of a job on preferences, and what it refuses by its name."""

from __future__ import annotations

from typing import Any

import pytest

from planner.launch.axes import CannotExpress
from planner.launch.emitter import Emitter
from tests.launch.emitters import emitters_of
from tests.launch.test_axes import base_of
from tests.launch.works import changed

EMITTERS = emitters_of(Emitter)


def files(target: str, method: str, tuning: str, reference: str | None) -> str:
    """Return all files of a job, one after the other."""
    said: dict[str, Any] = {"method": method, "tuning": tuning, "reference": reference}
    work = changed(base_of(target, ""), placed_as=said)
    return "\n".join(EMITTERS[target].emit(work).files.values())


@pytest.mark.parametrize(("target", "method", "tuning", "reference", "told"), [
    ("llama-factory", "dpo", "lora", "adapters-off", ["stage: dpo", "pref_loss: sigmoid", "dpo_en_demo"]),
    ("llama-factory", "dpo", "lora", "copy", ["stage: dpo", "ref_model: "]),
    ("llama-factory", "simpo", "full", None, ["stage: dpo", "pref_loss: simpo"]),
    ("llama-factory", "reward-model", "full", None, ["stage: rm"]),
    ("ms-swift", "kto", "full", "copy", ["rlhf_type: kto", 'swift rlhf "$config"']),
    ("ms-swift", "reward-model", "qlora", None, ["rlhf_type: rm", "quant_bits: 4"]),
    ("axolotl", "orpo", "lora", None, ["rl: orpo"]),
    ("axolotl", "dpo", "full", "precomputed", ["rl: dpo", "precompute_ref_log_probs: true"]),
    ("axolotl", "reward-model", "full", None, ["reward_model: true"]),
    ("deepspeed", "dpo", "full", "copy", ["-m trl.scripts.dpo"]),
    ("deepspeed", "kto", "qlora", "adapters-off", ["-m trl.scripts.kto", "load_in_4bit: true"]),
    ("accelerate", "dpo", "lora", "adapters-off", ["-m trl.scripts.dpo", "use_peft: true"]),
    ("accelerate", "reward-model", "lora", None, ["-m trl.scripts.reward", "lora_task_type: SEQ_CLS"]),
])
def test_a_target_is_told_the_method_in_its_own_keys(target: str, method: str, tuning: str, reference: str | None,
                                                     told: list[str]) -> None:
    text = files(target, method, tuning, reference)
    assert [each for each in told if each not in text] == []
    assert "packing: true" not in text


@pytest.mark.parametrize(("target", "method", "tuning", "reference", "why"), [
    ("deepspeed", "orpo", "full", None, r"orpo \(it has dpo, kto, reward-model\)"),
    ("accelerate", "dpo", "full", "copy", "a 16-bit copy beside 32-bit weights"),
    ("deepspeed", "dpo", "lora", "copy", "a frozen copy beside adapters"),
    ("ms-swift", "dpo", "lora", "copy", "a frozen copy beside adapters"),
    ("llama-factory", "dpo", "full", "precomputed", "a precomputed reference"),
    ("litgpt", "dpo", "full", "copy", "it trains on texts, not on preferences"),
    ("megatron-lm", "dpo", "full", "copy", "it trains on texts, not on preferences"),
])
def test_what_a_target_cannot_be_told_is_refused_by_name(target: str, method: str, tuning: str, reference: str | None,
                                                         why: str) -> None:
    with pytest.raises(CannotExpress, match=why):
        files(target, method, tuning, reference)


def test_supervised_files_say_nothing_of_preferences() -> None:
    for target in ("llama-factory", "ms-swift", "axolotl", "deepspeed", "accelerate"):
        text = "\n".join(EMITTERS[target].emit(base_of(target, "")).files.values())
        assert not [word for word in ("pref_loss", "rlhf", "rl: ", "scripts.dpo", "precompute_ref") if word in text]

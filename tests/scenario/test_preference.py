"""What is asked of preference tuning: words, keys that contradict, pairs in tokens, and configs of other tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner import estimate
from planner.catalog.load import Catalog
from planner.errors import InputError, Unsupported
from planner.scenario.configs.read import read_config
from planner.scenario.load import load_any
from planner.scenario.scenario import Scenario
from planner.scenario.workload import Training
from planner.scenario.writing import to_yaml
from planner.yaml_io import parse

CATALOG = Catalog()
JOB = {"workload.model": "llama-3.1-8b", "workload.samples": "60k", "workload.mean_length": "800"}


def asked(**said: Any) -> Training:
    values = {f"workload.{key}": value for key, value in said.items()}
    found, _ = load_any(None, {key: value for key, value in (JOB | values).items() if value is not None}, CATALOG)
    assert isinstance(found, Scenario)
    return found.workload


@pytest.mark.parametrize(("said", "method", "trains", "reference"), [
    ({"method": "dpo"}, "dpo", "full", "copy"), ({"method": "DPO", "lora_rank": 16}, "dpo", "lora", "adapters-off"),
    ({"method": "lora-dpo"}, "dpo", "lora", "adapters-off"), ({"method": "qlora dpo"}, "dpo", "qlora", "adapters-off"),
    ({"method": "DPO QLoRA"}, "dpo", "qlora", "adapters-off"), ({"method": "kto-full"}, "kto", "full", "copy"),
    ({"method": "reward modeling"}, "reward-model", "full", None), ({"method": "rm"}, "reward-model", "full", None),
    ({"method": "lora rm"}, "reward-model", "lora", None), ({"method": "SimPO"}, "simpo", "full", None),
    ({"method": "dpo", "reference": "precompute"}, "dpo", "full", "precomputed"),
    ({"method": "dpo", "tuning": "lora", "reference": "copy"}, "dpo", "lora", "copy"),
])
def test_what_is_asked_by_what_people_write(said: dict[str, str], method: str, trains: str,
                                            reference: str | None) -> None:
    work = asked(**said)
    assert (work.method, work.trains, work.held_reference) == (method, trains, reference)


@pytest.mark.parametrize(("said", "why"), [
    ({"method": "full", "reference": "copy"}, "reference applies to methods dpo and kto, but method full has none"),
    ({"method": "orpo", "reference": "copy"}, "reference applies to methods dpo and kto, but method orpo has none"),
    ({"method": "dpo", "reference": "adapters-off"}, "adapters-off needs adapters, and tuning full trains none"),
    ({"method": "dpo", "packing": True}, "packing applies to supervised tuning: method dpo pads"),
    ({"method": "dpo", "lora_rank": 16, "tuning": "full"}, "lora_rank applies to adapters, and tuning full trains"),
    ({"method": "lora dpo", "tuning": "qlora"}, "method 'lora dpo' says lora, and tuning says 'qlora'"),
    ({"method": "online-dpo"}, "answers drawn while it trains are not modeled"),
    ({"method": "dpo", "tuning": "lora", "trained_layers": 2}, "lora freezes every layer"),
    ({"method": "dpo", "mean_length": 3000}, "more than the 2,048 tokens that the longest answer usually has"),
])
def test_what_contradicts_is_refused(said: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        asked(**said)


@pytest.mark.parametrize(("said", "why"), [
    ({"stack": "litgpt"}, "method dpo on stack litgpt: it is not known to train on preferences"),
    ({"stack": "megatron-swift", "method": "orpo"}, "it trains by dpo, kto, reward-model"),
    ({"stack": "megatron-swift", "tuning": "qlora"}, "with tuning qlora on stack megatron-swift: it has full, lora"),
    ({"stack": "llama-factory", "reference": "precomputed"}, "the reference runs in each step"),
])
def test_what_a_stack_lacks_is_refused_by_name(said: dict[str, str], why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        asked(**({"method": "dpo"} | said))


@pytest.mark.parametrize(("method", "sequences", "mean"), [("dpo", 2, 920), ("reward-model", 2, 920), ("kto", 1, 800)])
def test_samples_are_pairs_of_answers_padded_to_the_longer(method: str, sequences: int, mean: int) -> None:
    """60,000 pairs, twice 800 tokens, of which the longer has 1.15 times as many; KTO's are single."""
    work = asked(method=method)
    assert (work.tokens, work.mean_length) == (60_000 * sequences * mean, mean)
    assert (work.sequence_length, str(work.global_batch)) == (2048, "128 sequences")
    assert asked(method=method, sequence_length=512).mean_length == 512
    cut = asked(method=method, mean_length=2000)
    assert (cut.mean_length, cut.tokens) == (min(2048, mean * 5 // 2), 60_000 * sequences * min(2048, mean * 5 // 2))


def test_a_dataset_says_the_padding_of_its_pairs(tmp_path: Path) -> None:
    rows = [{"prompt": "p " * 9, "chosen": "c " * 40, "rejected": "r " * 10},
            {"prompt": "left out", "chosen": [{"content": "x " * 9}, {"content": "y " * 9}],
             "rejected": [{"content": "x " * 9}, {"content": "z " * 90}]},
            {"chosen_input_ids": [1] * 30, "rejected_input_ids": [2] * 50}]
    file = tmp_path / "pairs.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)))
    lengths = [round(99 / 3.94), round(199 / 3.94), 50]
    work = asked(method="dpo", dataset=str(file), samples=None, mean_length=None)
    assert work.mean_length == round(sum(lengths) / 3)
    assert work.tokens == 3 * 2 * work.mean_length
    file.write_text('{"text": "no pair"}')
    with pytest.raises(InputError, match="sample 1 is no pair: expected text in chosen and rejected"):
        asked(method="dpo", dataset=str(file), samples=None, mean_length=None)


@pytest.mark.parametrize("said", [{}, {"lora_rank": 8}, {"reference": "precomputed", "epochs": 3},
                                  {"method": "kto", "tuning": "qlora"}])
def test_a_question_reads_back_from_its_file(said: dict[str, Any]) -> None:
    values = {f"workload.{key}": value for key, value in ({"method": "dpo"} | said).items()}
    once, _ = load_any(None, JOB | values, CATALOG)
    again, _ = load_any(parse(to_yaml(once), "x.yaml"), {}, CATALOG)
    assert again == once


LLAMA_FACTORY = {"model_name_or_path": "meta-llama/Meta-Llama-3-8B-Instruct", "finetuning_type": "lora",
                 "lora_rank": 8, "cutoff_len": 2048, "per_device_train_batch_size": 1,
                 "gradient_accumulation_steps": 8}
AXOLOTL = {"base_model": "meta-llama/Meta-Llama-3-8B-Instruct", "adapter": "qlora", "load_in_4bit": True, "lora_r": 32,
           "sequence_len": 2048, "micro_batch_size": 1, "gradient_accumulation_steps": 4}
TRL = {"model_name_or_path": "mistralai/Mistral-7B-v0.1", "max_length": 1024, "per_device_train_batch_size": 8}
SWIFT = "swift rlhf --model Qwen/Qwen2.5-7B-Instruct --max_length 2048 --deepspeed zero3"
MEGATRON = "megatron rlhf --model Qwen/Qwen2.5-7B-Instruct --max_length 8192 --tensor_model_parallel_size 4"


@pytest.mark.parametrize(("config", "expected"), [
    (LLAMA_FACTORY | {"stage": "dpo", "pref_loss": "sigmoid"}, ("dpo", "lora", None, "llama-factory")),
    (LLAMA_FACTORY | {"stage": "dpo", "pref_loss": "simpo"}, ("simpo", "lora", None, "llama-factory")),
    (LLAMA_FACTORY | {"stage": "kto", "quantization_bit": 4}, ("kto", "qlora", None, "llama-factory")),
    (LLAMA_FACTORY | {"stage": "rm", "finetuning_type": "full"}, ("reward-model", "full", None, "llama-factory")),
    (LLAMA_FACTORY | {"stage": "dpo", "ref_model": "x"}, ("dpo", "lora", "copy", "llama-factory")),
    (AXOLOTL | {"rl": "dpo", "precompute_ref_log_probs": True}, ("dpo", "qlora", "precomputed", "axolotl")),
    (AXOLOTL | {"rl": "orpo"}, ("orpo", "qlora", None, "axolotl")),
    (AXOLOTL | {"reward_model": True}, ("reward-model", "qlora", None, "axolotl")),
    (TRL | {"beta": 0.01}, ("dpo", "full", None, "trl")),
    (TRL | {"desirable_weight": 1.0}, ("kto", "full", None, "trl")),
    ("trl dpo --model_name_or_path mistralai/Mistral-7B-v0.1 --max_length 1024 --use_peft true",
     ("dpo", "lora", None, "trl")),
    ("accelerate launch --config_file z3.yaml examples/scripts/kto.py --model_name_or_path mistralai/Mistral-7B-v0.1",
     ("kto", "full", None, "trl")),
    (f"{SWIFT} --rlhf_type dpo --train_type full", ("dpo", "full", None, "deepspeed")),
    (f"{SWIFT} --rlhf_type rm", ("reward-model", "lora", None, "deepspeed")),
    (f"{MEGATRON} --rlhf_type kto", ("kto", "full", None, "megatron-swift")),
])
def test_a_config_of_another_tool_answers(config: Any, expected: tuple[str, str, str | None, str],
                                          tmp_path: Path) -> None:
    said = config
    if isinstance(config, dict):
        said = str(tmp_path / "config.yaml")
        Path(said).write_text("\n".join(f"{key}: {json.dumps(value)}" for key, value in config.items()))
    values = read_config(said).reading.values
    assert tuple(values.get(f"workload.{key}") for key in ("method", "tuning", "reference", "stack")) == expected


@pytest.mark.parametrize(("config", "why"), [
    (LLAMA_FACTORY | {"stage": "ppo"}, "stage: expected a stage that is estimated"),
    (LLAMA_FACTORY | {"stage": "dpo", "pref_loss": "new"}, "pref_loss: expected orpo, simpo"),
    (AXOLOTL | {"rl": "grpo"}, "rl: expected dpo, ipo, kto, orpo, simpo"),
    (f"{SWIFT} --rlhf_type ppo", "rlhf-type: expected dpo, kto"),
])
def test_a_config_of_what_is_not_estimated_is_refused(config: Any, why: str, tmp_path: Path) -> None:
    said = config
    if isinstance(config, dict):
        said = str(tmp_path / "config.yaml")
        Path(said).write_text("\n".join(f"{key}: {json.dumps(value)}" for key, value in config.items()))
    with pytest.raises(InputError, match=why):
        read_config(said)


def test_an_estimate_counts_steps_in_pairs() -> None:
    placed = estimate("qwen2.5-0.5b", "h100-sxm-1x", "dp=1,mbs=2", method="dpo", samples="6400", mean_length=500,
                      global_batch=64, lora_rank=8)
    assert placed.time.steps == 100
    assert (placed.sequences_per_sample, placed.tuning, placed.reference) == (2, "lora", "adapters-off")

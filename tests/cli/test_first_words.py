"""Rules of what people type first, each with sentences that it reads and one that it leaves alone."""

from __future__ import annotations

from datetime import datetime

import pytest

from planner.catalog.load import Catalog
from planner.cli.completed import shown
from planner.cli.read_sizes import of_host
from planner.cli.rephrased import rephrased
from planner.cli.sentence import spoken
from planner.cli.told import Told
from planner.errors import InputError
from planner.scenario.moment import after
from planner.scenario.said import own_name
from planner.scenario.words import says_no_more

CATALOG = Catalog()


def read(line: str) -> tuple[str, Told]:
    """Return the command that a sentence is, and what is told beside it."""
    told = Told(left_out=[])
    return shown(spoken([line], CATALOG, told=told) or []), told


@pytest.mark.parametrize(("line", "flags"), [
    # what a second has: tokens of an answer, or transactions of a model that writes none
    ("llama 70b at 25 tps per user for 10 users", "--tpot '25 tokens/s'"),
    ("qwen3-8b on l4, 15 t/s", "--tpot '15 tokens/s'"),
    ("bge-reranker-v2-m3 on t4, TPS is around 37.5", "--rate '37.5 requests/s'"),
    ("bge-reranker-v2-m3 on t4, 23 documents per query, 2 tps", "--rate '46 requests/s'"),
    ("2x3090 70b q4 tok/s?", "--users 1"),
    ("how fast is prefill of 100k tokens on llama 3.1 8b with an h100", "--input 100k"),
    # money of an hour that has no sign
    ("h100 at 1.99/hr for lora on llama 70b with 200m tokens", "--price 1.99"),
    # what is full
    ("llama 8b full on 8 h100 with 50M tokens", "--method full"),
    ("full parameter training of llama 8b on 8 h100 with 50M tokens", "--method full-parameter"),
    # how often hardware is used
    ("rent or buy 8 H100 if I train 2 days a week for 3 years", "--utilization 28.57%"),
    ("buy or rent 4 h100 every week 20 hours", "--utilization 11.9%"),
    # bytes that are text, RAM, or the memory of what is named
    ("continue pretraining llama 3 8b on 20GB of text on 4 h100", "--tokens 5.08b"),
    ("deepseek-r1 on 8 * 4090,256G memory", "--on '8 x 4090'"),
    ("glm-4-9b lora on 4 gpus (3090, each with 24gb gpu memory)", "--on '4 gpus 3090'"),
    ("olmo-2-7b on 96 NVIDIA DGX-A100 (8X40G)", "--on '96 dgx-a100'"),
    # slips in names, families, what is like another
    ("quen 2.5 72b awq on 2 4090s", "--model qwen-2.5-72b-awq"),
    ("wan lora on a 4090 with 10 clips", "--model wan2.2-"),
    ("5 req/s of llava-style qwen2.5-vl-7b with one 1080p image each", "--model qwen2.5-vl-7b"),
    # how much is not said, how many pieces are not, where the most is asked
    ("llama 405b pretrain cost", "--tokens chinchilla"),
    ("how long to finetune llama 8b on 8xh100", "--tokens 100M"),
    ("wan2.1 5 second 720p clip on a 5090, how many minutes", "--samples 1"),
    ("what is the max context of llama 3.3 70b fp8 on one h200", "--max sequence"),
    ("support higher concurrency for qwen2-7b on 8 a800", "--objective users"),
    ("our own chatgpt for 40 people with gpt-oss-120b", "--model gpt-oss-120b"),
    ("hardware for DeepSeek-R1 671b production on h200", "--model deepseek-r1"),
    ("grpo of qwen2.5-7b, but I failed using 4 H20 (96GB)", "--on '4 h20 96gb'"),
    ("llama 3.1 8b at 20 rps if context goes from 4k to 32k", "--input 31789"),
    ("one GPU server with 8-GPU A800 (80G) to serve qwen2-7b", "--on 'server with 8 gpu a800 80g'"),
    ("ppo llama 3 8b on 16 a100 80gb, batch 512, 1k responses: sec per step", "--output 1k"),
    ("pre-train bert-large on 4 v100 for 100 epochs", "--tokens chinchilla"),
    ("qwen2.5-32b on A100 80GB * 2 for 10 users", "--on 'a100 80gb*2'"),
    ("qwen3-30b-a3b on A10*4 96GB VRAM", "--on 'a10*4'"),
    ("training time of olmo-2-1b on an 8xh100", "--tokens chinchilla"),
    ("how many h100's are needed to run grok?", "--model grok-1"),
    ("wan-2.1 lora on a 4080 with 16gb, others say 24gb vram needed", "--on 'a 4080'"),
    ("serve qwen3-8b on 8 x H20(96G)", "--on '8 x h20 96g'"),
    ("grpo of qwen2.5-7b on 8 H20 GPUs (96 GB each)", "--on '8 h20 gpus 96gb'"),
    ("mistral small 24b on a 7900 xtx or 3090 tok/s", "--on 3090"),
    ("tokens per joule llama 8b h100 vs l4", "--objective energy"),
    ("is spot worth it for a 3 day job on 8 h100", "compare --terms on-demand,spot"),
    ("ltx video 10s clip on 4090", "--samples 1"),
    ("lora of qwen2.5-14b with peft, 25k samples", "--method lora --"),
    ("fine-tune GPT-Neo-XT-Chat-Base-20B with 8 A100", "--model 20b"),
    ("a chat dataset of 1M samples to tune llama 2 13b", "--samples 1M"),
    ("is there any way to train wan2.1 with a 16gb card", "--on 'a 16gb")])
def test_a_rule_reads(line: str, flags: str) -> None:
    assert flags in read(line)[0]


@pytest.mark.parametrize(("line", "flags"), [
    ("cost of llama 3.3 70b on 4xH100 at full load", "--method full"),
    ("llama 3.3 70b for 5 people with a full context of 32k tokens", "--method full"),
    ("5 users an hour on llama 70b with h100", "--price"),
    ("train wan2.1 with a 16gb card", "--method inference"),
    ("one GPU server with 8-GPU A800 (80G) to serve qwen2-7b", "--gpus"),
    ("finetune llama 8b on 2x a6000 with 128gb of ram", "128gb"),
    ("llama 8b on nvidia a100 80gb or a 24gb 4090", "--price"),
    ("rerank 100 docs per query at 20 qps with bge-reranker-v2-m3 with a chunk size of 512", "--documents"),
    ("how long does one grpo step of qwen2.5 32b take on 32 H200s with 128 prompts", "--tokens")])
def test_a_rule_leaves_others_alone(line: str, flags: str) -> None:
    assert flags not in read(line)[0]


@pytest.mark.parametrize("line", ["llama-3.1-8b on h100 with 2.5", "finetune llama-3.1-8b with 2.5, 8 h100"])
def test_a_number_that_counts_nothing_is_named(line: str) -> None:
    """It ended as `tokens must be a whole number, got '2.5'`, which no question had."""
    with pytest.raises(InputError, match=r"not understood: '2\.5'"):
        read(line)


def test_models_with_strokes_are_several() -> None:
    command, told = read("how much to fine tune llama7/13/70b on a100 80gs")
    assert "llama-70b" in command
    assert [what for what, _ in told.first] == ["llama-7b", "llama-13b"]


def test_a_name_with_a_slip_is_asked_back_and_one_of_nobody_is_its_size() -> None:
    assert "--model chatglm1-6b" in read("lora on chatglm1-6b")[0]  # chatglm2-6b and chatglm3-6b are known
    assert "--model 6b" in read("lora on my 6b model, like chatglm1-6b")[0]
    assert "--model kimi-k3" in read("kimi-k3 on 16 h200")[0]  # no size, no guess


def test_several_models_are_answered_one_by_one() -> None:
    command, told = read("how many gpus to fine-tune llama2-13b and llama2-70b")
    assert command == "plan --model llama2-70b"
    assert [what for what, _ in told.first] == ["llama2-13b"]
    command, told = read("largest of llama 8b and llama 70b that fits on a 4090")
    assert "llama-8b,llama-70b" in command
    assert told.first == []


def test_a_format_carries_its_number() -> None:
    assert read("70b q4_k_m on 2x3090, 10 users")[1].left_out == []


def test_memory_of_a_host_is_named_as_such() -> None:
    assert of_host(["with", "64gb", "ram"], 2) == 1
    assert of_host(["64gb", "of", "system", "memory"], 1) == 3
    assert of_host(["64gb", "gpu", "memory"], 1) == 0


def test_a_kind_of_work_says_no_more_than_its_method() -> None:
    assert says_no_more("finetune", "lora")
    assert not says_no_more("pretrain", "lora")
    assert not says_no_more("finetune", "pretrain")
    line = ["--task", "finetune", "--method", "lora"]
    assert rephrased(line, {"--method": None, "--model": None}) == ["--method", "lora"]  # type: ignore[dict-item]


def test_a_flag_of_data_is_that_of_what_it_counts() -> None:
    assert own_name("dataset-tokens", {"tokens", "dataset"}) == "tokens"
    assert own_name("dataset-bananas", {"tokens", "dataset"}) is None


def test_a_day_of_the_week_is_a_date_of_a_portfolio() -> None:
    start = datetime(2026, 11, 28)  # a Saturday
    assert str(after(start, "friday")).startswith("2026-12-04")
    assert after(start, "bananas") == "bananas"

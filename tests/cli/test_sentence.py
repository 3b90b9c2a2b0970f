"""A question in a sentence is read as a command, or refused with the words that are not understood."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.catalog.load import Catalog
from planner.cli.main import main
from planner.cli.sentence import shown, spoken
from planner.cli.several import portfolio_of
from planner.errors import InputError

CATALOG = Catalog()
SAID = [
    ("how many H100s do I need to pretrain a 13B model on 1 trillion tokens in 30 days?",
     "plan --on h100s --method pretrain --model 13b --tokens 1T --deadline '30 days'"),
    ("does mixtral 8x7b fit on 2x a100 80gb", "plan --model mixtral-8x7b --on '2x a100 80gb'"),
    ("does llama 3.1 70b qlora fit on 2x 3090", "estimate --model llama-3.1-70b --method qlora --on '2x 3090'"),
    ("can I run qwen3 32b in int4 on a 5090",
     "estimate --model qwen3-32b --quantization int4 --on 'a 5090' --method inference"),
    ("serve llama-3.1-8b for 200 users under 2 seconds",
     "plan --model llama-3.1-8b --users 200 --e2e '2 seconds' --method inference"),
    ("largest model I can qlora on a single 4090", "plan --method qlora --on 'a single 4090'"),
    ("H100 vs H200 for serving llama 70b at 5 requests/s",
     "compare --on h100,h200 --model llama-70b --rate '5 requests/s' --method inference"),
    ("rent or buy 8 H100 for 18 months", "compare --on '8 h100' --years 1.47945"),
    ("embed 50 million documents of 512 tokens with bge-m3 in 24 hours",
     "plan --model bge-m3 --documents 50M --input 512 --deadline '24 hours' --output 0"),
    ("generate 1 million images with flux-dev in a week",
     "plan --model flux-dev --samples 1M --deadline '1 week' --method inference"),
    ("finetune qwen2.5-vl-7b on 100k images", "plan --model qwen2.5-vl-7b --samples 100k --images 1"),
    ("dpo llama-3.1-8b on 60k pairs on my 4x4090", "plan --method dpo --model llama-3.1-8b --own 4x4090 --samples 60k"),
    ("max context length of llama 3.1 8b on 24gb", "plan --model llama-3.1-8b --on 24gb --method inference"),
    ("cost per million tokens of llama-3.1-70b on h100", "plan --model llama-3.1-70b --on h100 --documents 1M"),
    ("why not a100 for llama-3.1-8b full on 100M tokens",
     "explain --model llama-3.1-8b --method full --tokens 100M --why-not gpu=a100"),
    ("lora llama-3.1-8b, rank 64, 3 epochs, 20k samples, context 2k, under $50, spot on aws",
     "plan --method lora --model llama-3.1-8b --lora-rank 64 --seq-len 2k --terms spot --provider aws --epochs 3 "
     "--samples 20k --budget '50 USD'"),
    ("train a lora for sdxl on 40 images with a 4080", "plan --method lora --model sdxl --on 'a 4080' --samples 40"),
    ("max batch size for llama 3.1 8b lora at 4096 on an a100 40gb",
     "estimate --max micro-batch --model llama-3.1-8b --method lora --seq-len 4096 --on 'an a100 40gb'"),
    ("pretrain 13B on 300B tokens with a budget of 200k dollars by 1 march 2098",
     "plan --method pretrain --model 13b --tokens 300B --budget '200k dollars' --deadline '1 march 2098'"),
    ("is an A10G enough for whisper large v3", "plan --on a10g --model whisper-large-v3"),
    ("how long does it take to finetune mistral 7b with qlora on 10k samples of 1000 tokens on a 3090",
     "plan --model mistral-7b --method qlora --on 'a 3090' --samples 10k --mean-length 1000"),
    ("what gpu do I need to run qwen3 32b at 30 tokens per second",
     "plan --model qwen3-32b --tpot '30 tokens/s' --method inference --users 1"),
    ("I have 64 a100 for two weeks, can I pretrain a 3b model on 200B tokens?",
     "plan --own '64 a100' --method pretrain --deadline '2 weeks' --model 3b --tokens 200B"),
    ("serve llama-3.1-8b to 200 concurrent requests, p99 under 4 seconds",
     "plan --model llama-3.1-8b --concurrency 200 --percentile p99 --e2e '4 seconds' --method inference"),
    ("is it cheaper to buy 8 H100 or rent them for 2 years at 60% utilization",
     "compare --on '8 h100' --years 2 --utilization 60%"),
    ("does qwen3 32b lora fit on a DGX", "estimate --model qwen3-32b --method lora --on 'a dgx'"),
    ("pretrain a 3b model compute-optimal on h100", "plan --method pretrain --model 3b --tokens chinchilla --on h100"),
    ("pretrain a 3b model on 100 tokens per parameter",
     "plan --method pretrain --model 3b --tokens '100 per parameter'"),
    ("how many concurrent users can a single 4090 serve with qwen3 8b at 20 tokens per second each",
     "plan --objective users --on 'a single 4090' --model qwen3-8b --tpot '20 tokens/s' --method inference"),
    ("ppo on llama 3.1 8b with a reward model on 8xa100",
     "plan --method ppo --model llama-3.1-8b --reward model --on 8xa100"),
    ("can two DGX Sparks run gpt-oss-120b in mxfp4",
     "plan --on 'two dgx spark' --model gpt-oss-120b --quantization mxfp4 --method inference"),
    ("qlora llama-3.1-8b on 24GB with 4k context, batch size 1",
     "plan --method qlora --model llama-3.1-8b --on 24gb --seq-len 4k --global-batch 1"),
    ("serve sdxl at 2 images per second under 6 seconds",
     "plan --model sdxl --rate '2 images/second' --e2e '6 seconds' --method inference"),
    ("cost per 1M tokens for deepseek-v3 on 8xH200", "plan --model deepseek-v3 --on 8xh200 --documents 1M"),
    ("lora wan-2.1-14b with 60 clips at 480p on an A100",
     "plan --method lora --model wan-2.1-14b --samples 60 --resolution 480p --on 'an a100'"),
    ("how fast does llama-3.1-8b run on a 4090",
     "plan --model llama-3.1-8b --on 'a 4090' --method inference --users 1"),
    ("tokens per second of llama-3.3-70b on 2 H100 for one user",
     "plan --model llama-3.3-70b --on '2 h100' --users 1 --method inference"),
    ("what's the max number of concurrent requests for llama-3.1-8b on an A10 with 8k context",
     "plan --objective users --model llama-3.1-8b --on 'an a10' --seq-len 8k --method inference"),
    ("longest context of qwen3 32b in int4 on a 4090", "estimate --model qwen3-32b --quantization int4 --on 'a 4090' "
     "--method inference --max sequence"),
    ("summarize 10000 documents with llama-3.1-8b in 2 minutes",
     "plan --model llama-3.1-8b --documents 10000 --deadline '2 minutes'"),
    ("serve deepseek r1 with sglang, 2k tokens in 300 out, 1M requests a day",
     "plan --model deepseek-r1 --engine sglang --input 2k --output 300 --rate '1M requests/day' --method inference"),
    ("grpo on qwen2.5-7b with 8xH100, 7.5k prompts, 8 generations each",
     "plan --method grpo --model qwen2.5-7b --on 8xh100 --samples 7.5k --samples-per-prompt 8"),
    ("grpo qwen2.5-7b with 1024 rollouts a step on h100",
     "plan --method grpo --model qwen2.5-7b --prompts 128 --on h100"),
    ("what batch size can I use for llama 3.1 8b lora on a 24gb card at 2048 tokens",
     "estimate --max micro-batch --model llama-3.1-8b --method lora --on 'a 24gb' --seq-len 2048"),
    ("buy 4 L40S for serving qwen3 14b to 100 users for 2 years",
     "plan --on '4 l40s' --model qwen3-14b --terms buy,on-demand --users 100 --years 2 --method inference"),
    ("serve flux schnell to 50 users, one image a minute each",
     "plan --model flux-schnell --rate '50 image/minute' --method inference"),
    ("pretrain a 30b moe with 3b active on 5T tokens with 512 h200",
     "plan --method pretrain --model qwen3-30b-a3b --on '512 h200' --tokens 5T"),
    ("train 70b on 5T tokens this year with 128 h100",
     "plan --model 70b --tokens 5T --deadline 'this year' --on '128 h100'"),
    ("speed of llama 3.3 70b q4 on 2x 3090 with llama.cpp",
     "plan --model llama-3.3-70b-q4 --on '2x 3090' --engine llama.cpp --method inference --users 1"),
    ("summarize 3 million articles of 2k tokens with qwen3 8b over the weekend",
     "plan --model qwen3-8b --documents 3M --input 2k --deadline 2d"),
    ("ZeRO-3 13b full finetune on 8 V100 32gb, does it fit",
     "estimate --layout zero=3 --method full-finetune --on '8 v100 32gb' --model 13b"),
    ("throughput of qwen2.5 72b awq on 4x A10G",
     "plan --model qwen2.5-72b-awq --on '4x a10g' --method inference --users 1"),
    ("grpo qwen2.5 14b on 2 nodes of h100, 1000 steps, 4k response",
     "plan --method grpo --model qwen2.5-14b --on '2 nodes of h100' --steps 1000 --output 4k"),
    ("my slurm cluster has 20 nodes with 4 a100 40gb, pretrain 7b on 140B tokens",
     "plan --own '20 nodes with 4 a100 40gb' --method pretrain --model 7b --tokens 140B"),
    ("is an h200 better than an h100 for llama 70b at 3 requests per second",
     "compare --on h200,h100 --model llama-70b --rate '3 requests/second' --method inference"),
    ("what can I serve for 2000 dollars a month with llama 3.3 70b",
     "plan --model llama-3.3-70b --budget '2000 USD/month' --method inference --objective users"),
    ("serve llama 3.1 8b to 20k daily users, 12 requests each, first token under 1 s",
     "plan --model llama-3.1-8b --daily-users 20k --requests-per-user 12 --ttft '1 s' --method inference"),
    ("compare h100 vs b200 for llama 70b training",
     "compare --on h100,b200 --model llama-70b --tokens chinchilla"),
    ("our own 4x L40S or pay for H100s for llama 3.3 70b, 20k requests a day, 1.5k in 300 out",
     "compare --model llama-3.3-70b --own '4x l40s' --on h100s --rate '20k requests/day' --input 1.5k --output 300 "
     "--method inference"),
    ("GRPO Qwen3-14B with 32 H100, 16 generations per prompt, 8k response length, 500 steps: time and cost",
     "plan --method grpo --model qwen3-14b --on '32 h100' --samples-per-prompt 16 --output 8k --steps 500"),
    ("max batch size for lora on mistral 7b with seq 4096 on a single A6000",
     "estimate --max micro-batch --method lora --model mistral-7b --seq-len 4096 --on 'a single a6000'"),
    ("H100 PCIe or SXM for inference of Qwen 32B?",
     "compare --on 'h100 pcie,h100 sxm' --model qwen-32b --documents 1M"),
    ("cost of a 24/7 endpoint for mistral small with 99.9% uptime, 2 rps",
     "plan --model mistral-small-3.1-24b --spare-replicas 1 --rate '2 rps' --method inference"),
    ("energy use and power draw of training llama 3.1 8b on 1T tokens on 128 H100s",
     "plan --model llama-3.1-8b --on '128 h100s' --tokens 1T"),
    ("embed 50M docs of 400 tokens with qwen2.5 0.5b",
     "plan --model qwen2.5-0.5b --documents 50M --input 400 --output 0"),
    ("our team trains a 13B on 200B tokens with 8 DGX H100", "plan --model 13b --tokens 200B --own '8 dgx h100'"),
]


@pytest.mark.parametrize(("line", "meant"), SAID)
def test_a_sentence_is_a_command(line: str, meant: str) -> None:
    read = spoken(line.split(), CATALOG)
    assert read is not None
    assert sorted(shown(read).split(" --")) == sorted(meant.split(" --"))


@pytest.mark.parametrize(("line", "whole", "jobs"), [
    ("pretrain a 3B on 300B tokens and then serve it to 200 users on our 4 DGX H100", {"own": "4 dgx h100"}, [
        {"name": "pretrain 3b", "model": "3b", "method": "pretrain", "tokens": "300B"},
        {"name": "serve 3b", "model": "3b", "users": "200"}]),
    ("with h100s: finetune llama-3.1-8b on 50k samples of 800 tokens; serve llama-3.1-8b at 3 rps, in two weeks",
     {"on": "h100s"}, [
         {"name": "finetune llama-3.1-8b", "model": "llama-3.1-8b", "samples": "50k", "mean_length": "800"},
         {"name": "serve llama-3.1-8b", "model": "llama-3.1-8b", "rate": "3 rps", "deadline": "2 weeks"}]),
    ("finetune 70b lora on 50M tokens", None, []), ("is it better to serve 8b at 5 rps or 70b at 2 rps", None, []),
    ("pretrain 7b on 1T tokens and finetune it", None, [])])
def test_several_jobs_are_a_portfolio(line: str, whole: dict[str, str] | None, jobs: list[dict[str, str]]) -> None:
    told = portfolio_of([line], CATALOG)
    assert (None if told is None else json.loads(told)) == (None if whole is None else {**whole, "jobs": jobs})


def test_jobs_in_words_are_planned_on_one_fleet(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["plan", "--own", "2xdgx-h100", "-q"]
    assert main([*asked, "--jobs", "finetune llama-3.1-8b on 200M tokens; lora llama-3.1-8b on 100M tokens",
                 "--horizon", "4 weeks"]) == 0
    assert "2 jobs on 1 pool" in capsys.readouterr().out


def test_what_training_costs_is_asked_of_an_amount() -> None:
    """It was read as what a million documents cost to answer."""
    with pytest.raises(InputError, match="depends on how much"):
        spoken(["how", "much", "does", "it", "cost", "to", "train", "llama-3.1-8b"], CATALOG)
    assert spoken(["cheapest", "gpu", "to", "fine-tune", "qwen2.5-7b"], CATALOG) == ["plan", "--model", "qwen2.5-7b"]


def test_a_run_and_a_service_are_two_questions() -> None:
    """The tokens were read as those of a prompt."""
    line = "train a 13B on 200B tokens and serve it to 400 users on 8 DGX H100"
    with pytest.raises(InputError) as told:
        spoken(line.split(), CATALOG)
    assert "{name: run, model: 13b, tokens: 200B}, {name: service, model: 13b, users: 400}" in str(told.value)


@pytest.mark.parametrize(("line", "unread"), [
    ("train llama-3.1-8b on 3 bananas", "'bananas'"), ("serve frobnitz-7b on h100", "'frobnitz-7b'"),
    ("qlora llama-3.1-8b with 17", "'17'"),
    ("serve llama-3.1-8b with 8 bananas each", "'8 bananas'"),
    ("qlora llama-3.1-8b on 2M tokens a week", "'2m tokens a week'")])
def test_a_word_that_is_not_understood_is_named(line: str, unread: str) -> None:
    with pytest.raises(InputError, match=f"not understood: .*{unread}"):
        spoken(line.split(), CATALOG)


@pytest.mark.parametrize(("line", "left"), [
    ("RAG app with qwen3 14b at 20 requests per second", ["rag", "app"]), ("serve llama-3.1-8b for 200 users", [])])
def test_words_that_count_nothing_are_left_out_and_said(line: str, left: list[str]) -> None:
    found: list[str] = []
    assert spoken(line.split(), CATALOG, left_out=found) is not None
    assert found == left


@pytest.mark.parametrize("line", [
    "serve frobnitz-7b on h100", "train llama-3.1-8b on 3 bananas", "train zebra on h100 for 1T tokens",
    "serve llama-3.1-8b on h100 but not nebius", "serve llama-3.1-8b on an a10 with more requests"])
def test_words_that_decide_are_never_left_out(line: str) -> None:
    with pytest.raises(InputError, match="not understood"):
        spoken(line.split(), CATALOG, left_out=[])


def test_flags_behind_a_sentence_are_kept(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["finetune", "llama-3.1-8b", "on", "100M", "tokens", "--gpu", "8xh100", "--show-scenario"]
    assert main(asked) == 0
    out, err = capsys.readouterr()
    assert "read as planner plan --model llama-3.1-8b --tokens 100M --method full" in err
    assert "method: full" in out
    assert main(["finetune", "--model", "llama-3.1-8b", "--tokens", "100M", "--on", "8xh100", "--show-scenario"]) == 0
    assert "method: full" in capsys.readouterr().out


@pytest.mark.parametrize(("args", "read"), [
    (["vllm", "serve", "Qwen/Qwen3-8B", "--max-model-len", "8192"], "read from a vLLM command"),
    (["vllm serve Qwen/Qwen3-8B --max-model-len 8192"], "read from a vLLM command"),
    (["estimate", "lora.yml", "--gpu", "4090"], "read from an axolotl config"),
    (["plan", "jobs.log", "--on", "8xh100", "--wait", "4 h"], "Fewest: 1 node of dgx-h100")])
def test_a_config_or_a_log_stands_for_itself(args: list[str], read: str, tmp_path: Path,
                                             monkeypatch: pytest.MonkeyPatch,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lora.yml").write_text("base_model: Qwen/Qwen3-8B\nadapter: lora\nsequence_len: 2048\n"
                                       "micro_batch_size: 1\ndatasets: []\n")
    (tmp_path / "jobs.log").write_text("submit,start,end,gpus\n2026-10-01T08:00,2026-10-01T09:00,2026-10-01T11:00,8\n")
    assert main(args) == 0
    assert read in " ".join(capsys.readouterr().out.split())


def test_a_file_that_stands_for_itself_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.scenario.configs import read
    from planner.simulate import joblog

    config, log = tmp_path / "lora.yml", tmp_path / "jobs.log"
    config.write_text("base_model: Qwen/Qwen3-8B\nadapter: lora\nsequence_len: 2048\ndatasets: []\n")
    log.write_text("submit,start,end,gpus\n" + "2026-10-01T08:00,2026-10-01T09:00,2026-10-01T11:00,8\n" * 3)
    seen: list[str] = []
    known, job = read.read_config, joblog._job
    monkeypatch.setattr(read, "read_config", lambda file: seen.append(file) or known(file))
    monkeypatch.setattr(joblog, "_job", lambda *row: seen.append("row") or job(*row))
    assert main(["estimate", str(config), "--gpu", "4090", "-q"]) == 0
    assert seen == [str(config)]
    assert main(["plan", str(log), "--on", "8xh100", "--wait", "4 h", "-q"]) == 0
    assert seen[1:] == [str(log), *["row"] * 3]


def test_a_catalog_is_listed_by_its_name_and_an_estimate_of_many_cards_is_a_plan(
        capsys: pytest.CaptureFixture[str]) -> None:
    for args in (["catalog", "gpus"], ["list", "gpus"], ["models"]):
        assert main(args) == 0
    assert "llama-3.1-70b" in capsys.readouterr().out
    assert main(["catalog", "h100"]) == 0
    assert capsys.readouterr().out.startswith("h100-sxm (gpus)")
    assert main(["catalog", "lsit"]) == 2
    assert "'list'" in capsys.readouterr().err
    assert main(["prices", "h100", "h200"]) == 0
    assert "hyperstack" in capsys.readouterr().out
    assert main(["estimate", "--model", "gemma-2-9b", "--gpu", "16GB", "--method", "qlora", "-q"]) == 0
    assert capsys.readouterr().out.startswith("Fewest GPUs that hold gemma-2-9b: QLoRA 1 x")


def test_help_and_version_are_words_too(capsys: pytest.CaptureFixture[str]) -> None:
    for args, said in ((["version"], "planner, version"), (["help"], "Commands:"), (["help", "plan"], "planner plan")):
        assert main(args) == 0
        assert said in capsys.readouterr().out

"""Values of several words without quotes mean what they mean with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.cli.asked import worded
from planner.cli.main import GlobalOptions, group, main
from planner.cli.spoken import hardware_known, joined

KNOWN = hardware_known(GlobalOptions())
SAID = [
    ("--on rtx 3090 --tokens 10 billion", {"on": "rtx 3090", "tokens": "10 billion"}),
    ("--model llama 3.1 8b --deadline 2 days", {"model": "llama 3.1 8b", "deadline": "2 days"}),
    ("--on h100 h200 --tokens 1T", {"on": "h100,h200", "tokens": "1T"}),
    ("--on h100, h200", {"on": "h100,h200"}),
    ("--on h100 or rtx 4090 and a100 80gb", {"on": "h100,rtx 4090,a100 80gb"}),
    ("--on=8 x h100", {"on": "8 x h100"}),
    ("--own 4 x 4090 and 2 h100", {"own": "4 x 4090,2 h100"}),
    ("--precision fp8 bf16", {"precision": "fp8,bf16"}),
    ("--tpot 25 tokens per second -q", {"tpot": "25 tokens per second"}),
    ("--on h100 llama-3.1-70b-pretrain", {"on": "h100", "scenario": "llama-3.1-70b-pretrain"}),
    ("--on h100 my-question.yaml --tokens 1T", {"on": "h100", "scenario": "my-question.yaml", "tokens": "1T"}),
    ("llama-3.1-70b-pretrain --tokens 1 T", {"scenario": "llama-3.1-70b-pretrain", "tokens": "1 T"}),
    ("--context 8k --gpu h100 --qps 20", {"seq_len": "8k", "on": "h100", "rate": "20"}),
    ("--nodes 4 --max-tokens 500 --sort gpus", {"max_nodes": "4", "output": "500", "objective": "gpus"}),
    ("--load-in-4bit --on h100", {"quantization": "nf4", "on": "h100"}),
    ("--model flux.1-dev --teacache --rate 1", {"step_cache": "teacache"}), ("--vae-tiling", {"layout": "vae=tiled"}),
    ("--cache-latents --gradient-checkpointing", {"latents": "cached", "layout": "recompute=full"}),
    ("--ulysses 2 --ring 2 --sequential-cpu-offload", {"layout": "ulysses=2,ring=2,offload=sequential"}),
    # flags of trainers, engines and load tests
    ("--bf16 True --use-liger-kernel true --packing false --samples 5", {
        "precision": "bf16", "loss": "fused", "packing": None, "samples": "5"}),
    ("--goodput ttft:500 tpot:40 --random-input-len 1024", {"ttft": "500 ms", "tpot": "40 ms", "input": "1024"}),
    ("--tp-size 4 --ep-size=8 --num-machines 2", {"layout": "tp=4,ep=8", "max_nodes": "2"}),
    ("--optim adamw_8bit --model-name-or-path m --sequence-parallel", {"optimizer": "adamw_8bit", "model": "m",
                                                                       "layout": "sp=1"}),
    ("--max-cost-per-hour 100 --rate 5", {"budget": "100 USD/hour", "rate": "5"}),
    ("--monthly-budget $2k --on l4", {"budget": "2k USD/month", "on": "l4"}),
    ("--tokens-per-param 20", {"tokens": "20 per parameter"}), ("--budget 5k --on h100", {"budget": "5k"}),
    ("--max-loras 8 --ttft-sla-ms 300 --rate 5", {"adapters": "8", "ttft": "300 ms", "rate": "5"}),
    ("--spot --on h100", {"terms": "spot", "on": "h100"}),
    ("--buy --on h100", {"terms": "buy,on-demand"}), ("--largest --on 8xh100", {"objective": "largest"}),
    ("--requests-per-day 50000 --on a10", {"rate": "50000/day", "on": "a10"}),
    ("--rpm=90 --on a10", {"rate": "90/min", "on": "a10"}),
    ("--tokens-per-month 3G --input 1500 --output 500", {"rate": "1500000/month", "input": "1500", "output": "500"}),
    ("--params 7B --tokens 1T", {"model": "7B", "tokens": "1T"}),
    ("--lora --on h100", {"method": "lora", "on": "h100"}), ("--int4", {"quantization": "int4"}),
    ("--max-days 14 --think-time 30s --slo-ttft 2s", {"deadline": "14 days", "think": "30s", "ttft": "2s"}),
    ("--hours 200 --mean-tokens 700 --ctx 8k", {"deadline": "200 hours", "mean_length": "700", "seq_len": "8k"}),
    ("--packing --samples 9k --time-limit 5", {"packing": True, "samples": "9k"}),
    ("--packing --on h100", {"packing": None, "on": "h100"}),
    ("--samples 41k --avg-tokens 900", {"samples": "41k", "mean_length": "900"}),
    ("--images 63 --repeats 8 --epochs 10", {"images": "63", "epochs": "80"}),
    ("--rate 5 --peak-factor 3", {"rate": "5", "headroom": "200%"}), ("--chinchilla", {"tokens": "chinchilla"}),
    ("--gpus a100,4090", {"gpus": "a100,4090"}), ("--lr 2e-5 --on h100 --seed 3", {"on": "h100"}),
    ("--ttft-ms 500 --p99-tpot-ms 40", {"ttft": "500 ms", "tpot": "40 ms at p99"}),
    ("--dau 50k --on l40s", {"rate": "500000/day"}), ("--mau 30k --requests-per-user 60", {"rate": "1800000/month"}),
    ("--micro-batch-size 2 --gradient-accumulation-steps 8", {"per_device_batch": "2", "grad_accum": "8"}),
    ("--micro-batch-size 2 --batch-size 64 --zero-stage 3", {"layout": "mbs=2,zero=3", "global_batch": "64"}),
    ("--tp 8 --rate 5", {"layout": "tp=8", "tpot": None, "rate": "5"}),
    ("--peak-rps 40 --avg-rps 12", {"rate": "12", "headroom": "233.333333%"}), ("--peak-rps 40", {"rate": "40"}),
    ("--users 9 --hours-per-day 2", {"day": ",".join("01"[hour in (8, 9)] for hour in range(24))}),
    ("--batch-job --documents 5k", {"documents": "5k"}), ("--max-price 20k", {"budget": "20k"}),
    # what no option is called is read as a phrase
    ("--method grpo --n 16 --train-batch-size 256", {"samples_per_prompt": "16", "global_batch": "256"}),
    ("--method on-policy-distillation --teacher qwen3-32b", {"reward_model": "qwen3-32b"}),
    ("--method grpo --async --rollout-engine sglang", {"policy_lag": "1", "engine": "sglang"}),
    ("--method grpo --lora", {"method": "grpo", "tuning": "lora"}), ("--adapter qlora", {"method": "qlora"}),
    ("--model sd1.5 --image-size 512", {"resolution": "512", "method": None}),
    ("--users 8 --min-tps 25", {"users": "8", "tpot": "25 tokens/s"}),
    ("--model llama-3.1-70b-q4_k_m --ctx 16k", {"method": "inference", "seq_len": "16k"}),
    ("--concurrent 200 --model llama-3.1-8b", {"concurrency": "200"}),
    ("--users 50 --speed 30 tok/s", {"users": "50", "tpot": "30 tokens/s"}),
    ("--model wan2.1-14b --videos 100 --on h100", {"samples": "100", "method": "inference", "on": "h100"}),
    ("--model llama-3.1-8b --max-context --on a100", {"method": "inference", "seq_len": None}),
    # what each phrase says decides how another is read
    ("--model llama-3.1-8b --developers 150 --tok/s 30", {"users": "150", "tpot": "30 tokens/s"}),
    ("--tok/s 30 --developers 150 --model llama-3.1-8b", {"users": "150", "tpot": "30 tokens/s"}),
    ("--mfu 0.4 --gpus 128", {"gpus": "128"}), ("--amortize 3y --res 720p", {"years": "3y", "resolution": "720p"}),
    ("-m llama-3.1-8b -g 4090 --lora", {"model": "llama-3.1-8b", "on": "4090", "method": "lora"}),
    ("--users 5 --doc-tokens 3k --summary-tokens 200", {"input": "3k", "output": "200"}),
    ("--checkpoint-every 1h --spot --latency-percentile p99", {"terms": "spot", "percentile": "p99"}),
    ("--accelerator rtx-4090 --num-accelerators 8", {"on": "rtx-4090", "gpus": "8"}),
    ("--users 25 --think-time 20", {"think": "20 s"}),
    ("--fp16 --tokens 30B", {"precision": "fp16", "quantization": ""}),
    ("--fp8 --rate 5", {"quantization": "fp8"}), ("--generate-images 10k --bs 4", {"samples": "10k"}),
    ("--own-vs-rent --on h100", {"terms": "buy,on-demand"}),
    # what is left open
    ("--users max --gpus auto --on h100", {"users": None, "gpus": None, "objective": "users"}),
    ("--model biggest --budget 50k", {"model": None, "objective": "largest"}),
]
WORDED = worded(GlobalOptions(quiet=True), "plan")


@pytest.mark.parametrize(("line", "meant"), SAID)
def test_words_belong_to_the_option_before_them(line: str, meant: dict[str, Any]) -> None:
    command = group.get_command(None, "plan")  # type: ignore[arg-type] - it asks nothing of the context
    assert command is not None
    found = command.make_context("plan", joined(line.split(), command, KNOWN, WORDED), resilient_parsing=True).params
    got = {name: ",".join(value) if isinstance(value, tuple) else value for name, value in found.items()}
    assert {name: got[name] for name in meant} == meant


@pytest.mark.parametrize(("asked", "told"), [
    (["--method", "dora"], "'lora' is the nearest"), (["--method", "RLHF"], "grpo, ppo, rloo or reinforce"),
    (["--deadline", "overnight"], "such as '12 h'"), (["--on", "h100", "foo"], "did you mean h100?"),
    (["--zero", "many"], "zero=many: expected 0, 1, 2 or 3"),
    (["--objective", "largest"], "by hardware and method alone"),
    (["--bananas", "3"], "No such option"), (["--hours-per-day", "8"], "No such option"),
    (["--grad-accum", "4"], "--gpus 8 or --on 8xh100"),
    (["--grad-accum", "many", "--gpus", "8"], "--grad-accum"),
    (["--terms", "lease"], "'capacity-block' or 'buy', got 'lease'"),
    (["--per-device-batch", "2", "--batch-size", "64"], "leave one"),
    (["llama-3.1-8b"], "is a model, and --model is given too")])
def test_what_cannot_be_meant_says_what_to_write(asked: list[str], told: str,
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *asked, "--model", "llama-3.1-8b", "--tokens", "1G"]) == 2
    assert told in capsys.readouterr().err


def test_what_one_command_has_moves_a_question_to_it(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["plan", "--model", "llama-3.1-8b", "--gpu", "1xa100-80gb", "-q"]
    assert main([*asked, "--method", "lora", "--longest-context"]) == 0
    assert capsys.readouterr().out.startswith("Largest sequence that fits: ")
    assert main([*asked, "--max-model-len", "auto"]) == 0
    cache = capsys.readouterr().out
    assert cache.startswith("Largest sequence that fits: ")
    assert "more than the cache" in cache


def test_keys_with_values_are_flags(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "model=llama-3.1-8b", "tokens=1T", "gpu=h100", "--show-scenario", "-q"]) == 0
    assert "tokens: 1 T" in capsys.readouterr().out


def test_a_file_is_told_by_what_is_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (log := tmp_path / "metrics.csv").write_text("timestamp,prompt_tokens,completion_tokens\n"
                                                 "2024-05-01T10:00:00Z,812,211\n2024-05-01T10:00:01Z,404,310\n")
    (zero := tmp_path / "zero.json").write_text('{"zero_optimization": {"stage": 3}, "bf16": {"enabled": true}}')
    assert main(["plan", "--model", "llama-3.1-8b", "--log", str(log), "--on", "l4", "-q", "--show-scenario"]) == 0
    assert f"trace: {log}" in capsys.readouterr().out
    assert main(["simulate", "--model", "llama-3.1-8b", "--on", "l4-1x", "--trace", str(log), "-q"]) == 0
    assert capsys.readouterr().out.startswith("2 requests replayed")
    assert main(["estimate", "--deepspeed", str(zero), "--model", "llama-3.2-1b", "--on", "1xl40s"]) == 0
    assert "read from a DeepSpeed config" in capsys.readouterr().out


def test_a_layout_may_begin_with_what_is_offloaded(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["estimate", "--model", "llama-3.1-8b", "--node", "4090", "--method", "lora", "-q"]
    assert main([*asked, "--layout", "offload_optimizer=1,offload_parameters=1"]) == 0
    moved = capsys.readouterr().out
    assert main([*asked, "--layout", "offload_parameters=1", "--offload-optimizer", "cpu"]) == 0
    assert capsys.readouterr().out == moved
    assert "weights" in moved


def test_a_verb_by_another_name_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--model", "llama-3.1-8b", "--gpu", "l40s", "-q"]) == 0
    served = capsys.readouterr().out
    assert main(["plan", "--model", "llama-3.1-8b", "--on", "l40s", "--method", "inference", "-q"]) == 0
    assert served == capsys.readouterr().out
    assert main(["estimate", "--model", "llama-3.1-8b", "--method", "lora", "-q"]) == 0
    assert capsys.readouterr().out.startswith("Fewest GPUs that hold llama-3.1-8b: LoRA 1 x")


def test_rent_is_compared_and_hardware_named_is_replayed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rent", "--on", "64xh100", "--years", "3", "-q"]) == 0
    assert capsys.readouterr().out.startswith("Buy: 64 GPUs")
    assert main(["simulate", "--model", "llama-3.1-8b", "--on", "l40s-1x", "--users", "4", "-q"]) == 0
    assert "requests replayed for llama-3.1-8b" in capsys.readouterr().out


def test_models_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["compare", "--models", "llama-3.1-8b,qwen3-8b", "--on", "l40s"]
    assert main([*asked, "--rate", "2", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {(row["model"], row["gpu"]) for row in rows} == {("llama-3.1-8b", "l40s"), ("qwen3-8b", "l40s")}
    assert main([*asked, "--method", "qlora", "-q"]) == 0
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "Fewest GPUs that hold llama-3.1-8b", "Fewest GPUs that hold qwen3-8b"]


def test_formats_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["compare", "--model", "llama-3.1-8b", "--on", "l40s-1x", "--rate", "1"]
    assert main([*asked, "--quantization", "fp8,bf16", "--json"]) == 0
    rows = {row["model"]: row["cost_usd"] for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows.keys() == {"llama-3.1-8b, fp8", "llama-3.1-8b, bf16"}
    assert main([*asked, "--quantization", "fp8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["cost_usd"] == rows["llama-3.1-8b, fp8"]


def test_the_longest_request_fills_the_cache(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["estimate", "--model", "llama-3.1-70b", "--int4", "--on", "2x3090"]
    assert main([*asked, "--max", "context", "--json"]) == 0
    said = capsys.readouterr()
    longest = int(said.err.split("that fits: ")[1].split(" tokens")[0].replace(",", ""))
    assert longest <= json.loads(said.out)["serving"]["kv_tokens"] < longest + 1024
    assert main([*asked, "--method", "inference", "--max-model-len", str(longest + 1024), "-q"]) == 0
    assert capsys.readouterr().out.startswith("Does not fit")


def test_why_without_work_is_memory(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--model", "llama-3.1-8b", "--on", "a100-80g", "--method", "lora", "-q"]) == 0
    assert capsys.readouterr().out.startswith("Fewest GPUs that hold llama-3.1-8b: LoRA 1 x a100-sxm-80gb")


def test_a_sweep_is_asked_by_flags(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["sweep", "--model", "llama-3.1-8b", "--input", "1000", "--output", "200", "--on", "l40s-1x"]
    assert main([*asked, "--vary", "rate=1,2", "--workers", "1"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["variant"] for line in lines] == [{"workload.rate": "1"}, {"workload.rate": "2"}]
    assert {line["plan"]["provenance"]["scenario"]["workload"]["output"] for line in lines} == {200}


def test_what_flags_ask_is_launched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["launch", "--model", "llama-3.1-8b", "--method", "lora", "--on", "h100"]
    assert main([*asked, "--for", "llama-factory", "-o", str(tmp_path / "amount"), "--tokens", "5M"]) == 0
    assert main([*asked, "--for", "axolotl", "-o", str(tmp_path / "layout")]) == 0
    assert [(tmp_path / name / "launch.json").is_file() for name in ("amount", "layout")] == [True, True]
    capsys.readouterr()
    assert main(["launch", str(tmp_path / "amount" / "plan.json"), "--model", "gpt2", "-o", str(tmp_path / "no")]) == 2
    assert "is a plan: --model would change its question" in capsys.readouterr().err


def test_the_answers_of_a_service_that_is_launched_are_no_folder(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["launch", "--model", "llama-3.1-8b", "--rate", "1", "--input", "1000", "--on", "h100-sxm-1x"]
    assert main([*asked, "--output", "300", "-o", "one"]) == 0
    assert "--max-model-len 1300" in (tmp_path / "one" / "serve.sh").read_text(encoding="utf-8")
    plan = str(tmp_path / "one" / "plan.json")
    assert main(["launch", plan, "--output", "two"]) == 0
    assert (tmp_path / "two" / "serve.sh").is_file()
    capsys.readouterr()
    assert main(["launch", plan, "--output", "two", "-o", "three"]) == 2
    assert "--output two is no number of tokens" in capsys.readouterr().err
    assert main(["launch", plan, "--output", "300"]) == 2
    assert "is a plan: --output would change its question" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]

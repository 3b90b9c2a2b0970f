"""Any value of any flag: an answer, or a message that names the flag."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from planner.layouts.axes import RECOMPUTE
from tests.fuzz.running import fuzzing, run

ODD = st.sampled_from(["", " ", "0", "-1", "1.5", "x", "nan", "inf", "1e999", "9" * 30, "-", ",", "a,b", "=", "²", "💥",
                       "true", "a\nb\r\x1b[31m"])
COUNTS = st.integers(1, 2).map(str)
QUESTION: dict[str, st.SearchStrategy[str]] = {
    "--model": st.sampled_from(["gpt2", "GPT2", "openai-community/gpt2"]),
    "--method": st.sampled_from(["pretrain", "full", "lora", "qlora", "inference"]),
    "--tokens": st.sampled_from(["1M", "1 M", "3000", "1 k", "1T", "1e6"]),
    "--seq-len": st.sampled_from(["1", "7", "1024", "1k", "8192"]),
    "--global-batch": st.sampled_from(["1", "7", "16", "16 sequences +- 10%"]),
    "--deadline": st.sampled_from(["1 us", "1 h", "3d", "9 d at 95%", "1e9 d"]),
    "--budget": st.sampled_from(["1 USD", "5kUSD", "1e9 MUSD", "0.001 USD"]),
    "--gpus": COUNTS, "--max-gpus": COUNTS, "--max-nodes": COUNTS,
    "--max-power": st.sampled_from(["1 W", "20kW", "1e6 MW"]),
    "--on": st.sampled_from(["h100-sxm-1x", "a100-sxm-80gb-1x", "H100-SXM-1X,h100-sxm-1x", "1xl40s"]),
    "--provider": st.sampled_from(["verda", "VERDA", "nebius,verda"]),
    "--region": st.sampled_from(["fin", "FIN", "us"]),
    "--terms": st.sampled_from(["on-demand", "spot,on-demand", "reserved-1y"]),
    "--stack": st.sampled_from(["megatron-core", "fsdp2", "hf-peft", "jax"]),
    "--precision": st.sampled_from(["bf16", "bf16,fp8", "fp16", "int8", "fp4"]),
    "--objective": st.sampled_from(["cost", "time", "gpus", "energy"]),
    "--time-limit": st.sampled_from(["0.2", "0.1 s", "100ms"]),
}
BASE = {"--model": "gpt2", "--tokens": "1M", "--seq-len": "1024", "--global-batch": "16", "--on": "h100-sxm-1x",
        "--max-gpus": "2", "--time-limit": "0.2"}
SERVED: dict[str, st.SearchStrategy[str]] = {
    "--rate": st.sampled_from(["20", "0.5", "300 requests/min", "7requests/h"]),
    "--input": st.sampled_from(["1", "2000", "8k", "9000 tokens"]), "--output": st.sampled_from(["1", "300"]),
    "--ttft": st.sampled_from(["2s", "1 us", "2 s at p99", "400ms at mean"]),
    "--tpot": st.sampled_from(["50ms", "50 ms at p50"]),
    "--quantization": st.sampled_from(["bf16", "bf16,fp8", "int4", "nf4"]),
    "--engine": st.sampled_from(["vllm", "SGLang"]),
    "--budget": st.sampled_from(["500 USD/h", "1 USD"]),
    **{flag: QUESTION[flag] for flag in ("--model", "--on", "--terms", "--gpus", "--objective", "--deadline",
                                         "--tokens")},
}
SERVICE = {"--model": "gpt2", "--rate": "20", "--input": "2000", "--output": "300", "--on": "h100-sxm-1x"}
ESTIMATE: dict[str, st.SearchStrategy[str]] = {
    "--gpus": st.integers(1, 64).map(str),
    "--seq-len": QUESTION["--seq-len"], "--global-batch": st.integers(1, 64).map(str),
    "--method": QUESTION["--method"], "--stack": QUESTION["--stack"], "--precision": QUESTION["--precision"],
    "--confidence": st.sampled_from(["0.5", "0.999999", "0.95"]),
}
POWERS = st.sampled_from(["1", "2", "4", "8"])
AXES = st.sampled_from(["tp", "pp", "vpp", "cp", "ep", "dp", "mbs", "zero", "offload_optimizer", "recompute", "tq",
                        "offload_parameters", "offload_activations", "offload_to", "sp", "shard"])
LAYOUTS = st.one_of(
    st.fixed_dictionaries({}, optional={"tp": POWERS, "pp": POWERS, "cp": POWERS, "dp": POWERS, "mbs": POWERS,
                                        "recompute": st.sampled_from(RECOMPUTE), "zero": st.sampled_from("0123")}),
    st.dictionaries(AXES, st.one_of(POWERS, ODD, st.sampled_from([*RECOMPUTE, "0.5", "3"])), max_size=5))
MODES = st.sampled_from([[], ["-q"], ["--json"]])


def some(flags: dict[str, st.SearchStrategy[str]], most: int) -> st.SearchStrategy[dict[str, str]]:
    """Values for up to `most` of `flags`; one time in three one of them makes no sense."""
    chosen = st.lists(st.sampled_from(sorted(flags)), min_size=1, max_size=most, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({flag: flags[flag] for flag in names}))
    broken = st.tuples(chosen, st.sampled_from(sorted(flags)), ODD).map(
        lambda drawn: drawn[0] | ({drawn[1]: drawn[2]} if (drawn[1], drawn[2]) != ("--time-limit", "9" * 30) else {}))
    return st.one_of(chosen, chosen, broken)


def arguments(flags: dict[str, str]) -> list[str]:
    return [f"{flag}={value}" for flag, value in flags.items()]


@fuzzing(180)
@given(some(QUESTION, 4))
def test_any_flags_of_plan_make_a_question_or_are_named(flags: dict[str, str]) -> None:
    assert run("plan", *arguments(BASE | flags), "--show-scenario")[0] in (0, 2)


@fuzzing(140)
@given(some(SERVED, 4))
def test_any_flags_of_a_service_make_a_question_or_are_named(flags: dict[str, str]) -> None:
    assert run("plan", *arguments(SERVICE | flags), "--show-scenario")[0] in (0, 2)


@fuzzing(30)
@given(some(QUESTION, 3), MODES)
def test_any_flags_of_plan_are_answered(flags: dict[str, str], mode: list[str]) -> None:
    run("plan", *arguments(BASE | flags), *mode)


@fuzzing(90)
@given(some(ESTIMATE, 3), LAYOUTS, st.sampled_from(["gpt2", "mixtral-8x7b", "deepseek-v3", "llama-3.1-8b"]),
       st.sampled_from(["dgx-h100", "h100-sxm-1x", "l40s-8x-pcie", "gb200-nvl72"]), MODES)
def test_any_flags_of_estimate_are_answered(flags: dict[str, str], layout: dict[str, str], model: str, node: str,
                                            mode: list[str]) -> None:
    question = ["--model", model, "--node", node, "--layout", ",".join(f"{a}={v}" for a, v in layout.items())]
    assert run("estimate", *question, *arguments(flags), *mode)[0] in (0, 2)

"""Flags of another kind than the planner's are its own, or refused with what to write."""

from __future__ import annotations

import click
import pytest

from planner.catalog.load import Catalog
from planner.cli.main import group
from planner.cli.rephrased import rephrased
from planner.scenario.resolve import format_of
from planner.scenario.unmodeled import modeled_format


def _options(verb: str) -> dict[str, click.Option]:
    command = group.get_command(None, verb)  # type: ignore[arg-type] - it asks nothing of the context
    assert command is not None
    return {name: option for option in command.params if isinstance(option, click.Option) for name in option.opts}


@pytest.mark.parametrize(("line", "held"), [
    ("--model phi-4 --node l4 --context 16k", True), ("--model phi-4-Q4_K_M.gguf --node l4", True),
    ("--model phi-4-AWQ --node l4", True), ("--model phi-4 --node l4", False),
    ("--model phi-4 --node l4 --seq-len 16k", False), ("--model phi-4 --node l4 --context 16k --method lora", False),
    ("--model phi-4 --node l4 --context 16k --users 4", False)])
def test_room_for_a_context_is_asked_of_inference(line: str, held: bool) -> None:
    assert (rephrased(line.split(), _options("estimate"))[-2:] == ["--method", "inference"]) is held


def test_tokens_a_month_of_requests_of_usual_lengths() -> None:
    usual = Catalog().recipes.requests
    line = ["--tokens-per-month", "3G", "--input", "1500"]
    assert rephrased(line, _options("plan"))[:2] == ["--rate", f"{3e9 / (1500 + usual.output):.9g}/month"]


def test_a_size_beside_a_model_is_left_as_it_is() -> None:
    line = ["--model", "phi-4", "--params", "7B"]
    assert rephrased(line, _options("plan")) == line


@pytest.mark.parametrize(("name", "stored"), [
    ("llama-3.3-70b-instruct-q4_k_m.gguf", "q4_k_m"), ("bartowski/Llama-3.1-8B-Instruct-GGUF:Q5_K_M", "q5_k_m"),
    ("gemma-3-27b-it-Q8_0", "q8_0"), ("Qwen3-8B-GGUF", "q4_k_m"), ("Qwen3-8B", None), ("Qwen3-8B-AWQ", "int4")])
def test_the_name_of_a_file_says_its_format(name: str, stored: str | None) -> None:
    assert format_of(name) == stored


def test_formats_that_are_not_modeled_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"'exl2'.*nearest"):
        modeled_format("exl2")
    assert modeled_format("awq") == "awq"


@pytest.mark.parametrize(("line", "meant"), [
    ("--p99-latency 20s", ["--e2e", "20s at p99"]), ("--ttft-p95 1s", ["--ttft", "1s at p95"]),
    ("--tps 40 --users 30", ["--tpot", "40 tokens/s", "--users", "30"]),
    ("--tokens-per-second 5000 --output 250", ["--rate", "20", "--output", "250"]),
    ("--users 1000 --requests-per-user-per-hour 12", ["--rate", "12000/hour"]),
    ("--nodes 4 --gpus-per-node 8 --gpu h100", ["--gpus", "32", "--on", "8xh100"])])
def test_a_flag_of_two_things_is_both(line: str, meant: list[str]) -> None:
    assert rephrased(line.split(), _options("plan")) == meant

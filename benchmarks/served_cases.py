"""Service questions drawn at random: dense models and mixtures, attention in copies, prefill apart, users, bursts,
days and traces, on a few kinds of GPU or on all.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODELS: dict[str, tuple[str, ...]] = {
    "llama-3.1-8b": ("l4", "a10g", "l40s", "rtx-4090", "a100-sxm-80gb", "h100-sxm"),
    "qwen3-8b": ("l4", "l40s", "mi300x"),
    "gemma-3-27b": ("l40s", "h100-sxm"),
    "qwen2.5-32b": ("l40s", "a100-sxm-80gb", "h100-sxm", "h200"),
    "llama-3.3-70b": ("a100-sxm-80gb", "h100-sxm", "h200", "b200", "mi300x"),
    "mixtral-8x7b": ("a100-sxm-80gb", "h100-sxm", "h200"),
    "qwen3-30b-a3b": ("l40s", "a100-sxm-80gb", "h100-sxm"),
    "gpt-oss-120b": ("h100-sxm", "h200", "b200"),
    "qwen3-235b-a22b": ("h100-sxm", "h200"),
    "deepseek-v3": ("h200", "b200")}
"""Models, with GPUs that people run them on."""
LARGE = ("qwen3-235b-a22b", "deepseek-v3")
"""Asked at lower rates."""
DAY = [0.3, 0.2, 0.2, 0.2, 0.2, 0.3, 0.5, 0.8, 1, 1.2, 1.3, 1.3, 1.2, 1.3, 1.4, 1.4, 1.3, 1.2, 1.1, 1.1, 1, 0.8, 0.6,
       0.4]
KINDS = ("rate", "users", "burst", "apart", "trace", "e2e", "spread", "day")
ENGINES = ("vllm", "vllm", "vllm", "sglang", "tensorrt-llm")
PERCENTILES = (95, 95, 90, 99, 50)
LONGEST, MOST = 8000, 1000
"""Tokens of prompts and of answers of a trace."""


@dataclass(frozen=True, slots=True)
class Case:
    """A question as a file would hold it, and what kind of load it is of."""

    kind: str
    asked: dict[str, Any]


def drawn(seed: int, count: int, folder: Path, *, anywhere: float = 0.0) -> Iterator[Case]:
    """Yield questions; anywhere: the share of them that leave open on which hardware. Traces are written to a folder.
    """
    for number in range(count):
        rng = random.Random(f"{seed}.{number}")
        yield _case(rng, KINDS[number % len(KINDS)], folder / f"trace-{seed}-{number}.csv", anywhere)


def _case(rng: random.Random, kind: str, trace: Path, anywhere: float) -> Case:
    model = rng.choice(list(MODELS))
    gpus = sorted(rng.sample(MODELS[model], min(len(MODELS[model]), rng.choice((1, 1, 2, 3)))))
    work: dict[str, Any] = {"kind": "serving", "model": model, "engine": rng.choice(ENGINES)}
    work |= _load(rng, kind, trace, rate=rng.choice((0.3, 1, 4, 10, 30)) * (0.4 if model in LARGE else 1))
    answer, share = work.get("output", 200), rng.choice(PERCENTILES)
    ttft, tpot = rng.choice((0.5, 1, 2, 4)), rng.choice((25, 40, 60, 100))
    if kind == "e2e":
        tokens = answer["mean"] if isinstance(answer, dict) else answer
        work["e2e"] = f"{rng.choice((1.2, 2, 4)) * (ttft + tokens * tpot / 1000) / 2:.3g} s at p{share}"
    else:
        work |= {"ttft": f"{ttft} s at p{share}", "tpot": f"{tpot} ms at p{share}"}
    terms = rng.choice(([], [], ["on-demand"], ["on-demand", "reserved-1y"]))
    asked: dict[str, Any] = {"name": f"{kind} of {model}", "workload": work}
    if rng.random() >= anywhere:
        asked["hardware"] = {"candidates": gpus}
    if terms:
        asked["sourcing"] = {"rent": {"terms": terms}}
    return Case(kind, asked)


def _load(rng: random.Random, kind: str, trace: Path, rate: float) -> dict[str, Any]:
    """Return what is asked of a service, and how often."""
    prompt, answer = rng.choice((200, 1000, 4000, 8000)), rng.choice((50, 200, 600, 1500))
    if kind == "trace":
        bursts(rng, trace)
        return {"trace": str(trace)}
    lengths: dict[str, Any] = {"input": prompt, "output": answer}
    if kind == "spread" or rng.random() < 0.2:
        lengths = {"input": {"mean": prompt, "cv": rng.choice((0.5, 1))},
                   "output": {"mean": answer, "cv": rng.choice((0.3, 0.8))}}
    if kind == "users":
        return lengths | {"users": rng.choice((20, 100, 400))} | rng.choice(({}, {"think": "5 s"}, {"think": "30 s"}))
    more: dict[str, dict[str, Any]] = {
        "burst": {"arrivals": {"cv": rng.choice((2, 3))}}, "day": {"day": DAY},
        "apart": {"disaggregated": rng.choice(("allowed", "only")), "engine": "vllm"}}
    return lengths | {"rate": rate} | more.get(kind, {})


def bursts(rng: random.Random, path: Path) -> None:
    """Write a trace of a few minutes: a calm rate with one burst, and lengths that are lognormal."""
    calm, burst, span = rng.choice((1, 2, 5)), rng.choice((8, 20, 40)), rng.choice((200, 400))
    begin, lasts, now = rng.uniform(20, span - 60), rng.choice((10, 30, 45)), 0.0
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("TIMESTAMP", "ContextTokens", "GeneratedTokens"))
        while now < span:
            now += rng.expovariate(burst if begin < now < begin + lasts else calm)
            rows.writerow((f"{now:.4f}", min(max(1, int(rng.lognormvariate(6.5, 0.8))), LONGEST),
                           min(max(2, int(rng.lognormvariate(5, 0.6))), MOST)))

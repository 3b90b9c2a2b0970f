"""Which rows of serving are furthest off when their source is left out of the fit, and why."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.releases import About
from benchmarks.table import table

FAR, CLASSES = 0.4, 8
"""Relative error from which a row is far off, and classes shown."""
CAUSES = {
    "argonne-lcf/LLM-Inference-Bench, vllm, cdna3": "vLLM 0.6.1 as its Dockerfile builds it, no product tuned: from 16 "
    "sequences on a step takes in proportion to them, as if every 16 read all weights again. How untuned the others "
    "are no other source says",
    "argonne-lcf/LLM-Inference-Bench, vllm, cdna2": "the same build on MI250",
    "argonne-lcf/LLM-Inference-Bench, tensorrt-llm, ampere": "40 GB cards: 70B models leave next to no cache, and what "
    "the engine kept free for its workspace is not stated",
    "NVIDIA TensorRT-LLM docs, tensorrt-llm, ada": "mixtures over PCIe, of whose kernels no other source has a row",
    "NVIDIA TensorRT-LLM docs, tensorrt-llm, blackwell": "Qwen3 mixtures at thousands of sequences, half as fast again "
    "as measured in-sample too; Llama 4 and DeepSeek of the same table are not",
    "mlc-ai/llm-perf-bench README, vllm, ampere": "vLLM of 2023 over PCIe, before its own all-reduce",
    "MLPerf Inference v5.0 results, tensorrt-llm, hopper": "H100 NVL: perhaps its 400 W, which the rate of products "
    "does not know; H200 NVL with 600 W is off by 5%",
}
"""What is known of a class of rows."""


def tail(about: About) -> Iterator[str]:
    """Yield the lines on output tokens/s with the source left out, by class."""
    held = [about.rows.rows.figures[f] for f in about.rows.figures.tolist()]
    sources = [about.rows.rows.row_sources[figure.row] for figure in held]
    mine = [at for at, figure in enumerate(held) if figure.quantity == "output_tok_s_per_gpu"]
    errors = np.expm1(-about.without(sources))
    classes: dict[str, list[float]] = {}
    for at in mine:
        engine, _, architecture = about.rows.places[about.rows.of_group[held[at].group]]
        source = sources[at].split(" (")[0].replace(" Plots/All_results.csv", "").replace(" perf-overview.md", "")
        classes.setdefault(f"{source}, {engine}, {architecture}", []).append(float(errors[at]))
    far = {name: sum(abs(error) >= FAR for error in of) for name, of in classes.items()}
    worst = sorted(classes, key=lambda name: (-far[name], name))[:CLASSES]
    yield from ("", f"What is off by {FAR:.0%} or more with its source left out is {sum(far.values())} of "
                f"{len(mine)} output rates, most of them of one build on one vendor. By source, engine and "
                "architecture:", "")
    yield from table(("class", "rows", f"{FAR:.0%} off", "median", "p90", "bias", "cause"), [
        [name, str(len(classes[name])), str(far[name]), *_spread(classes[name]), CAUSES.get(name, "not known")]
        for name in worst])
    rest = [error for name, of in classes.items() if name not in worst[:2] for error in of]
    median, most, _ = _spread(rest)
    yield from ("", f"Without the first two the median of {len(rest)} output rates is {median}, and their p90 {most}.")


def _spread(errors: list[float]) -> tuple[str, str, str]:
    median, most = np.quantile(np.abs(errors), (.5, .9))
    return f"{median:.1%}", f"{most:.1%}", f"{np.median(errors):+.1%}"

"""What `vllm bench serve` and SGLang's bench_serving print at the end of a load test, as their JSON would have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

TITLE = "Serving Benchmark Result"
_NAMES: Mapping[str, str] = {
    "Backend": "backend", "Successful requests": "completed", "Maximum request concurrency": "max_concurrency",
    "Max request concurrency": "max_concurrency", "Request rate configured (RPS)": "request_rate",
    "Traffic request rate": "request_rate", "Total input tokens": "total_input_tokens",
    "Total generated tokens": "total_output_tokens", "Request throughput (req/s)": "request_throughput",
    "Output token throughput (tok/s)": "output_throughput", "Mean TTFT (ms)": "mean_ttft_ms",
    "Mean TPOT (ms)": "mean_tpot_ms"}
"""What a line is called -> the key of the JSON."""


def printed_tests(text: str) -> Iterator[dict[str, str]]:
    """Yield each test of a log whose summary is printed."""
    for part in text.split(TITLE)[1:]:
        lines = (line.partition(":") for line in part.splitlines())
        yield {_NAMES[name.strip()]: value.strip() for name, _, value in lines if name.strip() in _NAMES}

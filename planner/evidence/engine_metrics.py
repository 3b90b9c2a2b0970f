"""What an engine counts of itself, its page of `/metrics`, as a row of evidence: vLLM's and SGLang's, by Prometheus.

Its counters are of all requests since it started, and those at once are of the moment: the page is fetched of one
replica under a steady load. Names: vllm/v1/metrics/loggers.py, sglang/srt/observability/metrics_collector.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from planner.errors import InputError

_NAMES: Mapping[str, Mapping[str, str]] = {
    "vllm": {"token": "request_time_per_output_token_seconds", "done": "request_success_total"},
    "sglang": {"token": "inter_token_latency_seconds", "done": "num_requests_total"}}
"""Of each engine: the seconds of a token after the first, and the requests that are answered."""
_AT_ONCE = {"vllm": "num_requests_running", "sglang": "num_running_reqs"}


def metrics_row(text: str, path: Path) -> dict[str, str] | None:
    """Return the load of an engine as cells; none where the text is no page of metrics. Raises InputError."""
    if not text.lstrip().startswith(("#", "vllm:", "sglang:")):
        return None
    samples = list(_samples(text))
    if not samples:
        return None
    engine, sums = samples[0][0], defaultdict[str, float](float)
    for _, name, value in samples:
        if not name.endswith("_bucket"):
            sums[name] += value
    names = _NAMES[engine]
    done, running = sums[names["done"]], sums[_AT_ONCE[engine]]
    firsts, tokens = sums["time_to_first_token_seconds_count"], sums[f"{names['token']}_count"]
    if not (done and firsts and tokens):
        raise InputError("no request was answered yet: fetch /metrics under load", file=str(path))
    if not running:
        raise InputError(f"no request was running when it was fetched ({engine}:{_AT_ONCE[engine]} is 0): fetch "
                         "/metrics while the load lasts", file=str(path))
    found = {"isl": sums["prompt_tokens_total"] / done, "osl": sums["generation_tokens_total"] / done,
             "concurrency": running, "ttft_ms": 1e3 * sums["time_to_first_token_seconds_sum"] / firsts,
             "tpot_ms": 1e3 * sums[f"{names['token']}_sum"] / tokens}
    return {"engine": engine, "source": f"{engine} metrics", "notes": f"num_prompts={done:.0f}",
            **{name: f"{value:.6g}" for name, value in found.items()}}


def _samples(text: str) -> Iterator[tuple[str, str, float]]:
    """Yield engine, name and value of `vllm:num_requests_running{engine="0"} 4.0`, whatever the labels."""
    for line in text.splitlines():
        engine, _, rest = line.partition(":")
        if engine in _NAMES:
            name = rest.partition("{")[0].partition(" ")[0]
            try:
                yield engine, name, float(rest.rpartition(" ")[2])
            except ValueError:
                continue

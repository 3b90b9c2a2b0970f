"""What an engine counts of itself, its page of `/metrics`, as a row of evidence: vLLM's and SGLang's, by Prometheus.

Its counters are of all requests since it started, and those at once are of the moment: the page is fetched of one
replica under a steady load. Names: vllm/v1/metrics/loggers.py, sglang/srt/observability/metrics_collector.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from planner.errors import InputError

_NAMES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "vllm": {"token": ("request_time_per_output_token_seconds", "inter_token_latency_seconds",
                       "time_per_output_token_seconds"), "done": ("request_success_total",)},
    "sglang": {"token": ("inter_token_latency_seconds", "time_per_output_token_seconds"),
               "done": ("num_requests_total", "e2e_request_latency_seconds_count")}}
"""Of each engine: the seconds of a token after the first, and the requests that are answered; older names last."""
_AT_ONCE = {"vllm": ("num_requests_running", "num_requests_waiting"),
            "sglang": ("num_running_reqs", "num_queue_reqs")}
"""Of each engine: the requests that run, and those that wait."""


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
    names, (runs, waits) = _NAMES[engine], _AT_ONCE[engine]
    done, running = next((sums[name] for name in names["done"] if sums.get(name)), 0.0), sums[runs]
    first = _mean(sums, "time_to_first_token_seconds")
    token = next((mean for name in names["token"] if (mean := _mean(sums, name))), 0.0)
    if not (done and first and token):
        raise InputError("no request was answered yet: fetch /metrics under load", file=str(path))
    if not running:
        raise InputError(f"no request was running when it was fetched ({engine}:{runs} is 0): fetch "
                         "/metrics while the load lasts", file=str(path))
    found = {"isl": _mean(sums, "request_prompt_tokens") or sums["prompt_tokens_total"] / done,
             "osl": _mean(sums, "request_generation_tokens") or sums["generation_tokens_total"] / done,
             "concurrency": running + sums[waits], "ttft_ms": 1e3 * first, "tpot_ms": 1e3 * token}
    return {"engine": engine, "source": f"{engine} metrics", "notes": f"num_prompts={done:.0f}",
            **{name: f"{value:.6g}" for name, value in found.items()}}


def _mean(sums: Mapping[str, float], name: str) -> float:
    """Return the mean of requests that were answered; the totals count those under way too. 0 where it is not told."""
    return sums.get(f"{name}_sum", 0.0) / max(sums.get(f"{name}_count", 0.0), 1.0)


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

"""How good the predictions of a file are: errors, verdicts and coverage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from planner.answer.validation import Entry, Errors, Rank, Verdicts
from planner.layouts.table import Floats

TRAINED = ("tokens_per_s_per_gpu", "step_time_s", "peak_mem_gib")
SERVED = ("weights_gib", "kv_cache_gib", "kv_tokens_or_blocks", "max_concurrency")
SPED = ("output_tok_s_per_gpu", "total_tok_s_per_gpu", "ttft_ms", "tpot_ms")
MADE = ("latency_s", "throughput")
WHOLE = ("gpu_hours",)
LINKS = ("seconds",)
LEARNED = ("step_s", "gen_s", "actor_update_s", "gpus")
QUANTITIES = (*TRAINED, *SERVED, *SPED, *MADE, *WHOLE, *LINKS, *LEARNED)
_VERDICTS = {("fits", "yes"): "true_fit", ("fits", "no"): "false_fit", ("tight", "yes"): "tight_fit",
             ("does not fit", "no"): "true_oom", ("does not fit", "yes"): "false_oom", ("tight", "no"): "tight_oom"}


def summarize(entries: Iterable[Entry]) -> dict[str, Errors | Verdicts | Rank]:
    """Return the summary of every quantity that occurs, as the contract writes it."""
    held = list(entries)
    result: dict[str, Errors | Verdicts | Rank] = {}
    for quantity in QUANTITIES:
        numbers = [e for e in held if e.quantity == quantity]
        if numbers:
            result[quantity] = Errors(**errors(numbers))
    verdicts = [e for e in held if e.quantity == "fits"]
    if verdicts:
        result["fits"] = Verdicts(**confusion(verdicts))
    return result


def errors(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return count, median and 90th percentile of the absolute error, median signed error, interval coverage."""
    signed = np.array([e.error for e in entries], np.float64)
    covered = [e.interval90 is not None and e.interval90[0] <= float(e.measured) <= e.interval90[1] for e in entries]
    new = [inside for e, inside in zip(entries, covered, strict=True) if e.is_new]
    beside = {"new_sources_n": len(new), "new_sources_coverage": float(np.mean(new))} if new else {}
    return {"n": len(entries), **spread(signed), **beside,
            "interval90_coverage": float(np.mean(covered)) if any(e.interval90 for e in entries) else None}


def spread(signed: Floats) -> dict[str, float]:
    """Return median and 90th percentile of the absolute value of errors, and their signed median."""
    size = np.abs(signed)
    return {"median_abs_error": float(np.median(size)), "p90_abs_error": float(np.percentile(size, 90)),
            "bias": float(np.median(signed))}


def confusion(entries: Sequence[Entry]) -> dict[str, int]:
    """Return how often each verdict met each outcome; `tight` is neither right nor wrong."""
    counts = dict.fromkeys(("true_fit", "false_fit", "tight_fit", "true_oom", "false_oom", "tight_oom"), 0)
    for entry in entries:
        counts[_VERDICTS[str(entry.predicted), str(entry.measured)]] += 1
    return {"n": len(entries), **counts}

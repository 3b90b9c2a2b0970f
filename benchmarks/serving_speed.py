"""The part of docs/validation.md on the speed of serving: errors by engine, GPU and regime, order, worst rows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.intervals import about_releases
from benchmarks.table import ERRORS, error_cells, table
from benchmarks.tail import tail
from planner.answer.validation import Entry
from planner.catalog.load import Catalog
from planner.evidence.compare import EvidenceComparison, compare
from planner.evidence.ranking import rank_served
from planner.evidence.reading import read_evidence
from planner.evidence.rows import ServeRow
from planner.evidence.serve_speed import Speed
from planner.evidence.summary import SPED

WORST = 10
FEWEST = 5
"""Rows below which a class is not shown."""
CAUSES: tuple[tuple[str, str], ...] = (
    ("ixpos_", "an experimental folder: prompts run at 3% of the peak of eight GPUs; left out of the fit"),
    (r"arg_(GH200|H100).*_2048_b", "doubtful: faster than weights can be read once a token"),
    ("arg_MI300X", "first request of a run at batch 1, or reading grouped keys once for each query head"),
    ("mlc_", "vLLM of 2023 over PCIe, before its own all-reduce"),
    ("xj_", "kernel-bound: llama.cpp reads 40% of the bandwidth on A100, 75% on cards with fewer bytes/s a core"),
    (r"sil_.*gpt_oss.*vllm.*c512", "requests waited 20 s: few ran at once, by a limit that is not stated"),
    (r"sil_.*disagg.*_c[1-9]_", "warm-up: few clients waited longer than many on the same workers"),
    (r"sil_.*sglang_fp8_agg.*tp4", "671 GB on four GPUs: the fraction of memory was raised, by how much is not stated"),
    (r"sil_.*(disagg|agg_1024x8192)", "what the cache held is not stated: a wait for room or none"),
    (r"sil_.*_c_tp", "concurrency read from a batch; perhaps of each rank alone"),
    ("sil_nvidia_deepseek", "perhaps the batch of a rank, taken for the concurrency of all"),
    ("mlperf", "layout and batch were tuned by hand, lengths vary widely"),
)
"""What is known of rows by a pattern that their ids begin with."""
Pair = tuple[ServeRow, Speed, Entry]


def speed(path: Path) -> Iterator[str]:
    """Yield the lines of the section."""
    found = compare(read_evidence(path), Catalog())
    pairs = _pairs(found)
    yield from ("", "## Serving: speed of engines", "",
                f"From {path.name}. Each release of an engine on a GPU architecture has constants fitted to these rows "
                "(`catalogs/speeds`), each drawn toward those near it. For a question that nobody has measured, the "
                "error of rows left out of the fit is what counts (MLPerf under latency limits and an experimental "
                "folder are not included):", "")
    yield from table(("left out", "quantity", "rows", "median", "p90"), about_releases().left_out())
    yield from tail(about_releases())
    yield from ("", "All errors below are in-sample. Regimes: `static` is a batch that starts together, `closed` a "
                "number of clients that each ask again when answered, `offline` all requests queued at the start, "
                "`server` the largest rate within latency limits, `decode` and `first` one phase alone; `apart` is "
                "a closed loop with separate workers for prompts and answers.", "")
    yield from table(("quantity", *ERRORS), [
        [name, *error_cells([e for _, _, e in pairs if e.quantity == name])] for name in SPED])
    groups: tuple[tuple[str, Callable[[Pair], str]], ...] = (
        ("regime", _regime), ("engine, model and regime",
                              lambda p: f"{p[1].row.engine}, {_kind(p)}, {_regime(p)}"),
        ("GPU", lambda p: p[0].run.gpu or ""), ("source", _source))
    for name in (SPED[0], *SPED[2:]):
        chosen = [p for p in pairs if p[2].quantity == name]
        for label, key in groups:
            yield from _grouped(chosen, f"{name} by {label}", key)
        yield from _worst(chosen)
    yield from _order(found)
    yield from ("", f"{len(found.skipped)} rows are skipped:", "")
    reasons: dict[str, int] = {}
    for _, reason in found.skipped:
        short = "model shape not stated" if "shape is not stated" in reason else reason
        reasons[short] = reasons.get(short, 0) + 1
    yield from table(("rows", "reason"), [[str(n), reason] for reason, n in sorted(
        reasons.items(), key=lambda item: (-item[1], item[0]))])


def _pairs(found: EvidenceComparison) -> list[Pair]:
    held = {row.id: (row, one) for row, one in found.speeds}
    return [(*held[entry.id], entry) for entry in found.served]


def _regime(pair: Pair) -> str:
    return "apart" if pair[1].row.decode else pair[1].row.regime


def _kind(pair: Pair) -> str:
    return "mixture" if pair[1].kind == "moe" else "dense"


def _source(pair: Pair) -> str:
    return (pair[0].run.source or "").split(" (")[0]



def _grouped(pairs: Sequence[Pair], label: str, key: Callable[[Pair], str]) -> Iterator[str]:
    groups: dict[str, list[Entry]] = {}
    for pair in pairs:
        groups.setdefault(key(pair), []).append(pair[2])
    yield ""
    yield from table((label, *ERRORS), [
        [name, *error_cells(held)] for name, held in sorted(groups.items()) if len(held) >= FEWEST])


def _worst(pairs: Sequence[Pair]) -> Iterator[str]:
    yield ""
    # as many times too much as too little count alike
    worst = sorted(pairs, key=lambda p: (-abs(math.log1p(p[2].error or 0.0)), p[2].id))[:WORST]
    yield from table(("worst", "predicted", "measured", "error", "cause"), [
        [e.id, f"{float(e.predicted):.4g}", f"{float(e.measured):.4g}", f"{e.error:+.0%}", _cause(e.id)]
        for _, _, e in worst])


def _cause(identifier: str) -> str:
    return next((cause for start, cause in CAUSES if re.match(start, identifier)), "not known")


def _order(found: EvidenceComparison) -> Iterator[str]:
    order = rank_served(found.speeds)
    yield from ("", f"In {order['groups']} groups of rows that differ by their layout alone, the median rank "
                f"correlation of tokens/s a GPU is {order['median_spearman']:.2f}; taking the layout predicted to be "
                f"best costs {order['mean_top1_regret']:.1%} on average against the best measured one.")

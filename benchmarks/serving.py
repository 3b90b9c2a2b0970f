"""The serving part of docs/validation.md: what engines print about their memory against what is predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.table import ERRORS, error_cells, table
from planner.answer.validation import Entry
from planner.catalog.load import Catalog
from planner.evidence.compare import EvidenceComparison, compare
from planner.evidence.reading import read_evidence
from planner.evidence.rows import ServeRow, ServeRun
from planner.evidence.summary import SERVED

WORST = 10
_PROFILE = "its profile run took more than widths explain; options not stated"
_DEEPSEEK = "7.2 GiB outside PyTorch and 6.4 of activations are printed: expert kernels and workspaces of early MLA"
CAUSES = {
    "planner_gpt-oss-20b_tp4pp1_8192_auto_auto": "kernel layouts of experts, beyond rounding widths up",
    "planner_llama-4-scout-17b-16e-instruct_tp4pp1_8192_auto_auto":
        "1.3 GiB of weights a GPU beyond text and tower; not known",
    "vllm15766": "V0 on T4: 1.66 GiB of activations are printed where 256 rows of logits would take 2.4",
    "vllm27508": "1.7 GiB are left of 79: half a GiB of kernel layouts",
    "sglang6027": "attention data parallel with a fraction that is not stated",
    "pubfile_20903468563": _DEEPSEEK, "vllm16692": _DEEPSEEK,
    "sglang6001": "RCCL and context on MI308X take 5.8 GiB; shared experts are held by every rank on AMD",
    "vllm15014": "MLA copies of early vLLM, groups of 64 in AWQ",
    "vllm10702": "contradicts itself: twice the tokens that memory holds in 16 bits, so an fp8 cache",
    "vllm40691": "format of the weights not stated; 16 bits assumed, the pool needs about 4",
    "vllm16141_v0": "fewer sequences than the default, not stated: 0.09 GiB of activations are printed",
    "vllm16141_v1": "fewer sequences than the default, not stated",
    "vllm16570": "the profile run encodes images of the largest size", "vllm4432": _PROFILE,
    "vllm10517_24000": "version and fraction not stated",
    "vllm10517_20000": "version and fraction not stated",
    "sglang7059": "more tokens than the fraction asked allows: weights shared or smaller",
    "club3090_652": "a desktop GPU with the fraction not stated",
    "pubfile_65885126155_fp8kv": "what of the checkpoint stays in 16 bits not stated",
    "pubfile_65885126155_nvfp4kv": "what of the checkpoint stays in 16 bits not stated",
    "sglang1953": "read from free memory, on a card with little of it",
}
Group = Callable[[ServeRun], str]


def serving(path: Path) -> Iterator[str]:
    """Yield the lines of the section."""
    evidence = read_evidence(path)
    found, rows = compare(evidence, Catalog()), {row.id: row for row in evidence.rows}
    yield from ("", "## Serving: memory of engines", "",
                f"From {path.name}. `planner calibrate` fitted none of these constants; the few there are were read "
                "off the same logs (`planner catalog show vllm`), by version.", "")
    yield from _by_quantity(found.served, SERVED)
    yield from ("", "Of rows that state weights, memory fraction and TP:", "")
    yield from _by_quantity([e for e in found.served if _states(rows[e.id])], SERVED[1:])
    groups: tuple[tuple[str, Group], ...] = (
        ("engine", lambda run: run.engine or "not stated"), ("GPU", lambda run: run.gpu or "not stated"),
        ("weights", lambda run: run.weight_precision or "not stated"))
    for name in SERVED:
        entries = [e for e in found.served if e.quantity == name]
        for label, key in groups:
            yield from _grouped(entries, rows, f"{name} by {label}", key)
        yield from _worst(entries)
    yield from ("", f"{len(found.skipped)} rows are skipped: {_reasons(found)}.")


def _states(row: ServeRow) -> bool:
    return None not in (row.measured.weights_gib, row.run.gpu_memory_utilization, row.run.tp)


def _by_quantity(entries: Sequence[Entry], names: Sequence[str]) -> Iterator[str]:
    yield from table(("quantity", *ERRORS), [
        [name, *error_cells([e for e in entries if e.quantity == name])] for name in names])



def _grouped(entries: list[Entry], rows: dict[str, ServeRow], label: str, key: Group) -> Iterator[str]:
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(key(rows[entry.id].run), []).append(entry)
    yield ""
    yield from table((label, *ERRORS), [
        [name, *error_cells(held)] for name, held in sorted(groups.items())])


def _worst(entries: list[Entry]) -> Iterator[str]:
    yield ""
    worst = sorted(entries, key=lambda entry: -abs(entry.error or 0.0))[:WORST]
    yield from table(("worst", "predicted", "measured", "error", "cause"), [
        [e.id, f"{float(e.predicted):.4g}", f"{float(e.measured):.4g}", f"{e.error:+.1%}",
         CAUSES.get(e.id, "not known")] for e in worst])


def _reasons(found: EvidenceComparison) -> str:
    shape = sum("shape is not stated" in reason for _, reason in found.skipped)
    return (f"{shape} of a model that the catalog lacks and whose shape is not stated, "
            f"{len(found.skipped) - shape} others")

"""The serving part of docs/validation.md: what engines print about their memory against what is predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.table import table
from planner.catalog.load import Catalog
from planner.evidence.compare import Comparison, Entry, compare
from planner.evidence.reading import read_evidence
from planner.evidence.rows import Row, ServeRun
from planner.evidence.summary import SERVED, errors

WORST = 10
_TOWER = "the image tower, which every rank holds, is in no catalog entry"
_VERSION = "version not stated; the sampler of the profile run differs by gigabytes between versions"
CAUSES = {
    "vllm6746": "Meta's FP8 checkpoint keeps attention and the outer layers in 16 bits",
    "planner_gpt-oss-20b_tp4pp1_8192_auto_auto": "probably experts padded for the kernels when split",
    "pubfile_qwen2vl7b_24g": _TOWER, "vllm12245": _TOWER, "vllm15766": _TOWER,
    "planner_llama-4-scout-17b-16e-instruct_tp4pp1_8192_auto_auto": _TOWER,
    "planner_mistral-small-3.1-24b-instruct-2503_tp4pp1_8192_auto_auto": _TOWER,
    "vllm27508": _VERSION, "sglang6027": "attention data parallel, whose ranks hold all of attention",
    "pubfile_20903468563": "7.2 GiB outside PyTorch and 6.4 of activations are printed: a build of its own",
    "pubfile_55594152188": "probably V0, whose profile run passes over the longest sequence",
    "sglang6001": "RCCL and context on MI308X take about 7 GiB",
    "vllm15014": "AWQ, with what stays in 16 bits not stated",
}
Group = Callable[[ServeRun], str]


def serving(path: Path) -> Iterator[str]:
    """Yield the lines of the section."""
    evidence = read_evidence(path)
    found, rows = compare(evidence, Catalog()), {row.id: row for row in evidence.rows}
    yield from ("", "## Serving: memory of engines", "",
                f"From {path.name}. `planner calibrate` fitted none of these constants; the few there are were read "
                "off the same logs (`planner catalog show vllm`), by version.", "")
    yield from table(("quantity", "rows", "median", "p90", "bias", "in 90% interval"), [
        [name, *_figures([e for e in found.served if e.quantity == name])] for name in SERVED])
    groups: tuple[tuple[str, Group], ...] = (
        ("engine", lambda run: run.engine or "not stated"), ("GPU", lambda run: run.gpu or "not stated"),
        ("weights", lambda run: run.weight_precision or "not stated"))
    for name in SERVED:
        entries = [e for e in found.served if e.quantity == name]
        for label, key in groups:
            yield from _grouped(entries, rows, f"{name} by {label}", key)
        yield from _worst(entries)
    yield from ("", f"{len(found.skipped)} rows are skipped: {_reasons(found)}.")


def _figures(entries: list[Entry]) -> list[str]:
    held = errors(entries)
    return [str(held["n"]), *(f"{held[key]:.1%}" for key in (
        "median_abs_error", "p90_abs_error", "bias", "interval90_coverage"))]


def _grouped(entries: list[Entry], rows: dict[str, Row], label: str, key: Group) -> Iterator[str]:
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        run = rows[entry.id].run
        assert isinstance(run, ServeRun)
        groups.setdefault(key(run), []).append(entry)
    yield ""
    yield from table((label, "rows", "median", "p90", "bias", "in 90% interval"), [
        [name, *_figures(held)] for name, held in sorted(groups.items())])


def _worst(entries: list[Entry]) -> Iterator[str]:
    yield ""
    worst = sorted(entries, key=lambda entry: -abs(entry.error or 0.0))[:WORST]
    yield from table(("worst", "predicted", "measured", "error", "cause"), [
        [e.id, f"{float(e.predicted):.4g}", f"{float(e.measured):.4g}", f"{e.error:+.1%}",
         CAUSES.get(e.id, "not known")] for e in worst])


def _reasons(found: Comparison) -> str:
    shape = sum("shape is not stated" in reason for _, reason in found.skipped)
    return (f"{shape} of a model that the catalog lacks and whose shape is not stated, "
            f"{len(found.skipped) - shape} others")

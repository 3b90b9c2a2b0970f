"""Sections of docs/validation.md on time: classes of runs, order of layouts by source, and what each term is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from benchmarks.table import table
from planner.catalog.calibrated import CALIBRATION
from planner.catalog.load import Catalog
from planner.evidence.compare import PredictedRow
from planner.evidence.ranking import rank
from planner.evidence.summary import spread
from planner.fit.rows import FitRow, residuals
from planner.layouts.table import Floats

_MEGATRON = ("megatron-core", "megatron-bridge", "megatron-core-2025")
CLASSES: dict[str, Callable[[PredictedRow], bool]] = {
    "all": lambda o: True,
    "dense": lambda o: not o.prediction.model.mixes_experts,
    "mixture of experts": lambda o: o.prediction.model.mixes_experts,
    "Megatron-Core, dense, H100 and H200": lambda o: (
        o.prediction.stack in _MEGATRON and o.prediction.architecture == "hopper"
        and not o.prediction.model.mixes_experts),
    "Megatron-Core, dense, GB200 and GB300": lambda o: (
        o.prediction.stack in _MEGATRON and o.prediction.gpu in ("gb200", "gb300")
        and not o.prediction.model.mixes_experts),
    "FSDP": lambda o: o.prediction.family in ("fsdp2", "llm-foundry"),
    "PCIe boxes": lambda o: o.prediction.stack == "llmq",
}
"""Classes of runs by name."""
FREE = 1e9
"""A rate at which a term takes no time."""
NOTHING = 1e-9
SWITCHES: dict[str, dict[str, float]] = {
    "attention": {"gpu:attention_forward": FREE},
    "saturation of products": {"kernels:half_k": 0.0, "kernels:half_mn": 0.0},
    "quantization to waves": {"kernels:wave_exponent": 0.0},
    "elementwise kernels": {"stack:elementwise": NOTHING},
    "casts of low precision": {"kernels:cast_forward_bytes": 0.0, "kernels:cast_backward_bytes": 0.0},
    "launches": {"kernels:launch": 0.0},
    "logits and loss": {"kernels:loss_bytes_per_logit": 0.0},
    "permutation and unfused experts": {"expert:experts.permute_passes": 0.0, "expert:experts.biased_passes": 0.0,
                                        "expert:experts.plain_passes": NOTHING},
    "host time of experts": {"expert:experts.host_layer": 0.0, "expert:experts.host_expert": 0.0},
    "stragglers": {"kernels:jitter_per_doubling": 0.0},
    "fixed time of a step": {"stack:step_overhead": 0.0},
    "stack factor": {"stack:slowdown": 1.0},
}
"""Terms that a figure of the catalog switches off: kind of entry and field, and the figure that does it."""
COMPONENTS = ("recompute", "tensor_parallel", "pipeline_bubble", "pipeline_p2p", "context_parallel", "expert_parallel",
              "data_parallel", "optimizer_step")
"""Terms that the breakdown of a step states."""
SHOWN = 0.01
"""A row is affected by a term that changes its step by more than this."""


def by_class(rows: Sequence[FitRow]) -> Iterator[str]:
    """Yield the error of every class, over rows that state everything."""
    yield from ("Rows that leave nothing open; step time, by class:", "")
    found = []
    for name, belongs in CLASSES.items():
        errors = np.array([1 / (r.outcome.prediction.evaluation.step.seconds * r.speed) - 1
                           for r in rows if belongs(r.outcome)])
        found.append([name, str(len(errors)), *_figures(errors)])
    yield from table(("class", "rows", "median", "p90", "bias"), found)
    yield ""


def by_source(outcomes: Sequence[PredictedRow]) -> Iterator[str]:
    """Yield how well layouts are ordered in the sweeps of every source that has any."""
    sources = sorted({o.row.prefix for o in outcomes})
    found = [(name, rank([o for o in outcomes if o.row.prefix == name])) for name in sources]
    yield from table(("source", "groups", "median rank correlation", "regret of our best"), [
        [name, str(r["groups"]), f"{r['median_spearman']:.2f}", f"{r['mean_top1_regret']:.1%}"]
        for name, r in found if r["groups"]])


def ablation(rows: Sequence[FitRow], catalog: Catalog) -> Iterator[str]:
    """Yield what predictions are without each term, nothing refitted, over all rows and over those it affects."""
    base = residuals(rows, catalog)
    yield from ("", "## Terms", "",
                "Each term left out in turn, nothing refitted: the rows whose step it changes by more than "
                f"{SHOWN:.0%}, their median change, and the error of all rows.", "")
    without = {name: residuals(rows, catalog.changed(_values(catalog, change))) for name, change in SWITCHES.items()}
    for name in COMPONENTS:
        shares = [r.outcome.prediction.evaluation.step for r in rows]
        without[name.replace("_", " ")] = base + np.log1p(-np.array([s.components[name] / s.seconds for s in shares]))
    lines = [["none", "", "", *_figures(np.expm1(-base))[:2]]]
    for name, left in sorted(without.items(), key=lambda item: -spread(np.expm1(-item[1]))["p90_abs_error"]):
        moved = np.abs(left - base) > SHOWN
        typical = f"{np.median(np.expm1(left - base)[moved]):+.0%}" if moved.any() else "0%"
        lines.append([name, str(int(moved.sum())), typical, *_figures(np.expm1(-left))[:2]])
    yield from table(("term left out", "rows", "step time", "median", "p90"), lines)


def _figures(errors: Floats) -> list[str]:
    found = spread(errors)
    return [f"{found['median_abs_error']:.1%}", f"{found['p90_abs_error']:.1%}", f"{found['bias'] + 0.0:+.1%}"]


def _values(catalog: Catalog, change: Mapping[str, float]) -> dict[tuple[str, str], dict[str, float]]:
    """Return the figures to change by entry, for every entry of the kind."""
    stacks = catalog.names("stacks")
    entries = {"kernels": [("calibration", "kernels")], "stack": [("stacks", name) for name in stacks],
               "expert": [("stacks", name) for name in stacks if catalog.stack(name).experts],
               "gpu": [("calibration", name) for name in catalog.names("calibration")
                       if name not in CALIBRATION and name.startswith("gpu-")]}
    values: dict[tuple[str, str], dict[str, float]] = {}
    for place, figure in change.items():
        kind, _, field = place.partition(":")
        for entry in entries[kind]:
            values.setdefault(entry, {})[field] = figure
    return values

"""Whether layouts come out in the right order, where runs differ by their layout alone."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from planner.evidence.compare import PredictedRow
from planner.evidence.rows import ServeRow, StatedRun
from planner.evidence.serve_speed import Speed, rates
from planner.layouts.table import Floats

LEAST = 3
"""Fewest rows, and fewest different layouts, of a group."""
_WORK = ("model", "layers", "hidden", "heads", "gpu", "gpus", "seq_len", "global_batch_seqs", "precision", "framework")
_SERVED = ("source", "engine", "engine_version", "model", "gpu", "isl", "osl", "weight_precision", "kv_precision",
           "concurrency", "max_batch", "disaggregated")
_CUT = ("gpus", "tp", "pp", "ep", "dp")
_LAYOUT = ("tp", "pp", "vpp", "cp", "dp", "micro_batch", "sharding", "seq_parallel", "recompute")


Group = dict[tuple[Hashable, ...], list[tuple[Hashable, float, float]]]
"""Layout, predicted and measured seconds of the runs that do the same work, by that work."""


def rank(outcomes: Iterable[PredictedRow]) -> dict[str, Any]:
    """Return the number of groups, the median Spearman correlation, and what taking our best loses on average."""
    groups: Group = {}
    for outcome in outcomes:
        if outcome.measured_seconds is not None:
            key = (outcome.row.prefix, *_values(outcome.row.run, _WORK))
            groups.setdefault(key, []).append((_values(outcome.row.run, _LAYOUT),
                                               outcome.prediction.evaluation.step.seconds, outcome.measured_seconds))
    return _ranked(groups)


def rank_served(speeds: Iterable[tuple[ServeRow, Speed]]) -> dict[str, Any]:
    """Return the same of serving rows, by output tokens/s of a GPU."""
    groups: Group = {}
    for row, speed in speeds:
        run, pair = row.run, rates(row.run, row.measured, speed)
        if pair is not None and run.tp is not None:
            layout = (*_values(run, _CUT), run.notes if run.disaggregated else None)
            groups.setdefault((speed.row.regime, *_values(run, _SERVED)), []).append((layout, 1 / pair[0], 1 / pair[1]))
    return _ranked(groups)


def _values(run: StatedRun, columns: Sequence[str]) -> tuple[Hashable, ...]:
    return tuple(getattr(run, column) for column in columns)


def _ranked(groups: Group) -> dict[str, Any]:
    scores = []
    for members in groups.values():
        if len(members) >= LEAST and len({layout for layout, _, _ in members}) >= LEAST:
            predicted, measured = (np.array([m[side] for m in members], np.float64) for side in (1, 2))
            scores.append((spearman(predicted, measured), top1_regret(predicted, measured)))
    correlations = [rho for rho, _ in scores if rho is not None]
    return {"groups": len(scores),
            "median_spearman": float(np.median(correlations)) if correlations else None,
            "mean_top1_regret": float(np.mean([regret for _, regret in scores])) if scores else None}


def spearman(a: Floats, b: Floats) -> float | None:
    """Return the rank correlation, ties at their mean rank; None where one side does not vary."""
    ranks = [_ranks(a), _ranks(b)]
    if any(np.ptp(r) == 0 for r in ranks):
        return None
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean: Floats = (last - (counts - 1) / 2.0)[inverse]
    return mean


def top1_regret(predicted: Floats, measured: Floats) -> float:
    """Return how much slower the predicted best ran than the best measured; ties of the prediction at their mean."""
    best = np.isclose(predicted, predicted.min(), rtol=1e-9)
    return float(measured[best].mean() / measured.min() - 1)

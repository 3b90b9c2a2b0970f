"""Whether layouts come out in the right order, where runs differ by their layout alone."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from planner.evidence.compare import Outcome
from planner.evidence.rows import ServeRow
from planner.evidence.serve_speed import Speed, rates
from planner.layouts.table import Floats

LEAST = 3
"""Fewest rows, and fewest different layouts, of a group."""
_WORK = ("model", "layers", "hidden", "heads", "gpu", "gpus", "seq_len", "global_batch_seqs", "precision", "framework")
_SERVED = ("source", "engine", "engine_version", "model", "gpu", "isl", "osl", "weight_precision", "kv_precision",
           "concurrency", "max_batch", "disaggregated")
_CUT = ("gpus", "tp", "pp", "ep", "dp")
_LAYOUT = ("tp", "pp", "vpp", "cp", "dp", "micro_batch", "sharding", "seq_parallel", "recompute")


def rank(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """Return the number of groups, the median Spearman correlation, and what taking our best loses on average."""
    groups: dict[tuple[Hashable, ...], list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.measured_seconds is not None:
            groups.setdefault((outcome.row.prefix, *_values(outcome, _WORK)), []).append(outcome)
    scores = [_scores(members) for members in groups.values()
              if len(members) >= LEAST and len({_values(m, _LAYOUT) for m in members}) >= LEAST]
    return _result(scores)


def rank_served(speeds: Iterable[tuple[ServeRow, Speed]]) -> dict[str, Any]:
    """Return the same of serving rows, by output tokens/s of a GPU."""
    groups: dict[tuple[Hashable, ...], list[tuple[tuple[Hashable, ...], float, float]]] = {}
    for row, found in speeds:
        run, pair = row.run, rates(row.run, row.measured, found)
        if pair is not None and run.tp is not None:
            key = (found.row.regime, *(getattr(run, column) for column in _SERVED))
            layout = (*(getattr(run, column) for column in _CUT), run.notes if run.disaggregated else None)
            groups.setdefault(key, []).append((layout, *pair))
    scores = []
    for members in groups.values():
        if len(members) >= LEAST and len({layout for layout, _, _ in members}) >= LEAST:
            seconds = [1 / np.array([m[side] for m in members]) for side in (1, 2)]
            scores.append((spearman(*seconds), top1_regret(*seconds)))
    return _result(scores)


def _result(scores: Sequence[tuple[float | None, float]]) -> dict[str, Any]:
    correlations = [rho for rho, _ in scores if rho is not None]
    return {"groups": len(scores),
            "median_spearman": float(np.median(correlations)) if correlations else None,
            "mean_top1_regret": float(np.mean([regret for _, regret in scores])) if scores else None}


def _values(outcome: Outcome, columns: Sequence[str]) -> tuple[Hashable, ...]:
    return tuple(getattr(outcome.row.run, column) for column in columns)


def _scores(members: Sequence[Outcome]) -> tuple[float | None, float]:
    predicted = np.array([m.prediction.evaluation.step.seconds for m in members])
    measured = np.array([m.measured_seconds for m in members], np.float64)
    return spearman(predicted, measured), top1_regret(predicted, measured)


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

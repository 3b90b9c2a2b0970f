"""A cluster whose network nobody states: a dozen of its runs say how slow it is, and other layouts follow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.catalog.load import Catalog
from planner.catalog.nearness import Cell
from planner.catalog.residuals import Law
from planner.evidence.kinds import EvidenceFile
from planner.evidence.reading import read_evidence
from planner.fit.cluster import fit_cluster
from planner.fit.knobs import knobs_of
from planner.fit.rows import FitRow, TrainingRows, changed, residuals, rows_of

EVIDENCE = Path(__file__).parents[1] / "evidence" / "train_throughput.csv"
STACK = "llm-foundry"
NOISE = 0.03


def cluster(efficiency: float) -> tuple[Catalog, list[FitRow]]:
    """Return FSDP runs on 16 to 128 A100 as a cluster would measure them whose network is another than assumed."""
    evidence, catalog = read_evidence(EVIDENCE), Catalog()
    rows = [row.model_copy(update={"run": row.run.model_copy(update={"scaleout": None, "nic_gbit_per_gpu": None})})
            for row in evidence.rows if row.prefix == "LLMF" and row.run.gpu == "a100-sxm-40gb"]
    held = [row for row in rows_of(EvidenceFile(evidence.kind, tuple(rows)), catalog) if row.outcome.prediction.network]
    (network,) = {row.outcome.prediction.network for row in held}
    truth = catalog.changed({("fabrics", network): {"efficiency": efficiency},
                             ("stacks", STACK): {"slowdown": 1.06 * catalog.stack(STACK).slowdown}})
    random = np.random.default_rng(1)
    logs = residuals([replace(row, speed=1.0) for row in held], truth) + NOISE * random.normal(size=len(held))
    order = random.permutation(len(held))
    return catalog, [replace(held[place], speed=float(np.exp(-logs[place]))) for place in order]


def test_other_layouts_are_predicted_from_a_dozen_runs() -> None:
    efficiency = 0.08
    catalog, rows = cluster(efficiency)
    given, kept = rows[:12], rows[12:]
    knobs = knobs_of(catalog, [row.outcome for row in given], own=True)
    found = fit_cluster(TrainingRows(tuple(given)), knobs, catalog)
    assert np.median(np.abs(np.expm1(residuals(kept, catalog)))) > 0.4
    off = np.abs(np.expm1(residuals(kept, changed(catalog, knobs, found.coordinates))))
    assert np.median(off) < 0.05
    assert off.max() < 0.15
    (network,) = [place for place, knob in enumerate(knobs) if (knob.kind, knob.field) == ("fabrics", "efficiency")]
    assert knobs[network].value(float(found.coordinates[network])) == pytest.approx(efficiency, rel=0.25)
    assert found.decided[network]
    assert np.median(np.abs(found.left_out)) < 0.06  # each run without itself


def test_an_own_site_is_less_doubtful_the_more_runs_it_has() -> None:
    law = Law(traits=("family",), head=1, between=0.05, unseen={}, beyond={}, open=0.2)
    doubts = []
    for own, rows in ((False, 12), (True, 4), (True, 12)):
        cell = Cell(traits={"family": "a"}, rows=rows, sources=("mine",), spread=0.04, error=0.03, own=own)
        residuals_ = Catalog().step_residuals.model_copy(update={"law": law, "cells": (cell,)})
        far = type(residuals_).nearness.func(residuals_).distance({"family": "a"}, {})  # type: ignore[attr-defined]
        doubts.append(law.scale(far, is_open=False))
    assert doubts[0] > doubts[1] > doubts[2] > cell.spread


def test_a_fitted_network_takes_effect(tmp_path: Path) -> None:
    (tmp_path / "calibration").mkdir()
    (tmp_path / "calibration" / "fitted.yaml").write_text(
        "name: fitted\nsource: 12 runs of mine\nas_of: 2026-11\nkind: fitted\nvalues:\n  fabrics/ib-hdr:\n"
        "    efficiency: {value: 0.11, spread: 0.1, rows: 12}\n", encoding="utf-8")
    fabric = Catalog([tmp_path]).fabric("ib-hdr")
    assert (fabric.efficiency, fabric.provenance("efficiency").kind) == (0.11, "fitted")

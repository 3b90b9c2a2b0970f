"""What whole runs add is fitted from a prior: planted figures are found, and a few rows do not decide alone."""

import json
import math

import numpy as np
import pytest

from planner.catalog.load import Catalog
from planner.cli.main import main
from planner.fit.whole import WholeSample, fit_whole
from tests.evidence_tests.csv_file import catalog, rows_of, write

PRIOR = catalog().whole_runs.prior


def samples(count, factor, spread, added, families):
    rng = np.random.default_rng(7)
    return [WholeSample(f"{n}", f"f{n % families}", False, factor * math.exp(spread * rng.normal()), False,
                        added * rng.exponential()) for n in range(count)]


def test_many_runs_decide_what_was_planted():
    found = fit_whole(samples(2000, 1.5, 0.2, 0.3, 2000), PRIOR)
    assert found.framework_stated.factor == pytest.approx(1.5, rel=0.02)
    assert found.framework_stated.spread == pytest.approx(0.2, rel=0.05)
    assert found.added.quantile(0.5) - 1 == pytest.approx(0.3 * math.log(2), rel=0.06)
    assert found.added.quantile(0.9) - 1 == pytest.approx(0.3 * math.log(10), rel=0.06)


def test_no_run_leaves_the_prior_and_one_hardly_moves_it():
    none, one = fit_whole([], PRIOR), fit_whole(samples(1, 3.0, 0.001, 1.0, 1), PRIOR)
    assert none.framework_stated.factor == PRIOR.framework_stated
    assert none.added == PRIOR.added
    assert PRIOR.framework_stated < one.framework_stated.factor < 1.6


def test_runs_of_one_family_count_less_than_those_of_many():
    few, many = (fit_whole(samples(12, 2.0, 0.001, 0.1, families), PRIOR).framework_stated.factor
                 for families in (1, 12))
    assert PRIOR.framework_stated < few < many < 2.0


def test_calibrate_writes_them_and_the_folder_takes_effect(tmp_path, capsys):
    rows = [row for row in rows_of("train_runs") if row["id"] in ("bloom-176b", "mpt-7b", "phi-3-medium")]
    runs, folder = write(tmp_path / "runs.csv", *rows), tmp_path / "mine"
    assert main(["calibrate", str(runs), "-o", str(folder), "--as-of", "2026-11", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 3
    first = (folder / "calibration" / "whole-runs.yaml").read_text()
    assert Catalog([folder]).whole_runs.framework_stated.rows == 2
    assert main(["calibrate", str(runs), "-o", str(folder), "--as-of", "2026-11", "-q"]) == 0
    assert (folder / "calibration" / "whole-runs.yaml").read_text() == first

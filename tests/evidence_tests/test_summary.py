"""The arithmetic of the summary, by hand."""

import numpy as np
import pytest

from planner.answer.validation import Entry
from planner.evidence.ranking import spearman, top1_regret
from planner.evidence.summary import summarize
from tests.evidence_tests.csv_file import THROUGHPUT, validated, write


def entry(predicted, measured, quantity="step_time_s", interval=(0.9, 1.1)):
    number = quantity != "fits"
    return Entry(id="x", quantity=quantity, predicted=predicted, measured=measured,
                 error=predicted / measured - 1 if number else None, interval90=interval if number else None)


def test_errors_by_hand():
    found = summarize([entry(1.2, 1.0), entry(0.9, 1.0), entry(1.0, 1.0), entry(2.0, 4.0)])["step_time_s"]
    # errors +0.2, -0.1, 0, -0.5: absolute 0, 0.1, 0.2, 0.5, whose 90th percentile lies 70% from 0.2 to 0.5
    assert dict(found) == {"n": 4, "median_abs_error": pytest.approx(0.15), "p90_abs_error": pytest.approx(0.41),
                     "bias": pytest.approx(-0.05), "interval90_coverage": 0.75,
                     "new_sources_n": None, "new_sources_coverage": None}


def test_sources_that_intervals_do_not_know_are_counted_apart():
    held = [entry(1.0, 1.0), entry(1.0, 2.0), entry(1.0, 1.05)]
    known = [held[0], *(one.model_copy(update={"is_new": True}) for one in held[1:])]
    found = summarize(known)["step_time_s"]
    assert (found.interval90_coverage, found.new_sources_n, found.new_sources_coverage) == (
        pytest.approx(2 / 3), 2, 0.5)


def test_verdicts_by_hand():
    verdicts = [("fits", "yes"), ("fits", "yes"), ("fits", "no"), ("tight", "yes"), ("tight", "no"),
                ("does not fit", "no"), ("does not fit", "yes")]
    assert dict(summarize([entry(p, m, "fits") for p, m in verdicts])["fits"]) == {
        "n": 7, "true_fit": 2, "false_fit": 1, "tight_fit": 1, "true_oom": 1, "false_oom": 1, "tight_oom": 1}


def test_a_summary_names_only_what_occurs():
    assert summarize([]) == {}


def test_spearman_takes_ties_at_their_mean_rank():
    assert spearman(np.array([1.0, 2, 3]), np.array([10.0, 20, 30])) == pytest.approx(1)
    assert spearman(np.array([1.0, 2, 3]), np.array([3.0, 2, 1])) == pytest.approx(-1)
    # ranks 1.5, 1.5, 3 against 1, 2, 3
    assert spearman(np.array([1.0, 1, 2]), np.array([1.0, 2, 3])) == pytest.approx(np.sqrt(3) / 2)
    assert spearman(np.array([1.0, 1, 1]), np.array([1.0, 2, 3])) is None


def test_regret_is_what_the_predicted_best_loses():
    assert top1_regret(np.array([2.0, 1, 3]), np.array([10.0, 12, 20])) == pytest.approx(0.2)
    assert top1_regret(np.array([1.0, 1, 3]), np.array([10.0, 12, 20])) == pytest.approx(0.1)


def test_a_group_differs_by_its_layout_alone(tmp_path):
    layouts = [{"tp": "4", "cp": "2"}, {"tp": "8", "cp": "1"}, {"tp": "2", "cp": "4"}]
    rows = [THROUGHPUT | layout | {"id": f"S-{i}", "step_time_s": str(14 + i)} for i, layout in enumerate(layouts)]
    summary = validated(write(tmp_path / "a.csv", *rows))["summary"]["rank"]
    assert summary["groups"] == 1
    rows[2] = rows[2] | {"seq_len": "4096"}
    summary = validated(write(tmp_path / "b.csv", *rows))["summary"]["rank"]
    assert summary == {"groups": 0, "median_spearman": None, "mean_top1_regret": None}

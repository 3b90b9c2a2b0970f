"""What runs add to their steps: in the interval of the duration, and in a deadline asked at a confidence."""

import numpy as np
import pytest

import planner
from planner.catalog.load import data_root
from planner.catalog.residuals import Residual
from planner.catalog.whole_runs import AddedShare
from planner.jobs.kinds import question_of
from planner.jobs.solved import solve
from planner.physics.training.whole import run_quantile
from planner.scenario.load import load_any
from planner.solver.search.job import Pricing
from planner.units import DAY
from tests.evidence_tests.csv_file import catalog

ASKED = {"model": "llama-3.2-1b", "tokens": "1 G", "on": "dgx-h100", "gpus": 8, "stack": "deepspeed"}
STEP = Residual(rows=100, q05=0.9, q10=0.93, q50=1.0, q90=1.08, q95=1.12)
EXACT = Residual(rows=100, q05=1, q10=1, q50=1, q90=1, q95=1)


@pytest.fixture(scope="module")
def fastest():
    (found,) = planner.plan(**ASKED, objective="time").assignments
    return found


def question(deadline):
    asked, _ = load_any(None, {"workload.model": ASKED["model"], "workload.tokens": ASKED["tokens"],
                               "hardware.candidates": [ASKED["on"]], "workload.stack": ASKED["stack"],
                               "limits.gpus": ASKED["gpus"], "limits.deadline": deadline}, catalog())
    return question_of(asked, catalog())


def upper(confidence):
    """Return the factor by which the search counts a duration against a deadline."""
    (job,) = question(f"1 d at {confidence:.0%}").jobs[0].jobs
    (past,) = Pricing(job.search, job.question.candidates).doublings(np.array([int(ASKED["gpus"])]))
    return job.search.uppers[0][past]


@pytest.mark.parametrize("confidence", [0.05, 0.5, 0.9, 0.95])
def test_the_product_is_that_of_draws(confidence):
    added, rng = AddedShare(weight=12, total=1.5), np.random.default_rng(1)
    levels = rng.random((2, 400_000))
    steps = np.interp(levels[0], [0, 0.05, 0.1, 0.5, 0.9, 0.95, 1], [0.9, 0.9, 0.93, 1.0, 1.08, 1.12, 1.16])
    drawn = np.quantile(steps * (1 + added.total * ((1 - levels[1]) ** (-1 / added.weight) - 1)), confidence)
    assert run_quantile(STEP, added, confidence) == pytest.approx(drawn, rel=4e-3)
    assert run_quantile(EXACT, added, confidence) == pytest.approx(added.quantile(confidence), rel=4e-3)
    assert run_quantile(STEP, None, confidence) <= run_quantile(STEP, added, confidence)


def test_the_interval_holds_the_step_and_what_runs_add(fastest):
    low, high = fastest.duration_interval90_days
    slow, added = fastest.time.interval90_seconds[1] / fastest.time.step_seconds, fastest.whole_run.factor90[1]
    assert low < fastest.duration_days < fastest.duration_days * max(slow, added) < high
    assert high < fastest.duration_days * slow * added
    assert fastest.duration_days * upper(0.95) == pytest.approx(high)


@pytest.mark.parametrize(("share", "status"), [(1.0001, "optimal"), (0.9999, "infeasible")])
def test_a_deadline_is_tight_with_and_without_a_confidence(fastest, share, status):
    seconds = share * fastest.duration_days * DAY
    assert solve(question(f"{seconds:.3f} s")).status == status
    assert solve(question(f"{seconds * upper(0.9):.3f} s at 90%")).status == status


def test_no_at_a_confidence_advises_a_deadline_that_is_enough(fastest):
    plan = planner.plan(**ASKED, deadline="1 min at 90%")
    (advice,) = (one.to for one in plan.infeasible.relaxations if one.limit == "deadline")
    assert advice.endswith(" at 90%")
    assert solve(question(advice)).status == "optimal"


def test_the_optimum_is_the_same_whatever_runs_add(tmp_path):
    (shipped,) = planner.plan(**ASKED).assignments
    (tmp_path / "calibration").mkdir()
    text = (data_root("catalogs") / "calibration" / "whole-runs.yaml").read_text()
    added = catalog().whole_runs.added.total
    (tmp_path / "calibration" / "whole-runs.yaml").write_text(text.replace(f"total: {added}", "total: 30", 1))
    (other,) = planner.plan(**ASKED, catalogs=[tmp_path]).assignments
    assert (other.layout, other.cost_usd, other.duration_days) == (
        shipped.layout, shipped.cost_usd, shipped.duration_days)
    assert other.duration_interval90_days[1] > 2 * shipped.duration_interval90_days[1]


def test_tuning_has_the_interval_of_its_steps_alone():
    (tuned,) = planner.plan(**ASKED | {"method": "full"}).assignments
    assert tuned.whole_run is None
    assert tuned.duration_interval90_days == pytest.approx([
        tuned.duration_days * end / tuned.time.step_seconds for end in tuned.time.interval90_seconds])

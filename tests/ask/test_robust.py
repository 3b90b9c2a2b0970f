"""--robust: the plan of least mean cost, held against drawn errors that plans share where they share a cause."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from planner.answer.assignment import Assignment, TrainingAlternative, TrainingAssignment
from planner.ask.plan import make_plan
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.solver.search.job import DOUBLINGS
from tests.asked import load_scenario

ASKED = {"workload.model": "llama-3.1-8b", "workload.tokens": "20 B", "workload.global_batch": "64",
         "hardware.candidates": "dgx-h100,dgx-a100", "limits.max_gpus": "32", "robust": "yes"}
DRAWS = 200_000


def drawn(plans: Sequence[Assignment]) -> list[float]:
    """Return the mean cost of each plan over draws of the causes of its error, one draw for all that share a cause."""
    draws: dict[str, np.ndarray] = {}
    found = []
    for one in plans:
        assert one.time.evidence is not None
        error = np.zeros(DRAWS)
        for number, (cause, variance) in enumerate(one.time.evidence.causes):
            rng = np.random.default_rng([number, *cause.encode()])
            error += math.sqrt(variance) * draws.setdefault(cause, rng.standard_normal(DRAWS))
        found.append(float(np.mean((one.cost_usd or 0.0) * np.exp(error))))
    return found


def test_the_mean_cost_is_that_of_draws_and_no_alternative_has_a_lower_one() -> None:
    catalog = Catalog()
    scenario, defaults = load_scenario(None, ASKED, catalog)
    plan = make_plan(scenario, catalog, defaults=defaults)
    assert plan.status == "optimal"
    shown = [*plan.assignments, *plan.alternatives]
    assert {type(one) for one in shown} == {TrainingAssignment, TrainingAlternative}
    for one, mean in zip(shown, drawn(shown), strict=True):
        assert one.mean_cost_usd == pytest.approx(mean, rel=2e-3)
        assert (one.mean_cost_usd or 0) >= (one.cost_usd or 0)
    assert min(one.mean_cost_usd or 0 for one in shown) == plan.assignments[0].mean_cost_usd == plan.objective.value


@pytest.mark.parametrize("changes", [{"objective": "time"}, {"workload.tokens": None}])
def test_a_mean_is_of_the_cost_of_a_job(changes: dict[str, str | None]) -> None:
    asked = {key: value for key, value in (ASKED | changes).items() if value is not None}
    with pytest.raises(InputError, match="mean cost"):
        load_scenario(None, asked, Catalog())


def test_an_interval_is_the_wider_the_further_gpus_are_past_those_of_published_runs() -> None:
    catalog = Catalog()
    scenario, _ = load_scenario(None, ASKED | {"limits.max_gpus": "100000"}, catalog)
    from planner.jobs.kinds import question_of

    (job,) = question_of(scenario, catalog).jobs
    first = getattr(job, "first", job)
    context = first.context
    known = context.job.known
    widths = [residual.q95 / residual.q05 for gpus in (8, known, 2 * known, 4 * known)
              for residual in (context.residual(0, "bf16", gpus),)]
    assert widths[0] == widths[1] < widths[2] < widths[3]
    assert all(len(row) == DOUBLINGS + 1 for each in context.job.means for row in each)

"""The doubt about a plan: causes that two predictions share cancel, and a measurement is advised where it pays."""

from __future__ import annotations

from typing import Any

import pytest

from planner.answer.assignment import TrainingAlternative, TrainingAssignment
from planner.answer.breakdown import Evidence
from planner.ask.doubt import doubt_of
from planner.money.doubt import Choices
from tests.answer.example_plan import STEPS, assignment, time
from tests.search_cases import catalog

OWN = {"rows of hopper": 0.05**2, "site megatron": 0.06**2}
OTHER = {"rows of blackwell": 0.07**2, "site megatron": 0.06**2}


def known(causes: dict[str, float], steps: int) -> Any:
    evidence = Evidence(rows=5, validated=True, causes=tuple(causes.items()))
    return time(steps=steps).model_copy(update={"evidence": evidence})


def doubt(price: float, causes: dict[str, float] = OTHER, *, gpu: str = "h100-sxm", objective: str = "cost_usd",
          steps: int = STEPS) -> Any:
    best = assignment(time=known(OWN, steps), steps=steps)
    other = assignment(price=28.0 * price, time=known(causes, steps), gpu=gpu, steps=steps)
    return doubt_of([TrainingAssignment(**best)], [TrainingAlternative(**other, why="dearer")], objective, catalog())


def test_what_both_predictions_share_counts_for_neither() -> None:
    found = doubt(1.02)
    apart = Choices(1.0, 1.02, 0.05**2 + 0.06**2, 0.07**2 + 0.06**2, 0.06**2)
    assert found.chance == pytest.approx(apart.chance)
    assert found.chance > Choices(1.0, 1.02, 0.05**2, 0.05**2, 0.0).chance
    assert found.loss == pytest.approx(apart.loss * found.value / 1.02)


def test_a_measurement_is_advised_only_where_it_pays() -> None:
    large, small = doubt(1.02), doubt(1.02, steps=40)
    assert large.measurement is not None
    assert large.measurement.cost_usd + large.measurement.loss < large.loss
    assert small.measurement is None
    assert doubt(1.02, objective="duration_days") is None or doubt(1.02, objective="duration_days").measurement is None


def test_fewer_nodes_tell_as_little_of_more_as_runs_of_as_many_doublings_less() -> None:
    """What a few nodes leave open is what an interval adds of a run that is as many doublings past all others."""
    found, steps, node = doubt(1.02), catalog().step_residuals, assignment()
    assert found.measurement is not None
    traits = next(cell.traits for cell in steps.cells if len(cell.traits) == len(steps.law.traits))
    sizes = {"gpus": steps.most(traits, "gpus") * node["nodes"] / found.measurement.nodes}
    noise = catalog().spreading.measuring.repeat**2 + dict(steps.at(traits, sizes).causes)["past gpus"]
    ours, theirs = sum(OWN.values()), sum(OTHER.values())
    choices = Choices(found.value / 1.02, found.value, ours, theirs, OWN["site megatron"])
    assert node["nodes"] > found.measurement.nodes
    assert found.measurement.loss == pytest.approx(choices.loss_after(noise, noise))


@pytest.mark.parametrize(("price", "gpu"), [(1.5, "h100-sxm"), (1.001, "b200")])
def test_there_is_no_doubt_about_what_is_far_dearer_or_of_the_same_gpu(price: float, gpu: str) -> None:
    own = assignment()["gpu"]
    assert doubt(price, gpu=gpu if gpu != "b200" else own) is None

"""Why a runner-up lost: the measure that decided, in its own unit, and never a contradiction."""

from __future__ import annotations

import pytest

from planner.answer.assignment import Assignment, TrainingAssignment
from planner.jobs.market import price_dates
from planner.jobs.training.runners_up import _why, show_hours
from tests.answer.example_plan import GOODPUT, STEPS, assignment, time


def plan_of(scale: float = 1.0, price: float = 28.0, **changes: object) -> Assignment:
    return TrainingAssignment(**assignment(scale, price, **changes))


BEST = plan_of()
H100 = {"node": "dgx-h100", "gpu": "h100-sxm", "offer": "lambda gpu_8x_h100"}


def test_equal_gpus_are_told_apart_by_cost_then_time() -> None:
    dearer = plan_of(price=35.0, **H100)
    assert _why(BEST, dearer, "gpus", 0.0) == "same GPUs; +25.0% cost: 20.77 MUSD against 16.61 MUSD"
    slower = plan_of(1.1, 28.0 / 1.1, **H100)
    assert _why(BEST, slower, "gpus", 0.0) == "same GPUs; +10.0% time: 60.4 d against 54.9 d"
    assert _why(BEST, plan_of(**H100), "gpus", 0.0) == "same GPUs; behind by less than 0.05%, or harder to set up"


def test_more_gpus_are_counted() -> None:
    layout = BEST.layout.model_copy(update={"dp": 256, "shard": 256})
    twice = plan_of(nodes=896, gpus=7168, layout=layout)
    assert _why(BEST, twice, "gpus", 1.0) == "+100.0% GPUs: 7,168 against 3,584"


def test_energy_is_given_in_its_unit() -> None:
    other = plan_of(1.2, **H100)
    assert _why(BEST, other, "energy", 0.2) == "+20.0% energy: 5,054.8 MWh against 4,212.3 MWh"
    assert "GPU-hours" not in _why(BEST, other, "time", 0.2)
    assert _why(BEST, other, "cost", 0.2).startswith("+20.0% cost: 5.70 M GPU-hours at 3.50 USD against 4.75 M")


def test_the_same_time_for_less_money_is_said() -> None:
    cheaper = plan_of(1.0001, 20.0, **H100)
    assert _why(BEST, cheaper, "time", 1e-4) == (
        "same time; behind by less than 0.05%, though for 11.87 MUSD against 16.61 MUSD")


def test_what_is_many_times_as_much_is_no_percentage() -> None:
    assert _why(BEST, plan_of(82.0, **H100), "time", 81.0) == "82x time: 4,505 d against 54.9 d"


def test_on_the_same_offer_the_part_of_the_step_is_named() -> None:
    slow = time(1.0)
    parts = slow.components.model_copy(update={"tensor_parallel": slow.components.tensor_parallel + 0.5})
    step = slow.step_seconds + 0.5
    slow = slow.model_copy(update={"components": parts, "step_seconds": step})
    days = STEPS * step / GOODPUT / 86400
    other = plan_of(time=slow, duration_days=days, cost_usd=round(450 * 28.0 * 24 * days, 2))
    assert _why(BEST, other, "cost", 0.1) == "+10.0% cost: tensor parallel takes +9.9% GPU time"


@pytest.mark.parametrize(("hours", "text"), [
    (0.34, "0.3 GPU-hours"), (21.34, "21.3 GPU-hours"), (999.6, "1.00 k GPU-hours"), (3200.0, "3.20 k GPU-hours"),
    (999_600.0, "1.00 M GPU-hours"), (4_740_000.0, "4.74 M GPU-hours")])
def test_gpu_hours_of_any_size_are_legible(hours: float, text: str) -> None:
    assert show_hours(hours) == text


def test_prices_are_dated_to_the_month() -> None:
    assert price_dates(["2026-11-09", "2026-05", "2026-05-30"]).value == "2026-05 to 2026-11"
    assert price_dates(["2026", "2026-11-09"]).value == "2026 to 2026-11"
    assert price_dates(["2026-11-09", "2026-11-21"]).value == "2026-11"

"""The gate to CP-SAT: exact values and bounds, and no values where there are none."""

from random import Random

import pytest
from ortools.sat.python import cp_model

from planner.solver.engine import run
from planner.solver.settings import Settings


def test_value_and_bound_are_exact_for_any_factor_and_constant():
    random = Random(0)
    for _ in range(100):
        model = cp_model.CpModel()
        xs = [model.new_int_var(0, 9, f"x{i}") for i in range(4)]
        model.add(sum(random.randint(1, 5) * x for x in xs) >= random.randint(5, 30))
        factor = random.choice([1, 6, 10**9])
        goal = sum(factor * random.randint(1, 9) * x for x in xs) + random.choice([0, 17, 10**15])
        ending = run(model, goal, Settings())
        assert ending.status == "optimal"
        assert ending.value == ending.bound == ending.read(goal)


def test_no_values_after_infeasible_or_undecided():
    model = cp_model.CpModel()
    x = model.new_int_var(0, 3, "x")
    undecided = run(model, x, Settings(deterministic_limit=0.0))
    model.add(x >= 4)
    infeasible = run(model, x, Settings())
    assert (undecided.status, infeasible.status) == ("undecided", "infeasible")
    for ending in (undecided, infeasible):
        assert ending.value is None
        with pytest.raises(ValueError, match="no values"):
            ending.read(x)


def test_an_invalid_model_is_a_defect():
    model = cp_model.CpModel()
    x = model.new_int_var(0, 2**62, "x")
    model.add(4 * x <= 8)
    with pytest.raises(RuntimeError, match="invalid"):
        run(model, x, Settings())

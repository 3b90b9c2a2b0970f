"""The general staging model: against enumeration, each constraint alone, and its endings."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest
from ortools.sat.python import cp_model

from planner.solver import staging
from planner.solver.check import check_staging
from planner.solver.settings import Settings
from planner.solver.staging import SharedLimit, cpsat
from planner.solver.staging.exact import solve_exact
from tests.exhaustive_staging import exhaustive_staging
from tests.solver.instances import random_staging, realistic_staging
from tests.solver.test_staging_exact import PLAIN

SMALL = replace(PLAIN, layers=4, max_layers=(4, 4))
Constraint = Callable[[staging.StagingProblem, cpsat.Variables, cp_model.CpModel], None]


@pytest.mark.parametrize("sharing", [False, True])
def test_value_bound_and_feasibility_agree_with_enumeration(sharing):
    random, answers = Random(11), 0
    for _ in range(250):
        problem = random_staging(random, sharing=sharing)
        solved, plain = cpsat.solve_cpsat(problem), exhaustive_staging(problem)
        if plain is None:
            assert solved == cpsat.CpsatStaging("infeasible", None, None), problem
            continue
        answers += 1
        assert solved.status == "optimal"
        assert solved.staged is not None
        assert solved.staged.objective == solved.bound == plain.objective, problem
        assert check_staging(problem, solved.staged) == []
    assert 60 < answers < 220


def test_both_paths_agree_on_pipelines_of_true_size():
    random = Random(12)
    for stages, layers, chunks in [(4, 32, 1), (8, 40, 1), (4, 32, 2)]:
        problem = realistic_staging(random, stages, layers, chunks)
        fast, general = solve_exact(problem), cpsat.solve_cpsat(problem).proven()
        assert fast is not None
        assert general is not None
        assert fast.objective == general.objective


def test_solve_with_shared_limits_agrees_with_enumeration_whichever_path_it_takes():
    random, shared_decides = Random(13), 0
    for _ in range(300):
        problem = random_staging(random, sharing=True)
        found, plain = staging.solve(problem), exhaustive_staging(problem)
        assert (found and found.objective) == (plain and plain.objective), problem
        shared_decides += found != solve_exact(problem)
    assert shared_decides > 40


def free(problem: staging.StagingProblem) -> tuple[cp_model.CpModel, cpsat.Variables]:
    model = cp_model.CpModel()
    top = problem.layers
    stages = range(problem.stages)
    return model, cpsat.Variables(
        [model.new_int_var(0, top, f"l{s}") for s in stages],
        [[model.new_int_var(0, top, f"n{s},{k}") for k in range(3)] for s in stages],
        model.new_int_var(0, 10**6, "slowest"), [model.new_bool_var(f"mix{i}") for i in range(len(problem.mixes))])


CASES: list[tuple[Constraint, staging.StagingProblem, dict[str, int], dict[str, int]]] = [
    (cpsat.all_layers_placed, SMALL, {"l0": 1, "l1": 3}, {"l0": 1, "l1": 2}),
    (cpsat.layer_limits, replace(SMALL, max_layers=(2, 4)), {"l0": 2}, {"l0": 3}),
    (cpsat.layer_limits, SMALL, {"l1": 1}, {"l1": 0}),
    (cpsat.modes_add_up, SMALL, {"l0": 3, "n0,0": 1, "n0,2": 2}, {"l0": 3, "n0,0": 1, "n0,1": 0, "n0,2": 1}),
    (cpsat.one_mix, SMALL, {"n0,0": 1, "n1,2": 1}, {"n0,0": 1, "n1,1": 1}),
    (cpsat.one_mix, SMALL, {"mix0": 1, "mix1": 0}, {"mix0": 1, "mix1": 1}),
    (cpsat.loss_phase_memory, replace(SMALL, capacity_units=14), {"l0": 2, "n0,0": 1}, {"l0": 3, "n0,0": 1}),
    (cpsat.loss_phase_memory, replace(SMALL, chunks=3, capacity_units=6), {"l0": 2, "n0,0": 1}, {"l0": 3, "n0,0": 1}),
    (cpsat.backward_phase_memory, replace(SMALL, backward_units=300, backward_fixed=(400, 0)), {"l0": 2}, {"l0": 3}),
    (cpsat.shared_memory, replace(SMALL, shared=(SharedLimit((0, 1), 2, 1, 7),)), {"l0": 2, "l1": 1},
     {"l0": 2, "l1": 2}),
    (cpsat.slowest_stage, replace(SMALL, extra_ns=(0, 3)), {"l1": 2, "n1,2": 1, "slowest": 28},
     {"l1": 2, "n1,2": 1, "slowest": 27}),
]


@pytest.mark.parametrize(("constraint", "problem", "holds", "breaks"), CASES,
                         ids=[f"{number}-{case[0].__name__}" for number, case in enumerate(CASES)])
def test_each_constraint_alone(constraint, problem, holds, breaks):
    for values, expected in ((holds, cp_model.OPTIMAL), (breaks, cp_model.INFEASIBLE)):
        model, variables = free(problem)
        constraint(problem, variables, model)
        every = [*variables.layers, *(n for row in variables.counts for n in row), variables.slowest, *variables.mixes]
        for variable in every:
            if variable.name in values:
                model.add(variable == values[variable.name])
        solver = cp_model.CpSolver()
        # else Ctrl-C ends the process from then on
        solver.parameters.catch_sigint_signal = False
        assert solver.solve(model) == expected


def test_the_same_question_gets_the_same_answer_and_the_same_model():
    problem = realistic_staging(Random(2), 6, 30)
    assert cpsat.solve_cpsat(problem) == cpsat.solve_cpsat(problem)


def test_a_hint_does_not_change_the_value():
    random = Random(14)
    for _ in range(20):
        problem = random_staging(random, sharing=True)
        plain = cpsat.solve_cpsat(problem)
        hinted = cpsat.solve_cpsat(problem, hint=solve_exact(replace(problem, shared=())))
        assert (plain.status, plain.bound) == (hinted.status, hinted.bound)


def test_a_limit_ends_without_a_claim():
    solved = cpsat.solve_cpsat(realistic_staging(Random(1), 16, 80), settings=Settings(deterministic_limit=0.0))
    assert solved.status in {"undecided", "feasible"}
    with pytest.raises(RuntimeError, match="not proven"):
        solved.proven()

"""The fast staging path against plain enumeration, and what must hold whatever the numbers are."""

import subprocess
import sys
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from planner.solver import staging
from planner.solver.check import check_staging
from planner.solver.staging.exact import chosen, least_sum, solve_exact
from planner.solver.staging.modes import NEVER
from planner.solver.staging.problem import StagingProblem
from tests.exhaustive_staging import exhaustive_staging
from tests.solver.instances import random_staging, realistic_staging

PLAIN = StagingProblem(
    layers=8, chunks=1, micro_batches=4, in_flight=(2, 1), layer_ns=10, mode_ns=(0, 2, 5), keep_units=(6, 3, 1),
    mixes=((0, 2), (1,)), extra_ns=(0, 0), state_units=1, fixed_units=(0, 0), capacity_units=1000, backward_units=0,
    backward_fixed=(0, 0), min_layers=(1, 1), max_layers=(8, 8))


@pytest.mark.parametrize("seed", range(10))
def test_value_feasibility_and_evenness_agree_with_enumeration(seed):
    random, answers = Random(seed), 0
    for _ in range(150):
        problem = random_staging(random)
        fast, plain = solve_exact(problem), exhaustive_staging(problem)
        assert (fast is None) == (plain is None), problem
        if fast is None or plain is None:
            continue
        answers += 1
        assert fast.objective == plain.objective, problem
        assert sum(n * n for n in fast.layers) == sum(n * n for n in plain.layers), problem
        assert check_staging(problem, fast) == []
    assert 40 < answers < 130


def test_layers_are_split_evenly_when_memory_is_ample():
    found = solve_exact(PLAIN)
    assert found is not None
    assert (found.layers, found.counts, found.objective) == ((4, 4), ((4, 0, 0), (4, 0, 0)), 3 * 40 + 80)


def test_the_stage_with_the_head_gets_fewer_layers():
    found = solve_exact(replace(PLAIN, extra_ns=(0, 20)))
    assert found is not None
    assert found.layers == (5, 3)


def test_only_as_many_layers_recompute_as_must():
    # stage 0 keeps 2 x (6 x 4 - 5 n) + 4 <= 40, hence n = 2; stage 1 fits whole
    found = solve_exact(replace(PLAIN, capacity_units=40, min_layers=(4, 4)))
    assert found is not None
    assert found.counts == ((2, 0, 2), (4, 0, 0))


def test_a_slower_mode_for_all_beats_a_mix_where_it_is_cheaper():
    found = solve_exact(replace(PLAIN, capacity_units=29, mode_ns=(0, 1, 9)))
    assert found is not None
    assert found.counts == ((0, 4, 0), (0, 4, 0))


@pytest.mark.parametrize("change", [
    {"capacity_units": 3}, {"min_layers": (5, 4)}, {"max_layers": (3, 4)}, {"backward_units": 300},
    {"backward_fixed": (0, 1001)}, {"fixed_units": (1001, 0)}, {"min_layers": (5, 1), "max_layers": (4, 8)}])
def test_each_limit_alone_makes_it_infeasible(change):
    problem = replace(PLAIN, **change)
    assert solve_exact(problem) is None
    assert exhaustive_staging(problem) is None


def test_more_memory_or_wider_limits_never_hurt():
    random = Random(3)
    for _ in range(300):
        problem = random_staging(random)
        before = solve_exact(problem)
        wider = (replace(problem, capacity_units=problem.capacity_units + 5),
                 replace(problem, max_layers=tuple(n + 1 for n in problem.max_layers)),
                 replace(problem, mixes=(*problem.mixes, (0, 2))))
        for after in map(solve_exact, wider):
            assert before is None or (after is not None and after.objective <= before.objective)


def test_longer_layers_never_shorten_the_step():
    random = Random(4)
    for _ in range(300):
        problem = random_staging(random)
        before, after = solve_exact(problem), solve_exact(replace(problem, layer_ns=problem.layer_ns + 1))
        assert (before is None) == (after is None)
        assert before is None or after is None or after.objective >= before.objective + problem.layers


def test_the_same_question_gets_the_same_answer():
    random = Random(5)
    for _ in range(30):
        problem = realistic_staging(random, 8, 40)
        assert solve_exact(problem) == solve_exact(replace(problem))


@pytest.mark.parametrize(("stages", "layers", "chunks"), [(16, 80, 1), (8, 80, 5), (64, 126, 1)])
def test_large_pipelines_pass_the_validator(stages, layers, chunks):
    random = Random(stages)
    for _ in range(20):
        problem = realistic_staging(random, stages, layers, chunks)
        found = solve_exact(problem)
        assert found is not None
        assert check_staging(problem, found) == []


def test_min_plus_tree_agrees_with_a_plain_product():
    random = np.random.default_rng(0)
    for _ in range(200):
        rows = random.integers(0, 20, (random.integers(1, 8), random.integers(1, 5)))
        rows[random.random(rows.shape) < 0.2] = NEVER
        total = int(random.integers(0, rows.shape[0] * rows.shape[1]))
        least, tree = least_sum(rows, total)
        plain = {0: 0}
        for row in rows.tolist():
            plain = {t: min(plain[t - i] + x for i, x in enumerate(row) if t - i in plain)
                     for t in range(total + 1) if any(t - i in plain for i in range(len(row)))}
        assert least == min(plain.get(total, NEVER), NEVER)
        if least < NEVER:
            taken = chosen(tree, total, len(rows))
            assert taken.sum() == total
            assert sum(row[i] for row, i in zip(rows, taken, strict=True)) == least


@pytest.mark.parametrize("change", [
    {"extra_ns": (0,)}, {"layer_ns": -1}, {"layers": 0}, {"in_flight": (0, 1)}, {"mixes": ()}, {"mixes": ((3,),)},
    {"layer_ns": 2**60}, {"capacity_units": 2**60}, {"keep_units": (-1, 0, 0)}])
def test_numbers_on_which_no_proof_would_hold_are_refused(change):
    with pytest.raises(ValueError, match=r"differ|negative|at least|mixes|60 bits"):
        replace(PLAIN, **change)


def test_the_fast_path_does_not_import_ortools():
    modules = "planner.solver.staging, planner.solver.check, planner.solver.fleet"
    code = f"import sys, {modules}; print('ortools' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_solve_remembers_its_answers():
    assert staging.solve(PLAIN) is staging.solve(replace(PLAIN))


@pytest.mark.parametrize("seed", range(4))
def test_a_slower_slowest_stage_is_found_where_it_pays(seed):
    random, paid = Random(100 + seed), 0
    for _ in range(150):
        # few passes and dear recompute: the least slowest stage is often not the best one
        rough = replace(random_staging(random), micro_batches=random.choice([1, 2, 3]), chunks=1, mode_ns=(0, 3, 40),
                        bubble_parts=1,
                        keep_units=(8, 5, 1), mixes=((0, 1, 2),), backward_units=0, state_units=random.randint(0, 4))
        problem = replace(rough, capacity_units=random.randint(15, 90), max_layers=(9,) * rough.stages)
        fast, plain = solve_exact(problem), exhaustive_staging(problem)
        assert (fast and fast.objective) == (plain and plain.objective), problem
        least_slowest = solve_exact(replace(problem, micro_batches=10**6))
        paid += fast is not None and least_slowest is not None and max(fast.stage_ns) > max(least_slowest.stage_ns)
    assert paid > 3

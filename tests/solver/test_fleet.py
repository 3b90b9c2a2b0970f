"""The fleet of one job that ends: how its answer must move when the question does."""

from dataclasses import replace
from random import Random

import pytest

from planner.solver.fleet.problem import FleetOffer, RunProblem
from planner.solver.fleet.single import best_run, single
from tests.solver.instances import random_column, random_run

HOUR = 3_600_000_000
COLUMNS = tuple(replace(random_column(Random(key), key, 1), candidate=candidate, duration_us=HOUR * hours,
                        upper_us=HOUR * hours, nodes=nodes, spare_nodes=0, gpus=8 * nodes, power_w=nodes)
                for key, candidate, nodes, hours in [(1, 0, 2, 4), (2, 0, 4, 2), (3, 1, 1, 9)])
THREE = RunProblem(COLUMNS, (FleetOffer(1, 0, 10**6, 4), FleetOffer(2, 1, 900_000)))


def test_a_tie_in_money_goes_to_the_faster_and_then_to_fewer_gpus():
    tied = replace(THREE, offers=(FleetOffer(1, 0, 10**6),))
    assert best_run(tied).choice.column.key == 2
    alike = tuple(replace(column, duration_us=HOUR, nodes=1, spare_nodes=0) for column in COLUMNS
                  if column.candidate == 0)
    chosen = best_run(replace(tied, columns=alike)).choice.column
    assert chosen.gpus == min(column.gpus for column in alike)


@pytest.mark.parametrize(("columns", "bound", "status", "told"), [
    (COLUMNS, None, "optimal", 800), (COLUMNS, 800, "optimal", 800), (COLUMNS, 900, "optimal", 800),
    (COLUMNS, 700, "feasible", 700), ((), None, "infeasible", None), ((), 700, "undecided", 700)])
def test_what_was_left_unsearched_is_no_proof(columns, bound, status, told):
    found = single(replace(THREE, columns=columns), bound)
    assert (found.status, found.bound) == (status, told)
    assert found.value == (800 if columns else None)


def test_columns_that_nothing_sells_are_a_defect():
    with pytest.raises(RuntimeError, match="over 3 columns that fit"):
        single(replace(THREE, offers=()), None)


def test_keys_that_name_two_things_are_refused():
    with pytest.raises(ValueError, match=r"not unique: \[1\]"):
        replace(THREE, columns=(COLUMNS[0], replace(COLUMNS[1], key=1)))


def moved(problem, factor):
    offers = tuple(replace(o, micro_usd_per_node_hour=int(o.micro_usd_per_node_hour * factor)) for o in problem.offers)
    return replace(problem, offers=offers, objective="cost", limits=replace(problem.limits, budget_cents=None))


def test_a_lower_price_never_raises_the_cost_and_a_double_price_doubles_it():
    random = Random(21)
    for _ in range(100):
        problem = random_run(random)
        values = [best_run(moved(problem, factor)).value for factor in (0.7, 1, 2)]
        if values[1] is None:
            assert values == [None, None, None]
            continue
        assert values[0] <= values[1]
        # what is paid is rounded up to a cent
        assert 2 * values[1] - 2 <= values[2] <= 2 * values[1]


@pytest.mark.parametrize("name", ["deadline_us", "budget_cents", "max_power_w"])
def test_a_wider_limit_never_hurts(name):
    random, helped = Random(22), 0
    for _ in range(300):
        problem = random_run(random)
        before = best_run(problem)
        after = best_run(replace(problem, limits=replace(problem.limits, **{name: None})))
        assert before.value is None or (after.value is not None and after.value <= before.value)
        helped += before.value != after.value
    assert helped > 3


def test_another_column_or_offer_never_hurts():
    random = Random(23)
    for _ in range(100):
        problem = random_run(random)
        more = (replace(problem, offers=(*problem.offers, FleetOffer(1000, 0, 500_000))),
                replace(problem, columns=(*problem.columns, random_column(random, 1000, 1))))
        before = best_run(problem)
        for after in map(best_run, more):
            assert before.value is None or (after.value is not None and after.value <= before.value)


def renumbered(entries):
    return tuple(replace(e, key=500 - e.key, candidate=9 - e.candidate) for e in reversed(entries))


def test_renumbering_changes_no_value():
    random = Random(24)
    for _ in range(100):
        problem = random_run(random)
        renamed = replace(problem, offers=renumbered(problem.offers), columns=renumbered(problem.columns))
        before, after = best_run(problem), best_run(renamed)
        assert (before.status, before.value) == (after.status, after.value)

"""The fleet of jobs that end, by enumeration: how answers must move when the question does."""

from dataclasses import replace
from random import Random

import pytest

from planner.solver.exhaustive import exhaustive_fleet
from planner.solver.fleet.problem import FleetOffer, FleetProblem
from tests.solver.instances import random_column, random_fleet

HOUR = 3_600_000_000
COLUMNS = tuple(replace(random_column(Random(key), key, 1), candidate=candidate, duration_us=HOUR * hours,
                        upper_us=HOUR * hours, nodes=nodes, spare_nodes=0, gpus=8 * nodes)
                for key, candidate, nodes, hours in [(1, 0, 2, 4), (2, 0, 4, 2), (3, 1, 1, 9)])
THREE = FleetProblem((COLUMNS,), (FleetOffer(1, 0, 10**6, 4), FleetOffer(2, 1, 900_000)))


def test_a_tie_in_money_goes_to_the_faster_and_then_to_fewer_gpus():
    tied = replace(THREE, offers=(FleetOffer(1, 0, 10**6),))
    assert exhaustive_fleet(tied).choices[0].column.key == 2
    alike = tuple(replace(column, duration_us=HOUR, nodes=1, spare_nodes=0) for column in THREE.workloads[0]
                  if column.candidate == 0)
    chosen = exhaustive_fleet(replace(tied, workloads=(alike,))).choices[0].column
    assert chosen.gpus == min(column.gpus for column in alike)


def test_no_column_and_no_offer_are_infeasible():
    for problem in (replace(THREE, workloads=((),)), replace(THREE, offers=())):
        assert exhaustive_fleet(problem).status == "infeasible"


def test_no_workload_costs_nothing():
    for objective in ("cost", "time", "gpus"):
        problem = FleetProblem((), (), objective=objective)
        assert (exhaustive_fleet(problem).status, exhaustive_fleet(problem).value) == ("optimal", 0)


def test_keys_that_name_two_things_are_refused():
    with pytest.raises(ValueError, match=r"not unique: \[1\]"):
        replace(THREE, workloads=((COLUMNS[0], replace(COLUMNS[1], key=1)),))


def moved(problem: FleetProblem, factor: float) -> FleetProblem:
    offers = tuple(replace(o, micro_usd_per_node_hour=int(o.micro_usd_per_node_hour * factor)) for o in problem.offers)
    return replace(problem, offers=offers, objective="cost", budget_cents=None)


def test_a_lower_price_never_raises_the_cost_and_a_double_price_doubles_it():
    random = Random(21)
    for _ in range(60):
        problem = random_fleet(random)
        values = [exhaustive_fleet(moved(problem, factor)).value for factor in (0.7, 1, 2)]
        if values[1] is None:
            assert values == [None, None, None]
            continue
        assert values[0] <= values[1]
        # each of the rentals rounds up to a cent
        assert 2 * values[1] - 2 * len(problem.workloads) <= values[2] <= 2 * values[1]


@pytest.mark.parametrize("name", ["deadline_us", "budget_cents", "max_gpus", "max_nodes"])
def test_a_wider_limit_never_hurts(name):
    random = Random(22)
    for _ in range(40):
        problem = random_fleet(random)
        before, after = exhaustive_fleet(problem), exhaustive_fleet(replace(problem, **{name: None}))
        assert before.value is None or (after.value is not None and after.value <= before.value)


def test_another_column_or_offer_never_hurts():
    random = Random(23)
    for _ in range(60):
        problem = random_fleet(random)
        more = (replace(problem, offers=(*problem.offers, FleetOffer(1000, 0, 500_000))),
                replace(problem, workloads=(
                    (*problem.workloads[0], random_column(random, 1000, 1)), *problem.workloads[1:])))
        before = exhaustive_fleet(problem)
        for after in map(exhaustive_fleet, more):
            assert before.value is None or (after.value is not None and after.value <= before.value)


def renumbered(entries):
    return tuple(replace(e, key=500 - e.key, candidate=9 - e.candidate) for e in reversed(entries))


def test_renumbering_changes_no_value():
    random = Random(24)
    for _ in range(60):
        problem = random_fleet(random)
        renamed = replace(problem, offers=renumbered(problem.offers),
                          workloads=tuple(renumbered(columns) for columns in problem.workloads))
        before, after = exhaustive_fleet(problem), exhaustive_fleet(renamed)
        assert (before.status, before.value) == (after.status, after.value)

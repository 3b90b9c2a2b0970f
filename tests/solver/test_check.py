"""The validators themselves: sound answers pass, and every single change that breaks one is named."""

from dataclasses import replace

import pytest

from planner.solver.check import check_run, check_staging, claims
from planner.solver.fleet.covering import Covered
from planner.solver.fleet.problem import Choice, FleetLimits, FleetOffer
from planner.solver.fleet.single import best_run
from planner.solver.staging import SharedLimit, Staged, solve
from planner.solver.staging.problem import staged
from tests.solver.test_fleet import COLUMNS, HOUR, THREE
from tests.solver.test_staging_exact import PLAIN

TIGHT = replace(PLAIN, capacity_units=40, min_layers=(4, 4), max_layers=(4, 4))
SPLIT = solve(TIGHT)
assert isinstance(SPLIT, Staged)


def test_the_sound_answers_pass():
    assert check_staging(TIGHT, SPLIT) == []
    assert check_run(THREE, best_run(THREE)) == []


@pytest.mark.parametrize(("change", "words"), [
    ({"layers": (4, 3)}, "hold 7 layers"), ({"layers": (5, 3)}, "do not add up to 5"),
    ({"counts": ((2, 1, 1), (4, 0, 0))}, "may not be used together"),
    ({"counts": ((3, 0, 1), (4, 0, 0))}, "loss phase needs 42 of 40"),
    ({"counts": ((-1, 0, 5), (4, 0, 0))}, "negative"),
    ({"counts": ((2, 0, 2), (3, 0, 0))}, "do not add up to 4"),
    ({"stage_ns": (50, 41)}, "stage 1: takes 40 ns"), ({"objective": 239}, "objective is 240"),
    ({"stage_ns": (50,)}, "does not have 2 stages")])
def test_a_changed_split_is_caught(change, words):
    assert words in "; ".join(check_staging(TIGHT, replace(SPLIT, **change)))


@pytest.mark.parametrize(("change", "words"), [
    ({"capacity_units": 31}, "loss phase needs 32 of 31"), ({"backward_units": 11}, "backward phase needs 44 of 40"),
    ({"max_layers": (4, 3)}, "4 layers, allowed 4 to 3"), ({"min_layers": (5, 4)}, "4 layers, allowed 5 to 4"),
    ({"layers": 9}, "the model has 9"), ({"mixes": ((0,), (1,))}, "modes [0, 2]"),
    ({"shared": (SharedLimit((0, 1), 2, 1, 16),)}, "shared limit 0: needs 17 of 16")])
def test_a_changed_question_is_caught(change, words):
    assert words in "; ".join(check_staging(replace(TIGHT, **change), SPLIT))


def test_moving_one_layer_off_any_limit_is_caught():
    for rows in (((1, 0, 2), (5, 0, 0)), ((3, 0, 2), (3, 0, 0)), ((2, 0, 2), (4, 0, 1))):
        assert check_staging(TIGHT, staged(TIGHT, rows))


FIRST = Choice(COLUMNS[0], THREE.offers[0])
RIVAL = Choice(replace(COLUMNS[0], nodes=1), THREE.offers[0])


@pytest.mark.parametrize(("change", "words"), [
    ({"value": 799}, "cost is 800"), ({"bound": 801}, "above the value"), ({"bound": 799}, "optimal with bound 799"),
    ({"choice": None}, "no choice after optimal"), ({"choice": RIVAL}, "not one of the columns"),
    ({"choice": FIRST._replace(offer=THREE.offers[1])}, "does not sell"),
    ({"choice": FIRST._replace(offer=FleetOffer(9, 0, 1))}, "does not sell"),
    ({"status": "infeasible"}, "choice after infeasible")])
def test_a_changed_choice_is_caught(change, words):
    assert words in "; ".join(check_run(THREE, replace(best_run(THREE), **change)))


@pytest.mark.parametrize(("change", "words"), [
    ({"limits": FleetLimits(deadline_us=4 * HOUR - 1)}, "us: "),
    ({"limits": FleetLimits(budget_cents=799)}, "cents: 800"),
    ({"limits": FleetLimits(max_power_w=1)}, "watts: 2"), ({"objective": "time"}, "time is"),
    ({"objective": "gpus"}, "gpus is 16")])
def test_a_changed_limit_is_caught(change, words):
    solution = best_run(replace(THREE, columns=COLUMNS[:1]))
    assert words in "; ".join(check_run(replace(THREE, **change), solution))


def test_an_offer_that_holds_too_little_is_caught():
    small = FleetOffer(1, 0, 10**6, 1)
    moved = replace(best_run(replace(THREE, columns=COLUMNS[:1])), choice=FIRST._replace(offer=small))
    assert "nodes of the offer: 2 against" in "; ".join(check_run(replace(THREE, offers=(small,)), moved))


def test_an_optimal_fleet_of_replicas_has_its_value_as_its_bound():
    assert claims(Covered("optimal", value=5, bound=4), "cost", 5) == ["optimal with bound 4 and value 5"]
    assert claims(Covered("feasible", value=5, bound=4), "cost", 5) == []

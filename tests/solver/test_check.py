"""The validators themselves: sound answers pass, and every single change that breaks one is named."""

from dataclasses import replace

import pytest

from planner.solver.check import check_fleet, check_staging
from planner.solver.exhaustive import exhaustive_fleet
from planner.solver.fleet.problem import Choice, FleetOffer
from planner.solver.staging import SharedLimit, Staged, solve
from planner.solver.staging.problem import staged
from tests.solver.test_fleet import COLUMNS, HOUR, THREE
from tests.solver.test_staging_exact import PLAIN

TIGHT = replace(PLAIN, capacity_units=40, min_layers=(4, 4), max_layers=(4, 4))
SPLIT = solve(TIGHT)
assert isinstance(SPLIT, Staged)


def test_the_sound_answers_pass():
    assert check_staging(TIGHT, SPLIT) == []
    assert check_fleet(THREE, exhaustive_fleet(THREE)) == []


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


@pytest.mark.parametrize(("change", "words"), [
    ({"value": 799}, "cost is 800"), ({"bound": 801}, "above the value"), ({"bound": 799}, "optimal with bound 799"),
    ({"choices": ()}, "one each expected"),
    ({"choices": (Choice(0, replace(COLUMNS[0], nodes=1), THREE.offers[0]),)}, "not one of its columns"),
    ({"choices": (Choice(0, COLUMNS[0], THREE.offers[1]),)}, "does not sell"),
    ({"choices": (Choice(0, COLUMNS[0], FleetOffer(9, 0, 1)),)}, "does not sell"),
    ({"choices": (Choice(1, COLUMNS[0], THREE.offers[0]),)}, "not one of its columns"),
    ({"status": "infeasible"}, "choices after infeasible")])
def test_a_changed_choice_is_caught(change, words):
    assert words in "; ".join(check_fleet(THREE, replace(exhaustive_fleet(THREE), **change)))


@pytest.mark.parametrize(("change", "words"), [
    ({"deadline_us": 4 * HOUR - 1}, "us of workload 0"), ({"budget_cents": 799}, "cents: 800"),
    ({"max_gpus": 15}, "GPUs: 16"), ({"max_nodes": 1}, "nodes: 2"), ({"objective": "time"}, "time is"),
    ({"objective": "gpus"}, "gpus is 16")])
def test_a_changed_limit_is_caught(change, words):
    solution = exhaustive_fleet(replace(THREE, workloads=(COLUMNS[:1],)))
    assert words in "; ".join(check_fleet(replace(THREE, **change), solution))


def test_an_offer_that_holds_too_little_is_caught():
    small = FleetOffer(1, 0, 10**6, 1)
    solution = exhaustive_fleet(replace(THREE, workloads=(COLUMNS[:1],)))
    moved = replace(solution, choices=(Choice(0, COLUMNS[0], small),))
    assert "nodes of offer 1: 2 against" in "; ".join(check_fleet(replace(THREE, offers=(small,)), moved))

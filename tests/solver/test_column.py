"""Dominance: what it compares, and that leaving out dominated columns changes no optimum."""

from dataclasses import fields, replace
from random import Random

import pytest

from planner.layouts.axes import AXES
from planner.layouts.table import from_rows
from planner.solver.column import Column, dominates, undominated
from planner.solver.exhaustive import exhaustive_fleet
from planner.solver.search.job import identity
from tests.solver.instances import random_column, random_fleet

BASE = random_column(Random(0), 5, 1)
MEASURED = [field.name for field in fields(Column) if field.name not in {"key", "candidate"}]


@pytest.mark.parametrize("name", MEASURED)
def test_each_number_counts(name):
    better = replace(BASE, key=9, **{name: getattr(BASE, name) - 1})
    assert dominates(better, BASE)
    assert not dominates(BASE, better)


def test_other_hardware_is_never_dominated():
    assert not dominates(replace(BASE, nodes=0), replace(BASE, candidate=2))


def test_of_equal_columns_the_lowest_key_stays_and_the_order_is_kept():
    twins = (replace(BASE, key=7), replace(BASE, key=3), replace(BASE, key=4, nodes=BASE.nodes - 1, power_w=99))
    assert undominated(twins) == (twins[1], twins[2])


def test_undominated_agrees_with_comparing_all_pairs():
    random = Random(1)
    for _ in range(200):
        columns = [random_column(random, key, 2) for key in random.sample(range(50), random.randint(0, 12))]
        kept = undominated(columns)
        plain = tuple(c for c in columns if not any(dominates(other, c) for other in columns if other is not c))
        assert kept == plain


def test_pruning_never_changes_the_optimum():
    random, pruned = Random(2), 0
    for _ in range(800):
        problem = random_fleet(random)
        less = replace(problem, workloads=tuple(undominated(columns) for columns in problem.workloads))
        pruned += less != problem
        before, after = exhaustive_fleet(problem), exhaustive_fleet(less)
        assert (before.status, before.value) == (after.status, after.value)
    assert pruned > 100


def test_every_axis_tells_two_layouts_apart() -> None:
    """The last tie-break: layouts that differ in one axis only have different keys. Recompute is staging's."""
    base = {"pp": 2, "dp": 2}
    rows = [base] + [base | {axis.name: 3} for axis in AXES if axis.name != "recompute"]
    table = from_rows(rows, 64)
    keys = {identity(table, row) for row in range(len(rows))}
    assert len(keys) == len(rows)

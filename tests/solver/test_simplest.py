"""The simplest of the tied layouts against staging every legal layout with every offload."""

from __future__ import annotations

import pytest

from planner.solver.search.frontier import GridSearch
from planner.solver.search.simplest import simplest
from planner.solver.search.source import table_source
from tests.search_cases import random_case
from tests.solver.test_frontier import staged_all


@pytest.mark.parametrize("seed", range(300, 307))
def test_no_simpler_layout_is_within_the_tolerance(seed: int) -> None:
    case = random_case(seed, limits=False)
    found = GridSearch(case.question, case.space, case.job).run(table_source(case.enumeration.layouts)).found
    if not found:
        return
    best = min(found, key=lambda one: one.key)
    every = staged_all(case)
    for tolerance in (0.0, 0.08, 0.5):
        chosen = simplest(case.question, case.facts, case.job, best, found, tolerance)
        most = int(best.key[0] * (1 + tolerance))
        tied = [one for one in every if one.key[0] <= most]
        assert chosen.key[0] <= most
        assert chosen.column.complexity == min(one.column.complexity for one in tied)
        if chosen.column.complexity < best.column.complexity:
            assert chosen.key == min(one.key for one in tied if one.column.complexity == chosen.column.complexity)

"""A search for several best layouts misses none that would be among them."""

from __future__ import annotations

import pytest

from planner.layouts.offload import level_of
from planner.solver.search.found import StagedLayout
from planner.solver.search.frontier import GridSearch
from planner.solver.search.job import MOST_NODES
from planner.solver.search.leaders import leading
from planner.solver.search.source import table_source
from tests.search_cases import random_case
from tests.solver.test_frontier import staged_all

COUNT = 5


def worth_a_look(every: list[StagedLayout]) -> list[StagedLayout]:
    """Without what offloads more than another variant of the same layout and is no better."""
    kept: dict[int, list[StagedLayout]] = {}
    for one in sorted(every, key=lambda one: (sum(level_of(one.batch.rows, one.row).values), one.key)):
        alike = kept.setdefault(one.column.key // MOST_NODES // 512**4, [])
        level = level_of(one.batch.rows, one.row)
        if not any(level_of(o.batch.rows, o.row).precedes(level) and o.key[:2] <= one.key[:2] for o in alike):
            alike.append(one)
    return [one for alike in kept.values() for one in alike]


@pytest.mark.parametrize("seed", range(700, 712))
def test_the_next_best_are_the_next_best(seed: int) -> None:
    case = random_case(seed, limits=False)
    every = worth_a_look(staged_all(case))
    for candidate in range(len(case.question.candidates)):
        rows = case.enumeration.layouts.take(case.enumeration.layouts.candidate == candidate)
        found = GridSearch(case.question, case.space, case.job, count=COUNT).run(table_source(rows)).found
        leaders = leading(COUNT, rows.gpus)
        for one in found:
            leaders.offer(one)
        keys = {one.key for one in found}
        missed = [one for one in every if one.column.candidate == candidate and one.key not in keys]
        assert bool(found) or not missed
        assert not any(leaders.passes(one.column.gpus, (one.key[0], one.key[1] + 1)) for one in missed)

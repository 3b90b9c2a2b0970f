"""Fleets of one provider, or of one type of node, against plain enumeration."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random

import pytest

from planner.solver.check import check_cover
from planner.solver.fleet.cover import cover
from planner.solver.fleet.covering import Cover, NodeSupply, Supplied
from tests.solver.test_cover import Counts, admitted, answered, on_supplies, supply, total, usage


def used_groups(problem: Cover, counts: Counts) -> set[tuple[str, str]]:
    supplies = {one.key: one for one in problem.supplies}
    return {(supplies[c.supply].provider if problem.one_provider else "",
             supplies[c.supply].node if problem.homogeneous else "") for c in problem.columns if counts[c.key]}


def brute_alike(problem: Cover) -> int | None:
    """Return the least value over all counts of one period that keep to one provider and one type of node."""
    best: int | None = None
    most = [-(-max(problem.needs[c.service]) // c.micro_rate) + problem.spares[c.service] for c in problem.columns]
    for numbers in product(*(range(m + 1) for m in most)):
        counts = dict(zip([c.key for c in problem.columns], numbers, strict=True))
        nodes = on_supplies(problem, counts)
        if (len(used_groups(problem, counts)) > 1 or any(n > one.most for n, one in zip(nodes, problem.supplies,
                                                                                        strict=True))
                or any(answered(problem, at, counts) < need[0] for at, need in enumerate(problem.needs))):
            continue
        used = usage(problem, counts, tuple(nodes))
        if admitted(problem, used):
            value = total(problem, [used[problem.objective]])
            best = value if best is None else min(best, value)
    return best


@pytest.mark.parametrize("asked", [{"one_provider": True}, {"homogeneous": True},
                                   {"one_provider": True, "homogeneous": True}], ids=str)
def test_fleets_of_one_kind_agree_with_enumeration(asked: dict[str, bool]) -> None:
    random, answers, dearer = Random(7), 0, 0
    for _ in range(50):
        supplies = tuple(replace(supply(random, key), provider=random.choice("ab"), node=random.choice("xy"),
                                 most=random.choice([1, 1, 2, 4])) for key in range(3))
        columns = tuple(Supplied(key, 0, key % 3, "whole", random.randint(2, 9), random.choice([1, 2]))
                        for key in range(4))
        problem = Cover(((random.randint(4, 16),),), (random.choice([0, 0, 1]),), columns, supplies)
        found = cover(replace(problem, **asked))
        assert found.value == found.bound == brute_alike(replace(problem, **asked)), problem
        if found.value is not None:
            answers += 1
            assert check_cover(replace(problem, **asked), found) == []
            free = cover(problem).value
            assert free is not None
            assert free <= found.value
            dearer += free < found.value
        else:
            dearer += cover(problem).value is not None
    assert answers > 15
    assert dearer > 5


def test_a_day_of_one_provider_keeps_to_it_in_every_hour() -> None:
    """By the hour each provider is cheapest once; of one alone the base of the day decides."""
    day = Cover(((4, 8),), (0,), (Supplied(1, 0, 1, "whole", 4, 8), Supplied(2, 0, 2, "whole", 8, 8)),
                (NodeSupply(1, lambda nodes: 5 * nodes, 9, 8, 1, provider="a"),
                 NodeSupply(2, lambda nodes: 9 * nodes, 9, 8, 1, provider="b")), (12, 12))
    assert cover(day).value == 12 * 5 + 12 * 9
    alone = replace(day, one_provider=True)
    found = cover(alone)
    assert (found.value, found.replicas) == (12 * 5 + 12 * 10, {1: (1, 2), 2: (0, 0)})
    assert check_cover(alone, found) == []
    assert check_cover(alone, replace(cover(day), value=cover(day).value))

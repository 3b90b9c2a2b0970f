"""Days whose changes cost: by hand, against plain enumeration, and against the same day without."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import product
from operator import mul
from random import Random

import numpy as np
import pytest

from planner.solver.check import check_cover
from planner.solver.fleet.cover import cover
from planner.solver.fleet.covering import LIMITED, Cover, NodeSupply, Supplied, moving

HOUR = 3600
TWO = Cover(((4, 8, 4),), (0,), (Supplied(1, 0, 1, "whole", 4, 1), Supplied(2, 0, 2, "whole", 8, 2)),
            (NodeSupply(1, lambda nodes: 10 * nodes, 9, 1, 1), NodeSupply(2, lambda nodes: 18 * nodes, 9, 2, 1)),
            (8, 1, 15))


def test_an_hour_alone_does_not_change_the_vendor() -> None:
    """By the hour, two small nodes cost 20 in the busy hour and a large one 18, which takes the small one's place."""
    assert cover(TWO).nodes == {1: (1, 0, 1), 2: (0, 1, 0)}
    found = cover(replace(TWO, changing=HOUR // 10))
    assert found.nodes == {1: (1, 2, 1), 2: (0, 0, 0)}
    # the second node is paid for six minutes more, to start and to empty
    assert found.value == 10 * 23 + 20 + 1
    assert check_cover(replace(TWO, changing=HOUR // 10), found) == []


def test_replicas_of_two_hours_stand_beside_each_other() -> None:
    """A node of two GPUs has no room for a replica of two while one of one still answers."""
    shared = replace(TWO, needs=((4, 8),), hours=(12, 12), changing=HOUR, columns=(
        Supplied(1, 0, 2, "whole", 4, 1), Supplied(2, 0, 2, "whole", 8, 2)))
    alone = replace(shared, supplies=(replace(shared.supplies[1], most=1),))
    assert cover(alone).replicas == {1: (0, 0), 2: (1, 1)} or cover(alone).replicas == {1: (1, 2), 2: (0, 0)}
    assert cover(alone).value == 24 * 18
    both = replace(cover(alone), replicas={1: (1, 0), 2: (0, 1)})
    assert "supply 2 has 1 nodes, 2 are taken as period 0 begins" in check_cover(alone, both)


def costs_while(problem: Cover, before: tuple[int, ...], now: tuple[int, ...], hours: int) -> float:
    """Return what a period costs after another, of each column replicas; endless where both have no room."""
    total = 0
    for supply in problem.supplies:
        mine = [(c.gpus, was, count) for c, was, count in zip(problem.columns, before, now, strict=True)
                if c.supply == supply.key]
        nodes = -(-sum(gpus * count for gpus, _, count in mine) // supply.node_gpus)
        both = -(-sum(gpus * max(was, count) for gpus, was, count in mine) // supply.node_gpus)
        if both > supply.most:
            return math.inf
        total += hours * supply.micro_usd(nodes) + (both - nodes) * -(-supply.micro_usd(1) * problem.changing // HOUR)
    return total


@pytest.mark.parametrize("seed", range(8))
def test_no_day_is_cheaper(seed: int) -> None:
    """Every fleet of up to three replicas of each column in each of three periods; more are never needed."""
    random = Random(seed)
    sizes, prices = [random.choice([1, 2]) for _ in range(2)], [random.randint(5, 40) for _ in range(2)]
    supplies = tuple(NodeSupply(key, partial(mul, prices[key]), random.choice([2, 3, 5]), sizes[key], 1)
                     for key in range(2))
    columns = tuple(Supplied(key, 0, key % 2, "whole", random.randint(4, 9), random.randint(1, sizes[key % 2]))
                    for key in range(3))
    problem = Cover((tuple(random.randint(0, 12) for _ in range(3)),), (0,), columns, supplies,
                    tuple(random.randint(1, 4) for _ in range(3)), changing=random.choice([600, 1800, 7200]))
    fleets = [[row for row in product(range(4), repeat=3)
               if sum(c.micro_rate * count for c, count in zip(columns, row, strict=True)) >= need]
              for need in problem.needs[0]]
    cost = [np.array([[costs_while(problem, before, now, problem.hours[at]) for now in fleets[at]]
                      for before in fleets[at - 1]]) for at in range(3)]
    every = cost[0].T[:, None, :] + cost[1][:, :, None] + cost[2][None, :, :]
    found = cover(problem)
    assert check_cover(problem, found) == []
    assert (found.value or math.inf) == (every.min() or math.inf)
    assert found.status == ("optimal" if math.isfinite(every.min()) else "infeasible")


def test_what_a_day_adds_counts_midnight() -> None:
    assert moving((2, 1, 1)) == 1
    assert moving((1, 3, 2, 4)) == 4


@pytest.mark.parametrize("seed", [2, 3])
def test_a_search_that_time_ends_says_what_its_replicas_cost(seed: int) -> None:
    """Its model had more nodes beside each other than these replicas need, and an independent check contradicted it."""
    random = Random(seed)
    supplies = tuple(NodeSupply(key, partial(mul, random.randint(500, 2000)), 60, random.choice([1, 2, 4, 8]), 1)
                     for key in range(random.choice([3, 6, 10])))
    columns = tuple(Supplied(at, 0, supply.key, "whole", random.randint(40, 99) * gpus, gpus) for at, (supply, gpus)
                    in enumerate(product(supplies, (1, 2, 4, 8))) if gpus <= supply.node_gpus)
    problem = Cover((tuple(random.randint(1000, 4000) for _ in range(24)),), (0,), columns, supplies, (1,) * 24,
                    changing=random.choice([600, 1800, 7200]))
    found = cover(problem, replace(LIMITED, deterministic_limit=0.02))
    assert found.status == "feasible"
    assert check_cover(problem, found) == []

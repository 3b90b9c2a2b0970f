"""Replicas on nodes against plain enumeration, and every answer against a check that knows no solver."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product
from operator import mul
from random import Random
from typing import Literal

import pytest

from planner.solver.check import check_cover
from planner.solver.engine import run
from planner.solver.fleet.cover import cover
from planner.solver.fleet.covering import Cover, Covered, NodeSupply, Supplied
from planner.solver.settings import Settings

Counts = dict[int, int]
Role = Literal["whole", "prefill", "decode"]


def stepped(base: int, step: int):
    return lambda nodes: base * nodes + step * (nodes // 2)


def supply(random: Random, key: int) -> NodeSupply:
    base, step = random.randint(1, 30), random.choice([0, 0, 7, 25])
    return NodeSupply(key, stepped(base, step), random.choice([1, 2, 3, 9]), random.choice([1, 2, 4]),
                      random.randint(1, 9), random.random() < 0.3, step == 0)


def random_cover(random: Random) -> Cover:
    periods, services = random.choice([1, 1, 2, 3]), random.choice([1, 1, 1, 2])
    supplies = tuple(supply(random, key) for key in range(random.choice([1, 2])))
    apart, columns = random.random() < 0.4, []
    for key in range(random.randint(max(2, services), 4)):
        role: Role = random.choice(("whole", "prefill", "decode")) if apart else "whole"
        columns.append(Supplied(key, key % services, random.randrange(len(supplies)), role, random.randint(2, 9),
                              random.choice([1, 2, 4])))
    spares = tuple(random.choice([0, 0, 1, 2]) for _ in range(services))
    needs = tuple(tuple(random.choice([0, random.randint(1, 9), random.randint(1, 14 - 6 * (services > 1))])
                        for _ in range(periods)) for _ in range(services))

    def limit(most: int, chance: float = 0.25) -> int | None:
        return random.randint(1, most) if random.random() < chance else None

    return Cover(needs, spares, tuple(columns), supplies, tuple(random.randint(1, 9) for _ in range(periods)),
                 random.choice(("cost", "gpus", "energy")), limit(150), limit(20), limit(8), limit(40),
                 whole_nodes=tuple(random.random() < 0.3 for _ in range(services)))


def without_strongest(columns: list[Supplied], counts: Counts, spares: int) -> int:
    """Return what a pool answers without its strongest replicas."""
    rates = sorted((c.micro_rate for c in columns for _ in range(counts[c.key])), reverse=True)
    return sum(rates[spares:])


def answered(problem: Cover, service: int, counts: Counts) -> int:
    mine, spares = [c for c in problem.columns if c.service == service], problem.spares[service]

    def left(columns: list[Supplied], counts: Counts, spares: int) -> int:
        if not (problem.whole_nodes and problem.whole_nodes[service]):
            return without_strongest(columns, counts, spares)
        # no node has more than one that is full of the strongest replicas there are
        gpus = {one.key: one.node_gpus for one in problem.supplies}
        node = max((c.micro_rate * max(1, gpus[c.supply] // c.gpus) for c in columns if counts[c.key]), default=0)
        return max(0, sum(c.micro_rate * counts[c.key] for c in columns) - spares * node)

    total = left([c for c in mine if c.role == "whole"], counts, spares)
    for one in problem.supplies:
        total += min(left([c for c in mine if (c.role, c.supply) == (role, one.key)], counts, spares)
                     for role in ("prefill", "decode"))
    return total


def on_supplies(problem: Cover, counts: Counts) -> tuple[int, ...]:
    """Return the nodes of each supply that hold so many replicas."""
    return tuple(packed([c.gpus for c in problem.columns if c.supply == one.key for _ in range(counts[c.key])],
                        one.node_gpus) for one in problem.supplies)


def packed(sizes: list[int], node: int) -> int:
    """Return the nodes that replicas take which are put one by one, large ones first, where they fit."""
    nodes: list[int] = []
    for size in sorted(sizes, reverse=True):
        at = next((at for at, free in enumerate(nodes) if free >= size), None)
        if at is None:
            nodes += [0] * (size // node) + [node - size % node] * bool(size % node)
        else:
            nodes[at] -= size
    return len(nodes)


def usage(problem: Cover, counts: Counts, held: tuple[int, ...]) -> dict[str, int]:
    """Return money, GPUs, nodes and power of a period; what is always paid costs what is held."""
    nodes = on_supplies(problem, counts)
    paid = [h if one.always else n for one, n, h in zip(problem.supplies, nodes, held, strict=True)]
    return {"cost": sum(one.micro_usd(n) if n else 0 for one, n in zip(problem.supplies, paid, strict=True)),
            "gpus": sum(c.gpus * counts[c.key] for c in problem.columns), "nodes": sum(nodes),
            "energy": sum(one.watts * n for one, n in zip(problem.supplies, nodes, strict=True))}


def admitted(problem: Cover, used: dict[str, int]) -> bool:
    limits = {"cost": problem.micro_budget, "gpus": problem.max_gpus, "nodes": problem.max_nodes,
              "energy": problem.max_watts}
    return all(limit is None or used[name] <= limit for name, limit in limits.items())


def total(problem: Cover, values: list[int]) -> int:
    if problem.objective == "gpus":
        return max(values)
    return sum(hours * value for hours, value in zip(problem.hours, values, strict=True))


def brute(problem: Cover) -> int | None:
    """Return the least value over all counts of replicas; none where no counts will do."""
    most = [-(-max(problem.needs[c.service]) // c.micro_rate) + problem.spares[c.service] * problem.fail_together(c)
            for c in problem.columns]
    held_most, by_period = [one.most if one.always else 0 for one in problem.supplies], []
    every = [dict(zip([c.key for c in problem.columns], counts, strict=True))
             for counts in product(*(range(m + 1) for m in most))]
    reach = [(counts, [answered(problem, at, counts) for at in range(len(problem.needs))],
              on_supplies(problem, counts)) for counts in every]
    for period in range(len(problem.hours)):
        by_period.append([(counts, nodes) for counts, rates, nodes in reach
                          if all(rate >= need[period] for rate, need in zip(rates, problem.needs, strict=True))
                          and all(n <= one.most for n, one in zip(nodes, problem.supplies, strict=True))])
    best = None
    for held in product(*(range(m + 1) for m in held_most)):
        values = []
        for states in by_period:
            used = [usage(problem, counts, held) for counts, nodes in states
                    if all(n <= h for n, h, one in zip(nodes, held, problem.supplies, strict=True) if one.always)]
            found = [one[problem.objective] for one in used if admitted(problem, one)]
            if not found:
                break
            values.append(min(found))
        else:
            value = total(problem, values)
            best = value if best is None else min(best, value)
    return best


@pytest.mark.parametrize("seed", range(5))
def test_value_and_feasibility_agree_with_enumeration(seed: int) -> None:
    random, answers, objectives = Random(seed), 0, set()
    for _ in range(50):
        problem = random_cover(random)
        found = cover(problem)
        assert (found.value, found.bound) == (brute(problem),) * 2, problem
        assert found.status == ("infeasible" if found.value is None else "optimal")
        if found.value is not None:
            answers += 1
            objectives.add(problem.objective)
            assert check_cover(problem, found) == [], problem
    assert 12 < answers < 45
    assert objectives == {"cost", "gpus", "energy"}


def test_the_check_sees_every_single_fault() -> None:
    random, seen = Random(40), 0
    for _ in range(40):
        problem = random_cover(random)
        found = cover(problem)
        if not found.value or problem.objective != "gpus" or any(one.always for one in problem.supplies):
            continue
        key = max(found.replicas, key=lambda at: max(found.replicas[at]))
        fewer = {**found.replicas, key: (found.replicas[key][0] - 1, *found.replicas[key][1:])}
        assert check_cover(problem, replace(found, value=found.value + 1))
        more = {at: tuple(n + 1 for n in of) for at, of in found.nodes.items()}
        assert check_cover(problem, replace(found, nodes=more))
        if found.replicas[key][0]:
            assert check_cover(problem, replace(found, replicas=fewer))
        seen += 1
    assert seen > 3


@pytest.mark.parametrize(("name", "measure"), [
    ("micro_budget", "cost"), ("max_gpus", "gpus"), ("max_nodes", "nodes"), ("max_watts", "energy")])
def test_a_limit_lifted_never_hurts_and_one_just_met_changes_nothing(name: str, measure: str) -> None:
    random, answers, tightened = Random(41), 0, 0
    for _ in range(15):
        problem = random_cover(random)
        found, lifted = cover(problem), cover(replace(problem, **{name: None}))
        if found.value is None:
            continue
        answers += 1
        assert lifted.value is not None
        assert lifted.value <= found.value
        counts = [{key: replicas[p] for key, replicas in found.replicas.items()} for p in range(len(problem.hours))]
        held = tuple(max(found.nodes[one.key]) for one in problem.supplies)
        used = max(usage(problem, one, held)[measure] for one in counts)
        met = cover(replace(problem, **{name: used}))
        assert (met.value, met.bound, met.status) == (found.value, found.bound, found.status)
        below = cover(replace(problem, **{name: used - 1}))
        assert below.value is None or below.value >= found.value
        tightened += below.value != found.value
    assert answers > 3
    assert tightened > 2


def test_more_of_the_rate_or_of_the_spares_never_costs_less() -> None:
    random = Random(42)
    for _ in range(20):
        problem = random_cover(random)
        more = replace(problem, spares=tuple(spares + 1 for spares in problem.spares))
        higher = replace(problem, needs=tuple(tuple(need + 1 for need in service) for service in problem.needs))
        before = cover(problem)
        for after in map(cover, (more, higher)):
            assert after.value is None or (before.value is not None and before.value <= after.value)


ONE = Cover(((10,),), (0,), (Supplied(1, 0, 7, "whole", 4, 2),), (NodeSupply(7, lambda nodes: 5 * nodes, 9, 4, 3),))
"""Replicas of 4 on two GPUs, two to a node, for a rate of 10."""


def test_replicas_share_nodes_and_fill_up_the_rate() -> None:
    found = cover(ONE)
    assert (found.replicas[1], found.nodes[7], found.value) == ((3,), (2,), 2 * 5 * 24)
    assert cover(replace(ONE, objective="gpus")).value == 6
    assert cover(replace(ONE, objective="energy")).value == 2 * 3 * 24


@pytest.mark.parametrize(("sizes", "taken"), [((4, 8), 8), ((2, 4), 2), ((1, 8), 1), ((2, 4, 8), 8)])
def test_a_node_paid_for_works_whole_where_no_gpu_holds_a_replica(sizes: tuple[int, ...], taken: int) -> None:
    """DeepSeek on four of eight rented GPUs answered at half the pace for the same money."""
    columns = tuple(Supplied(key, 0, 0, "whole", 5 + key, gpus) for key, gpus in enumerate(sizes))
    problem = Cover(((3,),), (0,), columns, (NodeSupply(0, lambda nodes: 7 * nodes, 9, 8, 1),))
    found = cover(problem)
    assert [c.gpus for c in columns if found.replicas[c.key] == (1,)] == [taken]
    assert (found.status, found.value, found.nodes) == ("optimal", 7 * 24, {0: (1,)})


def test_the_strongest_of_unlike_replicas_may_fail_and_the_others_hold() -> None:
    """One of 10 and ten of 1 hold 10 whichever fails; taking the strongest off every replica would ask for more."""
    unlike = replace(ONE, spares=(1,), objective="gpus", columns=(
        Supplied(1, 0, 7, "whole", 10, 8), Supplied(2, 0, 8, "whole", 1, 1)), supplies=(
        NodeSupply(7, lambda nodes: 5 * nodes, 1, 8, 3), NodeSupply(8, lambda nodes: nodes, 20, 1, 3)))
    assert cover(unlike).value == 11
    found = cover(replace(unlike, needs=((9,),), columns=(unlike.columns[0], replace(unlike.columns[1], gpus=1)),
                          spares=(2,)))
    assert (found.replicas[1], found.replicas[2]) == ((0,), (11,))


def test_pools_apart_answer_what_the_weaker_does_and_never_across_supplies() -> None:
    apart = replace(ONE, columns=(Supplied(1, 0, 7, "prefill", 5, 1), Supplied(2, 0, 7, "decode", 2, 1)))
    found = cover(apart)
    assert (found.replicas, found.nodes) == ({1: (2,), 2: (5,)}, {7: (2,)})
    elsewhere = replace(apart, columns=(apart.columns[0], replace(apart.columns[1], supply=8)),
                        supplies=(*apart.supplies, replace(apart.supplies[0], key=8)))
    assert cover(elsewhere).status == "infeasible"


def test_what_is_always_paid_takes_the_base_and_the_rest_comes_by_the_hour() -> None:
    day = Cover(((4, 12),), (0,), (Supplied(1, 0, 1, "whole", 4, 8), Supplied(2, 0, 2, "whole", 4, 8)),
                (NodeSupply(1, lambda nodes: 6 * nodes, 9, 8, 1, always=True),
                 NodeSupply(2, lambda nodes: 10 * nodes, 9, 8, 1)), (18, 6))
    found = cover(day)
    assert (found.replicas, found.value) == ({1: (1, 1), 2: (0, 2)}, 6 * 24 + 2 * 10 * 6)
    alone = [cover(replace(day, columns=(column,))).value for column in day.columns]
    assert alone == [3 * 6 * 24, 10 * 18 + 30 * 6]


def test_gpus_are_those_of_the_hour_that_has_the_most() -> None:
    """Of two services the busiest hour by requests is not the busiest by GPUs."""
    two = replace(ONE, needs=((2, 20), (3, 1)), spares=(0, 0), hours=(12, 12), objective="gpus", columns=(
        Supplied(1, 0, 7, "whole", 10, 1), Supplied(2, 1, 7, "whole", 1, 2)))
    assert cover(two).value == 7


def test_services_share_nodes_where_that_is_cheaper() -> None:
    """Two services of a GPU or two each fit on one node of four."""
    two = replace(ONE, needs=((4,), (3,)), spares=(0, 0), columns=(
        Supplied(1, 0, 7, "whole", 4, 2), Supplied(2, 1, 7, "whole", 3, 1)))
    found = cover(two)
    assert (found.replicas, found.nodes, found.value) == ({1: (1,), 2: (1,)}, {7: (1,)}, 5 * 24)


@pytest.mark.parametrize("seed", range(2))
def test_classes_are_answered_once_each_and_in_the_cheapest_parts(seed: int) -> None:
    """Of a thing of three classes every partition into ranges, each as a question of its own."""
    random, split, feasible = Random(seed), 0, 0
    ranges = [(first, last) for first in range(3) for last in range(first, 3)]
    partitions = [[(0, 2)], [(0, 0), (1, 2)], [(0, 1), (2, 2)], [(0, 0), (1, 1), (2, 2)]]
    for _ in range(12):
        supplies = (supply(random, 0), supply(random, 1))
        columns = tuple(Supplied(key, key % len(ranges), random.randrange(2), "whole", random.randint(3, 12),
                               random.choice([1, 2, 4])) for key in range(2 * len(ranges)))
        needs = tuple((random.randint(1, 4) * (last - first + 1) + 2 * (last - first),) for first, last in ranges)
        problem = Cover(needs, (random.choice([0, 1]),) * len(ranges), columns, supplies,
                        ranges=tuple((0, *one) for one in ranges))
        values = []
        for parts in partitions:
            kept = [ranges.index(part) for part in parts]
            alone = replace(problem, ranges=(), columns=tuple(c for c in columns if c.service in kept), needs=tuple(
                need if at in kept else (0,) for at, need in enumerate(needs)))
            values.append(cover(alone).value)
        best = min((value for value in values if value is not None), default=None)
        found = cover(problem)
        assert found.value == best, problem
        feasible += best is not None
        split += best is not None and values[0] != best
    assert feasible > 4
    assert split > 2


DAY = (31, 24, 18, 15, 14, 26, 42, 61, 78, 89, 95, 100)
"""Percent of the busiest hours, two hours each."""
RATES = {2: (6500, 12_800, {1: (0.0034,), 2: (0.0039, 0.393, 0.396), 4: (0.809, 1.237, 0.815, 1.251),
                            8: (2.065, 2.093)}),
         7: (10_200, 25_600, {1: (0.464,), 2: (2.71, 0.995, 2.713), 4: (3.391, 3.394)}),
         13: (10_200, 31_920, {1: (1.455, 1.463), 2: (3.285, 3.289), 4: (4.022, 4.026)}),
         15: (4500, 12_000, {4: (0.0311, 0.0315)})}
"""Watts and milli-USD an hour of nodes of eight GPUs, and requests/s of replicas by their GPUs, of a 70B model."""


def day(always: bool, spares: int = 0) -> Cover:
    """A day on four kinds of nodes, which may also be committed to at two thirds of the price."""
    offers = [(key, False, usd) for key, (_, usd, _) in RATES.items()]
    offers += [(key + 100, True, usd * 2 // 3) for key, (_, usd, _) in RATES.items() if always]
    rows = [(key, gpus, rate) for key, *_ in offers for gpus, rates in RATES[key % 100][2].items() for rate in rates]
    return Cover((tuple(400_000 * percent for percent in DAY),), (spares,),
                 tuple(Supplied(at, 0, key, "whole", int(1e6 * rate), gpus)
                       for at, (key, gpus, rate) in enumerate(rows)),
                 tuple(NodeSupply(key, partial(mul, 1000 * usd), 1000, 8, RATES[key % 100][0], paid)
                       for key, paid, usd in offers), (2,) * len(DAY))


@pytest.mark.parametrize(("always", "spares"), [(False, 0), (True, 0)])
def test_a_day_on_many_kinds_of_nodes_is_soon_proven(always: bool, spares: int, monkeypatch) -> None:
    """It took the limit of 60 deterministic seconds, each two of wall time, to break ties over all hours at once."""
    spent: list[float] = []

    def counted(*args):
        spent.append((ending := run(*args)).deterministic_time)
        return ending

    monkeypatch.setattr("planner.solver.fleet.cover.run", counted)
    problem = day(always, spares)
    found = cover(problem)
    assert found.status == "optimal"
    assert check_cover(problem, found) == []
    assert sum(spent) < 1.5


def test_a_fleet_of_millions_of_replicas_is_checked_by_kind() -> None:
    """The check took replica by replica: 8.4 M of them took minutes."""
    problem = Cover(((9 * 10**15,),), (3,), (Supplied(0, 0, 0, "whole", 10**6, 2),
                                               Supplied(1, 0, 0, "whole", 10**7, 16)),
                    (NodeSupply(0, lambda nodes: 100 * nodes, 10**12, 8, 1),))
    found = Covered("feasible", {0: (10**9 + 1,), 1: (10**9,)}, {0: (2 * 10**9 + -(-(10**9 + 1) // 4),)})
    found = replace(found, value=24 * 100 * found.nodes[0][0])
    assert check_cover(problem, found) == []
    assert check_cover(problem, replace(found, nodes={0: (found.nodes[0][0] - 1,)}))


@pytest.mark.parametrize("limit", [0.002, 0.02, None])
def test_one_supply_more_never_costs_more_within_the_same_limit(limit: float | None) -> None:
    random, settings = Random(44), Settings(deterministic_limit=limit)
    for _ in range(12):
        problem = random_cover(random)
        for one in problem.supplies[:-1]:
            fewer = replace(problem, columns=tuple(c for c in problem.columns if c.supply == one.key),
                            supplies=(one,))
            before, after = cover(fewer, settings), cover(problem, settings)
            if before.value is not None and fewer.columns:
                assert after.value is not None
                assert after.value <= before.value


def test_sizes_that_leave_gaps_on_a_node_are_refused() -> None:
    with pytest.raises(ValueError, match="leave gaps"):
        cover(replace(ONE, columns=(ONE.columns[0], Supplied(2, 0, 7, "whole", 5, 3))))


def test_endings() -> None:
    assert cover(replace(ONE, columns=())).status == "infeasible"
    assert cover(replace(ONE, needs=((200,),))).status == "infeasible"
    assert cover(replace(ONE, needs=((0,),))).value == 0
    stopped = cover(ONE, Settings(deterministic_limit=0.0))
    assert (stopped.status, stopped.value, stopped.replicas) == ("undecided", None, {})


def test_the_same_question_has_the_same_answer_and_the_first_of_alike_columns_wins() -> None:
    random = Random(43)
    for _ in range(10):
        problem = random_cover(random)
        assert cover(problem) == cover(problem)
    alike = replace(ONE, columns=(ONE.columns[0], replace(ONE.columns[0], key=2)))
    assert cover(alike).replicas == {1: (3,), 2: (0,)}

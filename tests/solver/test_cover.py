"""Replicas on nodes against plain enumeration, and every answer against a check that knows no solver."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from random import Random
from typing import Literal

import pytest

from planner.solver.fleet.cover import Column, Cover, Covered, Supply, cover, nodes_of
from planner.solver.settings import Settings

Counts = dict[int, int]
Role = Literal["whole", "prefill", "decode"]


def stepped(base: int, step: int):
    return lambda nodes: base * nodes + step * (nodes // 2)


def supply(random: Random, key: int) -> Supply:
    base, step = random.randint(1, 30), random.choice([0, 0, 7, 25])
    return Supply(key, stepped(base, step), random.choice([1, 2, 3, 9]), random.choice([1, 2, 4]),
                  random.randint(1, 9), random.random() < 0.3, step == 0)


def random_cover(random: Random) -> Cover:
    periods, services = random.choice([1, 1, 2, 3]), random.choice([1, 1, 1, 2])
    supplies = tuple(supply(random, key) for key in range(random.choice([1, 2])))
    apart, columns = random.random() < 0.4, []
    for key in range(random.randint(max(2, services), 4)):
        role: Role = random.choice(("whole", "prefill", "decode")) if apart else "whole"
        columns.append(Column(key, key % services, random.randrange(len(supplies)), role, random.randint(2, 9),
                              random.choice([1, 2, 4])))
    spares = tuple(random.choice([0, 0, 1, 2]) for _ in range(services))
    needs = tuple(tuple(random.choice([0, random.randint(1, 9), random.randint(1, 14 - 6 * (services > 1))])
                        for _ in range(periods)) for _ in range(services))

    def limit(most: int, chance: float = 0.25) -> int | None:
        return random.randint(1, most) if random.random() < chance else None

    return Cover(needs, spares, tuple(columns), supplies, tuple(random.randint(1, 9) for _ in range(periods)),
                 random.choice(("cost", "gpus", "energy")), limit(150), limit(20), limit(8), limit(40))


def left(columns: list[Column], counts: Counts, spares: int) -> int:
    """Return what a pool answers without its strongest replicas."""
    rates = sorted((c.micro_rate for c in columns for _ in range(counts[c.key])), reverse=True)
    return sum(rates[spares:])


def answered(problem: Cover, service: int, counts: Counts) -> int:
    mine, spares = [c for c in problem.columns if c.service == service], problem.spares[service]
    total = left([c for c in mine if c.role == "whole"], counts, spares)
    for one in problem.supplies:
        total += min(left([c for c in mine if (c.role, c.supply) == (role, one.key)], counts, spares)
                     for role in ("prefill", "decode"))
    return total


def on_supplies(problem: Cover, counts: Counts) -> tuple[int, ...]:
    """Return the nodes of each supply that hold so many replicas."""
    return tuple(sum(nodes_of(c, one, counts[c.key]) for c in problem.columns if c.supply == one.key)
                 for one in problem.supplies)


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
    most = [-(-max(problem.needs[c.service]) // c.micro_rate) + problem.spares[c.service] for c in problem.columns]
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


def faults(problem: Cover, found: Covered) -> list[str]:
    """Return what is wrong with an answer; no solver needed."""
    said, values = [], []
    periods = range(len(problem.hours))
    counts = [{key: replicas[p] for key, replicas in found.replicas.items()} for p in periods]
    nodes = [on_supplies(problem, one) for one in counts]
    held = tuple(max(of) for of in zip(*nodes, strict=True))
    for p in periods:
        for at, need in enumerate(problem.needs):
            if answered(problem, at, counts[p]) < need[p]:
                said.append(f"service {at} lacks replicas in period {p}")
        for column in problem.columns:
            where = next(one for one in problem.supplies if one.key == column.supply)
            if found.nodes[column.key][p] != nodes_of(column, where, counts[p][column.key]):
                said.append(f"column {column.key} has {found.nodes[column.key][p]} nodes in period {p}")
        said += [f"supply {one.key} has too few nodes" for one, n in zip(problem.supplies, nodes[p], strict=True)
                 if n > one.most]
        used = usage(problem, counts[p], held)
        if not admitted(problem, used):
            said.append(f"a limit is passed in period {p}: {used}")
        values.append(used[problem.objective])
    if total(problem, values) != found.value:
        said.append(f"value {found.value} is not {total(problem, values)}")
    return said


@pytest.mark.parametrize("seed", range(6))
def test_value_and_feasibility_agree_with_enumeration(seed: int) -> None:
    random, answers, objectives = Random(seed), 0, set()
    for _ in range(60):
        problem = random_cover(random)
        found = cover(problem)
        assert (found.value, found.bound) == (brute(problem),) * 2, problem
        assert found.status == ("infeasible" if found.value is None else "optimal")
        if found.value is not None:
            answers += 1
            objectives.add(problem.objective)
            assert faults(problem, found) == [], problem
    assert 15 < answers < 55
    assert objectives == {"cost", "gpus", "energy"}

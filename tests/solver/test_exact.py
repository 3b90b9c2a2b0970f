"""The search equals trying every point of the grid, in value and feasibility, on seeded random scenarios.

`python -m benchmarks.exact` does the same for 5,000 of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

from benchmarks.exact import ASKED, ENDINGS, OBJECTIVES, PAGE, SEEDS, Outcome, outcome
from planner.catalog.stack import Conflict
from planner.layouts.axes import AXES, column_type, domain
from planner.layouts.enumerate import LAZY_AXES
from planner.layouts.rules import rules_of
from tests.enumerated import enumerate_layouts
from tests.small_cases import passes, small_case

CHUNKS = [range(at, at + 25) for at in range(10_000, 10_175, 25)]
PINNED = (253, 1648, 1718, 2814, 3138)
"""Scenarios of the benchmark that once differed."""
RARE = {"memory makes the optimum worse": 25, "nothing without offload is as good": 5,
        "every best plan has an uneven split": 2, "every best plan recomputes some layers and not others": 5,
        "every best plan has a pipeline": 20, "every best plan interleaves": 1,
        "every best plan has a schedule other than 1F1B": 2, "mixture of experts behind dense layers": 10}
"""Kinds of scenarios and how many there are at least."""
REFUSED = tuple(Conflict(together=both, reason="a test") for both in ({"tp": 2, "zero": 1}, {"dp": 2, "pp": 2}))


@cache
def solved(seed: int) -> Outcome:
    """Solve a scenario by one of the searches, or by both where they once differed."""
    return outcome(seed, (True, False) if seed in PINNED else (seed % 2 == 0,))


def outcomes() -> list[Outcome]:
    return [solved(seed) for seeds in CHUNKS for seed in seeds]


@pytest.mark.parametrize("seeds", [*CHUNKS, PINNED], ids=str)
def test_search_equals_brute_force(seeds: range | tuple[int, ...]) -> None:
    assert {seed: solved(seed).differences for seed in seeds if solved(seed).differences} == {}


def test_the_scenarios_are_of_every_kind() -> None:
    counts, many = Counter(kind for one in outcomes() for kind in one.kinds), len(outcomes())
    assert many == sum(counts[ending] for ending in ENDINGS)
    assert many * 0.45 < counts["optimal"] < many * 0.75
    assert counts["infeasible: memory"] > many * 0.08
    assert counts["infeasible: limits"] > many * 0.07
    # half ask for time, where the number of spares decides most
    assert all(counts[f"objective: {goal}"] > many * 0.1 for goal in OBJECTIVES)
    assert [kind for kind in ASKED if counts[kind] < 5] == []
    assert {kind: counts[kind] for kind, least in RARE.items() if counts[kind] < least} == {}


@pytest.mark.parametrize("refuses", [(), REFUSED], ids=["plain", "refusing"])
@pytest.mark.parametrize("seed", range(11_000, 11_030))
def test_the_grid_grows_every_legal_point_and_no_other(seed: int, refuses: tuple[Conflict, ...]) -> None:
    case, names = small_case(seed), [axis.name for axis in AXES]
    facts = replace(case.facts, stack=case.facts.stack.model_copy(update={"refuses": refuses}))
    points = product(*([0] if name in LAZY_AXES else domain(name, case.space) for name in names))
    columns = {name: np.array(values, column_type(name))
               for name, values in zip(names, zip(*points, strict=True), strict=True)}
    kept = passes(columns, facts, rules_of(facts.stack))
    legal = zip(*(columns[name][kept].tolist() for name in names), strict=True)
    found = enumerate_layouts(facts).layouts
    assert sorted(legal) == sorted(zip(*(getattr(found, name).tolist() for name in names), strict=True))


def test_the_page_says_that_all_agree() -> None:
    said = PAGE.read_text(encoding="utf-8")
    assert said.count(f"| {len(SEEDS):,} of {len(SEEDS):,} |") == 3, "run python -m benchmarks.exact"

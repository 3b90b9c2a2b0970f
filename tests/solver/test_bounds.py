"""Bounds are admissible: from the stem over the layout to the staged optimum, none is above the next."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product

import numpy as np
import pytest

from planner.layouts.enumerate import EARLY, Grid
from planner.layouts.offload import allowed, levels
from planner.layouts.table import Floats, Layouts, joined
from planner.physics.training import schedule
from planner.physics.training.estimate import layer_terms, time_terms
from planner.physics.training.memory import memory_terms
from planner.solver import staging
from planner.solver.search.bounds import bound, time_bound
from planner.solver.search.holding import least_short, stems_short, stems_steps
from planner.solver.search.job import Pricing
from planner.solver.search.keys import Keys
from planner.solver.search.refine import refined_bound
from planner.solver.search.staging_input import staging_problem
from planner.solver.search.stem_bounds import stem_bound
from tests.search_cases import Case, random_case
from tests.small_cases import Small, small_case

HAIR = 1 + 1e-12
"""Relative slack for what floats lose."""


def stems_of(rows: Layouts) -> list[tuple[float, ...]]:
    return list(zip(*(getattr(rows, axis.name).tolist() for axis in EARLY), strict=True))


def grown(case: Case | Small) -> Iterator[tuple[Layouts, Floats, Floats, Floats]]:
    """Yield the layouts of a case at each level of offload, with what bounds time, time with memory, and memory of
    their stems.
    """
    grid = Grid(case.facts)
    every = levels(case.space, case.question.stack)
    for alike, group, _ in grid.stems():
        stems = joined([group.replace(candidate=np.full(len(group), one, np.int64)) for one in alike])
        terms = layer_terms(case.question, stems)
        with_memory, _ = stems_steps(case.question, every, case.space.flash, stems, grid.zero_stages(stems))
        short = stems_short(case.question, every, case.space.flash, stems, grid.zero_stages(stems))
        rows = grid.grow(stems)
        at = dict(zip(stems_of(stems), range(len(stems)), strict=True))
        place = np.array([at[stem] for stem in stems_of(rows)], np.int64)
        bounds, fuller, shorts = (of[place] for of in (stem_bound(case.question, stems, terms), with_memory, short))
        for level in every:
            now = level.on(rows)
            legal = allowed(now.columns, case.question.stack, case.space.flash)
            if legal.any():
                yield now.take(legal), bounds[legal], fuller[legal], shorts[legal]


def checked(case: Case | Small, most: int) -> tuple[int, int]:
    """Check every layout of a case; return how many, and how many fit of up to `most` staged in each table."""
    seen = fitted = 0
    question, pricing = case.question, Pricing(case.job, case.question.candidates)
    for rows, stem, fuller, short in grown(case):
        time, memory = time_terms(question, rows), memory_terms(question, rows)
        known = bound(question, rows, time, memory)
        refined = refined_bound(question, rows, time, memory, known.step)
        own = least_short(question, rows, memory)
        assert np.all(short <= own + 1e-9 * np.abs(memory.capacity))
        assert not np.any(known.fits & (own > 0))
        steps = (stem, time_bound(question, rows, time), known.step, refined)
        for less, more in pairwise(steps):
            assert np.all(less <= more * HAIR)
        assert np.all(stem <= fuller * HAIR)
        assert not np.any(known.fits & np.isfinite(refined) & np.isinf(fuller))
        keys = [pricing.least(rows, np.minimum(step, 1e9)) for step in (*steps, fuller)]
        for row in np.random.default_rng(len(rows)).permutation(len(rows))[:most].tolist():
            problem = staging_problem(question, rows, time, memory, row)
            found = staging.solve(problem)
            if found is not None:
                fitted += 1
                step = (problem.seconds(found.objective) + float(time.step[row])) * float(time.jitter[row])
                assert known.fits[row], rows.row(row)
                assert refined[row] <= step * HAIR, rows.row(row)
                assert fuller[row] <= step * HAIR, rows.row(row)
                check_keys(pricing, rows, row, step, keys)
        seen += len(rows)
    return seen, fitted


def check_keys(pricing: Pricing, rows: Layouts, row: int, step: float, keys: list[Keys]) -> None:
    """Check the least keys of one row against its column at `step` seconds."""
    columns = [column for column, _ in pricing.columns(rows, row, step)]
    for column, least in product(columns, keys):
        first, cents, *_ = pricing.key(column)
        assert least.first[row] <= first
        assert least.cents[row] <= cents
        assert least.micros[row] <= column.duration_us
        assert least.uppers[row] <= column.upper_us
        assert least.watts[row] <= column.power_w
        assert least.energy[row] <= column.energy_wh


@pytest.mark.parametrize("seeds", [range(at, at + 6) for at in range(1000, 1018, 6)], ids=str)
def test_bounds_of_dense_models_are_admissible(seeds: range) -> None:
    seen, fitted = np.array([checked(random_case(seed, limits=False), 40) for seed in seeds]).sum(axis=0)
    assert seen > 2000
    assert fitted > 150


@pytest.mark.parametrize("seeds", [range(at, at + 15) for at in range(20_000, 20_060, 15)], ids=str)
def test_bounds_of_mixtures_of_experts_are_admissible(seeds: range) -> None:
    cases = [small_case(seed, mixtures=1.0) for seed in seeds]
    assert sum(bool(case.question.shape.lead) for case in cases) > 5
    seen, fitted = np.array([checked(case, 40) for case in cases]).sum(axis=0)
    assert seen > 300
    assert fitted > 30


@pytest.mark.parametrize("equal", [(), (schedule.DUALPIPE,), (schedule.GPIPE, schedule.DUALPIPE),
                                   (0, schedule.GPIPE, schedule.ZERO_BUBBLE, schedule.DUALPIPE)], ids=str)
def test_bounds_and_staging_agree_on_whose_stages_are_equal(equal: tuple[int, ...],
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the one answer is, no bound is above what staging finds, and staging moves no layer of equal stages."""
    monkeypatch.setattr(schedule, "EQUAL", equal)
    fixed = loose = fitted = 0
    for seed in (20_007, 20_017, 20_270, 20_299):
        case = small_case(seed)
        fitted += checked(case, 20)[1]
        for rows, *_ in grown(case):
            time, memory = time_terms(case.question, rows), memory_terms(case.question, rows)
            even = schedule.splits_evenly(rows.vpp, rows.schedule)
            for row in range(len(rows)):
                problem = staging_problem(case.question, rows, time, memory, row)
                assert (problem.min_layers == (1,) * int(rows.pp[row])) or even[row]
                assert not even[row] or sum(problem.min_layers) == case.question.shape.layers
            fixed, loose = fixed + int(even.sum()), loose + int((~even).sum())
    assert fitted > 5
    assert fixed > 0 or not equal
    assert loose > 0 or 0 in equal

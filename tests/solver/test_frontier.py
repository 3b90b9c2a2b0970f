"""The search against staging every legal layout: same value, same feasibility, same choice; bounds admissible."""

from __future__ import annotations

import numpy as np
import pytest

from planner.jobs.kinds import question_of
from planner.jobs.training.stacks import ByStack
from planner.layouts.enumerate import Grid
from planner.layouts.offload import allowed, levels
from planner.layouts.table import Layouts, Mask
from planner.physics.training.estimate import TimeTerms, time_terms
from planner.physics.training.memory import memory_terms
from planner.solver import staging
from planner.solver.search.bounding import Bounding
from planner.solver.search.bounds import Bound, bound, time_bound
from planner.solver.search.found import Frontier, RowBatch, StagedLayout
from planner.solver.search.frontier import GridSearch
from planner.solver.search.job import Pricing
from planner.solver.search.parallel import search_grid
from planner.solver.search.source import grid_source, table_source
from planner.solver.search.stage_row import stage_row
from planner.solver.search.staging_input import staging_problem
from planner.solver.settings import Effort, OutOfTime
from tests.asked import load_scenario
from tests.enumerated import enumerate_layouts
from tests.search_cases import Case, catalog, random_case

SEEDS = range(16)


def all_batches(case: Case) -> list[RowBatch]:
    """Every legal layout with every offload, nothing pruned."""
    batches = []
    for level in levels(case.space, case.question.stack):
        rows = level.on(case.enumeration.layouts)
        rows = rows.take(allowed(rows.columns, case.question.stack, case.space.flash))
        if len(rows):
            batches.append(RowBatch(rows, time_terms(case.question, rows), memory_terms(case.question, rows),
                                    np.zeros(len(rows)), np.full(len(rows), -1)))
    return batches


def staged_all(case: Case, spares: slice = slice(1)) -> list[StagedLayout]:
    """Every legal layout with its best number of spare nodes, or with other numbers of those that keep the limits."""
    pricing = Pricing(case.job, case.question.candidates)
    return [one for batch in all_batches(case) for row in range(len(batch.rows))
            for one in stage_row(case.question, pricing, batch, row, Frontier())[0][spares]]


@pytest.mark.parametrize("seed", SEEDS)
def test_search_equals_staging_everything(seed: int) -> None:
    case = random_case(seed)
    every = staged_all(case)
    found = GridSearch(case.question, case.space, case.job).run(grid_source(Grid(case.facts))).found
    assert bool(found) == bool(every)
    for candidate in range(len(case.question.candidates)):
        mine = [f.key for f in found if f.column.candidate == candidate]
        best = [f.key for f in every if f.column.candidate == candidate]
        assert bool(mine) == bool(best)
        if best:
            assert min(mine) == min(best)


def test_bounds_never_exceed_staged_optimum_and_never_reject_what_fits() -> None:
    rows_seen = fits_seen = 0
    for seed in range(200, 228):
        case = random_case(seed, limits=False)
        for batch in all_batches(case):
            known = bound(case.question, batch.rows, batch.time, batch.memory)
            free = time_bound(case.question, batch.rows, batch.time)
            assert np.all(free <= known.step * (1 + 1e-12))
            for row in range(0, len(batch.rows), 3):
                problem = staging_problem(case.question, batch.rows, batch.time, batch.memory, row)
                staged = staging.solve(problem)
                rows_seen += 1
                if staged is None:
                    continue
                fits_seen += 1
                pipeline = problem.seconds(staged.objective)
                step = (pipeline + batch.time.step[row]) * batch.time.jitter[row]
                assert known.fits[row]
                assert known.step[row] <= step * (1 + 1e-12)
    assert rows_seen > 2000
    assert fits_seen > 700


class Unpruned(Bounding):
    """Bounds every offloaded variant of every row it looks at."""

    def _short(self, rows: Layouts, time: TimeTerms, known: Bound) -> Mask:
        return np.ones(len(rows), bool)


TIGHT = [
    ("mixtral-8x22b", "dgx-h100", 128, 128, 32768), ("qwen2.5-32b", "dgx-a100", 24, 512, 32768),
    ("llama-3.1-8b", "dgx-a100", 8, 64, 16384), ("llama-3.1-70b", "dgx-h100", 32, 64, 8192),
    ("mixtral-8x7b", "dgx-h100", 16, 96, 16384), ("llama-2-13b", "hgx-a100-40gb", 16, 128, 4096),
]


@pytest.mark.parametrize(("model", "node", "gpus", "batch", "length"), TIGHT)
@pytest.mark.parametrize("objective", ["cost", "time"])
def test_offload_is_never_left_out_where_it_would_win(model: str, node: str, gpus: int, batch: int, length: int,
                                                      objective: str) -> None:
    """Staging can be short of memory where the continuous bound is not: integer layers, equal chunks."""
    scenario, _ = load_scenario(None, {
        "workload.model": model, "workload.tokens": "10G", "workload.global_batch": str(batch), "objective": objective,
        "workload.stack": "megatron-core",
        "workload.sequence_length": str(length), "limits.gpus": str(gpus), "hardware.candidates": node}, catalog())
    scenario = scenario.model_copy(update={"sourcing": scenario.sourcing.model_copy(
        update={"own": {node: 1000}, "rent": None})})
    asked, = question_of(scenario, catalog()).jobs
    assert isinstance(asked, ByStack)
    prepared = asked.first
    layouts, job = enumerate_layouts(prepared.facts).layouts, prepared.search
    lazy, eager = (GridSearch(prepared.question, prepared.facts.space, job) for _ in range(2))
    eager.bounding = Unpruned(prepared.question, eager.pricing, eager.levels, prepared.facts.space.flash, eager.out)
    lazy, eager = (search.run(table_source(layouts)).found for search in (lazy, eager))
    assert min(f.key for f in lazy)[:2] == min(f.key for f in eager)[:2]


def test_two_runs_find_the_same() -> None:
    runs = [GridSearch((case := random_case(7)).question, case.space, case.job).run(
        table_source(case.enumeration.layouts)) for _ in range(2)]
    assert [f.column for f in runs[0].found] == [f.column for f in runs[1].found]
    assert runs[0].removed == runs[1].removed


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("seed", range(5))
def test_company_changes_nothing_for_a_candidate(seed: int, count: int) -> None:
    """Candidates are searched side by side; each finds, and leaves, what it would alone."""
    case = random_case(seed)
    together, alone = (GridSearch(case.question, case.space, case.job, count=count) for _ in range(2))
    alone.alone = True
    ended = [search.run(grid_source(Grid(case.facts))) for search in (together, alone)]
    assert sorted(f.key for f in ended[0].found) == sorted(f.key for f in ended[1].found)
    assert (ended[0].removed, ended[0].staged) == (ended[1].removed, ended[1].staged)


def test_a_time_limit_leaves_an_open_bound_that_no_layout_beats() -> None:
    case = random_case(3, limits=False)
    every = staged_all(case)
    stopped = GridSearch(case.question, case.space, case.job, Effort(0.0)).run(table_source(case.enumeration.layouts))
    assert every
    assert stopped.open_bound is not None
    assert stopped.open_bound <= min(f.key for f in every)[:2]


class Cut(Effort):
    """An effort that ends in some way at its n-th check."""

    def __init__(self, ending: type[BaseException], left: int) -> None:
        super().__init__()
        self.__dict__.update(ending=ending, left=left)

    def check(self) -> None:
        self.__dict__["left"] -= 1
        if self.__dict__["left"] == 0:
            raise self.__dict__["ending"]


@pytest.mark.parametrize("ending", [KeyboardInterrupt, OutOfTime])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_cut_short_anywhere_leaves_a_bound_that_nothing_beats(seed: int, ending: type[BaseException]) -> None:
    case = random_case(seed)
    best = min((one.key for one in staged_all(case)), default=None)
    for left in (1, 2, 3, 5, 8, 13, 21, 34):
        for each in (True, False):
            stopped = search_grid(case.question, Grid(case.facts), case.job, Cut(ending, left), each=each)
            found = min((one.key for one in stopped.found), default=None)
            if found != best:
                assert best is not None
                assert stopped.open_bound is not None
                assert stopped.open_bound <= best[:2]

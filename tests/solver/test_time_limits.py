"""What a time limit leaves is honest wherever it falls, and blocks change neither the answer nor its account."""

from dataclasses import dataclass, field, replace

import numpy as np
import pytest

import planner.layouts.enumerate as enumerating
import planner.solver.search.frontier as searching
from planner.ask.explain.cause import CUT_SHORT, infeasible_of
from planner.ask.plan import make_plan
from planner.jobs.kinds import question_of
from planner.jobs.solved import solve
from planner.layouts.enumerate import Grid
from planner.layouts.table import joined
from planner.solver.search import sieve
from planner.solver.search.floor import floors
from planner.solver.search.job import Pricing
from planner.solver.search.parallel import UNGROWN
from planner.solver.settings import Effort
from tests.asked import load_scenario
from tests.search_cases import Choice, catalog, choose
from tests.small_cases import Small, small_case

SEEDS = range(1000, 1006)


@dataclass(frozen=True)
class Until(Effort):
    """An effort that is over once it was asked so many times, so that a limit falls where a test wants it."""

    left: list[int] = field(default_factory=lambda: [0])

    @property
    def is_over(self) -> bool:
        self.left[0] -= 1
        return self.left[0] < 0


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every question be too large to be held at once."""
    for module, name, value in ((enumerating, "PIECE", 64), (enumerating, "BLOCK", 16), (enumerating, "MANY", 1),
                                (enumerating, "GROWN", 3), (searching, "CHUNK", 10), (sieve, "CHUNK", 10),
                                (sieve, "MANY", 4), (searching, "SIDE_BY_SIDE", 20),
                                (searching, "GROWN", 7)):
        monkeypatch.setattr(module, name, value)


def accounted(grid: Grid, choice: Choice) -> int:
    """Return the grid points that are accounted for."""
    return grid.grown + grid.removed.total() + sum(choice.frontier.removed[name] for name in UNGROWN)


def solved(case: Small, effort: Effort | None = None, *, each: bool = True) -> tuple[Grid, Choice]:
    """Return a case's choice with its grid."""
    grid = Grid(case.facts)
    return grid, choose(case.question, grid, case.job, effort or Effort(), each=each)


@pytest.mark.parametrize("seed", SEEDS)
def test_stems_in_blocks_are_the_same_stems(seed: int, request: pytest.FixtureRequest) -> None:
    case = small_case(seed)

    def stems() -> tuple[list[tuple[float, ...]], dict[str, int], int]:
        grid = Grid(case.facts)
        tables = [table.replace(candidate=np.full(len(table), one))
                  for alike, table, _ in grid.stems() for one in alike]
        whole, longest = joined(tables), max(map(len, tables))
        return sorted(tuple(whole.row(row).values()) for row in range(len(whole))), dict(grid.removed), longest

    rows, removed, _ = stems()
    request.getfixturevalue("small_blocks")
    again, counts, longest = stems()
    assert (again, counts) == (rows, removed)
    assert longest <= 16 + 64


@pytest.mark.parametrize("each", [True, False])
def test_a_search_in_blocks_finds_the_same(each: bool, request: pytest.FixtureRequest) -> None:
    cases = [small_case(seed) for seed in SEEDS]
    whole = [solved(case, each=each)[1] for case in cases]
    request.getfixturevalue("small_blocks")
    for case, one in zip(cases, whole, strict=True):
        grid, blocks = solved(case, each=each)
        assert (blocks.status, blocks.value, blocks.best and blocks.best.key) \
            == (one.status, one.value, one.best and one.best.key)
        assert accounted(grid, blocks) == grid.size


@pytest.mark.usefixtures("small_blocks")
def test_wherever_a_limit_falls_nothing_is_claimed_that_is_not_so() -> None:
    ends = set()
    for seed in SEEDS:
        case = small_case(seed)
        truth = solved(case)[1]
        for asked in (0, 2, 5, 13, 34, 89):
            grid, cut = solved(case, Until(left=[asked]))
            ends.add(cut.status)
            assert accounted(grid, cut) == grid.size
            if cut.status in ("optimal", "infeasible"):
                assert (cut.status, cut.value) == (truth.status, truth.value)
                continue
            assert cut.bound is not None
            if truth.value is not None:
                assert cut.bound <= truth.value <= (cut.value or truth.value)
    assert ends == {"optimal", "infeasible", "feasible", "undecided"}


def test_no_layout_is_below_the_floor() -> None:
    shares = []
    for seed in range(1000, 1008):
        case = small_case(seed)
        found = solved(case)[1]
        lowest = floors(case.question, case.space, Pricing(case.job, case.question.candidates))
        least = lowest.lowest(range(len(case.space.candidates)))
        if found.value is not None and case.job.objective != "gpus":
            assert least[0] <= found.value
            shares.append(least[0] / found.value)
    assert max(shares) > 0.05


def test_an_explanation_that_is_cut_short_says_so() -> None:
    values = {"workload.model": "gpt2", "workload.tokens": "1 T", "hardware.candidates": "rtx-4090-1x",
              "limits.deadline": "2 h"}
    scenario, _ = load_scenario(None, values, catalog())
    failed = solve(question_of(scenario, catalog()))
    whole, cut = infeasible_of(failed), infeasible_of(replace(failed, effort=Effort(0.0)))
    assert whole is not None
    assert whole.relaxations
    assert cut is not None
    assert cut.because == (CUT_SHORT,)


def test_what_holds_a_model_is_undecided_without_time() -> None:
    # for inference an engine is asked, which takes no search
    values = {"workload.model": "gpt2", "workload.method": "full", "hardware.candidates": "rtx-4090"}
    scenario, _ = load_scenario(None, values, catalog())
    plan = make_plan(scenario, catalog(), time_limit=1e-9)
    assert plan.status == "undecided"

"""The solver's integers: what is written out of them reads back as itself, and they suit every size of question."""

import random
from dataclasses import replace

import pytest

from planner.ask.plan import make_plan
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.kinds import question_of
from planner.jobs.training.job import TrainingJob
from planner.jobs.training.stacks import ByStack
from planner.layouts.enumerate import Grid
from planner.layouts.table import from_rows
from planner.physics.training.estimate import time_terms
from planner.physics.training.memory import memory_terms
from planner.render.figures import objective
from planner.scenario.limits import Limits
from planner.scenario.scenario import Scenario
from planner.solver import staging
from planner.solver.quantize import DURATION_QUANTUM, duration_limit
from planner.solver.search.bounds import bound
from planner.solver.search.job import Pricing
from planner.solver.search.staging_input import staging_problem
from planner.units import DAY, SECONDS, show_days, show_within
from tests.asked import load_scenario
from tests.search_cases import catalog, choose
from tests.small_cases import small_case


def question(**values):
    """Return the resolved scenario of values by path, `__` for a dot."""
    return load_scenario(None, {path.replace("__", "."): value for path, value in values.items()}, catalog())[0]


def written(micros):
    """Yield how the planner, or whoever reads its JSON, writes a duration of so many microseconds."""
    found = micros * DURATION_QUANTUM / DAY
    yield from (f"{found!r} d", f"{found * 24!r} h", show_days(found).replace("days", "d"), show_within(found * DAY))
    yield from (objective("duration_days", found), *(f"{micros * 1e-6 / SECONDS[unit]!r} {unit}" for unit in SECONDS))


def test_a_duration_that_was_found_is_within_the_deadline_that_it_makes() -> None:
    rng = random.Random(8)
    for _ in range(3000):
        micros = round(10 ** rng.uniform(3, 15.4)) + rng.choice((0, 1))
        for text in written(micros):
            limit = Limits(deadline=text.replace(",", "")).deadline
            assert limit is not None
            assert duration_limit(limit.seconds) >= micros, text
        assert duration_limit(micros * 1e-6) <= micros + 1 + micros * 2e-14


def test_the_duration_of_a_plan_is_a_deadline_that_keeps_it() -> None:
    for seed in range(10):
        case = small_case(seed)
        first = choose(case.question, Grid(case.facts), case.job)
        if first.best is None:
            continue
        found = first.best.column.duration_us * DURATION_QUANTUM / DAY
        for text in (f"{found!r} d", show_days(found).replace("days", "d")):
            limit = Limits(deadline=text).deadline
            assert limit is not None
            job = replace(case.job, deadline_us=duration_limit(limit.seconds), upper=(1.0,) * len(case.job.upper),
                          uppers=())
            again = choose(case.question, Grid(case.facts), job)
            assert again.best is not None
            assert again.best.key == first.best.key


@pytest.mark.parametrize("tokens", ["1", "777", "3000"])
def test_jobs_of_milliseconds_pass_their_own_checks(tokens: str) -> None:
    plan = make_plan(question(workload__model="gpt2", workload__tokens=tokens, workload__global_batch="8",
                              workload__sequence_length="128", hardware__candidates="rtx-4090-1x"), catalog())
    assert plan.status == "optimal"


def training(scenario: Scenario, known: Catalog) -> TrainingJob:
    work = scenario.workload.model_copy(update={"stack": ("megatron-core",)})
    job, = question_of(scenario.model_copy(update={"workload": work}), known).jobs
    assert isinstance(job, ByStack)
    return job.first


@pytest.mark.parametrize(("length", "batch"), [("1048576", "1"), ("100M", "1_000_000")])
def test_sequences_of_any_length_are_staged_in_60_bits(length: str, batch: str) -> None:
    """Staging has no answer, or one that its own bound admits, whatever a layer takes and holds."""
    prepared = training(question(
        workload__model="llama-3.1-405b", workload__tokens="1G", workload__sequence_length=length,
        workload__global_batch=batch, hardware__candidates="dgx-h100"), catalog())
    roomy = tuple(replace(one, gpu=one.gpu.model_copy(update={"usable_memory": 1e18})) for one in
                  prepared.question.candidates)
    rows = from_rows([{"tp": 8, "pp": pp, "recompute": -1, "micro_batch": size} for pp in (1, 4, 18)
                      for size in (1, 8)], prepared.question.global_batch)
    units = set()
    for asked in (prepared.question, replace(prepared.question, candidates=roomy)):
        time, memory = time_terms(asked, rows), memory_terms(asked, rows)
        known = bound(asked, rows, time, memory)
        for row in range(len(rows)):
            problem = staging_problem(asked, rows, time, memory, row)
            found = staging.solve(problem)
            assert (found is not None) == (asked is not prepared.question)
            if found is not None:
                step = (problem.seconds(found.objective) + float(time.step[row])) * float(time.jitter[row])
                assert known.step[row] <= step * (1 + 1e-12)
                assert step <= known.step[row] * 1.2
                units.add(problem.unit_ns)
    assert max(units) > 1


def test_lengths_beyond_any_model_are_refused_with_the_limit() -> None:
    with pytest.raises(InputError, match="a sequence has at most 100,000,000 tokens"):
        question(workload__model="gpt2", workload__tokens="1G", workload__sequence_length="100_000_001")


def test_samples_of_one_token_are_as_many_as_tokens() -> None:
    """Padding adds no tokens: they would leave 64 bits at a length of 1,024."""
    prepared = training(question(workload__model="gpt2", workload__tokens="10_000T", workload__mean_length="1",
                                hardware__candidates="rtx-4090-1x"), catalog())
    assert prepared.search.tokens == 10**16
    batch = prepared.question.global_batch
    steps = Pricing(prepared.search, prepared.question.candidates).steps(from_rows([{}], batch))
    assert steps[0] == -(-10**16 // batch)

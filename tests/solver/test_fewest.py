"""Where nothing but the number of GPUs is asked: the search against every layout tried, simplest first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.layouts.axes import Space
from planner.layouts.enumerate import Grid
from planner.layouts.offload import OFFLOAD_AXES, allowed
from planner.layouts.rules import Facts
from planner.layouts.table import joined
from planner.physics.training.estimate import time_terms
from planner.physics.training.memory import memory_terms
from planner.physics.training.question import question_of
from planner.solver import staging
from planner.solver.fleet.problem import FleetOffer
from planner.solver.search.bounding import offers
from planner.solver.search.complexity import complexities
from planner.solver.search.floor import fewest
from planner.solver.search.holding import least_short
from planner.solver.search.job import Pricing, identity
from planner.solver.search.parallel import search_grid
from planner.solver.search.staging_input import staging_problem
from planner.solver.settings import UNLIMITED
from tests.enumerated import enumerate_layouts
from tests.search_cases import candidate, catalog
from tests.small_cases import Small, small_case

SEEDS = range(3000, 3120, 20)
Found = dict[int, tuple[int, int, int]]
"""By candidate the GPUs, complexity and identity of a layout."""


def held(seed: int) -> Small:
    """Return a small case that asks for nothing but the number of GPUs, every other one with nothing outside them."""
    case = small_case(seed)
    if seed % 2:
        only = {**case.space.only, **dict.fromkeys(OFFLOAD_AXES, (0,))}
        space = replace(case.space, only=only)
        case = replace(case, space=space, facts=replace(case.facts, space=space))
    endless = tuple(FleetOffer(at, at, 10**6, None) for at in range(len(case.question.candidates)))
    return replace(case, job=replace(case.job, timed=False, objective="gpus", offers=endless, reclaims=(),
                                     deadline_us=None, budget_cents=None, max_power_w=None))


def tried(case: Small) -> Found:
    """Stage every layout at every level of offload in the order of GPUs, nodes, complexity and identity."""
    rows, question, found = enumerate_layouts(case.facts).layouts, case.question, Found()
    if not len(rows):
        return found
    parts = [level.on(rows) for level in offers(question, case.space)]
    legal = [np.flatnonzero(allowed(part.columns, question.stack, case.space.flash)) for part in parts]
    rows = joined([part.take(mine) for part, mine in zip(parts, legal, strict=True)])
    time, memory = time_terms(question, rows), memory_terms(question, rows)
    nodes, hard = Pricing(case.job, question.candidates).nodes(rows), complexities(rows)
    names = [identity(rows, row) for row in range(len(rows))]
    for row in sorted(range(len(rows)), key=lambda row: (rows.gpus[row], nodes[row], hard[row], names[row])):
        at = int(rows.candidate[row])
        if at not in found and staging.solve(staging_problem(question, rows, time, memory, row)) is not None:
            found[at] = int(rows.gpus[row]), int(hard[row]), names[row]
    return found


@pytest.mark.parametrize("seeds", [range(at, at + 20) for at in SEEDS], ids=str)
def test_the_fewest_gpus_and_the_simplest_layout_on_them_are_what_trying_all_finds(seeds: range) -> None:
    several = 0
    for seed in seeds:
        case = held(seed)
        frontier = search_grid(case.question, Grid(case.facts), case.job, UNLIMITED)
        first: Found = {}
        for staged in sorted(frontier.found, key=lambda one: one.key):
            column, name = staged.column, identity(staged.batch.rows, staged.row)
            first.setdefault(column.candidate, (column.gpus, column.complexity, name))
        truth = tried(case)
        assert first == truth, seed
        several += any(gpus > 1 for gpus, *_ in truth.values())
    assert several


@pytest.mark.parametrize(("model", "stack", "method"), [
    ("llama-3.1-8b", "megatron-core", "full"), ("llama-3.1-8b", "fsdp2", "full"), ("llama-3.1-8b", "deepspeed", "full"),
    ("llama-3.1-70b", "hf-peft", "lora"), ("mixtral-8x7b", "hf-peft", "lora"), ("gemma-2-9b", "fsdp2", "full")])
def test_the_gpus_of_any_layout_that_fits_hold_one_copy_of_all_states(model: str, stack: str, method: str) -> None:
    candidates = tuple(candidate(name) for name in ("dgx-a100", "dgx-h100", "rtx-4090-8x"))
    shape, framework = catalog().model(model), catalog().stack(stack)
    question = question_of(catalog(), shape, candidates, framework, sequence_length=1024, global_batch=16,
                           precisions=("bf16",), method=method, confidence=0.95)
    space = Space(shape, candidates, ("bf16",), 1024, 16, 16, only=dict.fromkeys(OFFLOAD_AXES, (0,)),
                  hybrid_shard=framework.hybrid_shard, no_sync=framework.accumulation)
    facts = Facts(space=space, stack=framework, node_gpus=np.full(3, 8), clustered=np.full(3, True),
                  precisions=np.full((3, 1), True), fixed_gpus=None, max_nodes=None, partial_nodes=True)
    rows, least = enumerate_layouts(facts).layouts, fewest(question, space)
    fits = rows.take(np.flatnonzero(least_short(question, rows, memory_terms(question, rows)) <= 0))
    assert len(fits) > 10
    assert np.all(fits.gpus >= least[fits.candidate])
    assert least.max() > 1

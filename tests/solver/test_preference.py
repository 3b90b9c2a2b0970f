"""The search equals trying every point where samples are pairs, a reference is held, and memory is of the longest."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from benchmarks.exact import outcome
from planner.physics.training.preference import headed, sample_of
from tests.search_cases import catalog
from tests.small_cases import Small, small_case


def preferring(seed: int) -> Small:
    """Return a small scenario that trains on preferences, with answers of half the longest on average."""
    case, rng = small_case(seed), random.Random(seed)
    recipes = catalog().recipes.preference
    method, reference = rng.choice(sorted(recipes.methods)), rng.choice(("copy", "adapters-off", "precomputed"))
    sample = sample_of(recipes, method, reference)
    question = replace(case.question, sample=sample, shape=headed(case.question.shape, sample),
                       sequence_length=case.question.sequence_length // rng.choice((1, 2, 4)))
    return replace(case, question=question, job=replace(case.job, sequence_length=question.sample_length))


@pytest.mark.parametrize("seeds", [range(at, at + 10) for at in range(20_000, 20_030, 10)], ids=str)
def test_search_equals_brute_force_on_preferences(seeds: range) -> None:
    differ = {seed: outcome(seed, (seed % 2 == 0,), preferring(seed)).differences for seed in seeds}
    assert {seed: said for seed, said in differ.items() if said} == {}

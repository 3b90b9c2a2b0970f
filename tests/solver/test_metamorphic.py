"""A few of the relations between answers to related questions; thousands are in `python -m benchmarks.exact`."""

import pytest

from benchmarks.metamorphic import Priced, services, training
from planner.catalog.load import Catalog


@pytest.mark.parametrize("seed", range(4))
def test_training(seed: int) -> None:
    held = training(seed)
    assert len(held.counts) > 1
    assert not held.broken


def test_services() -> None:
    held = services(13, Catalog(), Priced(), only=("looser TTFT", "prices"))
    assert len(held.counts) == 2
    assert not held.broken

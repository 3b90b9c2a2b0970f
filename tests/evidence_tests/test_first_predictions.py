"""Runs as they were first predicted, and sources that are put aside."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from planner.catalog.first import FirstPredictions
from tests.search_cases import catalog

HEAD = {"name": "first-predictions", "source": "a test", "as_of": "2026-11", "kind": "measured"}


def batch(**keys: object) -> dict[str, object]:
    return {"of": "two sources", "day": "2026-11-27", "over": {"step-residuals": {"A-1": 1.2, "A-2": 1.1, "B-1": 2.5}},
            **keys}


def test_rows_of_a_source_put_aside_decide_nothing_of_that_file_alone() -> None:
    found = FirstPredictions.model_validate(
        HEAD | {"batches": [batch(aside={"step-residuals": {"B": "another kernel ran"}})]})
    assert [found.decides("step-residuals", row) for row in ("A-1", "B-1", "B-7", "C-1")] == [True, False, False, True]
    assert found.decides("memory-residuals", "B-1")
    assert found.of("step-residuals")["B-1"].over == 2.5


def test_a_source_put_aside_has_rows_in_its_batch() -> None:
    with pytest.raises(ValidationError, match="step-residuals has no row of C in this batch"):
        FirstPredictions.model_validate(HEAD | {"batches": [batch(aside={"step-residuals": {"C": "unknown"}})]})


def test_intervals_know_no_source_that_is_put_aside() -> None:
    shipped = catalog().first_predictions
    put_aside = {source for one in shipped.batches for source in one.aside.get("step-residuals", {})}
    assert put_aside
    assert not put_aside & set(catalog().step_residuals.sources)

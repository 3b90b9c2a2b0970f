"""The benchmarks still fit the program they measure; what they measure is not tested here."""

from __future__ import annotations

from importlib import import_module

import pytest

from benchmarks import scheduling


@pytest.mark.parametrize("name", ["process", "speed", "exact", "metamorphic", "validation", "rules", "formulas",
                                  "throughput", "transfer", "serving_speed", "whole", "scheduling"])
def test_imports(name: str) -> None:
    assert import_module(f"benchmarks.{name}").__doc__


def test_a_section_of_schedules_that_is_written_anew_keeps_what_was_run_by_hand():
    page = "# Page\n\n## One\n\nold\n\n### By hand\n\nkept\n\n## Two\n\nstays\n"
    assert scheduling.placed(page, "One", "new") == page.replace("old", "new")
    assert scheduling.placed(page, "Two", "new") == page.replace("stays", "new")

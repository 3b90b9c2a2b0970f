"""The benchmarks still fit the program they measure; what they measure is not tested here."""

from __future__ import annotations

from importlib import import_module

import pytest


@pytest.mark.parametrize("name", ["process", "speed", "exact", "metamorphic", "validation", "rules", "formulas",
                                  "throughput", "transfer", "serving_speed", "whole", "scheduling"])
def test_imports(name: str) -> None:
    assert import_module(f"benchmarks.{name}").__doc__

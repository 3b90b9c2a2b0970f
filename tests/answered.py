"""Plans of questions that several tests ask, pages of the documentation above all: each is made once in a test run.

The processes of a run share them through the folder that tests/conftest.py makes.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from planner.answer.schema import Plan
from planner.ask.plan import make_plan
from planner.catalog.load import Catalog
from planner.scenario.load import load_question
from planner.scenario.portfolio import AnyQuestion
from tests.processes import ANSWERS

ASKS = ("planner.ask.plan", "planner.api.functions", "planner.sweeping.answering")
"""Modules that ask for plans."""
_made: dict[tuple[object, ...], Plan] = {}


def remembered(scenario: AnyQuestion, catalog: Catalog, **asked: Any) -> Plan:
    """Return what `make_plan` does; asked the same again, the same plan."""
    if asked.get("replay") or asked.get("before") or asked.get("time_limit"):
        return make_plan(scenario, catalog, **asked)
    key = (type(scenario), scenario.model_dump_json(), catalog.digest, *map(str, catalog.roots),
           *asked.get("defaults", ()), bool(asked.get("simple")), *(asked.get("pareto") or ()), asked.get("workers", 1))
    if key not in _made:
        _made[key] = _shared(key, lambda: make_plan(scenario, catalog, **asked))
    return _made[key]


def _shared(key: tuple[object, ...], make: Callable[[], Plan]) -> Plan:
    """Return the plan that a process of this run has left under a key, else the one made here, and leave it."""
    place = Path(os.environ[ANSWERS]) / sha256(repr(key).encode()).hexdigest()
    if place.exists():
        plan: Plan = pickle.loads(place.read_bytes())
        return plan
    plan = make()
    part = place.with_suffix(f".{os.getpid()}")
    part.write_bytes(pickle.dumps(plan))
    part.replace(place)
    return plan


@pytest.fixture
def remembering(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands, Python blocks and sweeps give a plan again that another test has asked for."""
    for module in ASKS:
        monkeypatch.setattr(f"{module}.make_plan", remembered)


@cache
def shipped_answer(name: str) -> Plan:
    """Return the plan of a shipped scenario, as `planner plan NAME` makes it."""
    catalog = Catalog()
    scenario, defaults = load_question(name, {}, catalog)
    return remembered(scenario, catalog, defaults=defaults)

"""Whatever a public function is given, it answers or raises an InputError that names the argument."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import planner
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.scenario.flags import NAMES
from planner.scenario.keywords import by_path
from planner.scenario.load import load_any


class Odd:
    """An object that is nothing, and cannot even say so."""

    def __repr__(self) -> str:
        raise RuntimeError("no")


ENDLESS: dict[str, Any] = {}
ENDLESS["workload"] = ENDLESS
JOB: dict[str, Any] = {"model": "gpt2", "tokens": "1 M", "on": "h100-sxm-1x", "max_gpus": 1}
WRONG: list[Any] = [object(), Odd(), b"x", 1j, math.nan, math.inf, -1, [object()], {"a": 1}, {1: 2}, {1, 2}, lambda: 0,
                    np.array([1, 2]), Decimal("NaN"), datetime.timedelta(days=1), "\0", "", Path, [[]], 10**400, True,
                    range(3), (), {}]
PLAIN = [math.nan, math.inf, -math.inf, 1e300, -1, 0, 0.5, True, "", "\ud800", "\0", "9" * 200, [], [[]], [[1]], [5],
         [""], [None], {}, {"mean": []}, {"cv": {}}, {"tokens": "x"}, {"mean": 1, "cv": math.nan}, 2**127,
         np.float64(2.5), np.int64(3)]
CATALOG = Catalog()
VERBS: dict[str, Callable[..., Any]] = {
    "plan": planner.plan, "compare": planner.compare, "explain": planner.explain,
    "estimate": lambda *given, **values: planner.estimate(*given, **{"node": "h100-sxm-1x", **values}),
    "sweep": lambda *given, **values: planner.sweep(*given, **{"vary": {"seq_len": [1024, 512]}, **values})}
ARGUMENTS = {"plan": ("catalogs", "time_limit", "prefer", "pareto", "workers", "replay"),
             "compare": ("catalogs", "time_limit", "workers"),
             "explain": ("why_not", "catalogs", "time_limit", "workers"),
             "estimate": ("node", "layout", "nodes", "catalogs"),
             "sweep": ("vary", "catalogs", "time_limit", "workers")}


def refused(verb: Callable[..., Any], *given: Any, **values: Any) -> None:
    """Call a function: an error of the planner is fine, and so is an answer; no other exception is."""
    with suppress(InputError):
        verb(*given, **values)


@pytest.mark.parametrize("name", sorted(NAMES))
@pytest.mark.parametrize("verb", ["plan", "estimate"])
def test_a_keyword_of_any_type_is_named(verb: str, name: str) -> None:
    # the first value is wrong, so that nothing is solved; a wrong value of another keyword is found all the same
    stop = {"model": 5} if name != "model" else {"method": 5}
    for value in WRONG:
        with pytest.raises(InputError):
            VERBS[verb](**{**stop, name: value})


@pytest.mark.parametrize("name", ["model", "tokens", "seq_len", "global_batch", "deadline", "gpus", "on", "precision",
                                  "optimizer", "lora_rank", "objective", "confidence", "speculative", "arrivals", "day",
                                  "engine_version", "prefix_hits", "length_classes"])
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_an_object_where_a_value_belongs_is_refused_by_name(verb: str, name: str) -> None:
    with pytest.raises(InputError, match=f"^{name}: expected text, a number, .*, got a value of type object"):
        VERBS[verb](**{name: object()})


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_value_that_a_file_could_hold_is_read_or_refused(name: str) -> None:
    for base in (JOB, {"model": "gpt2", "rate": 5, "input": 500, "output": 50, "on": "h100-sxm-1x"}):
        for value in [*PLAIN, "1", "x", "2 s", 7]:
            with suppress(InputError):
                load_any(None, *by_path({**base, name: value}, "argument", CATALOG)[:1], CATALOG)


@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_scenario_of_any_type_is_refused(verb: str, value: Any) -> None:
    with pytest.raises(InputError):
        VERBS[verb](value)


@pytest.mark.parametrize("value", [{"workload": 5}, {"workloads": 5}, {"workload": {"kind": []}}, ENDLESS,
                                   {"hardware": []},
                                   {"workload": {"model": "gpt2", "tokens": {}}}, {"name": object(), "workload": {}},
                                   {"workload": {"kind": "serving", "model": "gpt2", "input": object(), "output": 1}}])
def test_a_mapping_that_is_no_scenario_is_refused(value: Any) -> None:
    for verb in VERBS.values():
        with pytest.raises(InputError):
            verb(value)


@pytest.mark.parametrize(("verb", "name"), [(verb, name) for verb, names in ARGUMENTS.items() for name in names])
def test_an_argument_of_any_type_is_refused_or_harmless(verb: str, name: str) -> None:
    for value in WRONG:
        # a model that there is not ends what no argument stops
        refused(VERBS[verb], **{**JOB, "model": "no-such", name: value} if verb != "estimate" else
                {"model": "no-such", name: value})


@pytest.mark.parametrize("value", [*WRONG, None, "no/such.csv", "."], ids=lambda value: type(value).__name__)
def test_evidence_of_any_type_is_refused(value: Any) -> None:
    with pytest.raises(InputError):
        planner.validate(value)
    with pytest.raises(InputError):
        planner.validate("no/such.csv", catalogs=value)


@pytest.mark.parametrize(("verb", "values", "said"), [
    ("plan", {"model": {"hidden_size": 4096}}, "^model: a model is named .* the path of a config.json"),
    ("sweep", {"axes": {"gpus": [8, 16]}}, "^axes: what is varied is called vary in planner.sweep"),
    ("plan", {"model": 5}, "^model: expected text, got 5"), ("plan", {"tokens": 1.5}, "^tokens: token count"),
    ("plan", {"tokens": math.nan}, "^tokens: "), ("plan", {"deadline": 3}, "^deadline: duration needs a unit, got 3"),
    ("plan", {"seq_len": 5, "sequence_length": 5}, "^seq_len and sequence_length mean the same"),
    ("plan", {"frob": 5}, "unknown argument of planner.plan 'frob'"), ("plan", {"workers": "4"}, "^workers: expected"),
    ("plan", {"time_limit": "x"}, "^time_limit: 'x' is not"), ("plan", {"prefer": "x"}, "unknown prefer 'x'"),
    ("plan", {"pareto": 5}, "^pareto: expected a list"), ("plan", {"catalogs": 5}, "^catalogs: expected"),
    ("explain", {"why_not": 5}, "^why_not: expected"), ("sweep", {"vary": 5}, "^vary: expected"),
    ("sweep", {"vary": {"deadlin": ["1 d"]}}, "unknown scenario value in --vary 'deadlin'"),
    ("estimate", {"nodes": "two"}, "^nodes: expected a whole"), ("estimate", {"nodes": 2, "gpus": 2}, "both given"),
    ("estimate", {"node": 5}, "^node: expected text"), ("estimate", {"layout": 5}, "^layout: expected axes"),
    ("estimate", {"layout": {"tp": []}}, "^layout: expected text or numbers")])
def test_what_is_wrong_is_named_as_it_was_given(verb: str, values: dict[str, Any], said: str) -> None:
    base = {"model": "gpt2"} if verb == "estimate" else JOB
    with pytest.raises(InputError, match=said):
        VERBS[verb](**{**base, **values})


def test_a_function_and_a_figure_by_another_name() -> None:
    plan = planner.finetune(**JOB)  # type: ignore[attr-defined] - a name that people guess
    assert plan.provenance.scenario["workload"]["method"] == "full"
    (best,) = plan.assignments
    assert (plan.cost, plan.days, plan.gpus, plan.step_time, plan.fits) == (
        best.cost_usd, best.duration_days, best.gpus, best.time.step_seconds, True)  # type: ignore[attr-defined]
    assert planner.estimate("llama-3.1-8b", "rtx-4090-1x", "recompute=none", method="full").fits is False
    with pytest.raises(AttributeError, match="Plan has no 'colour'"):
        plan.colour  # noqa: B018 - is what is refused
    with pytest.raises(AttributeError, match="has no attribute 'bake'; it has compare, estimate"):
        planner.bake  # type: ignore[attr-defined]  # noqa: B018

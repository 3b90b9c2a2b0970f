"""Why there is no serving plan, and whether the change that is named is really enough."""

from __future__ import annotations

import re
from typing import Any

import pytest

from planner.answer.schema import Infeasible
from tests.jobs.serving.cases import plan, value


def no(**changes: Any) -> Infeasible:
    found = plan(**changes)
    assert (found.status, found.assignments) == ("infeasible", ())
    assert found.infeasible is not None
    return found.infeasible


def relaxed(changes: dict[str, Any], limit: str, to: str) -> dict[str, Any]:
    """Return a question with one limit as a relaxation has it."""
    if "ttft" in limit or "tpot" in limit:
        return {**changes, **dict(zip(limit.split(" and "), to.split(", "), strict=True))}
    value: Any = to.replace(",", "")
    value = value if limit in ("budget", "max_power") else int(value)
    return {**changes, "limits": {**changes["limits"], limit: value}}


@pytest.mark.parametrize(("changes", "said", "limits"), [
    ({"ttft": "1 ms"}, "meets ttft 1 ms at p95 for", ["ttft"]),
    ({"tpot": "0.1 ms"}, "meets tpot 0.0001 s at p95 for", ["tpot"]),
    ({"ttft": "1 ms", "tpot": "0.1 ms"}, "ttft 1 ms at p95 and tpot 0.0001 s at p95",
     ["ttft and tpot"]),
    ({"rate": 200, "limits": {"max_nodes": 1}}, "max nodes is 1", ["max_nodes"]),
    ({"rate": 200, "limits": {"max_gpus": 2}}, "max gpus is 2", ["max_gpus"]),
    ({"rate": 200, "limits": {"gpus": 2}}, "gpus is 2", ["gpus"]),
    ({"rate": 200, "limits": {"budget": "3 USD/h"}}, "budget is 3.00 USD/h", ["budget"]),
    ({"rate": 200, "limits": {"max_power": "1 kW"}}, "max power is 1.0 kW", ["max_power"]),
    ({"rate": 200, "limits": {"max_nodes": 1, "budget": "9000 USD/h"}}, "max nodes is 1", ["max_nodes"]),
    ({"rate": 200, "limits": {"max_nodes": 1, "budget": "3 USD/h"}}, "budget is 3.00 USD/h", [])])
def test_what_is_named_is_the_cause_and_its_change_is_enough(changes: dict[str, Any], said: str,
                                                             limits: list[str]) -> None:
    found = no(**changes)
    assert said in "; ".join(found.because)
    assert [one.limit for one in found.relaxations] == limits
    for one in found.relaxations:
        assert value(**relaxed(changes, one.limit, one.to)) > 0, one


def test_a_limit_that_is_wide_is_not_blamed() -> None:
    assert no(rate=200, limits={"max_nodes": 1, "budget": "9000 USD/h"}).because == ("max nodes is 1",)


def test_a_model_that_fits_nowhere_says_how_much_is_missing() -> None:
    found = no(model="llama-3.1-405b")
    assert "fits on no candidate" in found.because[0]
    assert "lacks" in (found.nearest or "")
    assert found.relaxations == ()


def test_405b_in_fp8_does_not_fit_four_gpus() -> None:
    big = {"model": "llama-3.1-405b", "rate": 0.1, "quantization": ["fp8"], "ttft": "10 s", "tpot": "200 ms"}
    four = {"hardware": {"candidates": ["h100-sxm-4x"]}, "sourcing": {"own": {"h100-sxm-4x": 1}}}
    found = no(**big, **four)
    assert found.because == (
        "memory: the smallest replica of llama-3.1-405b that holds a request takes 8 h100-sxm of h100-sxm-4x, "
        "and 4 may be used", "only 1 owned h100-sxm-4x, electricity of us-average is at hand")
    assert {(one.limit, one.to) for one in found.relaxations} == {("own", "2 x h100-sxm-4x"), ("quantization", "int4")}
    assert value(**big, hardware={"candidates": ["dgx-h100"]}, objective="gpus") == 8


def test_too_few_owned_nodes_are_the_cause_whatever_the_limits() -> None:
    own = {"sourcing": {"own": {"h100-sxm-1x": 1}}, "rate": 500}
    assert no(**own).because == ("only 1 owned h100-sxm-1x, electricity of us-average is at hand",)
    # neither more GPUs alone nor more nodes alone is enough
    both = no(**own, limits={"max_gpus": 2})
    assert both.because == ("max gpus is 2",)
    assert (both.nearest or "").endswith("two or more have to change")


def test_the_share_that_is_answered_is_that_of_the_fleet_admitted() -> None:
    nearest = no(rate=200, limits={"max_nodes": 1}).nearest or ""
    share = float(nearest.split("within them ")[1].split("%")[0]) / 100
    assert value(rate=200 * (share - 0.01), limits={"max_nodes": 1}) > 0
    assert plan(rate=200 * (share + 0.01), limits={"max_nodes": 1}).status == "infeasible"


def test_where_each_target_is_met_by_another_layout_the_nearest_is_one_of_them() -> None:
    """TTFT wants many GPUs over PCIe, which TPOT does not: no layout has both, and either may be eased alone."""
    asked = {"model": "mistral-small-24b", "rate": 1.07, "input": {"mean": 1500, "cv": 1}, "output": 600,
             "ttft": "1.1 s", "tpot": "30 ms", "hardware": {"candidates": ["l40s-4x"]}}
    found = no(**asked)
    assert "ttft 1.1 s at p95 and tpot 30 ms at p95" in found.because[0]
    ttft, tpot = re.findall(r"T[TP][FO]T ([\d.]+ m?s)", found.nearest or "")
    assert seconds(ttft) > 1.1 or seconds(tpot) > 0.03
    eased = {one.limit: one.to for one in found.relaxations}
    for limit in ("ttft", "tpot"):
        assert value(**{**asked, limit: eased[limit]}) > 0


def seconds(text: str) -> float:
    return float(text.split(maxsplit=1)[0]) * (1e-3 if text.endswith("ms") else 1)

"""What a budget pays for: no plan of more is within it, and a plan of what is named is."""

from __future__ import annotations

import pytest

import planner
from planner.ask.affordable import afforded, left_open
from planner.catalog.load import Catalog
from planner.catalog.sized import size_of
from planner.errors import InputError

CATALOG = Catalog()
ON = {"hardware.candidates": "8xh100", "sourcing.rent.providers": "lambda"}
TUNED = {"workload.model": "llama-3.2-1b", "workload.method": "full", "limits.budget": "200 USD"}


def test_tokens_are_the_most_that_is_paid() -> None:
    found = dict(afforded({**TUNED, **ON}, CATALOG).values)
    tokens = float(str(found["workload.tokens"]))
    within = planner.plan(model="llama-3.2-1b", method="full", budget="200 USD", on="8xh100", provider="lambda")
    assert within.provenance.scenario["workload"]["tokens"] == f"{tokens / 1e6:.0f} M"
    assert 0.97 * 200 <= within.assignments[0].cost_usd <= 200
    more = planner.plan(model="llama-3.2-1b", method="full", on="8xh100", provider="lambda", tokens=1.05 * tokens)
    assert more.assignments[0].cost_usd > 200


def test_the_model_is_the_largest_that_is_paid() -> None:
    asked = {"limits.budget": "300 USD", **ON}
    size = size_of(str(afforded(asked, CATALOG).values["workload.model"]))
    assert size
    costs = [planner.plan(model=f"{many / 1e9:.3g}b", tokens="chinchilla", on="8xh100", provider="lambda"
                          ).assignments[0].cost_usd for many in (size, 1.2 * size)]
    assert costs[0] <= 300 < costs[1]


def test_tokens_are_the_most_that_is_done_in_a_time_on_what_there_is() -> None:
    """It was refused: a deadline without tokens had no effect."""
    there = {"model": "llama-3.2-1b", "method": "full", "on": "8xh100", "max_nodes": 1}
    plan = planner.plan(**there, deadline="12 h")
    tokens = 1e9 * float(str(plan.provenance.scenario["workload"]["tokens"]).removesuffix(" G"))
    days = [planner.plan(**there, tokens=tokens * more, objective="time").assignments[0].duration_days
            for more in (1.0, 1.05)]
    assert 0.97 * 0.5 <= days[0] <= 0.5 < days[1]
    with pytest.raises(InputError, match="deadline: has no effect without"):
        planner.plan(model="llama-3.2-1b", method="full", on="h100", deadline="12 h")


@pytest.mark.parametrize(("values", "left"), [
    (TUNED, "workload.tokens"), ({"limits.budget": "5k", "objective": "largest"}, "workload.model"),
    ({"limits.budget": "5k", "workload.tokens": "1 G"}, "workload.model"),
    ({"workload.model": "7b", "limits.deadline": "9 d"}, "workload.tokens"),
    ({**TUNED, "workload.tokens": "1 G"}, ""), ({**TUNED, "workload.samples": "9k"}, ""),
    ({**TUNED, "workload.rate": "5"}, ""), ({**TUNED, "workload.method": "dpo"}, ""),
    ({**TUNED, "workload.model": "flux.1-dev"}, ""), ({"workload.model": "llama-3.2-1b"}, "")])
def test_a_budget_decides_what_alone_is_open(values: dict[str, object], left: str) -> None:
    assert left_open(values, CATALOG) == left

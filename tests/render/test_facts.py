"""Facts are said once: text and page show the same ones, each in its group."""

from __future__ import annotations

import html
import io
from typing import Annotated

import pytest
from rich.console import Console

import planner
from planner.answer.assignment import Commitment, Failures, TrainingAssignment
from planner.answer.layout import Layout
from planner.answer.schema import Plan
from planner.answer.show_as import ShowAs
from planner.catalog.load import Catalog
from planner.render.facts import LabeledFigure, facts, memory_parts, time_parts
from planner.render.figures import listed
from planner.render.report.page import report
from planner.render.tables import render_plan
from tests.answer.example_plan import LAYOUT, assignment, example_plan, serving_assignment

FAILURES = Failures(seconds_between=86400 * 5, checkpoint_bytes=2**40, checkpoint_interval_seconds=3600,
                    checkpoint_write_seconds=12, restart_seconds=600)


def unusual() -> Plan:
    """A plan whose layout has all that launch files need and that is not the usual."""
    changes = {"schedule": "zero-bubble", "sequence_parallel": False, "no_sync": True, "cp_method": "all-to-all",
               "expert_tp": 4}
    layout = Layout(**dict(LAYOUT) | changes)
    one = TrainingAssignment(**assignment(layout=layout), failures=FAILURES,
                             commitment=Commitment(term="reserved-1y", paid_days=365, used_days=59.2))
    return example_plan().model_copy(update={"assignments": (one,), "notes": ("one thing to know",)})


def text_of(plan: Plan) -> str:
    console = Console(file=io.StringIO(), width=200)
    render_plan(plan, console, full=True)
    return " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]


@pytest.mark.parametrize("plan", [
    unusual(), example_plan(), example_plan().model_copy(update={"assignments": (serving_assignment(),)})],
    ids=["unusual", "usual", "serving"])
def test_every_fact_is_in_the_text_and_on_the_page(plan: Plan) -> None:
    page, text = html.unescape(report(plan, Catalog())), text_of(plan)
    for fact in facts(plan.assignments[0]):
        assert " ".join(fact.value.split()) in text or fact.group == "hardware", fact
        assert fact.value in page or fact.group == "memory", fact


def test_the_price_is_that_of_the_hours_that_are_paid_for() -> None:
    plan = planner.plan("llama-3.1-8b", method="lora", tokens="20M", on="8xh100", provider="nebius")
    a = plan.assignments[0]
    assert a.commitment.paid_days * 24 == pytest.approx(1)
    assert listed(a) * a.nodes == pytest.approx(a.cost_usd)
    assert f"at {a.cost_usd:.2f} USD/h per node, paid for 60 min, finishes" in " ".join(text_of(plan).split())


def test_what_a_launch_needs_is_said_where_it_is_unusual() -> None:
    said = {fact.label: fact.value for fact in facts(unusual().assignments[0])}
    assert said["schedule"] == "zero-bubble"
    assert said["sequence parallel"] == "off"
    assert said["context exchange"] == "all-to-alls of heads (Ulysses)"
    assert "no_sync" in said["gradients"]
    assert "expert TP 4" in said["axes"]
    assert said["failures"] == ("one every 5 d; a 1024.0 GiB checkpoint every 60 min, written in 12 s; a restart takes "
                                "10 min")
    assert said["commitment"] == "365 d paid for (reserved-1y), 59.2 d used"
    usual = {fact.label for fact in facts(example_plan().assignments[0])}
    assert not usual & {"schedule", "sequence parallel", "context exchange", "gradients", "failures", "commitment"}


def test_notes_are_on_the_page() -> None:
    assert "one thing to know" in report(unusual(), Catalog())


def test_parts_have_all_of_the_whole() -> None:
    one = example_plan().assignments[0]
    assert sum(part.share for part in time_parts(one.time)) == pytest.approx(1)
    assert sum(part.share for part in memory_parts(one.memory)) == pytest.approx(
        one.memory.peak_bytes / one.memory.usable_bytes)


def test_a_field_that_says_how_it_is_shown_is_shown_last_in_its_group() -> None:
    class Timed(TrainingAssignment):
        repairs: Annotated[int | None, ShowAs("repairs", "performance")] = None
        recovery_seconds: Annotated[float | None, ShowAs("recovery", "performance")] = None

    plain = TrainingAssignment(**assignment())
    timed = Timed(**dict(plain), repairs=12_345, recovery_seconds=90)
    assert [fact for fact in facts(timed) if fact not in facts(plain)] == [
        LabeledFigure("repairs", "12,345", "performance"), LabeledFigure("recovery", "1.5 min", "performance")]
    assert [fact.label for fact in facts(timed) if fact.group == "performance"][-1] == "recovery"
    assert facts(Timed(**dict(plain))) == facts(plain)


def test_capital_is_of_all_gpus_that_are_bought() -> None:
    """A replica of one GPU leaves seven of the node idle, which are paid for too."""
    made = planner.plan(model="llama-3.1-8b", rate=1, input=1000, output=200, on="dgx-h100", terms="buy").assignments[0]
    assert made.purchase is not None
    assert (made.gpus, made.idle_gpus) == (1, 7)
    (capital,) = (fact.value for fact in facts(made) if fact.label == "capital")
    assert capital.endswith(f"{made.purchase.capex_usd / 8:,.0f} USD per GPU")

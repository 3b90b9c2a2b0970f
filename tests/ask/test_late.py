"""Deadlines that the computed time keeps and whole runs at even odds do not; nodes that are named by their GPUs."""

import pytest

import planner

ASKED = {"model": "llama-2-13b", "tokens": "1T", "on": "8xh100"}


def said(asked):
    return {default.name: default.value for default in asked.provenance.defaults}


@pytest.mark.parametrize(("deadline", "is_said"), [("30 d", True), ("30 d at 90%", False), ("90 d", False)])
def test_a_deadline_that_most_runs_miss_is_said(deadline, is_said):
    made = planner.plan(**ASKED, deadline=deadline, max_nodes=8 if deadline == "30 d" else None, objective="gpus")
    (assignment,) = made.assignments
    usual = assignment.duration_days * assignment.whole_run.factor
    assert (usual > 30 and deadline == "30 d") == is_said
    assert any("at even odds" in note for note in made.notes) == is_said


def test_a_node_that_is_named_by_its_gpus_may_be_one_of_several():
    several, one = (planner.plan(**ASKED, deadline="90 d", **more) for more in ({}, {"max_nodes": 4}))
    assert said(several)["hardware"] == "8xh100, as many such nodes as needed"
    assert "hardware" not in said(one)
    assert "hardware" not in said(planner.plan(model="llama-3.1-8b", on="8xh100"))


def test_rows_of_a_comparison_that_are_late_at_even_odds_say_so() -> None:
    rows = planner.compare(model="llama-3.1-70b", tokens="1 T", on="dgx-h100,dgx-b200", deadline="60 d",
                           provider="nebius").rows
    late = {row.node for row in rows if row.note and "at even odds" in row.note}
    slow = {row.node for row in rows if row.duration_days is not None and row.duration_days > 55}
    assert late == slow == {"dgx-b200"}

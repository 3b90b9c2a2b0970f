"""Rendered answers: golden texts at 80 columns; nothing wider, nothing cut, plain in a pipe."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from planner.answer.assignment import TrainingAssignment, alternative
from planner.answer.doubt import Doubt, Measurement
from planner.answer.level import Asked
from planner.answer.schema import Objective, Plan, Search
from planner.render.figures import gap_shown, values
from planner.render.page import Page
from planner.render.sentence import batch, close_call_sentence
from planner.render.tables import render_answer_line, render_estimate, render_plan
from planner.units import show_days
from tests.answer.example_plan import (
    assignment,
    estimate,
    example_plan,
    infeasible_plan,
    memory,
    serving_assignment,
)
from tests.render.golden import check, printed

USABLE = 79 * 2**30
SHORT: dict[str, Callable[[Console], None]] = {
    "render_plan": lambda c: render_plan(example_plan(), c),
    "render_infeasible": lambda c: render_plan(infeasible_plan(), c),
    "render_estimate": lambda c: render_estimate(estimate(), c, 0.95),
    "render_no_fit": lambda c: render_estimate(
        estimate(memory=memory("does not fit", USABLE, activations=60_000_000_000)), c, 0.95),
    "render_serving": lambda c: render_estimate(serving_assignment(), c, 0.95),
    "render_fleet": lambda c: render_plan(_fleet(), c),
}
FULL: dict[str, Callable[[Console], None]] = {
    "render_plan_full": lambda c: render_plan(example_plan(), c, full=True),
    "render_estimate_full": lambda c: render_estimate(estimate(), c, 0.95, full=True),
    "render_serving_full": lambda c: render_estimate(serving_assignment(), c, 0.95, full=True),
}
VIEWS = SHORT | FULL
SCREEN = 45
"""Lines of a default answer at most."""


def _fleet() -> Plan:
    """Two kinds of replicas of a service, one with a target at p99 and idle GPUs, and a fleet that lost."""
    first, plan = serving_assignment(), example_plan()
    assert first.serving is not None
    slow = first.serving.ttft_seconds.model_copy(update={"asked": Asked(at="p99", seconds=1.7, target_seconds=2.0)})
    second = first.model_copy(update={"idle_gpus": 4, "serving": first.serving.model_copy(
        update={"ttft_seconds": slow})})
    lost = tuple(alternative(one, "+12.0% cost", fleet=1) for one in (first, second))
    return plan.model_copy(update={"assignments": (first, second), "alternatives": lost})


def _several() -> Plan:
    plan = example_plan()
    return plan.model_copy(update={"assignments": plan.assignments * 2})


@pytest.mark.parametrize("view", VIEWS)
def test_golden(view: str) -> None:
    check(f"{view}.txt", printed(VIEWS[view]))


@pytest.mark.parametrize("view", SHORT)
def test_a_default_answer_fits_a_screen(view: str) -> None:
    assert len(printed(SHORT[view]).splitlines()) <= SCREEN


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
@pytest.mark.parametrize("view", VIEWS)
def test_no_line_is_wider_than_80_columns_and_nothing_is_cut(view: str, encoding: str) -> None:
    text = printed(VIEWS[view], encoding=encoding)
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert "\x1b" not in text
    assert encoding == "utf-8" or text.isascii()


@pytest.mark.parametrize("width", [64, 80])
@pytest.mark.parametrize("view", sorted(VIEWS.keys() - {"render_plan", "render_fleet"}))
def test_a_narrow_console_loses_no_word(view: str, width: int) -> None:
    def words(columns: int) -> list[str]:
        return sorted(w for w in printed(VIEWS[view], width=columns).split() if w[0] not in "█─")

    assert words(width) == words(240)


def test_a_terminal_gets_color_and_no_color_is_respected() -> None:
    texts = {}
    for no_color in ("", "1"):
        console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system="standard",
                          _environ={"NO_COLOR": no_color, "TERM": "xterm-256color"})
        render_estimate(estimate(), console, full=True)
        assert isinstance(console.file, io.StringIO)
        texts[no_color] = console.file.getvalue()
    assert "\x1b[34m" in texts[""]
    assert "\x1b[34m" not in texts["1"]


def test_text_that_looks_like_markup_is_printed_as_it_stands() -> None:
    plan = example_plan()
    odd = plan.alternatives[0].model_copy(update={"why": "[red]10% × dearer[/red]"})
    text = printed(lambda c: render_plan(plan.model_copy(update={"alternatives": (odd,)}), c))
    assert "[red]10%" in text
    assert "?" in printed(lambda c: render_plan(plan.model_copy(update={"alternatives": (odd,)}), c),
                          encoding="ascii")


def test_zero_components_are_left_out() -> None:
    text = printed(VIEWS["render_estimate"])
    assert "logits" not in text
    assert "expert parallel" not in text


def test_answer_line_of_a_plan() -> None:
    assert render_answer_line(example_plan()) == (
        "Cheapest: 448 nodes of dgx-h200 (3,584 h200-sxm GPUs) and 2 spares from nebius gpu-h200-sxm-8 "
        "eu-north1 on-demand at 28.00 USD/h per node finish 894,070 steps of 2,048 sequences of 8,192 tokens in "
        "55.0 days for 16.61 MUSD (proven optimal)")


def test_samples_that_are_not_packed_are_shorter_than_a_sequence() -> None:
    plan = example_plan()
    (chosen,) = plan.assignments
    assert isinstance(chosen, TrainingAssignment)
    half = chosen.time.model_copy(update={"tokens_per_second_per_gpu": chosen.time.tokens_per_second_per_gpu / 2})
    assert batch(chosen) == " of 2,048 sequences of 8,192 tokens"
    assert batch(chosen.model_copy(update={"time": half})) == " of 2,048 sequences of up to 8,192 tokens"


def test_layouts_that_fit_only_offloaded_are_told_from_legal_ones() -> None:
    plan = example_plan()
    search = plan.search.model_copy(update={"legal": 234, "fit": 1200})
    text = printed(lambda c: render_plan(plan.model_copy(update={"search": search}), c, full=True))
    assert "234 legal, 1,200 with their offloaded variants fit in memory" in " ".join(text.split())


def test_answer_line_of_a_no() -> None:
    assert render_answer_line(infeasible_plan()) == (
        "No: the deadline of 30 d and the limit of 512 GPUs exclude every layout. Nearest miss: 41.2 d "
        "instead of 30 d, on 512 h200-sxm GPUs. One change is enough: deadline 41.2 d instead of 30 d or "
        "max_gpus 704 instead of 512")


def test_answer_line_without_a_proof() -> None:
    plan = example_plan().model_copy(update={
        "status": "feasible", "objective": Objective(name="cost_usd", value=10.0, bound=9.5, gap=0.05)})
    assert render_answer_line(plan).startswith("Best found: 448 nodes")
    assert render_answer_line(plan).endswith("(not proven, within 5.0% of the best possible)")
    assert "bound 9.50 USD, gap 5.0%" in " ".join(printed(lambda c: render_plan(plan, c)).split())


def test_answer_line_without_a_plan() -> None:
    plan = Plan(status="undecided", objective=Objective(name="cost_usd"), search=Search(layouts=5))
    assert render_answer_line(plan).startswith("Undecided: ")
    assert "stopped before a plan was found" in printed(lambda c: render_plan(plan, c))


def test_several_workloads_are_summed_and_shown_one_by_one() -> None:
    assert render_answer_line(_several()) == (
        "Cheapest: 2 workloads on 900 nodes (7,168 GPUs) for 33.23 MUSD (proven optimal)")
    assert printed(lambda c: render_plan(_several(), c, full=True)).count("Layout (megatron-core)") == 2
    assert printed(lambda c: render_plan(_several(), c)).count("448 x dgx-h200, TP 4") == 2


def test_one_node_is_written_in_the_singular() -> None:
    layout = estimate().layout.model_copy(update={"pp": 1, "dp": 2, "stages": ()})
    fields = assignment(nodes=1, gpus=8, spare_nodes=0, layout=layout)
    plan = example_plan()
    single = plan.model_copy(update={"assignments": (plan.assignments[0].model_copy(update=fields),)})
    assert "1 node of dgx-h200 (8 h200-sxm GPUs) from" in render_answer_line(single)
    assert "per node finishes 894,070 steps" in render_answer_line(single)


def test_least_energy_says_what_it_takes_and_what_the_cheapest_would_cost() -> None:
    plan = example_plan()
    dear = plan.assignments[0]
    cheap = plan.alternatives[1].model_copy(update={"cost_usd": 9_000_000.0, "energy_kwh": 5_000_000.0})
    least = plan.model_copy(update={
        "objective": Objective(name="energy_kwh", value=4.2e6, bound=4.2e6, gap=0.0), "alternatives": (cheap,)})
    assert render_answer_line(least).endswith(
        "for 16.61 MUSD with 4,212.3 MWh (proven optimal); the cheapest alternative costs 9,000,000 USD "
        "and takes 5,000.0 MWh")
    dearer = cheap.model_copy(update={"cost_usd": (dear.cost_usd or 0) + 1})
    assert render_answer_line(least.model_copy(update={"alternatives": (dearer,)})).endswith("MWh (proven optimal)")


def test_a_plan_of_years_without_a_deadline_is_pointed_out() -> None:
    plan = example_plan()
    slow = plan.assignments[0].model_copy(update={"duration_days": 21_388.0})
    long = plan.model_copy(update={"assignments": (slow,)})
    assert "No deadline given: this takes 58.6 years; --deadline 60d" in printed(lambda c: render_plan(long, c))
    asked = plan.provenance.model_copy(update={"scenario": {"limits": {"deadline": "30000 d"}}})
    assert "No deadline" not in printed(lambda c: render_plan(long.model_copy(update={"provenance": asked}), c))
    assert "No deadline" not in printed(lambda c: render_plan(plan, c))


@pytest.mark.parametrize(("scenario", "said"), [
    ({"limits": {"max_gpus": 1024}}, "8 of the 1,024 GPUs"),
    ({"limits": {}, "sourcing": {"own": {"n": 4}}}, "8 of the 32"),
    ({"limits": {"max_gpus": 8}}, None), ({"limits": {"max_gpus": 1024, "budget": 9.0}}, None),
    ({"limits": {"max_gpus": 1024, "deadline": "9 d"}}, None)])
def test_gpus_left_idle_without_a_deadline_are_pointed_out(scenario: dict[str, object], said: str | None) -> None:
    plan = example_plan()
    used = plan.assignments[0].model_copy(update={"node": "n", "nodes": 1, "gpus": 8, "duration_days": 9.0})
    asked = plan.provenance.model_copy(update={"scenario": {"objective": "cost", **scenario}})
    shown = printed(lambda c: render_plan(plan.model_copy(update={"assignments": (used,), "provenance": asked}), c))
    assert ("No deadline given" in shown) is (said is not None)
    assert said is None or f"the cost is least on {said}" in shown


def test_equal_values_of_an_axis_are_listed_once() -> None:
    assert values(["dgx-h100", "dgx-h100 (single nodes)", "dgx-h100 (single nodes)"]) == (
        "dgx-h100, dgx-h100 (single nodes) (x2)")
    assert values(range(1, 65)) == "1 to 64 (64 values)"


def test_a_bar_shows_nothing_below_half_a_percent() -> None:
    page = Page(Console(file=io.StringIO(), width=80))
    assert [len(page.bar(share)) for share in (0.0, 0.0049, 0.005, 0.05, 1.0, 2.0)] == [0, 0, 1, 2, 30, 30]


def test_tight_names_what_is_expected() -> None:
    line = printed(lambda c: render_estimate(estimate(memory=memory("tight", 70 * 2**30)), c)).splitlines()[0]
    assert line.startswith("Tight: 71.0 of 70.0 GiB, 67.3 GiB expected, with optimizer states on the")


def test_what_is_expected_to_take_more_than_there_is_probably_does_not_fit() -> None:
    written = printed(lambda c: render_estimate(estimate(memory=memory("tight", 67 * 2**30)), c))
    assert written.startswith("Probably does not fit: 71.0 of 67.0 GiB, 67.3 GiB expected")
    assert "Memory per GPU: probably does not fit" in written


def test_a_close_call_says_the_chance_the_loss_and_what_would_settle_it() -> None:
    plan = example_plan()
    assert close_call_sentence(plan, settled=True) is None
    cost = plan.assignments[0].cost_usd
    assert cost is not None
    doubt = Doubt(gpu="h100-sxm", gpus=4096, value=1.036 * cost, chance=0.42, loss=600_000.0)
    sentence = close_call_sentence(plan.model_copy(update={"doubt": doubt}), settled=True)
    assert sentence is not None
    assert sentence.startswith("Open: 42% that 4,096 h100-sxm for ")
    assert sentence.endswith("(+3.6%) are cheaper; choosing now costs 600,000 USD on average")
    test = Measurement(nodes=2, hours=3, cost_usd=340.0, loss=100_000.0)
    tested = plan.model_copy(update={"doubt": doubt.model_copy(update={"measurement": test})})
    assert close_call_sentence(tested, settled=False) == sentence
    sentence = close_call_sentence(tested, settled=True)
    assert sentence is not None
    assert sentence.endswith("; measuring both on 2 nodes for 3 h (340.00 USD) cuts that to 100,000 USD")


@pytest.mark.parametrize(("gap", "shown"), [(0.0, "0.0%"), (1e-6, "less than 0.1%"), (0.0007, "0.1%")])
def test_a_gap_that_is_not_nothing_is_not_shown_as_nothing(gap, shown):
    assert gap_shown(gap) == shown


@pytest.mark.parametrize(("value", "shown"), [(2.30997, "2.31 days"), (11.24 / 24, "11.3 h"), (9.996, "10.0 days"),
                                              (151.24, "151.3 days"), (1.5, "36 h"), (9.981, "9.99 days")])
def test_days_have_three_digits_and_are_kept_as_a_deadline(value, shown):
    assert show_days(value) == shown

"""Every figure of an explanation is the difference to the same question solved again with one thing changed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import pytest

from planner.answer.explanation import Explanation, WhyNot
from planner.ask.explain.cause import feasible, infeasible_of, reasons_of
from planner.ask.explain.choice import parts_of
from planner.ask.explain.explain import explain
from planner.catalog.load import Catalog
from planner.errors import InputError, PlannerError, UnknownName
from planner.jobs.kinds import question_of
from planner.jobs.solved import Solved, solve, solve_lifted
from planner.scenario.scenario import Scenario
from planner.solver.minimal import minimal
from tests.asked import load_scenario

ASKED = {"workload.model": "llama-3.1-8b", "workload.tokens": "100 G", "hardware.candidates": "dgx-h100",
         "workload.stack": "megatron-core", "limits.max_gpus": "64", "limits.deadline": "9 d"}


def asking(**changes: str | None) -> tuple[Catalog, object]:
    catalog = Catalog()
    asked = ASKED | {key.replace("__", "."): value for key, value in changes.items()}
    asked = {key: value for key, value in asked.items() if value is not None}

    def ask(replaced: Mapping[str, str]) -> Scenario:
        return load_scenario(None, asked | dict(replaced), catalog)[0]

    return catalog, ask


def explained(*choices: str, **changes: str) -> Explanation:
    catalog, ask = asking(**changes)
    return explain(ask, catalog, choices)  # type: ignore[arg-type]


FORBIDDEN = {"tp=3": "tp must divide the key-value heads", "gpus=12": "the GPUs must fill whole nodes",
             "pp=33": "a pipeline stage needs at least one layer",
             "zero=3,pp=2,stack=megatron-core": "the stack shards gradients or weights"}
CHOICES = ("tp=8", "gpu=a100-sxm-80gb", "gpu=b200", "gpu=l4", "node=gb300-nvl72", "gpus=8", *FORBIDDEN)


@cache
def answers() -> dict[str, WhyNot]:
    """Return what is said of every choice that tests ask about; `own` is the plan's."""
    layout = again().assignments()[0].layout
    found = explained(*CHOICES, f"tp={layout.tp},pp={layout.pp},dp={layout.dp}")
    return dict(zip((*CHOICES, "own"), found.why_not, strict=True))


def why(choice: str) -> WhyNot:
    return answers()[choice]


@cache
def again(**changes: str | None) -> Solved:
    """Return the same question solved with some values changed, without a plan around it."""
    catalog, ask = asking(**changes)
    return solve_lifted(question_of(ask({}), catalog))  # type: ignore[operator]


@pytest.fixture(scope="module")
def worths() -> Explanation:
    return explained()


def test_a_limit_is_worth_what_solving_without_it_saves(worths: Explanation) -> None:
    held = again().objective.value
    found = {one.limit: one for one in worths.worth}
    assert set(found) == {"deadline", "max_gpus", "gpu_memory", "nic_bandwidth"}
    assert held is not None
    for limit in ("deadline", "max_gpus"):
        named = f"limits__{limit}"
        lifted, more = again(**{named: None}), again(**{named: {"deadline": "10 d", "max_gpus": "72"}[limit]})
        assert found[limit].without == pytest.approx(held - (lifted.objective.value or 0))
        if found[limit].binds:
            assert found[limit].saves == pytest.approx(held - (more.objective.value or 0))
        assert found[limit].binds == (lifted.objective.value != held)


def test_a_deadline_says_from_where_on_it_pays(worths: Explanation) -> None:
    deadline = next(one for one in worths.worth if one.limit == "deadline")
    assert deadline.binds
    assert deadline.pays_from is not None
    held = again().objective.value
    assert held is not None
    assert (again(limits__deadline=deadline.pays_from).objective.value or held) < held


def test_what_binds_most_comes_first(worths: Explanation) -> None:
    saved = [one.without or 0.0 for one in worths.worth]
    assert saved == sorted(saved, reverse=True)


def test_a_choice_that_is_dearer_says_by_how_much() -> None:
    one = why("tp=8")
    held, other = again().objective.value, one.value
    assert one.verdict in ("worse", "tied")
    assert one.assignment is not None
    assert one.assignment.layout.tp == 8
    assert held is not None
    assert other is not None
    assert one.excess == pytest.approx(other / held - 1)
    assert one.because.startswith("the best plan with it comes to ")


def test_the_plans_own_choice_is_recognized() -> None:
    assert why("own").verdict == "is the plan"


def test_a_choice_is_answered_alone_as_among_others() -> None:
    assert explained("gpus=8").why_not == (why("gpus=8"),)


@pytest.mark.parametrize(("gpu", "verdict"), [("a100-sxm-80gb", "worse"), ("b200", "better")])
def test_hardware_outside_the_question_is_weighed_by_the_plan_it_would_have(gpu: str, verdict: str) -> None:
    one, held, other = why(f"gpu={gpu}"), again().objective.value, again(hardware__candidates=gpu).objective.value
    assert held is not None
    assert other is not None
    assert one.value == other
    assert one.verdict == verdict == ("worse" if other > held else "better")


def test_hardware_outside_the_question_may_have_no_plan_or_no_offer() -> None:
    assert not again(hardware__candidates="l4").assignments()
    assert why("gpu=l4").verdict == "infeasible"
    assert why("node=gb300-nvl72").verdict == "not offered"


@pytest.mark.parametrize(("choice", "reason"), FORBIDDEN.items())
def test_a_choice_that_a_rule_forbids_names_the_rule(choice: str, reason: str) -> None:
    one = why(choice)
    assert one.verdict == "infeasible"
    assert reason in one.because


def test_a_choice_that_misses_a_limit_names_it_and_the_nearest_value() -> None:
    one = why("gpus=8")
    assert one.verdict == "infeasible"
    assert "no layout finishes in 9 d" in one.because
    assert one.infeasible is not None
    assert "deadline" in {r.limit for r in one.infeasible.relaxations}


@pytest.mark.parametrize(("name", "choice"), [
    ("A100", {"gpu": "A100"}), ("8xh200", {"gpu": "8xh200"}), ("dgx-b200", {"gpu": "dgx-b200"}),
    ("DeepSpeed", {"stack": "DeepSpeed"}), ("nebius", {"provider": "nebius"}), ("spot", {"terms": "spot"}),
    ("h200,tp=4", {"gpu": "h200", "tp": "4"}), ("on=b200", {"gpu": "b200"})])
def test_a_name_alone_says_what_it_is_a_choice_of(name: str, choice: dict[str, str]) -> None:
    catalog, ask = asking()
    assert parts_of(name, question_of(ask({}), catalog)) == choice  # type: ignore[operator]


@pytest.mark.parametrize(("text", "error"), [
    ("tp", InputError), ("tp=", InputError), ("tpp=4", UnknownName), ("tp=4,tp=8", InputError), ("", InputError)])
def test_what_is_no_choice_is_refused(text: str, error: type[PlannerError]) -> None:
    with pytest.raises(error):
        explained(text)


def test_nodes_that_no_network_joins_are_named() -> None:
    """Four nodes would be in time; those of this provider are single machines."""
    def because(**changes: str) -> tuple[str, ...]:
        catalog, ask = asking(limits__max_gpus="32", **changes)
        found = infeasible_of(solve(question_of(ask({}), catalog)))  # type: ignore[operator]
        return () if found is None else found.because

    (deadline, apart) = because(sourcing__rent__providers="lambda", limits__deadline="5 d")
    assert deadline == "no layout finishes in 5 d"
    assert apart == "dgx-h100 of lambda comes one by one: no network joins several into one job"
    assert because(limits__deadline="5 d") == ()
    assert because(limits__deadline="1 h") == ("no layout finishes in 1 h", "max gpus is 32")


@pytest.mark.parametrize("changes", [
    {"limits__deadline": "1 d", "workload__stack": "auto"}, {"limits__deadline": "1 d", "limits__budget": "100 USD"},
    {"limits__max_gpus": "8", "limits__budget": "1 kUSD"}, {"workload__model": "llama-3.1-405b"},
    {"workload__model": "llama-3.1-405b", "limits__deadline": "1 d"}, {"limits__max_power": "5 kW"},
    {"limits__gpus": "12"}, {"limits__max_nodes": "1", "limits__deadline": "8 d"},
])
def test_reasons_are_enough_together_and_needed_each(changes: dict[str, str]) -> None:
    catalog, ask = asking(**changes)
    solved = solve(question_of(ask({}), catalog))  # type: ignore[operator]
    assert solved.status == "infeasible"
    reasons = reasons_of(solved)
    assert reasons
    assert not feasible(solved, reasons)
    for reason in reasons:
        assert feasible(solved, [other for other in reasons if other != reason])
    answer = infeasible_of(solved)
    assert answer is not None
    assert answer.because


def test_what_misses_the_budget_is_not_called_short_of_memory() -> None:
    """An RTX 4090 with endless memory would keep the budget: the layout nearest to fitting, on H100, does not."""
    catalog, ask = asking(hardware__candidates="rtx-4090-1x,dgx-h100", workload__tokens="10 G",
                          workload__stack="fsdp2", limits__budget="700 USD", limits__max_gpus="8")
    failed = solve(question_of(ask({}), catalog))  # type: ignore[operator]
    found = infeasible_of(failed)
    assert found is not None
    assert found.because[0] == "no layout costs at most 700.00 USD"
    assert not [line for line in found.because if "the leanest" in line]
    first = found.relaxations[0]
    assert found.nearest == f"{first.to} instead of {first.from_}"


def test_minimal_drops_what_is_not_needed() -> None:
    def possible(held: object) -> bool:
        return not ({"a", "c"} <= set(held) or {"b", "c", "d"} <= set(held))  # type: ignore[call-overload]

    assert minimal(["a", "b", "c", "d"], possible) == ["b", "c", "d"]
    assert minimal(["a", "b", "c"], lambda held: "c" not in held) == ["c"]
    assert minimal(["b", "d", "a", "c"], possible) == ["a", "c"]
    assert minimal(["a", "b"], lambda held: False) == []

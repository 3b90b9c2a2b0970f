"""A "no" that hangs on a default which nobody chose is a plan with another value; what was chosen is kept."""

from dataclasses import replace
from typing import Any

import pytest

import planner
from planner.ask.account import Interrupted
from planner.jobs.kinds import question_of
from planner.jobs.settle import Settled, settle
from planner.jobs.solved import ResolvedScenario, Solved, solve_lifted
from planner.solver.settings import Effort

WAN: dict[str, Any] = {"model": "wan2.1-14b", "method": "lora", "steps": 100, "on": "rtx-4090-1x"}


@pytest.mark.parametrize(("asked", "key"), [({}, "frames"), ({"frames": 57}, "quantization"),
                                            ({"frames": 81}, "resolution")])
def test_what_nobody_chose_is_changed_and_said(asked: dict[str, Any], key: str) -> None:
    """The model's 81 frames, 16 bits of weights or its size do not fit 24 GB; what was asked for stays as it was."""
    plan = planner.plan(**WAN, **asked)
    assert plan.status == "optimal"
    said = next(default for default in plan.provenance.defaults if default.name == key)
    assert "nobody asked for" in said.why
    assert plan.notes[0].startswith(f"{key} ")
    assert f"planned for {said.value}" in plan.notes[0]
    work = plan.provenance.scenario["workload"]
    assert {name: work[name] for name in asked} == asked


def test_what_was_chosen_is_kept_to() -> None:
    """All of it asked for: the answer is no, and names what would be enough."""
    plan = planner.plan(**WAN, frames=57, quantization="bf16", resolution="832x480")
    assert plan.status == "infeasible"
    assert plan.infeasible is not None
    assert {"frames", "quantization", "resolution"} <= {each.limit for each in plan.infeasible.relaxations}


def test_what_is_run_changes_its_format_first() -> None:
    """Two experts of 14B in 16 bits wait on a host of 64 GB in no way, and in 8 bits they do."""
    plan = planner.plan(model="wan2.2-a14b", samples=10, on="rtx-4090-1x")
    assert (plan.status, plan.assignments[0].layout.precision) == ("optimal", "fp8-weights")


YEARS: dict[str, Any] = {"model": "llama-3.1-8b", "tokens": "3T", "on": "dgx-h100", "provider": "nebius"}


def test_nobody_waits_for_years_to_save_money(monkeypatch: pytest.MonkeyPatch) -> None:
    """One GPU for years was the answer; it is what is said, and what its deadline asks for still gives it. The second
    search starts from what the first one has looked up and worked out.
    """
    asked_of = list[ResolvedScenario]()
    with monkeypatch.context() as patched:
        patched.setattr("planner.ask.plan.question_of",
                        lambda *asked: asked_of.append(question_of(*asked)) or asked_of[-1])  # type: ignore[func-returns-value]
        plan = planner.plan(**YEARS)
    assert len(asked_of) == 1
    assert (plan.assignments[0].duration_days or 0.0) <= 120
    assert plan.notes[0].startswith("no deadline is given: planned for 120 d")
    (said,) = [default for default in plan.provenance.defaults if default.name == "deadline"]
    assert said.value == "120 d"
    least = planner.plan(**YEARS, deadline=plan.notes[0].split("--deadline ")[1].split()[0])
    assert (least.assignments[0].duration_days or 0.0) > 120
    assert (least.assignments[0].cost_usd or 0.0) < (plan.assignments[0].cost_usd or 0.0)
    assert f"{least.assignments[0].gpus} x h100-sxm" in plan.notes[0]
    asked = planner.plan(**YEARS, max_nodes=1)
    assert not any("no deadline" in note for note in asked.notes)
    (row,) = planner.compare(**YEARS).rows
    assert (row.cost_usd, row.duration_days) == (plan.assignments[0].cost_usd, plan.assignments[0].duration_days)
    assert (row.note or "").startswith("no deadline is given: planned for 120 d")


@pytest.mark.parametrize("hardware", [{"own": "2xdgx-h100"}, {"on": "16 h100"}])
def test_who_counts_the_gpus_is_told_how_long_they_take(hardware: dict[str, Any]) -> None:
    asked: dict[str, Any] = {"model": "llama-3.1-8b", "method": "full", "tokens": "100M", **hardware}
    plan = planner.plan(**asked)
    # of what is rented the cheapest that is as fast is taken
    assert plan.objective.name == ("duration_days" if "own" in hardware else "cost_usd")
    assert plan.assignments[0].gpus == 16
    assert planner.plan(**asked, objective="cost").objective.name == "cost_usd"
    assert planner.plan(**asked, deadline="30d").objective.name == "cost_usd"


def test_an_engine_that_nobody_chose_is_no_reason_for_no() -> None:
    """vLLM has no kernels of MXFP4 for Turing; llama.cpp has, as plan and as what holds the model."""
    asked: dict[str, Any] = {"model": "gpt-oss-20b", "on": "t4-1x"}
    plan = planner.plan(**asked, users=2)
    assert (plan.status, plan.assignments[0].stack) == ("optimal", "llama-cpp")
    assert plan.notes[0].startswith("engine vllm, the default, has no plan (t4: vllm has no mxfp4")
    assert planner.plan(**asked, users=2, engine="vllm").status == "infeasible"
    assert planner.plan(**asked, method="inference").assignments[0].gpus == 1


def test_a_machine_of_ones_own_serves_in_fewer_bits_before_there_are_more_of_it() -> None:
    asked: dict[str, Any] = {"model": "llama-3.3-70b", "users": 5, "on": "2x4090"}
    plan = planner.plan(**asked)
    assert (plan.assignments[0].gpus, plan.assignments[0].layout.precision) == (2, "int4")
    assert plan.notes[0].startswith("quantization bf16, the default, has no plan here: planned for int4")
    assert planner.plan(**asked, quantization="bf16").assignments[0].gpus > 2


def test_who_ends_the_search_for_the_least_money_gets_what_it_found(monkeypatch: pytest.MonkeyPatch) -> None:
    depths = list[str]()

    def cut_short(question: ResolvedScenario, effort: Effort, depth: Any = "each", *asked: Any, **more: Any) -> Solved:
        depths.append(depth)
        found = solve_lifted(question, effort, depth, *asked, **more)
        for columns in found.columns:
            for _, searched in columns.parts:  # type: ignore[attr-defined]
                searched.frontier.interrupted = True
        return replace(found, solution=replace(found.solution, status="feasible"))

    monkeypatch.setattr("planner.ask.plan.solve_lifted", cut_short)
    with pytest.raises(Interrupted) as ended:
        planner.plan(**YEARS)
    plan = ended.value.plan
    assert (plan.status, depths) == ("feasible", ["best"])
    assert plan.assignments


def test_what_is_as_fast_for_less_is_taken_where_nobody_asked_for_the_fastest() -> None:
    """A provider with a thousandth less time took half as much money again."""
    asked: dict[str, Any] = {"model": "qwen2.5-7b", "method": "grpo", "steps": 100, "on": "16 h200",
                             "output": 4096}
    fastest, taken = (planner.plan(**asked, **more).assignments[0] for more in ({"objective": "time"}, {}))
    assert (fastest.duration_days or 0.0) <= (taken.duration_days or 0.0) <= 1.05 * (fastest.duration_days or 0.0)
    assert (taken.cost_usd or 0.0) < (fastest.cost_usd or 0.0)


def test_weights_and_lengths_that_nobody_chose_are_fewer_and_shorter() -> None:
    """A 3060 tunes a 3B with adapters, and an A10G an 8B on shorter sequences, as its host holds no more."""
    tuned = planner.plan(model="llama-3.2-3b", samples=5000, own="3060")
    assert (tuned.status, tuned.assignments[0].method) == ("optimal", "lora")
    assert planner.plan(model="llama-3.2-3b", samples=5000, own="3060", method="full").status == "infeasible"
    asked: dict[str, Any] = {"model": "llama-3.1-8b", "method": "lora", "samples": "52k", "mean_length": 350,
                             "lora_rank": 44, "on": "a10g-1x"}
    short = planner.plan(**asked)
    assert short.notes[0] == ("sequence_length 4,096, the default, has no plan here: planned for 2,048; --seq-len "
                              "4096 holds to it")
    assert planner.plan(**asked, seq_len=4096).status == "infeasible"


def test_the_most_within_a_budget_is_in_fewer_bits_where_the_usual_are_too_dear() -> None:
    """No GPU that holds a 70B in 16 bits costs so little, and one in 8 bits does."""
    plan = planner.plan(model="llama-3.3-70b", method="inference", objective="users", budget="2000 USD/month",
                        on="rtx-pro-6000,h100")
    assert plan.assignments[0].layout.precision == "fp8"
    assert plan.notes[0].startswith("quantization bf16, the default, has no plan here: planned for fp8")


def test_another_engine_that_costs_less_is_named_where_it_was_measured() -> None:
    """TensorRT-LLM has published runs of such a mixture on H100; of llama.cpp there are few, and none so busy."""
    asked: dict[str, Any] = {"model": "qwen3-30b-a3b", "rate": 20, "input": 1000, "output": 300, "on": "h100-sxm-1x"}
    plan = planner.plan(**asked)
    named, = [note for note in plan.notes if note.startswith("engine vllm is the default, and ")]
    engine = named.split(", and ")[1].split(" ")[0]
    other = planner.plan(**asked, engine=engine)
    assert f" {other.objective.value:,.0f} USD " in named
    assert (other.objective.value or 0.0) < 0.95 * (plan.objective.value or 0.0)
    assert not [note for note in planner.plan(**asked, engine="vllm").notes if note.startswith("engine ")]
    assert not [note for note in planner.plan(**{**asked, "on": "a100-sxm-80gb-1x"}).notes if "llama-cpp" in note]


def test_weights_in_fewer_bits_that_cost_less_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """In 16 bits a 70B takes two H100 to hold it, in 8 bits one: a machine of two costs what the plan does, so that it
    is not looked at again, and with it the same is found.
    """
    searched = list[Solved]()

    def solved(question: ResolvedScenario, effort: Effort, **more: Any) -> Solved:
        searched.append(solve_lifted(question, effort, **more))
        whole = solve_lifted(question_of(question.scenario, question.catalog), effort, **more)
        assert whole.objective.value == searched[-1].objective.value
        assert len(whole.question.terms.market.offers) > len(question.terms.market.offers)
        return searched[-1]

    monkeypatch.setattr("planner.ask.cheaper.solve_lifted", solved)
    asked: dict[str, Any] = {"model": "llama-3.1-70b", "rate": 0.5, "tpot": "60ms", "on": "h100-sxm-1x,h100-sxm-2x"}
    plan = planner.plan(**asked)
    looked_at = {column.candidate for one in searched for columns in one.columns for _, column in columns.replicas}
    assert {searched[0].question.terms.market.candidates[at].node.name for at in looked_at} == {"h100-sxm-1x"}
    named, = [note for note in plan.notes if note.startswith("quantization bf16 is the default, and ")]
    narrow = named.split(", and ")[1].split(" ")[0]
    other = planner.plan(**asked, quantization=narrow)
    assert f" {other.objective.value:,.0f} USD " in named
    assert (other.objective.value or 0.0) < 0.95 * (plan.objective.value or 0.0)
    assert not [note for note in planner.plan(**asked, quantization="bf16").notes if "is the default, and" in note]


def test_a_stack_that_few_use_is_named_where_it_costs_less_and_is_not_the_best_of_a_comparison(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """One A100 holds an 8B with its states in 16 bits, and with usual ones on NVMe alone, weeks a run. What does not
    cost less than the plan is not searched.
    """
    budgets = list[float]()

    def solved(question: ResolvedScenario, *asked: Any, **more: Any) -> Solved:
        budgets.append(question.terms.limits.budget or 0.0)
        return solve_lifted(question, *asked, **more)

    monkeypatch.setattr("planner.ask.cheaper.solve_lifted", solved)
    asked: dict[str, Any] = {"model": "llama-3.1-8b", "tokens": "1B", "method": "full", "on": "a100-sxm-80gb-1x"}
    plan = planner.plan(**asked)
    named, = [note for note in plan.notes if ", which few use for this, " in note]
    assert [0.0 < budget < (plan.objective.value or 0.0) for budget in budgets] == [True]
    other = planner.plan(**asked, stack=named.split(",")[0])
    assert f" {other.objective.value:,.2f} USD " in named
    assert (other.objective.value or 0.0) < 0.95 * (plan.objective.value or 0.0)
    asked["on"] = "h200,a100-80gb"
    assert planner.compare(**asked).rows[0].cost_usd == planner.plan(**asked).objective.value


def test_an_engine_that_costs_as_much_by_formula_as_another_by_replay_is_not_replayed(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several engines that are cheaper than the default one by formula, the cheapest holds by replay."""
    computed, replayed = list[float](), list[float | None]()

    def solved(*asked: Any, **more: Any) -> Solved:
        found = solve_lifted(*asked, **more)
        computed.append(found.objective.value or 0.0)
        return found

    def settled(solved: Solved, **how: Any) -> Settled:
        replayed.append(solved.objective.value)
        return settle(solved, **how)

    monkeypatch.setattr("planner.ask.cheaper.solve_lifted", solved)
    monkeypatch.setattr("planner.ask.cheaper.settle", settled)
    monkeypatch.setattr("planner.ask.cheaper.OF_MEDIAN", 0.0)
    plan = planner.plan(model="llama-3.1-8b", on=["h100-sxm-1x"], rate=40, input=300, output=1500,
                        quantization="bf16")
    assert len([cost for cost in computed if 0 < cost < 0.95 * (plan.objective.value or 0.0)]) > 1
    assert replayed == [min(computed)]
    assert f"serves it for at most {min(computed):,.0f} USD" in "".join(plan.notes)


def test_a_number_of_gpus_that_nobody_offers_is_planned_as_ones_own() -> None:
    """It was no, with the machine as what would be enough: one RTX A6000 or eight are offered, and no two."""
    asked: dict[str, Any] = {"model": "mixtral-8x7b", "method": "qlora", "tokens": "30 M", "on": "rtx-a6000"}
    plan = planner.plan(**asked, gpus=2)
    assert (plan.status, plan.assignments[0].node) == ("optimal", "rtx-a6000-2x")
    assert any("has no plan on 2 GPUs" in note for note in plan.notes)
    assert any("taken as your own" in note for note in plan.notes)


def test_a_comparison_is_in_fewer_bits_where_the_plan_is() -> None:
    """It said that no candidate has a plan, where the plan of the same question was proven in 8 bits."""
    asked: dict[str, Any] = {"model": "llama-3.3-70b", "rate": 0.2, "input": 500, "output": 100, "on": "h100-sxm-1x"}
    plan, (best, *_) = planner.plan(**asked), planner.compare(**asked).rows
    assert plan.assignments[0].layout.precision == "fp8"
    assert best.cost_usd == plan.objective.value
    assert (best.note or "").startswith(plan.notes[0])
    assert not any(row.gpus for row in planner.compare(**asked, quantization="bf16").rows)

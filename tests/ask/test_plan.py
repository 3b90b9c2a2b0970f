"""The whole flow on a small question: what must not change the answer, and which way it must move."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import planner
from planner.answer.schema import Plan, to_json
from planner.ask.plan import make_plan
from planner.catalog.load import Catalog, data_root
from planner.errors import InputError
from planner.layouts.rules import RULES
from planner.solver.search.parallel import UNGROWN
from planner.yaml_io import dump, read
from tests.asked import load_scenario

BASE: dict[str, object] = {
    "workload.model": "llama-3.1-8b", "workload.tokens": "1 T", "workload.global_batch": "512",
    "workload.stack": "megatron-core", "hardware.candidates": "dgx-h100,dgx-a100", "limits.max_gpus": "256",
    "limits.deadline": "40 d",
}


def test_machines_that_nobody_offers_do_it_as_ones_own() -> None:
    values = {"workload.model": "llama-3.1-70b", "workload.method": "qlora", "workload.tokens": "10 M",
              "workload.global_batch": "16", "hardware.candidates": "rtx-4090-1x, rtx-4090-4x"}
    scenario, defaults = load_scenario(None, values, Catalog())
    found = make_plan(scenario, Catalog(), defaults=defaults)
    assert found.infeasible is not None
    assert ("own", "1 x rtx-4090-4x") in {(one.limit, one.to) for one in found.infeasible.relaxations}


def plan(catalog: Catalog | None = None, **changes: object) -> Plan:
    catalog = catalog or Catalog()
    values = BASE | {key.replace("__", "."): value for key, value in changes.items()}
    scenario, defaults = load_scenario(None, {k: v for k, v in values.items() if v is not None}, catalog)
    return make_plan(scenario, catalog, defaults=defaults)


def folder(tmp_path: Path, kind: str, name: str, edit: Any) -> Catalog:
    """A user's catalog folder with one shipped entry changed."""
    entry = read(data_root("catalogs") / kind / f"{name}.yaml").data
    edit(entry)
    (tmp_path / kind).mkdir(parents=True, exist_ok=True)
    (tmp_path / kind / f"{name}.yaml").write_text(dump(entry))
    return Catalog([tmp_path])


def all_prices(tmp_path: Path, factor: float) -> Catalog:
    def scale(entry: dict[str, Any]) -> None:
        for offer in entry["offers"]:
            usd = float(offer["price"].split()[0]) * factor
            offer["price"] = f"{usd!r} USD/h"

    for name in Catalog().names("prices"):
        folder(tmp_path, "prices", name, scale)
    return Catalog([tmp_path])


@pytest.fixture(scope="module")
def base() -> Plan:
    return plan()


def cost(answer: Plan) -> float:
    assert answer.status == "optimal"
    assert answer.objective.value is not None
    return answer.objective.value


def test_the_answer_is_proven_and_its_figures_agree(base: Plan) -> None:
    best = base.assignments[0]
    assert base.objective.value == base.objective.bound == best.cost_usd
    layout, time = best.layout, best.time
    assert layout.tp * layout.pp * layout.cp * layout.dp == best.gpus
    assert layout.micro_batches * layout.micro_batch * layout.dp == 512
    tokens = 512 * 8192
    assert time.tokens_per_second_per_gpu == pytest.approx(tokens / time.step_seconds / best.gpus)
    assert best.memory.fits == "fits"
    assert best.memory.peak_bytes <= best.memory.usable_bytes
    assert best.duration_days is not None
    assert best.duration_days <= 40


def test_every_cost_is_the_rent_rounded_up_to_the_cent(base: Plan) -> None:
    """The duration that is printed is the one that was priced, in whole microseconds."""
    for found in (*base.assignments, *base.alternatives):
        assert None not in (found.usd_per_node_hour, found.duration_days, found.cost_usd)
        rent = (found.nodes + found.spare_nodes) * found.usd_per_node_hour * 24 * found.duration_days
        assert -1e-6 < found.cost_usd - rent < 0.01 + 1e-6


def test_same_question_same_bytes(base: Plan) -> None:
    assert to_json(plan()) == to_json(base)


def test_order_and_repetition_of_candidates_do_not_matter(base: Plan) -> None:
    other = plan(hardware__candidates="dgx-a100,dgx-h100,dgx-a100")
    assert other.assignments == base.assignments
    assert other.alternatives == base.alternatives


def test_doubling_prices_doubles_cost(base: Plan, tmp_path: Path) -> None:
    assert cost(plan(all_prices(tmp_path, 2.0))) == pytest.approx(2 * cost(base), abs=0.02)


def test_a_cheaper_price_never_raises_cost(base: Plan, tmp_path: Path) -> None:
    assert cost(plan(all_prices(tmp_path, 0.9))) < cost(base)


def test_more_memory_never_hurts(base: Plan, tmp_path: Path) -> None:
    def grow(entry: dict[str, Any]) -> None:
        entry["memory"], entry["usable_memory"] = "120 GB", "118 GB"

    assert cost(plan(folder(tmp_path, "gpus", "h100-sxm", grow))) <= cost(base)


def test_a_later_deadline_never_costs_more(base: Plan) -> None:
    costs = [cost(plan(limits__deadline=f"{days} d")) for days in (30, 40, 80)]
    assert costs == sorted(costs, reverse=True)
    assert costs[1] == cost(base)


def test_another_candidate_never_hurts(base: Plan) -> None:
    alone = [cost(plan(hardware__candidates=name)) for name in ("dgx-a100", "dgx-h100")]
    assert cost(base) == min(alone)


def test_renaming_a_gpu_changes_nothing_else(base: Plan, tmp_path: Path) -> None:
    gpu = read(data_root("catalogs") / "gpus" / "h100-sxm.yaml").data | {"name": "hopper-of-mine", "aliases": []}
    (tmp_path / "gpus").mkdir()
    (tmp_path / "gpus" / "hopper-of-mine.yaml").write_text(dump(gpu))
    catalog = folder(tmp_path, "nodes", "dgx-h100", lambda node: node.update(gpu="hopper-of-mine"))
    assert cost(plan(catalog)) == cost(base)


def test_objectives_order_each_other() -> None:
    by_cost, by_time, by_gpus = (plan(objective=o).assignments[0] for o in ("cost", "time", "gpus"))
    assert by_cost.cost_usd is not None
    assert by_time.cost_usd is not None
    assert by_time.duration_days is not None
    assert by_cost.duration_days is not None
    assert by_time.duration_days <= by_cost.duration_days
    assert by_cost.cost_usd <= by_time.cost_usd
    assert by_gpus.gpus <= min(by_cost.gpus, by_time.gpus)


def test_every_layout_considered_is_accounted_for(base: Plan) -> None:
    never_made = {*RULES, *UNGROWN}
    assert all(count > 0 for count in base.search.removed.values())
    assert base.search.staged >= 1
    assert base.search.layouts == base.search.legal + sum(
        count for name, count in base.search.removed.items() if name in never_made)


def test_impossible_deadline_names_the_fastest_and_what_would_do() -> None:
    answer = plan(limits__deadline="1 d")
    assert answer.status == "infeasible"
    assert answer.infeasible is not None
    relaxed = {r.limit: r.to for r in answer.infeasible.relaxations}
    assert "deadline" in relaxed
    again = plan(limits__deadline=relaxed["deadline"])
    assert again.status == "optimal"
    assert "1 d" in answer.infeasible.because[0]


def test_full_tuning_of_70b_on_one_rtx_4090_does_not_fit_without_flash() -> None:
    answer = plan(workload__model="llama-3.1-70b", workload__method="full", workload__tokens="1 G",
                  workload__stack="megatron-core, fsdp2",
                  hardware__candidates="rtx-4090-1x", limits__max_gpus=None, limits__deadline=None)
    assert answer.status == "infeasible"
    assert answer.infeasible is not None
    assert "no layout fits in memory: GPU memory binds" in answer.infeasible.because[0]
    assert answer.infeasible.nearest is not None
    assert "GiB more memory" in answer.infeasible.nearest


def test_a_time_limit_leaves_an_honest_gap() -> None:
    catalog = Catalog()
    scenario, _ = load_scenario(None, BASE, catalog)
    stopped = make_plan(scenario, catalog, time_limit=0.0)
    assert stopped.status == "undecided"
    assert not stopped.assignments


def test_a_dotted_key_changes_one_figure_of_a_stack_like_another(tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "mine.yaml").write_text(dump({
        "name": "mine", "like": "megatron-core", "source": "own runs", "as_of": "2026-11", "kind": "measured",
        "overlap.tensor_parallel": 0.25}))
    mine, base = Catalog([tmp_path]).stack("mine"), Catalog().stack("megatron-core")
    assert mine.overlap == base.overlap.model_copy(update={"tensor_parallel": 0.25})
    assert mine.slowdown == base.slowdown


@pytest.mark.parametrize("key", ["zero_stages.x", "nothing.y"])
def test_a_dotted_key_without_a_place_is_refused(tmp_path: Path, key: str) -> None:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "mine.yaml").write_text(dump({
        "name": "mine", "like": "megatron-core", "source": "own runs", "as_of": "2026-11", "kind": "measured", key: 1}))
    with pytest.raises(InputError, match=r"mine.yaml.*has no figures by name"):
        Catalog([tmp_path]).stack("mine")


@pytest.mark.parametrize(("asked", "limit", "to"), [
    ({"model": "wan2.2-a14b", "method": "lora", "samples": 100, "on": "rtx-5090-1x", "frames": 61,
      "resolution": "832x480", "quantization": "bf16"}, "confidence", "50%"),
    ({"model": "llama-3.1-8b", "tokens": "1 G", "on": "dgx-h100", "max_gpus": 8, "deadline": "230 min at 90%"},
     "deadline", "230 min at 50%")])
def test_a_lower_confidence_is_one_of_the_changes(asked: dict[str, Any], limit: str, to: str) -> None:
    found = planner.plan(**asked)
    assert found.infeasible is not None
    assert (limit, to) in {(one.limit, one.to) for one in found.infeasible.relaxations}

"""Every legality rule has layouts that break it and no other rule, and the same layouts mended by one change or two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

from planner.catalog.stack import Conflict, OffloadSupport
from planner.layouts.axes import RECOMPUTE, SCHEDULES, Space
from planner.layouts.enumerate import violations
from planner.layouts.offload import OFFLOAD_AXES
from planner.layouts.rules import RULES, Facts, split_code
from planner.layouts.table import Ints, from_rows
from tests.enumerated import enumerate_layouts
from tests.search_cases import candidate, catalog

ROW = {"dp": 8}
"""One node of eight, all of it data parallel; what is not named is at rest."""
GPIPE, DUALPIPE = SCHEDULES.index("gpipe"), SCHEDULES.index("dualpipe")
FULL = RECOMPUTE.index("full")
MIXED, ONE_KEY, ODD = (catalog().model(name) for name in ("mixtral-8x7b", "gemma-2b", "deepseek-llm-67b"))
ABLE: dict[str, Any] = {
    "zero_stages": (0, 1, 2, 3), "zero_with_pipeline": 1, "pipeline": True, "interleaving": True,
    "schedules": SCHEDULES, "tensor_parallel": True, "expert_parallel": True, "expert_tp": True,
    "context_parallel": True, "hybrid_shard": True, "no_sync": (0, 1),
    "offload": OffloadSupport(optimizer=("host", "nvme"), parameters=("host", "nvme"), activations=True)}
"""A stack that can do everything but shard gradients and weights under a pipeline."""
HOST = OffloadSupport(optimizer=("host",), parameters=("host",))
STATES = OffloadSupport(optimizer=("host", "nvme"), parameters=("host",))
TOGETHER = OffloadSupport(optimizer=("host",), parameters=("host",), together=True)
BARE, FLASH = (candidate("v100-sxm2-16gb-8x"),), (candidate("dgx-h100"),)
"""Node types without NVMe, and with it."""


def code(**row: float) -> Ints:
    """Return what decides about sequence parallelism of one row."""
    return split_code(from_rows([row], 64).columns)


@dataclass(frozen=True)
class Example:
    """A layout that breaks a rule, and what makes it legal.

    Keys are axes of the row, and fields of `stack.`, `space.` and `facts.`.
    """

    rule: str
    fails: Mapping[str, Any]
    mended: Mapping[str, Any]


EXAMPLES = (
    Example("precision_supported", {"facts.precisions": [[False]]}, {"facts.precisions": [[True]]}),
    Example("tp_divides_kv_heads", {"facts.node_gpus": [16], "tp": 16, "dp": 1, "stack.repeats_heads": ()},
            {"tp": 8, "dp": 2}),
    Example("tp_divides_kv_heads", {"facts.node_gpus": [16], "tp": 16, "dp": 1, "stack.repeats_heads": ()},
            {"stack.repeats_heads": ("tensor",)}),
    Example("tp_divides_kv_heads", {"facts.node_gpus": [16], "tp": 16, "dp": 1, "space.model": ONE_KEY},
            {"tp": 8, "dp": 2}),
    Example("tp_supported", {"tp": 2, "dp": 4, "stack.tensor_parallel": False}, {"tp": 1, "dp": 8}),
    Example("tp_in_node", {"facts.node_gpus": [4], "tp": 8, "dp": 1}, {"tp": 4, "dp": 2}),
    Example("tp_in_node", {"facts.node_gpus": [12], "tp": 8, "dp": 3, "space.global_batch": 48}, {"tp": 4, "dp": 6}),
    Example("cp_supported", {"cp": 2, "dp": 4, "stack.context_parallel": False}, {"cp": 1, "dp": 8}),
    Example("cp_divides_sequence", {"cp": 2, "dp": 4, "space.sequence_length": 4098}, {"space.sequence_length": 4100}),
    Example("cp_divides_sequence", {"cp": 2, "dp": 4, "space.sequence_length": 4099}, {"cp": 1, "dp": 8}),
    Example("precision_by_stack", {"stack.precisions": ("fp16",)}, {"stack.precisions": ("bf16",)}),
    Example("ep_supported", {"ep": 2, "stack.expert_parallel": False}, {"ep": 1}),
    Example("expert_tp_supported", {"tp": 2, "dp": 4, "expert_tp": 1, "stack.expert_tp": False, "space.model": MIXED},
            {"expert_tp": 0}),
    Example("expert_tp_supported", {"tp": 2, "dp": 4, "expert_tp": 1}, {"space.model": MIXED}),
    Example("expert_tp_supported", {"tp": 2, "dp": 4, "expert_tp": 2, "space.model": MIXED}, {"expert_tp": 1}),
    Example("expert_tp_supported", {"tp": 2, "dp": 4, "expert_tp": 1, "sp": 0, "space.model": MIXED,
                                    "space.sequence_parallel": (1, 0),
                                    "facts.whole_sequences": code(tp=2, micro_batch=1)}, {"sp": 1}),
    Example("expert_tp_supported", {"tp": 4, "dp": 6, "expert_tp": 3, "space.global_batch": 48, "space.model": MIXED},
            {"expert_tp": 2}),
    Example("ep_divides_shards", {"ep": 16}, {"ep": 8}),
    Example("ep_divides_shards", {"ep": 16, "cp": 2, "dp": 4}, {"ep": 8}),
    Example("ep_divides_shards", {"tp": 2, "dp": 4, "ep": 8}, {"expert_tp": 1, "space.model": MIXED}),
    Example("ep_divides_shards", {"tp": 2, "dp": 4, "ep": 16, "expert_tp": 1, "space.model": MIXED}, {"ep": 8}),
    Example("batch_divides", {"micro_batch": 3}, {"micro_batch": 4}),
    Example("batch_divides", {"micro_batch": 3, "space.tolerance": 0.12}, {"space.tolerance": 0.125}),
    Example("pp_supported", {"pp": 2, "dp": 4, "stack.pipeline": False}, {"pp": 1, "dp": 8}),
    Example("frozen_layers_in_one_stage", {"pp": 2, "dp": 4, "facts.frozen_layers": True}, {"pp": 1, "dp": 8}),
    Example("steps_in_backward", {"facts.steps_in_backward": True}, {"space.global_batch": 8}),
    Example("steps_in_backward", {"facts.steps_in_backward": True, "pp": 2, "dp": 4, "space.global_batch": 4},
            {"pp": 1, "dp": 8, "space.global_batch": 8}),
    Example("pp_within_layers", {"tp": 8, "dp": 1, "pp": 33, "space.max_gpus": 512}, {"pp": 32}),
    Example("max_gpus", {"space.max_gpus": 7}, {"space.max_gpus": 8}),
    Example("fixed_gpus", {"facts.fixed_gpus": 16}, {"dp": 16}),
    Example("fixed_gpus", {"facts.fixed_gpus": 8, "dp": 16}, {"dp": 8}),
    Example("whole_nodes", {"dp": 4}, {"dp": 8}),
    Example("whole_nodes", {"dp": 4}, {"facts.partial_nodes": True}),
    Example("whole_nodes", {"dp": 12, "space.global_batch": 48, "facts.partial_nodes": True}, {"dp": 16}),
    Example("whole_nodes", {"dp": 12, "space.global_batch": 48, "facts.partial_nodes": True}, {"facts.fixed_gpus": 12}),
    Example("max_nodes", {"dp": 16, "facts.max_nodes": 1}, {"facts.max_nodes": 2}),
    Example("one_node", {"dp": 16, "facts.clustered": [False]}, {"dp": 8}),
    Example("interleaving", {"vpp": 2}, {"pp": 2, "dp": 4}),
    Example("interleaving", {"vpp": 2, "pp": 2, "dp": 4, "stack.interleaving": False}, {"vpp": 1}),
    Example("even_chunks", {"vpp": 3, "pp": 2, "dp": 4, "stack.uneven_chunks": False}, {"vpp": 4}),
    Example("even_chunks", {"vpp": 3, "pp": 2, "dp": 4, "stack.uneven_chunks": False}, {"vpp": 17}),
    Example("even_chunks", {"vpp": 2, "pp": 5, "space.global_batch": 80, "stack.uneven_chunks": False},
            {"pp": 4, "space.global_batch": 64}),
    Example("even_chunks", {"vpp": 3, "pp": 2, "dp": 4, "stack.uneven_chunks": False}, {"stack.uneven_chunks": True}),
    Example("even_chunks", {"vpp": 18, "pp": 2, "dp": 4}, {"vpp": 17}),
    Example("interleaved_batches", {"vpp": 2, "pp": 4, "dp": 2, "space.global_batch": 12}, {"space.global_batch": 16}),
    Example("schedule_supported", {"schedule": GPIPE}, {"pp": 2, "dp": 4}),
    Example("schedule_supported", {"schedule": GPIPE}, {"pp": 3}),
    Example("schedule_supported", {"schedule": GPIPE, "pp": 2, "dp": 4, "stack.schedules": ("1f1b",)}, {"schedule": 0}),
    Example("schedule_supported", {"schedule": GPIPE, "pp": 2, "dp": 4, "vpp": 2}, {"vpp": 1}),
    Example("schedule_supported", {"schedule": DUALPIPE, "pp": 4, "dp": 2, "space.global_batch": 14},
            {"space.global_batch": 16}),
    Example("schedule_supported", {"schedule": DUALPIPE, "pp": 3, "dp": 8}, {"pp": 4}),
    Example("schedule_supported", {"schedule": DUALPIPE, "pp": 2, "dp": 4, "space.model": ODD}, {"schedule": 0}),
    Example("schedule_supported", {"schedule": DUALPIPE, "pp": 2, "dp": 4, "space.model": ODD},
            {"pp": 6, "space.model": ONE_KEY}),
    Example("schedule_supported", {"schedule": DUALPIPE, "pp": 12, "dp": 2, "space.model": ONE_KEY},
            {"pp": 10, "dp": 4, "space.global_batch": 128}),
    Example("schedule_supported", {"schedule": DUALPIPE, "pp": 18, "dp": 4, "space.global_batch": 256,
                                   "space.max_gpus": 72}, {"pp": 12}),
    Example("schedule_supported", {"schedule": DUALPIPE, "pp": 12, "dp": 2, "space.model": ONE_KEY},
            {"pp": 18, "dp": 4, "space.global_batch": 256, "space.max_gpus": 72}),
    Example("zero_supported", {"zero": 1, "stack.zero_stages": (0, 3)}, {"zero": 0}),
    Example("zero_with_pipeline", {"zero": 2, "pp": 2, "dp": 4}, {"zero": 1}),
    Example("zero_needs_shards", {"zero": 2, "tp": 8, "dp": 1}, {"zero": 1}),
    Example("zero_needs_shards", {"zero": 2, "tp": 8, "dp": 1}, {"tp": 4, "dp": 2}),
    Example("zero_needs_shards", {"zero": 3, "tp": 8, "dp": 1, "stack.offload": OffloadSupport()}, {"tp": 4, "cp": 2}),
    Example("zero_needs_shards", {"zero": 3, "tp": 8, "dp": 1, "stack.offload": OffloadSupport()},
            {"stack.offload": OffloadSupport(parameters=("host",))}),
    Example("no_sync_supported", {"no_sync": 1}, {"zero": 2}),
    Example("no_sync_supported", {"zero": 2, "stack.no_sync": (1,)}, {"no_sync": 1}),
    Example("no_sync_supported", {"zero": 2, "no_sync": 1, "space.global_batch": 8}, {"no_sync": 0}),
    Example("no_sync_supported", {"zero": 2, "no_sync": 1, "space.global_batch": 8}, {"space.global_batch": 16}),
    Example("no_sync_supported", {"zero": 2, "no_sync": 1, "pp": 2, "dp": 4, "stack.zero_with_pipeline": 3},
            {"no_sync": 0, "stack.no_sync": (1,)}),
    Example("hsdp_supported", {"hsdp": 2, "zero": 1}, {"zero": 3}),
    Example("hsdp_supported", {"hsdp": 2, "zero": 3, "stack.hybrid_shard": False}, {"hsdp": 1}),
    Example("hsdp_supported", {"hsdp": 3, "zero": 3}, {"hsdp": 4}),
    Example("hsdp_supported", {"hsdp": 8, "zero": 3}, {"hsdp": 4}),
    Example("hsdp_supported", {"hsdp": 2, "zero": 3, "ep": 8}, {"ep": 4}),
    Example("hsdp_supported", {"hsdp": 2, "zero": 3, "tp": 2, "dp": 4, "ep": 4}, {"ep": 2}),
    Example("hsdp_supported", {"hsdp": 8, "zero": 3, "cp": 2, "dp": 4}, {"hsdp": 4}),
    Example("sp_supported", {"sp": 0, "space.sequence_parallel": (1, 0),
                             "facts.whole_sequences": code(tp=1, micro_batch=1)}, {"sp": 1}),
    Example("sp_wins", {"sp": 0, "tp": 2, "dp": 4, "space.sequence_parallel": (1, 0)}, {"sp": 1}),
    Example("sp_wins", {"sp": 0, "tp": 2, "dp": 4, "space.sequence_parallel": (1, 0)},
            {"facts.whole_sequences": code(tp=2, micro_batch=1)}),
    Example("offload_supported", {"offload": 1.0}, {"zero": 1}),
    Example("offload_supported", {"offload": 1.0, "zero": 3, "stack.offload": OffloadSupport()}, {"offload": 0.0}),
    Example("offload_supported", {"offload": 1.0, "offload_parameters": 1.0, "zero": 2}, {"zero": 3}),
    Example("offload_supported", {"offload": 1.0, "nvme": 1, "zero": 1}, {"zero": 3}),
    Example("offload_supported", {"offload": 1.0, "nvme": 1, "zero": 3, "space.candidates": BARE},
            {"space.candidates": FLASH}),
    Example("offload_supported", {"offload": 0.5, "nvme": 1, "zero": 3}, {"offload": 1.0}),
    Example("offload_supported", {"offload": 1.0, "nvme": 1, "zero": 3, "stack.offload": HOST}, {"nvme": 0}),
    Example("offload_supported", {"offload": 0.5, "offload_parameters": 1.0, "zero": 3}, {"offload": 1.0}),
    Example("offload_supported", {"offload": 1.0, "offload_parameters": 1.0, "zero": 3,
                                  "stack.offload": OffloadSupport(optimizer=("host",))}, {"stack.offload": HOST}),
    Example("offload_supported", {"offload": 1.0, "offload_parameters": 1.0, "nvme": 1, "zero": 3,
                                  "stack.offload": STATES}, {"offload_parameters": 0.0}),
    Example("offload_supported", {"offload": 1.0, "offload_parameters": 1.0, "nvme": 1, "zero": 3,
                                  "stack.offload": STATES}, {"stack.offload": ABLE["offload"]}),
    Example("offload_supported", {"offload": 1.0, "zero": 3, "stack.offload": TOGETHER}, {"offload_parameters": 1.0}),
    Example("offload_supported", {"offload_activations": 1.0, "recompute": 0}, {"recompute": FULL}),
    Example("offload_supported", {"offload_activations": 1.0, "recompute": 1}, {"recompute": FULL}),
    Example("offload_supported", {"offload_activations": 1.0, "recompute": FULL, "stack.offload": OffloadSupport()},
            {"offload_activations": 0.0}),
)


def case(*changes: Mapping[str, Any]) -> tuple[dict[str, float], Facts]:
    """Return the row and the facts of an example."""
    row: dict[str, float] = dict(ROW)
    asked: dict[str, dict[str, Any]] = {"stack": dict(ABLE), "space": {}, "facts": {}}
    for key, value in (item for change in changes for item in change.items()):
        where, _, name = key.rpartition(".")
        if where:
            asked[where][name] = np.asarray(value) if isinstance(value, list) else value
        else:
            row[key] = value
    stack = catalog().stack("megatron-core").model_copy(update=asked["stack"])
    usual = {"candidates": FLASH, "model": catalog().model("llama-3.1-8b"), "sequence_length": 4096, "global_batch": 64,
             "max_gpus": 64}
    space = Space(precisions=("bf16",), **{**usual, **asked["space"]})
    known = {f.name for f in fields(Facts)}
    assert known >= asked["facts"].keys()
    plain: dict[str, Any] = {"node_gpus": np.array([8]), "clustered": np.array([True]),
                             "precisions": np.array([[True]]), "fixed_gpus": None, "max_nodes": None}
    return row, Facts(space=space, stack=stack, **{**plain, **asked["facts"]})


def broken(*changes: Mapping[str, Any]) -> list[str]:
    """Return the rules that an example breaks."""
    row, facts = case(*changes)
    return violations(from_rows([row], facts.space.global_batch).columns, facts)


def test_every_rule_has_examples() -> None:
    assert {example.rule for example in EXAMPLES} == set(RULES)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.rule)
def test_an_example_breaks_its_rule_alone_and_is_legal_when_mended(example: Example) -> None:
    assert broken(example.fails) == [example.rule]
    assert broken(example.fails, example.mended) == []


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_switched_off_is_noticed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    off = replace(RULES[rule], passes=lambda c, f: np.ones(len(c["tp"]), bool))
    monkeypatch.setitem(RULES, rule, off)
    for example in EXAMPLES:
        if example.rule == rule:
            with pytest.raises(AssertionError):
                test_an_example_breaks_its_rule_alone_and_is_legal_when_mended(example)


@pytest.mark.parametrize("example", [e for e in EXAMPLES if not set(OFFLOAD_AXES) & {*e.fails, *e.mended}],
                         ids=lambda example: example.rule)
def test_the_grid_applies_every_rule_once_it_can(example: Example) -> None:
    """A rule that forgets an axis it reads would be asked too early, or never."""
    row, facts = case(example.fails)
    table = from_rows([row], 64)
    space = replace(facts.space, only={name: (value,) for name, value in table.row(0).items()
                                       if name != "micro_batches"})
    found = enumerate_layouts(replace(facts, space=space))
    assert (len(found.layouts), found.removed) == (0, {example.rule: 1})
    assert len(enumerate_layouts(replace(facts, space=space, skipped=frozenset({example.rule}))).layouts) == 1


def test_what_a_stack_refuses_is_a_rule_of_its_own() -> None:
    refusal = Conflict(together={"tp": 2, "vpp": 2}, reason="the chunks would not line up")
    apart = {"stack.refuses": (refusal,), "tp": 2, "pp": 2, "dp": 2}
    assert broken(apart, {"vpp": 2}) == ["no_tp_with_vpp"]
    assert broken(apart) == []
    row, facts = case(apart, {"vpp": 2})
    only = {name: (value,) for name, value in from_rows([row], 64).row(0).items() if name != "micro_batches"}
    found = enumerate_layouts(replace(facts, space=replace(facts.space, only=only)))
    assert (len(found.layouts), found.removed) == (0, {"no_tp_with_vpp": 1})


def test_what_is_refused_at_values_is_refused_at_no_others() -> None:
    """As a target of launch files says it: `{at: {zero: [0]}, together: {dp: 2}}`."""
    refusal = Conflict(together={"dp": 2}, at={"zero": (0.0,), "recompute": ("none",)}, reason="several GPUs shard all")
    several = {"stack.refuses": (refusal,), "dp": 2, "tp": 4}
    assert broken(several, {"zero": 0, "recompute": 0}) == ["no_dp_with_zero_0.0_with_recompute_none"]
    assert broken(several, {"zero": 1, "recompute": 0}) == broken(several, {"zero": 0, "recompute": 2}) == []
    assert broken({**several, "dp": 1, "tp": 8}, {"zero": 0, "recompute": 0}) == []

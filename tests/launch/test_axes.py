"""Every target says something of every axis: a change of one changes the files, or is refused by its name."""

import pytest

from planner.answer.layout import RecomputeLayers, Stage
from planner.launch.axes import CannotExpress, No, settings_of
from planner.launch.chunks import layers_of_chunks
from planner.launch.emitter import Emitter
from planner.launch.nearest import typed
from planner.launch.work import VALUES
from planner.layouts.axes import AXES
from planner.scenario.workload import TRAINABLE
from tests.launch.emitters import axes_of, emitters_of
from tests.launch.works import CATALOG, changed, work

EMITTERS = emitters_of(Emitter)
MIXTURE = {"model": "qwen3-30b-a3b", "seq_len": "4096", "global_batch": "64"}


def stages(*layers):
    return tuple(Stage(layers=n, recompute_layers=RecomputeLayers(none=n), peak_bytes=0, seconds=0.0) for n in layers)


OTHER = {
    "candidate": {"placed_as": {"nodes": 4, "gpus": 32}},
    "precision": {"precision": "fp8"},
    "tp": {"tp": 4}, "cp": {"cp": 4}, "dp": {"dp": 8, "shard": 8, "placed_as": {"nodes": 1, "gpus": 8}},
    "micro_batch": {"micro_batch": 2},
    "sp": {"sequence_parallel": False}, "ep": {"ep": 4}, "expert_tp": {"expert_tp": 2},
    "pp": {"pp": 4, "stages": stages(8, 8, 8, 8)},
    "vpp": {"vpp": 4}, "schedule": {"schedule": "zero-bubble"}, "zero": {"zero": 2}, "hsdp": {"shard": 2},
    "no_sync": {"no_sync": True}, "recompute": {"recompute": "full"}, "offload": {"offload": {"optimizer": 0.5}},
    "offload_parameters": {"offload": {"parameters": 1.0}}, "offload_activations": {"offload": {"activations": 1.0}},
    "nvme": {"offload": {"optimizer": 1.0, "to": "nvme"}}, "stages": {"stages": stages(14, 18)},
    "cp_method": {"cp_method": "all-to-all"}, "method": {"placed_as": {"method": "lora"}},
    "lora_rank": {"placed_as": {"method": "lora"}, "asked": {"lora_rank": 64}},
    "lora_targets": {"placed_as": {"method": "lora"}, "asked": {"lora_targets": ("attention-in",)}},
    "optimizer": {"asked": {"optimizer": "paged-adamw"}}, "optimizer_in_backward": {"asked": {
        "optimizer_in_backward": True}},
    "loss": {"asked": {"loss": "fused"}}, "trained_layers": {"asked": {"trained_layers": 4}},
    "preference": {"placed_as": {"method": "dpo", "tuning": "full", "reference": "copy"}},
    "reference": {"placed_as": {"method": "dpo", "tuning": "full", "reference": "precomputed"}},
    "packing": {"asked": {"mean_length": 500}},
}
"""Of each axis a value that the layout below does not have."""
NEEDS = {"tp": "tp", "cp": "cp", "cp_method": "cp", "ep": "moe", "expert_tp": "moe", "pp": "pp", "vpp": "pp",
         "schedule": "pp", "stages": "pp", "sp": "tp", "hsdp": "zero"}
LAYOUTS = {"": "dp=16,zero=3", "tp": "tp=2,dp=8,zero=3", "cp": "cp=2,dp=8,zero=3", "pp": "pp=2,dp=8,zero=0",
           "zero": "dp=16,zero=3", "moe": "tp=2,ep=2,expert_tp=1,dp=8,zero=3"}
KINDS = {"candidate", "tp", "sp", "cp", "cp_method", "pp", "vpp", "ep", "expert_tp"}
"""Axes that a target may have no word for at all, so that it refuses already the layout that has them."""


TUNED = {"placed_as": {"method": "full"}}
OWN = {"axolotl": TUNED, "llama-factory": TUNED, "ms-swift": TUNED,
       "litgpt": {**TUNED, "recompute": "full", "no_sync": True},
       "unsloth": {**TUNED, "zero": 0, "shard": 1}}
"""What the layout below has beside, where a target takes nothing else."""


def base_of(target, axis):
    """Return a layout in which the axis could have its other value, of the stack of the target."""
    kind = NEEDS.get(axis, "")
    plain = work(target, LAYOUTS[kind], **(MIXTURE if kind == "moe" else {}))
    return changed(plain, **OWN.get(target, {}))


def emitted(target, work):
    """Return the files of a work, or the axes that are refused."""
    try:
        return dict(EMITTERS[target].emit(work).files)
    except CannotExpress as error:
        return tuple(error.refused)


@pytest.mark.parametrize("target", EMITTERS)
def test_every_axis_is_named_by_every_target(target):
    named = list(axes_of(EMITTERS[target].table))
    assert sorted(named) == sorted(VALUES), "each once"
    assert {axis.name for axis in AXES} <= set(VALUES)
    assert set(OTHER) == set(VALUES), "the test below has a value for each"


@pytest.mark.parametrize("axis", OTHER)
@pytest.mark.parametrize("target", EMITTERS)
def test_no_axis_is_dropped(target, axis):
    base = base_of(target, axis)
    other = changed(base, **OTHER[axis])
    if base.value(axis) == other.value(axis):
        assert target in ("litgpt", "unsloth"), "the only ones with a base that has the other value already"
        return
    before, after = emitted(target, base), emitted(target, other)
    if isinstance(before, tuple):
        assert KINDS & set(before), f"{target} refuses {before} of a layout that has {NEEDS[axis]}"
        return
    if isinstance(after, dict):
        assert before != after, f"{target} says nothing of {axis}"
        return
    # what follows from an axis that was refused may be refused in its place
    together = next(names for names in EMITTERS[target].table if axis in names)
    follows = {"nvme": ("offload",), "lora_rank": ("method", "recompute"), "method": ("recompute",)}.get(axis, ())
    assert {*together, *follows} & set(after), f"{target} refuses {after}, not {axis}"


def nearest(base, instead):
    """Return the work with the values that a refusal names."""
    layout = {key: {"sp": bool, "no_sync": bool}.get(key, lambda same: same)(value) for key, value in instead.items()}
    offload = {key.removeprefix("offload_"): layout.pop(key) for key in instead if key.startswith("offload_")}
    layout = {{"sp": "sequence_parallel"}.get(key, key): value for key, value in layout.items()}
    placed_as = {key: layout.pop(key) for key in ("method", "reference") if key in layout}
    placed_as |= {"tuning": None, "reference": None} if placed_as.get("method") == "full" else {}
    asked = {key: layout.pop(key) for key in ("optimizer", "loss", "trained_layers", "lora_targets", "packing",
                                             "optimizer_in_backward") if key in layout}
    asked |= {"mean_length": None} if asked.pop("packing", None) else {}
    asked |= {"loss": None} if asked.get("loss") == "the stack's" else {}
    asked |= {"lora_targets": ()} if asked.get("lora_targets") == "all" else {}
    split = {"stages": ()} if layout.get("pp") == 1 else {}
    if {"zero", "cp"} & {*layout} and "shard" not in layout:
        layout["shard"] = base.layout.dp * layout.get("cp", base.layout.cp)
    return changed(base, asked=asked, offload=offload, placed_as=placed_as, **layout, **split)


def refusal(target, asked):
    """Return why a target cannot be told a work; none where it can."""
    try:
        EMITTERS[target].emit(asked)
    except CannotExpress as error:
        return error
    return None


@pytest.mark.parametrize("target", EMITTERS)
def test_what_is_refused_names_the_nearest_that_is_told(target):
    for axis, other in OTHER.items():
        asked = changed(base_of(target, axis), **other)
        refused = refusal(target, asked)
        if refused is None:
            continue
        assert all(typed(one.instead) for one in refused.refused.values()), (axis, refused.refused)
        if "stack" not in refused.instead:
            left = refusal(target, nearest(asked, refused.instead))
            assert left is None or not {*left.refused} & {*refused.refused}, (axis, refused.instead, left)


@pytest.mark.parametrize(("stack", "target", "said"), [
    ("fsdp2", "megatron-lm", "selective of every-second-matmul (it has core_attn"),
    ("fsdp2", "megatron-bridge", "selective of every-second-matmul"),
    ("megatron-core", "torchtitan", "selective of core_attn (its own is of every second product)")])
def test_what_one_stack_recomputes_in_part_is_not_told_to_another_that_does_not(stack, target, said):
    planned = work(target, "dp=16,zero=3,recompute=selective", stack=stack)
    assert said in str(refusal(target, planned))
    own = {"megatron-core": "megatron-lm", "fsdp2": "torchtitan"}[stack]
    assert refusal(own, work(own, "dp=16,zero=3,recompute=selective", stack=stack)) is None


@pytest.mark.parametrize(("model", "layout", "chunks"), [
    # 61 layers of which 3 are dense and come first: 60 with embedding and head, and those 3 beside the first chunk
    ("deepseek-v3", "pp=4,vpp=5,dp=8,ep=8,recompute=full", [5, *[3] * 18, 2]),
    ("qwen3-235b-a22b", "tp=2,pp=8,vpp=3,dp=2,ep=4,recompute=full", [3, *[4] * 22, 3]),
    ("llama-3.1-8b", "pp=2,vpp=4,dp=8,recompute=full", [4] * 8), ("llama-3.1-8b", "pp=3,dp=8,recompute=full", None)])
def test_chunks_hold_the_layers_of_their_stages(model, layout, chunks):
    one = work("megatron-lm", layout, model=model, seq_len="4096", global_batch="256", stack="megatron-core")
    found = layers_of_chunks(one)
    assert tuple(sum(found[stage::one.layout.pp]) for stage in range(one.layout.pp)) == one.stage_layers
    assert found == (chunks or list(one.stage_layers))
    told = settings_of(one, EMITTERS["megatron-lm"].table)
    assert ("pipeline-model-parallel-layout" in told) == (chunks is None or max(chunks) - min(chunks) > 1)


@pytest.mark.parametrize("target", EMITTERS)
def test_the_table_of_releases_has_the_number_formats_that_a_target_is_told(target):
    release = CATALOG.releases.target(target)
    (say,) = (say for names, say in EMITTERS[target].table.items() if "precision" in names)
    for stack in release.stacks:
        base = work(target, "dp=8,zero=0,recompute=full", stack=stack, method="full")
        told = tuple(name for name in TRAINABLE if not isinstance(say(changed(base, precision=name)), No))
        assert release.formats(stack, TRAINABLE) == told

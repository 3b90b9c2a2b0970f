"""What saves memory, and the largest thing that fits: each answer held against estimates asked one by one."""

from __future__ import annotations

import pytest

import planner
from planner.answer.assignment import Assignment, PostTrainingAssignment
from planner.api.functions import estimate_asked
from planner.ask.estimate import Estimating, estimating
from planner.ask.largest import largest_model, largest_of
from planner.ask.levers import Lever, otherwise
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.posttraining.held import TRAINED
from planner.physics.shapes import parameters
from planner.render.sentence import largest_sentence, levers_sentence
from planner.render.verdict import whose_peak


def ask(model: str = "llama-3.1-8b", node: str = "dgx-h100", gpus: int = 8, **layout: str) -> Estimating:
    values = {"workload.model": model, "workload.sequence_length": 8192, "workload.global_batch": 64,
              "limits.gpus": gpus}
    return estimating(None, values, Catalog(), node=node, layout=layout, labels={})


def test_a_lever_saves_what_it_says() -> None:
    asked = ask("llama-3.1-70b", gpus=64, tp="4", pp="4")
    now = asked()
    levers = asked.levers(now)
    assert [lever.saved_bytes for lever in levers] == sorted((lever.saved_bytes for lever in levers), reverse=True)
    full = next(lever for lever in levers if lever.name == "full recompute")
    then = asked(layout={**asked.layout, "recompute": "full"})
    assert now.memory.peak_bytes - then.memory.peak_bytes == full.saved_bytes
    assert full.slower == pytest.approx(then.time.step_seconds / now.time.step_seconds - 1)
    assert 0.2 < full.slower < 0.4
    assert "full recompute saves" in levers_sentence(levers)
    assert now.memory.fits != "fits"
    assert [full.fits, then.memory.fits] == [True, "fits"]
    assert levers_sentence([full]).endswith(" time, and it fits")


@pytest.mark.parametrize(("slower", "said"), [(-0.004, "+0%"), (-0.006, "-1%"), (0.0, "+0%"), (0.016, "+2%")])
def test_a_lever_that_costs_next_to_no_time_has_no_sign_of_less(slower: float, said: str) -> None:
    assert f"at {said} time" in levers_sentence([Lever("a fused loss", 2**30, slower)])


def test_levers_of_reinforcement_learning_hold_its_own_axes() -> None:
    """It has fewer axes than training has; with those of training nothing was found to save memory."""
    asked = estimating(None, {"workload.model": "7b", "workload.method": "grpo", "workload.input": 512,
                              "workload.output": 1500}, Catalog(), node="8xh100", layout={}, labels={})
    now = asked()
    assert isinstance(now, PostTrainingAssignment)
    full = next(lever for lever in asked.levers(now) if lever.name == "full recompute")
    then = asked(layout={axis: value for axis, value in now.layout.stated.items() if axis in TRAINED}
                 | {"recompute": "full"})
    assert now.memory.peak_bytes - then.memory.peak_bytes == full.saved_bytes > 0
    assert whose_peak(now).startswith(max(now.phases, key=lambda phase: phase.gpu_bytes).label)
    assert any("names a size and no model" in note for note in asked.notes)


def test_levers_of_a_layout_that_was_chosen_are_changes_of_it() -> None:
    """What is left open is chosen again to fill the memory: every change then saved nothing."""
    asked = estimate_asked(None, model="llama-3.1-8b", method="full", on="2xl40s")
    now = asked()
    shown = {axis: str(getattr(now.layout, axis)) for axis in ("tp", "pp", "cp", "dp", "micro_batch", "zero")}
    shown["offload_optimizer"] = f"{now.layout.offload.optimizer:g}"
    full = next(lever for lever in asked.levers(now) if lever.name == "full recompute")
    assert asked(layout={**shown, "recompute": now.layout.recompute}).memory.peak_bytes == now.memory.peak_bytes
    then = asked(layout={**shown, "recompute": "full"})
    assert now.memory.peak_bytes - then.memory.peak_bytes == full.saved_bytes


@pytest.mark.parametrize(("method", "node", "layout", "said"), [
    ("full", "8xa100", "tp=8,pp=1,zero=1,mbs=8", "None of these is enough. It fits with "),
    ("full", "4xa100", "tp=4,dp=1,zero=0,mbs=8", "None is enough, nor all together: "),
    ("qlora", "rtx-4090-2x", "mbs=8,offload_activations=0", "It fits with micro-batch ")])
def test_where_no_change_is_enough_the_fewest_that_are_enough_are_told(
        method: str, node: str, layout: str, said: str) -> None:
    asked = estimate_asked(None, model="llama-3.1-70b", method=method, node=node, layout=layout)
    now = asked()
    levers = asked.levers(now)
    enough = asked.enough(now, levers)
    assert enough is not None
    assert said in levers_sentence(levers, enough)
    assert enough.fits == ("It fits" in said)
    assert not any(lever.fits for lever in levers)
    if "mbs=8,offload" in layout:  # a part of a layout: what was asked for is left open again
        value = enough.name.split()[1]
        then = asked(layout={**asked.layout, "mbs": value})
        assert [then.memory.fits, now.memory.peak_bytes - then.memory.peak_bytes] == ["fits", enough.saved_bytes]
    elif enough.fits:
        then = asked(layout={**asked.layout, "offload_optimizer": "1", "mbs": "1"}, stack=(now.stack,))
        assert [then.memory.fits, now.memory.peak_bytes - then.memory.peak_bytes] == ["fits", enough.saved_bytes]


@pytest.mark.parametrize(("axis", "value", "was", "said"), [
    ("offload_optimizer", "1", "0", "optimizer states on the host"), ("mbs", "1", "8", "micro-batch 1 instead of 8"),
    ("offload_optimizer", "0.5", "0", "50% of optimizer states on the host"),
    ("offload_parameters", "0", "1", "weights on the GPU"),
    ("tp", "4", "2", "TP 4 instead of 2"), ("recompute", "full", "none", "recompute full instead of none")])
def test_an_axis_that_is_otherwise_is_said_in_words(axis: str, value: str, was: str, said: str) -> None:
    assert otherwise(axis, value, was) == said


def test_levers_are_of_the_stack_that_is_shown() -> None:
    """They were of the stack that comes first in a list: none of them changed the layout above them."""
    asked = estimate_asked(None, model="llama-3.1-8b", method="full", node="rtx-4090-1x",
                           layout="offload_optimizer=0,offload_parameters=0,offload_activations=0")
    now = asked()
    host = next(lever for lever in asked.levers(now) if lever.name == "optimizer states on the host")
    then = asked(layout={**now.layout.stated, "offload_optimizer": "1"}, stack=(now.stack,))
    assert then.stack == now.stack
    assert host.saved_bytes == now.memory.peak_bytes - then.memory.peak_bytes


def test_changes_that_the_stack_cannot_make_are_no_levers() -> None:
    asked = ask(tp="8")
    names = {lever.name for lever in asked.levers(asked())}
    assert not any("weights" in name or "checkpoints" in name for name in names)


@pytest.mark.parametrize(("what", "field"), [("micro-batch", "mbs"), ("sequence", "sequence_length")])
def test_the_largest_fits_and_the_next_does_not(what: str, field: str) -> None:
    asked = ask(tp="2", recompute="full")
    found = asked.largest(what)
    assert found.estimate is not None
    assert found.beyond is not None
    assert found.estimate.memory.fits == "fits"
    changes = {"layout": {**asked.layout, "mbs": str(found.beyond)}} if field == "mbs" else {field: found.beyond}
    beyond = asked(**changes)
    assert beyond.memory.fits != "fits"
    if what == "sequence":  # a micro-batch that was asked for stays
        four = ask(tp="2", recompute="full", mbs="4").largest(what)
        assert 0 < (four.value or 0) < found.value
        assert four.estimate is not None
        assert four.estimate.layout.micro_batch == 4
    assert beyond.memory.peak_bytes - beyond.memory.usable_bytes == found.missing_bytes
    assert largest_sentence(what, found).startswith(f"Largest {what} that fits: {found.value:,} ")


def test_only_the_model_that_fits_and_the_next_larger_are_estimated() -> None:
    """What is said of a layout takes longer than whether one fits, and of the others nothing is shown."""
    asked: list[str] = []

    def estimated(name: str) -> Assignment:
        asked.append(name)
        if name == "refused":
            raise InputError("no layout is legal")
        return ask("gpt2", "rtx-4090-1x", 1, dp="1", recompute="full")()

    found = largest_model(["huge", "large", "refused", "fits", "small"], estimated, {"fits", "small"}.__contains__)
    assert (found.value, found.beyond) == ("fits", "large")
    assert asked == ["refused", "large", "fits"]
    with pytest.raises(InputError, match="legal"):
        largest_model(["refused", "refused"], estimated, lambda name: False)


def test_the_largest_model_is_the_first_that_fits() -> None:
    small = ask("gpt2", "rtx-4090-1x", 1, dp="1", recompute="full").largest("model")
    large = ask("gpt2", "dgx-h100", 8, dp="1", tp="8", recompute="full").largest("model")
    assert small.value is not None
    assert large.value is not None
    catalog = Catalog()
    assert 10 * parameters(catalog.model(small.value)) < parameters(catalog.model(large.value))
    assert large.estimate is not None
    assert large.estimate.memory.fits == "fits"


def test_nothing_fits() -> None:
    found = ask("llama-3.1-405b", gpus=8, tp="8").largest("micro-batch")
    assert found.value is None
    assert largest_sentence("micro-batch", found).startswith("No micro-batch fits; 1 needs ")


def test_values_that_break_a_rule_are_passed_over() -> None:
    asked = ask(tp="8")

    def odd_only(value: int) -> object:
        if value % 2 == 0:
            raise InputError("not this one")
        return asked()

    assert largest_of([1, 2, 3, 4], odd_only).value == 3  # type: ignore[arg-type,type-var]


def test_weights_that_leave_without_their_states_are_told_so():
    with pytest.raises(InputError, match="weights leave the GPU with all of their optimizer states"):
        planner.estimate(model="llama-3.1-8b", method="full", node="8xh100",
                         layout="offload_parameters=1,offload_optimizer=0")


def test_a_batch_that_the_copies_do_not_divide_is_named_with_both():
    with pytest.raises(InputError, match=r"must divide the global batch.*: 8 x 3 of 128 \(batch_divides\)"):
        planner.estimate(model="llama-3.1-8b", method="full", node="8xh100", layout="dp=8,mbs=3,zero=3,recompute=full")

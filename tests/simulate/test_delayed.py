"""Prompts that wait for those on other copies of attention: how long, beside what, and what that saves."""

import pytest

from planner.simulate.steps import PromptDelay
from tests.simulate.test_slotted import COMES, DECODES, LONE, ends

STEP = 0.01
"""Of what decodes."""


def delayed(*rows, steps=10, decoding=1, in_turn=True, **facts):
    return ends(*rows, **{"copies": 2} | facts, delay=PromptDelay(steps, decoding, in_turn))


@pytest.mark.parametrize("after", [0.0, 0.03, 0.075])
def test_prompts_that_wait_for_each_other_pass_at_once(after):
    """One after the other they hold up what decodes twice."""
    both = (COMES, 100, 2), (COMES + after, 100, 2)
    assert delayed(DECODES, *both).e2e[0] == pytest.approx(LONE + 100 * STEP + 0.11)
    assert delayed(DECODES, *both, steps=1).e2e[0] == pytest.approx(LONE + 100 * STEP + (0.2 if after else 0.11))


@pytest.mark.parametrize("steps", [2, 5, 10])
def test_a_prompt_waits_as_many_steps_at_most(steps):
    """The first of them ends just as it comes."""
    outcome = delayed(DECODES, (LONE + 0.3, 100, 2), steps=steps)
    assert outcome.ttft[1] == pytest.approx((steps - 1) * STEP + STEP + 0.1)
    assert outcome.e2e[0] == pytest.approx(LONE + 100 * STEP + 0.1)


@pytest.mark.parametrize("decoding", [1, 2])
def test_a_prompt_waits_only_while_enough_decodes(decoding):
    alone, beside = delayed((0, 100, 2)), delayed(DECODES, (LONE + 0.3, 100, 2), decoding=decoding)
    assert alone.ttft[0] == pytest.approx(LONE)
    assert beside.ttft[1] == pytest.approx((9 * STEP if decoding == 1 else 0.0) + STEP + 0.1)


def test_prompts_on_one_copy_do_not_wait_for_each_other_but_for_those_of_others():
    """Dealt to the copy with fewest, the second goes to where nothing is; the third makes neither wait less."""
    turns = delayed(DECODES, (COMES, 100, 2), (COMES + 0.01, 100, 2), copies=3)
    fewest = delayed(DECODES, (COMES, 100, 2), (COMES + 0.01, 100, 2), copies=3, in_turn=False)
    # of three copies two have a prompt in either case: the wait lasts to its end
    for outcome in (turns, fewest):
        assert outcome.ttft[1] > 0.09 + 0.1
        assert outcome.e2e[0] == pytest.approx(LONE + 100 * STEP + 0.11)


def test_no_prompt_waits_without_end_nor_is_lost():
    rows = [(0.05 * at, 100, 20) for at in range(200)]
    outcome = delayed(*rows, copies=4)
    assert (outcome.ttft > 0).all()
    assert outcome.ttft.max() < 5

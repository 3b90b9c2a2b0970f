"""Copies of attention, batches in a pipeline: everybody waits for all of a prompt's pass, and several pass at once."""

import pytest

from planner.simulate.fleet import ReplicaGroup, simulate
from planner.simulate.steps import ReplicaKind
from tests.simulate.test_replica import Beat, requests


class Ranks(Beat):
    """A tenth of what prompts add is work that copies share."""

    def prefill(self, tokens, context, ranks=1.0):
        return 0.001 * tokens * (0.9 + 0.1 * ranks)


def ends(*rows, **facts):
    kind = ReplicaKind(**{"steps": Ranks(), "kv_tokens": 10_000, "max_batch": 64, "chunk": 100} | facts)
    return simulate(requests(*rows), [ReplicaGroup(kind)])


LONE = 0.005 + 0.1
"""Of a prompt of 100 tokens that nothing decodes beside."""
DECODES, COMES = (0, 100, 101), 0.5
"""A request of 100 tokens after its first, and when another comes."""


@pytest.mark.parametrize("facts", [{"copies": 2}, {"copies": 4}, {"batches": 2}, {"batches": 4},
                                   {"copies": 2, "batches": 2}])
@pytest.mark.parametrize("comes", [COMES, COMES + 0.0025, COMES + 0.006, COMES + 0.0085])
def test_what_decodes_waits_for_all_of_a_prompts_pass(facts, comes):
    """Wherever in a round it comes, and on whatever copy it is."""
    assert ends(DECODES, (comes, 100, 2), **facts).e2e[0] == pytest.approx(LONE + 100 * 0.01 + 0.1)


@pytest.mark.parametrize(("copies", "prompts", "longer"), [
    (1, 2, 0.2), (2, 2, 0.11), (4, 2, 0.11), (4, 4, 0.13), (2, 4, 0.22)])
def test_prompts_on_different_copies_pass_at_once(copies, prompts, longer):
    """Two on two copies take as long as one, but for the work that all share; those that have no room come after."""
    outcome = ends(DECODES, *[(COMES, 100, 2)] * prompts, copies=copies)
    assert outcome.e2e[0] == pytest.approx(LONE + 100 * 0.01 + longer)


@pytest.mark.parametrize(("stages", "tokens", "longer"), [(1, 300, 0.3), (2, 100, 0.1), (2, 200, 0.15), (2, 300, 0.2),
                                                          (4, 300, 0.15), (4, 400, 0.175)])
def test_chunks_follow_each_other_through_the_stages(stages, tokens, longer):
    """n chunks take n + stages - 1 of the times that one takes in a stage."""
    outcome = ends(DECODES, (COMES, tokens, 2), batches=stages)
    assert outcome.e2e[0] == pytest.approx(LONE + 100 * 0.01 + longer)


def test_prompts_that_come_while_one_passes_do_so_behind_it():
    """In the middle of a round of two batches: its stages are longer from the second on."""
    alone, both = (ends(DECODES, *((COMES + after, 100, 2) for after in afters), batches=2)
                   for afters in ((0.0,), (0.0, 0.006)))
    assert both.e2e[0] == pytest.approx(alone.e2e[0] + 0.05)


@pytest.mark.parametrize("facts", [{"copies": 2}, {"batches": 2}])
def test_who_comes_just_as_a_prompts_step_ends_is_in_the_next(facts):
    alone = ends(DECODES, (COMES, 100, 2), **facts)
    outcome = ends(DECODES, (COMES, 100, 2), (COMES + alone.ttft[1], 100, 2), **facts)
    assert outcome.e2e[0] == pytest.approx(LONE + 100 * 0.01 + 0.2)
    assert outcome.output_tokens_per_second > 0


@pytest.mark.parametrize("copies", [1, 2, 4])
def test_where_prompts_go_first_other_copies_go_on(copies):
    """Of n copies all but one decode in a step of prompts, so that n such steps give n - 1 tokens."""
    steps = Ranks()
    steps.empty = lambda: 0.0
    outcome = ends(DECODES, *((COMES + 0.2 * at, 100, 1) for at in range(4)), copies=copies, mode="prefill first",
                   steps=steps)
    assert outcome.e2e[0] == pytest.approx(0.1 + 100 * 0.01 + 4 * 0.1 - 4 * (copies - 1) / copies * 0.01)

"""Drawing a batch of answers to the last one, against a simulation of every step and slot."""

from __future__ import annotations

import numpy as np
import pytest

from planner.physics.posttraining.drain import AnswerLengths, drain, steady


def stepped(lengths: list[float], slots: int) -> tuple[int, float, float]:
    """Return steps, tokens and the sum of tokens written before each, one decode step at a time."""
    waiting, running, steps, tokens, before = [round(length) for length in lengths], list[list[int]](), 0, 0.0, 0.0
    while waiting or running:
        while waiting and len(running) < slots:
            running.append([waiting.pop(0), 0])
        steps += 1
        tokens += len(running)
        before += sum(done for _, done in running)
        running = [[left - 1, done + 1] for left, done in running if left > 1]
    return steps, tokens, before


@pytest.mark.parametrize(("samples", "slots"), [(1, 8), (64, 64), (64, 16), (200, 32), (33, 5)])
@pytest.mark.parametrize("answers", [AnswerLengths(300.0, 0.6, 1200.0), AnswerLengths(300.0, 0.0, 300.0),
                                     AnswerLengths(900.0, 1.2, 1000.0)])
def test_the_course_is_that_of_a_simulation(answers: AnswerLengths, samples: int, slots: int) -> None:
    course = drain(answers, samples, 4, slots)
    shares = (np.arange(samples) + 0.5) / samples
    shares[-1] = max(shares[-1], 1 - 0.5 / (samples * 4))
    lengths = answers.quantiles(shares)
    order = np.argsort((np.arange(samples) * ((5**0.5 - 1) / 2)) % 1)
    steps, tokens, before = stepped([float(length) for length in lengths[order]], slots)
    assert course.total == pytest.approx(steps, rel=0.02)
    assert float((course.steps * course.active).sum()) == pytest.approx(tokens, rel=0.06)
    assert float((course.steps * course.active * course.written).sum()) == pytest.approx(before, rel=0.12)


@pytest.mark.parametrize(("cv", "longest"), [(0.6, 2000.0), (1.5, 600.0), (0.3, 501.0)])
def test_cut_lengths_keep_their_mean(cv: float, longest: float) -> None:
    lengths = AnswerLengths(500.0, cv, longest).quantiles((np.arange(4000) + 0.5) / 4000)
    assert lengths.mean() == pytest.approx(500.0, rel=0.01)
    assert lengths.max() <= longest


def test_a_long_tail_costs_more_than_its_tokens_and_a_lag_fills_it() -> None:
    even, spread = (drain(AnswerLengths(500.0, cv, 4000.0), 128, 8, 256) for cv in (0.0, 1.0))
    assert spread.total > 4 * even.total
    flowing, further = (steady(AnswerLengths(500.0, 1.0, 4000.0), 128, 256, ahead) for ahead in (1, 8))
    assert flowing.total < spread.total / 4
    # answers of eight steps fill what slots there are
    assert further.total == pytest.approx(flowing.total / 2)


def test_of_many_answers_some_do_not_end_by_themselves_and_the_mean_stays() -> None:
    shares = (np.arange(4000) + 0.5) / 4000
    some, none = (AnswerLengths(500.0, 0.6, 28000.0, endless) for endless in (0.001, 0.0))
    assert some.quantiles(shares).mean() == pytest.approx(500.0, rel=0.02)
    assert (some.quantiles(shares) == 28000.0).sum() == 4
    assert none.quantiles(shares).max() < 8000
    few, many = (drain(some, samples, 1, 256) for samples in (100, 4000))
    assert few.total < 6000
    assert many.total >= 28000

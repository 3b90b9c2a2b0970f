"""Rates of the hardware of each row: products, attention, memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.catalog.hardware import LOW_PRECISION
from planner.layouts.table import Floats, Ints
from planner.physics.training.question import FULL_WIDTH, Question, computes


@dataclass(frozen=True, slots=True)
class MachineRates:
    """Per-row rates: matrix FLOP/s in the compute and in 16-bit precision, attention FLOP/s, memory bytes/s.

    In fp32 and tf32 what else has 16 bits is of that format, and memory passes half as many elements a second.
    """

    matrix: Floats
    matrix16: Floats
    peak16: Floats
    attention_forward: Floats
    attention_backward: Floats
    memory: Floats
    multiprocessors: Floats
    cache: Floats
    """Bytes."""
    low_precision: Floats
    gradient: Floats
    """Bytes of a weight's gradient."""


def machine(question: Question, candidate: Ints, precision: Ints) -> MachineRates:
    """Gather the rates of each row."""
    def column(value: object) -> Floats:
        return np.array(value, np.float64)

    def table(rate: Callable[[int, str], float]) -> Floats:
        return column([[rate(c, p) for p in question.precisions] for c in every]).reshape(
            len(every), len(question.precisions))[at, precision]

    # those in use alone, as there are many and rows are often of few
    used = np.flatnonzero(np.bincount(candidate, minlength=1))
    at = np.searchsorted(used, candidate)
    every = used.tolist()
    # a precision the hardware lacks is removed by a rule; its place in the grid is never read
    matrix = table(lambda c, p: question.matrix_rate(c, p) if computes(
        question.candidates[c], question.rates[c], p) else np.nan)
    full_width = column([p in FULL_WIDTH for p in question.precisions])[precision]
    rates, gpus = [question.rates[c] for c in every], [question.candidates[c].gpu for c in every]
    kernel = [question.stack.attention_kernel.get(g.architecture, 1.0) for g in gpus]
    attention = column([r.attention_forward * k * g.attention_gain
                        for r, k, g in zip(rates, kernel, gpus, strict=True)])[at]
    backward = column([r.attention_backward for r in rates])[at]
    peak = table(lambda c, p: question.peak_rate(c, _wide(question, c, p)))
    wide = table(lambda c, p: question.matrix_rate(c, _wide(question, c, p)))
    return MachineRates(
        matrix=matrix, matrix16=wide, peak16=peak,
        attention_forward=peak * attention, attention_backward=peak * attention * backward,
        # traffic is counted in 16-bit elements; those of 32 bits take twice as long
        memory=question.hardware.memory_bandwidth[candidate] / (1 + full_width),
        cache=column([g.cache for g in gpus])[at], multiprocessors=column([g.multiprocessors for g in gpus])[at],
        low_precision=column([p in LOW_PRECISION for p in question.precisions])[precision],
        gradient=column([question.stack.recipe(p).gradient / (1 + (p in FULL_WIDTH))
                         for p in question.precisions])[precision])


def _wide(question: Question, candidate: int, precision: str) -> str:
    """Return the format of what stays out of low precision: fp32 or tf32 where asked, else bf16, or fp16 without it."""
    if precision in FULL_WIDTH and computes(question.candidates[candidate], question.rates[candidate], precision):
        return precision
    return "bf16" if "bf16" in question.candidates[candidate].gpu.peak else "fp16"

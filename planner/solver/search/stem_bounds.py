"""Admissible bounds on the step of whatever grows from a stem, of the traffic only that of layers and pipeline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.layouts.axes import CHUNKS, SCHEDULES
from planner.layouts.rules import filled_chunks
from planner.layouts.table import Floats, Ints, Layouts, Mask
from planner.physics.training.communication import pipeline_traffic
from planner.physics.training.estimate import LayerTerms, step_overhead
from planner.physics.training.question import Question
from planner.physics.training.schedule import FILLED, pipeline_seconds
from planner.solver.search.bounds import even_slowest, least_slowest


def stem_bound(question: Question, stems: Layouts, terms: LayerTerms) -> Floats:
    """Return the least step seconds of whatever grows from each stem, of the traffic only that of layers and pipeline.
    """
    return StemSends.of(question, stems).bound(question, stems, terms)


@dataclass(frozen=True, slots=True)
class StemSends:
    """What bounds a stem's step beside the seconds of its layers: its most chunks, and seconds of sends between stages
    without interleaving, and with two chunks, which of all interleaved ones send least.
    """

    chunks: Ints
    plain: Floats
    interleaved: Floats

    @classmethod
    def of(cls, question: Question, stems: Layouts) -> StemSends:
        """Return those of each stem."""
        chunks, plain = _most_chunks(question, stems), pipeline_traffic(question, stems)
        some, interleaved = np.flatnonzero(chunks > 1), plain
        if len(some):
            interleaved = plain.copy()
            few = stems.take(some)
            interleaved[some] = pipeline_traffic(question, few.replace(vpp=np.full(len(few), 2)))
        return cls(chunks, plain, interleaved)

    def take(self, rows: Ints | Mask) -> StemSends:
        """Return those of the chosen stems."""
        return StemSends(self.chunks[rows], self.plain[rows], self.interleaved[rows])

    def bound(self, question: Question, stems: Layouts, terms: LayerTerms, again: Floats | float = 0.0,
              besides: Floats | float = 0.0, stage: Floats | float = 0.0) -> Floats:
        """Return the least step seconds of whatever grows from each of these stems.

        Late axes add traffic, optimizer time and recompute, and choose between a split of their own and equal chunks.
        again: seconds that all stages recompute for one micro-batch at least; besides: seconds a step beside its
        pipeline; stage: seconds of the slowest stage at least.
        """
        total = question.shape.layers * terms.layer + terms.first + terms.last + again

        def step(slowest: Floats, parts: Ints | int, sent: Floats) -> Floats:
            steady, bubble = pipeline_seconds(slowest, total, parts, stems.micro_batches)
            return steady + bubble + sent

        slowest = np.maximum(least_slowest(question, stems, terms, total), stage)
        least = step(slowest, 1, self.plain)
        if (self.chunks > 1).any():
            even = step(np.maximum(slowest, even_slowest(question, stems, terms)), self.chunks, self.interleaved)
            least = np.where(self.chunks > 1, np.minimum(least, even), least)
        if max(question.stack.schedules, key=SCHEDULES.index) in ("zero-bubble", "dualpipe"):
            least = np.minimum(least, step(slowest, FILLED, self.plain))
        found: Floats = (least + step_overhead(question, stems) + besides) * terms.jitter
        return found


def _most_chunks(question: Question, stems: Layouts) -> Ints:
    """Return the most chunks that a stage of each stem can interleave."""
    layers = question.shape.layers
    most = np.ones(max(layers, int(stems.pp.max(initial=1))) + 1, np.int64)
    if question.stack.interleaving:
        stages = np.arange(2, len(most))
        for chunks in CHUNKS:
            most[2:][filled_chunks(layers, stages * chunks, uneven=question.stack.uneven_chunks)] = chunks
    return np.where(stems.micro_batches % stems.pp == 0, most[stems.pp], 1)

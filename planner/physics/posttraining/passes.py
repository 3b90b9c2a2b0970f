"""Passes of a model over the answers of a step: forward alone for log-probabilities, forward and backward to update.

Sequences of many lengths are packed: their time is that of as many tokens in sequences of the length that a token is
of on average, which has the same attention. Memory is that of the longest sequence, which comes some day.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.catalog.architecture import Model
from planner.catalog.load import Catalog
from planner.catalog.stack import Stack
from planner.layouts.candidate import Candidate
from planner.layouts.table import Layouts, from_rows
from planner.physics.posttraining.generation import RolloutBatch
from planner.physics.training.estimate import TimeTerms, time_terms
from planner.physics.training.evaluate import Evaluation, evaluate_fixed
from planner.physics.training.memory import MemoryTerms, memory_terms
from planner.physics.training.question import Question, question_of
from planner.physics.training.recipes import Recipe, with_recipe
from planner.physics.training.tuning import tuning_of

STATES = ("weights", "gradients", "master_weights", "optimizer")
"""Components of memory that stay from step to step."""


@dataclass(frozen=True, slots=True)
class Trained:
    """One layout of a model: seconds of the passes of a step, and bytes of one GPU."""

    row: Mapping[str, float]
    update: Evaluation
    """Of typical sequences."""
    peak: Evaluation
    """Of the longest sequence."""
    forward_seconds: float
    micro_batch: int
    micro_batches: int
    layers: int
    adapted: bool
    """Whether adapters train, and not the weights."""

    @property
    def update_seconds(self) -> float:
        """Forward, backward and the optimizer's step."""
        return self.update.step.seconds

    def held(self, *names: str) -> float:
        """Return the bytes of some components of memory."""
        return math.fsum(self.peak.memory.components[name] for name in names)

    @property
    def states(self) -> float:
        """Bytes of weights, gradients and the optimizer's states."""
        return self.held(*STATES)

    @property
    def working(self) -> float:
        """Bytes of an update beside states: activations, logits, buffers, the framework and the margin."""
        return self.peak.memory.peak - self.states


@dataclass(frozen=True, slots=True)
class Packed:
    """Sequences of a step as a trainer packs them; lengths in tokens."""

    sequences: int
    mean: float
    weighted: float
    """Of the sequence that a token is of, on average."""
    longest: float
    tokens: int
    """Of a micro-batch of one model copy."""


def packed(batch: RolloutBatch, tokens: int) -> Packed:
    """Return what a step draws as micro-batches of so many tokens."""
    mean = batch.input + batch.answers.mean
    # the squares of prompt and answer together: answers alone spread
    square = batch.input**2 + 2 * batch.input * batch.answers.mean + batch.answers.mean * batch.answers.weighted
    return Packed(batch.sequences, mean, square / mean, batch.input + batch.answers.longest, tokens)


@dataclass(frozen=True, slots=True)
class Trainer:
    """A model, the stack that trains it and the sequences of a step on one kind of hardware."""

    model: Model
    stack: Stack
    candidate: Candidate
    packed: Packed
    typical: Question
    forward: Question
    longest: Question

    def rows(self, layouts: Sequence[Mapping[str, float]]) -> tuple[Layouts, Layouts]:
        """Return layouts with the micro-batches of typical sequences, and of the longest."""
        mean, long = self.typical.sequence_length, self.longest.sequence_length
        count = max(1, math.ceil(self.packed.sequences * self.packed.mean / mean))
        tables = []
        for length in (mean, long):
            made = []
            for row in layouts:
                copies = int(row.get("dp", 1))
                room = int(max(self.packed.tokens * row.get("cp", 1), long) / length)
                mine = -(-count // copies)
                times = -(-mine // max(1, room))
                # as many sequences in each micro-batch
                each = min(max(1, room), mine) if length == long else -(-mine // times)
                made.append({**row, "micro_batch": each, "batch": copies * each * times})
            tables.append(from_rows([{k: v for k, v in row.items() if k != "batch"} for row in made],
                                    [int(row["batch"]) for row in made]))
        return tables[0], tables[1]

    def each(self, layouts: Sequence[Mapping[str, float]]) -> Iterator[Trained]:
        """Yield the passes in each layout."""
        if not layouts:
            return
        rows, long = self.rows(layouts)
        plain = rows.replace(recompute=np.zeros_like(rows.recompute), offload=np.zeros_like(rows.offload),
                             zero=np.where(rows.zero == 3, 3, 0))
        times: list[tuple[Question, Layouts, TimeTerms, MemoryTerms]] = [
            (question, table, time_terms(question, table), memory_terms(question, table))
            for question, table in ((self.typical, rows), (self.forward, plain), (self.longest, long))]
        for at, row in enumerate(layouts):
            update, forward, peak = (evaluate_fixed(question, table, at, time=time, memory=memory)
                                     for question, table, time, memory in times)
            yield Trained(row, update, peak, forward.step.seconds, int(rows.micro_batch[at]),
                          int(rows.micro_batches[at]), self.model.layers, not self.typical.tuning.trains_base)


def trainer_of(catalog: Catalog, model: Model, candidate: Candidate, stack: Stack, step: Packed, *, method: str,
               rank: int, confidence: float, loss: str = "chunked", frozen: float = 2.0) -> Trainer:
    """Gather the facts of a trainer. Raises Unsupported, UnknownName or MissingFact."""
    tuned = with_recipe(catalog.recipes, stack, model, Recipe(loss=loss))

    def question(length: float, how: str) -> Question:
        tuning = tuning_of(catalog.recipes, tuned, how, rank)
        if tuning.adapter is not None:
            # adapters work in 16 bits beside the frozen weights
            tuning = replace(tuning, base_bytes=frozen, table_bytes=frozen,
                             adapter=tuning.adapter.model_copy(update={"weight": 2.0}))
        return question_of(catalog, model, (candidate,), tuned, sequence_length=max(1, round(length)), global_batch=1,
                           precisions=("bf16",), method=how, confidence=confidence, lora_rank=rank,
                           tuning=tuning)

    return Trainer(model, tuned, candidate, step, question(step.weighted, method), question(step.weighted, "inference"),
                   question(step.longest, method))

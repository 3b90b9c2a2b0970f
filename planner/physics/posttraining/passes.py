"""Passes of a model over the answers of a step: forward alone for log-probabilities, forward and backward to update.

Sequences of many lengths are packed: their time is that of as many tokens in sequences of the length that a token is
of on average, which has the same attention. Memory is that of the longest sequence, which comes some day.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from planner.catalog.architecture import Model
from planner.catalog.load import Catalog
from planner.catalog.stack import Stack
from planner.layouts.axes import column_type
from planner.layouts.candidate import Candidate
from planner.layouts.table import Amount, Floats, Ints, Layouts, from_columns
from planner.physics.posttraining.generation import RolloutBatch
from planner.physics.shapes import parameters
from planner.physics.training.evaluate import Evaluation, FixedRows, evaluate_fixed, evaluate_rows
from planner.physics.training.question import Question, question_of
from planner.physics.training.recipes import Recipe, with_recipe
from planner.physics.training.tuning import tuning_of

STATES = ("weights", "gradients", "master_weights", "optimizer")
"""Components of memory that stay from step to step."""


class Passes(Protocol):
    """What a step asks of a model in one layout, or in many: seconds of its passes, and bytes of one GPU."""

    @property
    def adapted(self) -> bool:
        """Whether adapters train, and not the weights."""

    @property
    def layers(self) -> int:
        """Layers of the model."""

    @property
    def parameters(self) -> float:
        """Of the model, all of them."""

    @property
    def forward_seconds(self) -> Amount:
        """Of all answers of a step."""

    @property
    def update_seconds(self) -> Amount:
        """Forward, backward and the optimizer's step."""

    @property
    def host_per_node(self) -> Amount:
        """Bytes of a node's host that states updated there take."""

    def held(self, *names: str) -> Amount:
        """Return the bytes of some components of memory."""

    @property
    def states(self) -> Amount:
        """Bytes of weights, gradients and the optimizer's states."""

    @property
    def working(self) -> Amount:
        """Bytes of an update beside states: activations, logits, buffers, the framework and the margin."""


@dataclass(frozen=True, slots=True)
class Trained:
    """One layout of a model, in full."""

    row: Mapping[str, float]
    update: Evaluation
    """Of typical sequences."""
    peak: Evaluation
    """Of the longest sequence."""
    forward_seconds: float
    micro_batch: int
    """Answers in one, of the mean length."""
    micro_batches: int
    layers: int
    parameters: float
    adapted: bool
    """Whether adapters train, and not the weights."""

    @property
    def update_seconds(self) -> float:
        """Forward, backward and the optimizer's step."""
        return self.update.step.seconds

    @property
    def host_per_node(self) -> float:
        """Bytes of a node's host that states updated there take."""
        return self.peak.memory.host_per_node

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
class TrainedRows:
    """Many layouts of a model, one a row."""

    trainer: Trainer
    layouts: Sequence[Mapping[str, float]]
    update: FixedRows
    peak: FixedRows
    forward_seconds: Floats

    def __len__(self) -> int:
        """Return the number of layouts."""
        return len(self.layouts)

    @property
    def adapted(self) -> bool:
        """Whether adapters train, and not the weights."""
        return not self.trainer.typical.tuning.trains_base

    @property
    def layers(self) -> int:
        """Layers of the model."""
        return self.trainer.model.layers

    @property
    def parameters(self) -> float:
        """Of the model, all of them."""
        return self.trainer.parameters

    @property
    def update_seconds(self) -> Floats:
        """Forward, backward and the optimizer's step."""
        return self.update.seconds

    @property
    def host_per_node(self) -> Floats:
        """Bytes of a node's host that states updated there take."""
        return self.peak.host_per_node

    def held(self, *names: str) -> Floats:
        """Return the bytes of some components of memory."""
        return sum((self.peak.components[name] for name in names), np.zeros(len(self)))

    @property
    def states(self) -> Floats:
        """Bytes of weights, gradients and the optimizer's states."""
        return self.held(*STATES)

    @property
    def working(self) -> Floats:
        """Bytes of an update beside states: activations, logits, buffers, the framework and the margin."""
        return self.held(*self.peak.components) - self.states

    def take(self, rows: Ints) -> TrainedRows:
        """Return some rows."""
        return TrainedRows(self.trainer, [self.layouts[row] for row in rows.tolist()], self.update.take(rows),
                           self.peak.take(rows), self.forward_seconds[rows])

    def one(self, row: int) -> Trained:
        """Return one layout in full."""
        return self.trainer.one(self.layouts[row])


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

    @property
    def parameters(self) -> float:
        """Of the model, all of them."""
        return float(parameters(self.model))

    def rows(self, layouts: Sequence[Mapping[str, float]]) -> tuple[Layouts, Layouts]:
        """Return layouts, which name the same axes, with the micro-batches of typical sequences, and of the longest."""
        names = {name: column_type(name) for row in layouts[:1] for name in row}
        columns = {name: np.array([row[name] for row in layouts], kind) for name, kind in names.items()}
        one = np.ones(len(layouts), np.int64)
        copies, cp = columns.setdefault("dp", one), columns.get("cp", one)
        mean, long = self.typical.sequence_length, self.longest.sequence_length
        mine = -(-max(1, math.ceil(self.packed.sequences * self.packed.mean / mean)) // copies)
        most = np.maximum(self.packed.tokens * cp, long)

        def table(length: int, *, alike: bool) -> Layouts:
            room = np.maximum(1, most // length)
            # as many mean sequences as fit, and with them as many micro-batches; the fullest has the longest alone
            mean_room = np.maximum(1, most // max(1, math.floor(self.packed.mean)))
            answers = -(-self.packed.sequences // copies)
            times = -(-answers // mean_room) if alike else -(-mine // room)
            each = -(-mine // times) if alike else np.minimum(room, mine)
            return from_columns({**columns, "micro_batch": each}, copies * each * times)

        return table(mean, alike=mean != long), table(long, alike=False)

    def passes(self, layouts: Sequence[Mapping[str, float]]) -> TrainedRows:
        """Return the passes in each layout."""
        rows, long = self.rows(layouts)
        update, forward, peak = (evaluate_rows(question, table) for question, table in (
            (self.typical, rows), (self.forward, _plain(rows)), (self.longest, long)))
        return TrainedRows(self, layouts, update, peak, forward.seconds)

    def one(self, layout: Mapping[str, float]) -> Trained:
        """Return the passes in one layout, in full."""
        rows, long = self.rows([layout])
        update, forward, peak = (evaluate_fixed(question, table, 0) for question, table in (
            (self.typical, rows), (self.forward, _plain(rows)), (self.longest, long)))
        # the rows count sequences of the length that a token is of: answers are shorter on average, and more
        copies, times = int(layout.get("dp", 1)), int(rows.micro_batches[0])
        answers = math.ceil(math.ceil(self.packed.sequences / copies) / times)
        return Trained(layout, update, peak, forward.step.seconds, answers, times, self.model.layers, self.parameters,
                       not self.typical.tuning.trains_base)


def _plain(rows: Layouts) -> Layouts:
    """Return layouts as a pass without gradients has them."""
    return rows.replace(recompute=np.zeros_like(rows.recompute), offload=np.zeros_like(rows.offload),
                        zero=np.where(rows.zero == 3, 3, 0))


def trainer_of(catalog: Catalog, model: Model, candidate: Candidate, stack: Stack, step: Packed, *, method: str,
               rank: int, confidence: float, loss: str = "chunked", frozen: float = 2.0) -> Trainer:
    """Gather the facts of a trainer. Raises Unsupported, UnknownName or MissingFact."""
    tuned = with_recipe(catalog.recipes, stack, model, Recipe(loss=loss))

    def question(length: float, how: str) -> Question:
        tuning = tuning_of(catalog.recipes, tuned, how, rank)
        if tuning.adapter is not None and not tuning.quantized:
            # adapters work in 16 bits beside the frozen weights
            tuning = replace(tuning, base_bytes=frozen, table_bytes=frozen,
                             adapter=tuning.adapter.model_copy(update={"weight": 2.0}))
        return question_of(catalog, model, (candidate,), tuned, sequence_length=max(1, round(length)), global_batch=1,
                           precisions=("bf16" if "bf16" in candidate.gpu.peak else "fp16",), method=how,
                           confidence=confidence, lora_rank=rank, tuning=tuning)

    return Trainer(model, tuned, candidate, step, question(step.weighted, method), question(step.weighted, "inference"),
                   question(step.longest, method))

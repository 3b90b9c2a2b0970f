"""`planner estimate`: one layout in full, what would save memory, and the largest thing it still holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from planner.answer.assignment import Assignment
from planner.ask.largest import Largest, largest_model, largest_of, largest_sequence
from planner.ask.levers import Lever, levers
from planner.catalog.load import Catalog
from planner.jobs.training.one_layout import estimate_of
from planner.layouts.axes import divisors
from planner.physics.shapes import parameters
from planner.physics.training.recipes import Recipe, with_recipe
from planner.scenario.workload import DEFAULT_STACK

MOST_MICRO_BATCH = 4096
"""Largest micro-batch tried, in sequences."""


@dataclass(frozen=True, slots=True)
class Estimating:
    """What `planner estimate` was asked, all but what is varied; `model` may be any where the largest is asked for."""

    catalog: Catalog
    model: str
    node: str
    gpus: int | None
    layout: Mapping[str, str]
    sequence_length: int | None
    global_batch: int | None
    method: str
    stack: str | None
    precision: str
    confidence: float
    recipe: Recipe = field(default_factory=Recipe)
    trained_layers: int | None = None

    def __call__(self, **changes: Any) -> Assignment:  # noqa: ANN401 - one of the fields above
        """Return the estimate, with some fields changed. Raises InputError where the layout is not legal."""
        asked = replace(self, **changes)
        shape = self.catalog.model(asked.model)
        stack = self.catalog.stack(asked.stack or DEFAULT_STACK.get(asked.method, "megatron-core"))
        return estimate_of(self.catalog, shape, self.catalog.node(asked.node),
                           with_recipe(self.catalog.recipes, stack, shape, asked.recipe), gpus=asked.gpus,
                           layout=asked.layout, sequence_length=asked.sequence_length or shape.sequence_length,
                           global_batch=asked.global_batch, method=asked.method, precision=asked.precision,
                           confidence=asked.confidence, trained_layers=asked.trained_layers,
                           steps_in_backward=asked.recipe.optimizer_in_backward)

    def levers(self, now: Assignment) -> list[Lever]:
        """Return what single changes of the layout would save."""
        return levers(lambda layout: self(layout=layout), self.layout, now)

    def largest(self, what: str) -> Largest[Any]:
        """Return the largest `micro-batch`, `sequence` or `model` that fits. Raises InputError."""
        if what == "model":
            names = sorted(self.catalog.names("models"), key=lambda name: -parameters(self.catalog.model(name)))
            return largest_model(names, lambda name: self(model=name))
        layout = {key: value for key, value in self.layout.items() if key not in ("mbs", "micro_batch")}
        now = self(layout=layout)
        if what == "sequence":
            multiple = 2 * now.layout.cp if now.layout.cp > 1 else 1
            return largest_sequence(lambda length: self(sequence_length=length), multiple)
        each = now.layout.micro_batches * now.layout.micro_batch
        return largest_of([size for size in divisors(each) if size <= MOST_MICRO_BATCH],
                          lambda size: self(layout={**layout, "mbs": str(size)}))

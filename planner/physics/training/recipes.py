"""What a user chooses over a stack's own recipe: the optimizer, when it steps, and the kernel of the loss.

AdamW keeps two moments in 32 bits, 8 bytes. In 8 and 4 bits each has a 32-bit scale for every block of 256 and 128
(torchao optim/subclass_8bit.py, subclass_4bit.py); momentum SGD and Lion keep one (arXiv 2302.06675); Muon keeps one
for matrices (its Adam for tables and vectors is left out); Adafactor keeps a row and a column of second moments for
each matrix (arXiv 1804.04235), next to nothing. An optimizer that steps in backward frees each gradient as it comes.
A loss in chunks keeps 16-bit logits and their gradient in place; one fused with its projection holds no logits, but
its inputs and their gradient in 32 bits (Liger-Kernel, arXiv 2410.10989).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.catalog.architecture import Model
from planner.catalog.stack import Stack
from planner.errors import UnknownName

MOMENT_BYTES = {"adamw-8bit": 2 * (1 + 4 / 256), "adamw-4bit": 2 * (0.5 + 4 / 128), "sgd-momentum": 4.0, "lion": 4.0,
                "muon": 4.0, "adafactor": 0.02, "paged-adamw": 0.0, "paged-adamw-8bit": 0.0}
"""Bytes per parameter of an optimizer's states, by its name; paged ones leave the GPU under pressure."""
LEAST_GRADIENT = 0.01
"""Bytes per parameter where every gradient is applied and freed as backward makes it: the matrix at hand."""
PLAIN_LOSS, SHORT_LOSS, FUSED_LINEAR_LOSS = 15.0, 4.0, 8.0
"""Bytes per logit of a plain loss and of one in chunks, and per hidden element of one fused with its projection."""
LOSSES = ("plain", "chunked", "fused")


@dataclass(frozen=True, slots=True)
class Recipe:
    """The choices; none is the stack's own, and adamw its own optimizer."""

    optimizer: str | None = None
    optimizer_in_backward: bool = False
    loss: str | None = None


def with_recipe(stack: Stack, model: Model, recipe: Recipe) -> Stack:
    """Return the stack with what `recipe` chooses. Raises UnknownName."""
    changes: dict[str, Any] = {}
    states: dict[str, float] = {}
    if recipe.optimizer not in (None, "adamw"):
        if recipe.optimizer not in MOMENT_BYTES:
            raise UnknownName("optimizer", str(recipe.optimizer), ["adamw", *MOMENT_BYTES])
        states["moments"] = MOMENT_BYTES[recipe.optimizer]
    if recipe.optimizer_in_backward:
        states["gradient"] = LEAST_GRADIENT
        changes["gradients_persist"] = False
    if recipe.loss is not None:
        if recipe.loss not in LOSSES:
            raise UnknownName("loss", recipe.loss, LOSSES)
        changes["loss_bytes_per_logit"] = {"plain": PLAIN_LOSS, "chunked": SHORT_LOSS,
                                           "fused": FUSED_LINEAR_LOSS * model.hidden / model.vocab}[recipe.loss]
    if states:
        changes["states"] = {p: s.model_copy(update=states) for p, s in stack.states.items()}
    return stack.model_copy(update=changes) if changes else stack

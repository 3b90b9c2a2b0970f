"""What a user chooses over a stack's own recipe: the optimizer, when it steps, and the kernel of the loss.

What each takes is in calibration/recipes. An optimizer that steps in backward frees each gradient as it comes. A loss
in chunks keeps 16-bit logits and their gradient in place; one fused with its projection holds no logits, but its inputs
and their gradient in 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.catalog.architecture import Model
from planner.catalog.recipes import Recipes
from planner.catalog.stack import Stack
from planner.errors import UnknownName


@dataclass(frozen=True, slots=True)
class Recipe:
    """The choices; none is the stack's own, and adamw its own optimizer."""

    optimizer: str | None = None
    optimizer_in_backward: bool = False
    loss: str | None = None


def with_recipe(recipes: Recipes, stack: Stack, model: Model, recipe: Recipe) -> Stack:
    """Return the stack with what `recipe` chooses; `recipes` says what that takes. Raises UnknownName."""
    changes: dict[str, Any] = {}
    states: dict[str, float] = {}
    if recipe.optimizer not in (None, "adamw"):
        if recipe.optimizer not in recipes.optimizers:
            raise UnknownName("optimizer", str(recipe.optimizer), ["adamw", *recipes.optimizers])
        states["moments"] = recipes.optimizers[recipe.optimizer]
    if recipe.optimizer_in_backward:
        states["gradient"] = recipes.least_gradient
        changes["gradients_persist"] = False
    if recipe.loss is not None:
        each = {**recipes.losses, "fused": recipes.losses["fused"] * model.hidden / model.vocab}
        if recipe.loss not in each:
            raise UnknownName("loss", recipe.loss, list(each))
        changes["loss_bytes_per_logit"] = each[recipe.loss]
    if stack.offload.optimizers and (recipe.optimizer or "adamw") not in stack.offload.optimizers:
        changes["offload"] = stack.offload.model_copy(update={"optimizer": ()})
    if states:
        changes["states"] = {p: s.model_copy(update=states) for p, s in stack.states.items()}
    return stack.model_copy(update=changes) if changes else stack

"""By what traits and sizes a training question is like published runs: the same for evidence and for plans."""

from __future__ import annotations

from planner.catalog.architecture import Model
from planner.catalog.stack import Stack

WHOLE = frozenset({"pretrain", "full"})
"""Methods that train all weights, alike in speed."""


def step_traits(stack: Stack, method: str, model: Model, architecture: str, precision: str) -> dict[str, str]:
    """Return by what the time of a step is like others. architecture: of the GPU."""
    return {"family": stack.family, "method": method_class(method), "kind": kind_of_model(model),
            "architecture": architecture, "precision": precision, "stack": stack.name}


def memory_traits(stack: Stack, method: str, model: Model, *, split: bool) -> dict[str, str]:
    """Return by what peak memory is like others. split: whether tensor or pipeline parallelism splits the model.

    What is only loaded is like no method in particular.
    """
    return {"family": stack.family, **({} if method == "inference" else {"method": method_class(method)}),
            "kind": kind_of_model(model), "model": "split" if split else "whole", "stack": stack.name}


def method_class(method: str) -> str:
    """Return what of methods is alike in speed."""
    return "whole" if method in WHOLE else method


def kind_of_model(model: Model) -> str:
    """Return dense or moe."""
    return "moe" if model.mixes_experts else "dense"


def sizes(gpus: int, tokens: int) -> dict[str, float]:
    """Return the sizes by which a run may lie beyond others: GPUs, and tokens of a sequence."""
    return {"gpus": float(gpus), "tokens": float(tokens)}

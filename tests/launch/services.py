"""Replicas for the tests of launch files: estimates of services, and what changes one axis."""

from dataclasses import replace
from functools import cache

from planner.ask.estimate import estimating
from planner.launch.given import estimated
from planner.launch.served import EngineGroup, served_of
from tests.launch.works import CATALOG, words

DENSE = {"model": "llama-3.1-8b", "input": "2000", "output": "300"}
MIXTURE = {"model": "mixtral-8x7b"}


@cache
def serving(layout: str, node: str = "dgx-h100", gpus: str = "", **asked: str):
    """Return the estimate of a layout of replicas."""
    values = {f"workload.{name}": value for name, value in {**DENSE, **asked}.items()}
    if gpus:
        values["limits.gpus"] = gpus
    return estimating(None, {"workload.kind": "serving", **values}, CATALOG, node=node, layout=words(layout),
                      labels={}).answer().assignment


def served(target: str, layout: str, node: str = "dgx-h100", gpus: str = "", **asked: str) -> EngineGroup:
    """Return what the emitter of a target reads of replicas."""
    stack = CATALOG.releases.target(target).stacks[0]
    one = estimated(serving(layout, node, gpus, **asked, engine=stack))
    return served_of(one.placed, one.asked, CATALOG, target)


def otherwise(base: EngineGroup, *, serving=None, **layout) -> EngineGroup:
    """Return replicas with parts of their layout, or of what is delivered, changed, unchecked."""
    answer = base.serving.model_copy(update=serving or {})
    placed = base.placed.model_copy(update={"layout": base.placed.layout.model_copy(update=layout), "serving": answer})
    return replace(base, placed=placed, serving=answer)

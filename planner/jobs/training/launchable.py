"""What a plan is held to so that the files of its stack can say it: values of axes, and combinations that they lack."""

from __future__ import annotations

from collections.abc import Mapping

from planner.catalog.buildable import having, unbuilt
from planner.catalog.load import Catalog
from planner.catalog.releases import Target
from planner.catalog.stack import Method, Stack
from planner.errors import Unsupported
from planner.layouts.axes import place
from planner.scenario.workload import AUTO, Training


def held_to_target(asked: Training, stack: Stack, method: str, catalog: Catalog) -> tuple[Training, Target | None]:
    """Return a job, and the target that it has to be launchable with; none where it may be any.

    Of the number formats asked, those are kept that the target can be told. Raises Unsupported where none is, and for
    a method or a model that it does not have.
    """
    releases, name = catalog.releases, asked.launchable
    if name is None:
        return asked, None
    name = releases.some(stack.name, method)[0] if name == AUTO else name
    target, model = releases.target(name), catalog.model(asked.model)
    if method not in (target.methods or (method,)):
        raise Unsupported(f"{method} in {name} (it has {', '.join(target.methods)})")
    if (reason := unbuilt(releases, name, model)) is not None:
        able = having(releases, model, method)
        raise Unsupported(f"{reason}; {', '.join(able)} can start it" if able else reason)
    told = target.formats(stack.name, asked.precision)
    if not told:
        known = target.precisions_of.get(stack.name, target.precisions)
        by = f" as {stack.name}" if target.precisions_of else ""
        raise Unsupported(f"{', '.join(asked.precision)} in {name}{by} (it has {', '.join(known)})")
    return asked.model_copy(update={"precision": told}), target


def told_by(target: Target | None, stack: Stack, method: str) -> Stack:
    """Return the stack with what a target cannot be told of it refused."""
    if target is None:
        return stack
    refused = tuple(one for one in target.refuses if method in (one.methods or (method,)))
    offload = stack.offload.model_copy(update={"together": stack.offload.together or target.offloads_together})
    return stack.model_copy(update={"refuses": (*stack.refuses, *refused), "offload": offload})


def values_for(target: Target | None, stack: Stack, method: Method) -> Mapping[str, tuple[float, ...]]:
    """Return axis -> the values that a target can be told; none where it may be any."""
    return {axis: tuple(place(axis, value) for value in values if value != "selective" or stack.selective_recompute)
            for axis, values in (target.only | target.only_for.get(method, {}) if target else {}).items()}

"""Which stacks a training job may use, in their order, and whether their speed was ever measured."""

from __future__ import annotations

from planner.catalog.buildable import unbuilt
from planner.catalog.likeness import WHOLE, method_class
from planner.catalog.load import Catalog
from planner.catalog.stack import Method, Stack
from planner.catalog.whole_runs import AddedShare
from planner.scenario.workload import AUTO, Training


def stacks_of(asked: Training, catalog: Catalog, *, timed: bool = True) -> list[list[str]]:
    """Return the stacks that are searched, those behind the first group only where no plan is in the ones before.

    What the question names is one group. Of `auto` those with a measured speed come first: a stack that was never
    measured does not win by an optimistic prediction, and does not leave the question without an answer. Where time
    does not count (not `timed`), those are alike. Those that few use come last.
    """
    if asked.stack != (AUTO,):
        return [list(asked.stack)]
    method = asked.method or "pretrain"
    silent = not asked.has_several and catalog.model(asked.model).is_silent
    usual, last = ([stack for stack in stacks
                    if asked.launchable != AUTO or _is_told(asked, catalog, stack.name, method)]
                   for stacks in (catalog.usual_stacks(method, asked.trains, silent=silent),
                                  [] if silent else catalog.last_stacks(method)))
    measured = [stack.name for stack in usual if not timed
                or (method in WHOLE and has_evidence(catalog, stack, method))]
    others = [stack.name for stack in usual if stack.name not in measured]
    return [group for group in (measured, others, [stack.name for stack in last])
            if group]


def _is_told(asked: Training, catalog: Catalog, stack: str, method: Method) -> bool:
    """Say whether the usual target of a stack can be told of the method, of a number format that is asked, and of the
    model, where it is one.
    """
    model = None if asked.has_several else catalog.model(asked.model)
    return any(catalog.releases.target(name).formats(stack, asked.precision) and (
        model is None or unbuilt(catalog.releases, name, model) is None)
        for name in catalog.releases.of_stack(stack, method)[:1])


def first_stack(asked: Training, catalog: Catalog) -> str:
    """Return the stack named, or the most usual one of those in use."""
    return stacks_of(asked, catalog)[0][0]


def has_evidence(catalog: Catalog, stack: Stack, method: Method) -> bool:
    """Say whether the evidence has speeds of a stack by a method."""
    return catalog.step_residuals.has(family=stack.family, method=method_class(method))


def is_usual(asked: Training, stack: Stack) -> bool:
    """Say whether a stack is no last resort for what is asked."""
    return (asked.method or "pretrain") not in stack.last_resort_for


def added_by_runs(catalog: Catalog, asked: Training) -> AddedShare | None:
    """Return what whole runs add to steps and failures; none where no such runs are known, as of tuning."""
    return catalog.whole_runs.added if asked.method in (None, "pretrain") else None

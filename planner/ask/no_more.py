"""What trains less needs no more GPUs: adapters go where all weights train, a quantized base where a plain one does.

A stack of its own may need more, as it cannot split a model as others do, or as its memory was measured less well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from planner.answer.assignment import Alternative, Assignment, alternative
from planner.catalog.load import Catalog
from planner.catalog.stack import Method
from planner.scenario.scenario import Scenario

TRAINS: tuple[Method, ...] = ("full", "lora", "qlora")
"""From what trains most to what trains least and holds fewest bytes."""


def lenders(scenario: Scenario, catalog: Catalog, made: Iterable[Assignment]) -> tuple[Scenario, tuple[Method, ...]]:
    """Return the question whose layouts hold what is asked too, and by which methods: on the GPUs where what was found
    takes more than one; no methods where none could do better.
    """
    method = scenario.workload.method
    if method not in TRAINS[1:]:
        return scenario, ()
    one = {assignment.gpu for assignment in made if assignment.gpus == 1}
    open_ends = tuple(name for name in scenario.hardware.candidates
                      if catalog.gpu(catalog.node(name).gpu).name not in one)
    hardware = scenario.hardware.model_copy(update={"candidates": open_ends})
    return scenario.model_copy(update={"hardware": hardware}), TRAINS[:TRAINS.index(method)] if open_ends else ()


def no_more(made: Sequence[Assignment], shown: Sequence[str]) -> tuple[list[Assignment], list[Alternative], list[str]]:
    """Return the fewest GPUs of each method shown, those of other kinds, and what took the layout of which.

    made: of one model, by `workload`; of every GPU what takes fewest, and beside it what needs nothing but GPUs.
    """
    found: dict[str, dict[str, list[Assignment]]] = {}
    for assignment in made:
        found.setdefault(assignment.workload, {}).setdefault(assignment.gpu, []).append(assignment)
    notes = []
    for more, less in pairwise(TRAINS):
        taken = []
        for gpu, theirs in found.get(more, {}).items():
            mine = found.get(less, {}).get(gpu, [])
            fewest, changed = _fewer(mine, theirs, less, lambda _: True)
            alone, other = _fewer(mine, theirs, less, lambda each: each.layout.offload.to == "none")
            if changed or other:
                found.setdefault(less, {})[gpu] = _both(fewest, alone)
                taken.append(gpu)
        if taken and less in shown:
            some = ", ".join(sorted(taken)[:2]) + (", ..." if len(taken) > 2 else "")
            notes.append(f"{less} on {some} takes the layout by which {more} fits there, on fewer GPUs than its own")
    best: list[Assignment] = []
    others: list[Alternative] = []
    for method in shown:
        kinds = sorted(found.get(method, {}).values(), key=lambda each: each[0].gpus)
        first = next((kind for kind in kinds if kinds[0][0].gpus == kind[0].gpus and any(
            each is was for each in kind for was in made[:len(shown)])), kinds[0] if kinds else [])
        best += first[:1]
        others += [_beside(each) for kind in kinds for each in kind if each is not first[0]]
    return best, others, notes


def _fewer(mine: Sequence[Assignment], theirs: Sequence[Assignment], method: str,
           admits: Callable[[Assignment], bool]) -> tuple[Assignment | None, bool]:
    """Return what takes fewest GPUs of those admitted, and whether it is a layout of the method that trains more."""
    own, other = (min(filter(admits, each), key=lambda made: made.gpus, default=None) for each in (mine, theirs))
    if other is None or (own is not None and own.gpus <= other.gpus):
        return own, False
    return other.model_copy(update={"workload": method, "method": method}), True


def _both(fewest: Assignment | None, alone: Assignment | None) -> list[Assignment]:
    """Return both where they differ; what needs nothing outside the GPUs in place of what takes as many and does."""
    if fewest is None or alone is None or alone.gpus <= fewest.gpus:
        return [each for each in (alone or fewest,) if each is not None]
    return [fewest, alone]


def _beside(made: Assignment) -> Alternative:
    return made if isinstance(made, Alternative) else alternative(made, f"{made.gpus:,} of this kind")

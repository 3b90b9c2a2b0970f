"""The same question with something changed, and solved again: limits lifted or set, more memory, choices held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from planner.layouts.candidate import Candidate
from planner.layouts.enumerate import Grid
from planner.prepare import Prepared, job_of, most_gpus
from planner.scenario.limits import Deadline, Objective
from planner.solver.choose import Choice, choose
from planner.solver.found import Frontier
from planner.solver.frontier import Search
from planner.solver.settings import Effort
from planner.solver.source import grid_source

ENDLESS = 1e18
"""Bytes, or bytes/s, that nothing uses up."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is different: limits by name (None lifts one), bytes more per GPU, bytes/s more per adapter, axes held."""

    limits: Mapping[str, float | None] = field(default_factory=dict)
    memory: float = 0.0
    nics: float = 0.0
    own: int | None = 0
    """Owned nodes more of each kind; None is as many as one likes."""
    only: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    objective: Objective | None = None


def changed(prepared: Prepared, change: Change) -> Prepared:
    """Return the question with the change made; nothing is looked up again."""
    scenario, facts = prepared.scenario, prepared.facts
    update: dict[str, object] = {name: _limit(prepared, name, value) for name, value in change.limits.items()}
    limits = scenario.limits.model_copy(update=update)
    scenario = scenario.model_copy(update={"limits": limits, "objective": change.objective or scenario.objective})
    candidates = tuple(_candidate(one, change) for one in facts.space.candidates)
    space = replace(facts.space, candidates=candidates, only={**facts.space.only, **change.only},
                    max_gpus=most_gpus(scenario))
    offers = [replace(offer, nodes=None if change.own is None else (offer.nodes or 0) + change.own)
              if offer.how == "owned" else offer for offer in prepared.offers]
    return replace(prepared, scenario=scenario, question=replace(prepared.question, candidates=candidates),
                   facts=replace(facts, space=space, fixed_gpus=limits.gpus, max_nodes=limits.max_nodes),
                   offers=offers)


def _limit(prepared: Prepared, name: str, value: float | None) -> object:
    """Return a limit as the scenario holds it: a deadline keeps its confidence, counts are whole."""
    held = prepared.scenario.limits.deadline
    if value is None:
        return None
    if name == "deadline":
        return Deadline(value, held.confidence if held else None)
    return value if name in ("budget", "max_power") else int(value)


def _candidate(one: Candidate, change: Change) -> Candidate:
    if not change.memory and not change.nics:
        return one
    gpu = one.gpu.model_copy(update={"usable_memory": one.gpu.usable_memory + change.memory})
    nics = one.nics.model_copy(update={"bandwidth": one.nics.bandwidth + change.nics})
    return replace(one, gpu=gpu, nics=nics)


def solved(prepared: Prepared, change: Change, effort: Effort) -> Choice:
    """Return the proven choice of the changed question. Ctrl-C ends it without one."""
    now = changed(prepared, change)
    return choose(now.question, Grid(now.facts), job_of(now), effort, each=False)


def searched(prepared: Prepared, change: Change, effort: Effort) -> Frontier:
    """Return the search of the changed question up to its first layout, which is enough to know that there is one."""
    now = changed(prepared, change)
    found = Search(now.question, now.space, job_of(now), effort.stop, first=True).run(grid_source(Grid(now.facts)))
    if found.interrupted:
        raise KeyboardInterrupt  # meant for the whole explanation, not for this search alone
    return found

"""Options of tasks that wait for each other, chosen so that what is done fits evenly into what all pools have in all.

When each task runs is left out but for what it waits for: such options are found in a moment, and no schedule costs
less.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from ortools.sat.python import cp_model

from planner.solver.engine import Ending, run
from planner.solver.fleet.listing import Modes
from planner.solver.fleet.schedule import Problem
from planner.solver.fleet.starting import ByStart
from planner.solver.settings import Settings

COUNT = 40
"""Choices that are looked for."""
FIRST = 0.25
"""Share of the time for the first, whose bound counts."""
WIDER = 0.15
"""By how much others may cost more at most, by a share drawn anew for each."""
WEIGHT = 100
"""Weights of options are drawn up to this."""


def evenly(problem: Problem, settings: Settings) -> tuple[int, list[Modes]]:
    """Return a bound of every schedule, and choices of all options, with which it may cost about so much and every task
    is done, drawn at random; none where none is found.
    """
    stated = ByStart(problem, by_period=False)
    for mine in stated.tasks:
        if mine.rejected is not None:
            stated.model.add(mine.rejected == 0)
    limit = settings.deterministic_limit or 0.0
    settings = replace(settings, heard=None, so_far=False)
    first = run(stated.model, stated.cost, replace(settings, deterministic_limit=limit * FIRST))
    if first.value is None:
        return 0, []
    random, made = Random(settings.seed), [_modes(stated, first)]
    brief = replace(settings, deterministic_limit=limit * (1 - FIRST) / COUNT)
    for _ in range(COUNT - 1):
        model = stated.model.clone()
        model.add(stated.cost <= first.value + round(first.value * WIDER * random.random()))
        taken = [choice.taken for mine in stated.tasks for choice in mine.choices.values()]
        found = run(model, cp_model.LinearExpr.weighted_sum(taken, [random.randint(0, WEIGHT) for _ in taken]), brief)
        if found.value is not None:
            made.append(_modes(stated, found))
    optional = any(task.worth is not None for task in problem.tasks)
    return 0 if optional else first.bound or 0, made


def _modes(stated: ByStart, ending: Ending) -> Modes:
    return [next(at for at, choice in mine.choices.items() if ending.read(choice.taken)) for mine in stated.tasks]

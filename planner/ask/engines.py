"""Another engine than the default one, where nobody named any and it serves for clearly less on the hardware shown."""

from __future__ import annotations

from collections.abc import Sequence

from planner.answer.assignment import Assignment
from planner.answer.schema import Plan
from planner.ask.unchosen import ENGINE
from planner.catalog.load import Catalog
from planner.errors import PlannerError
from planner.jobs.kinds import by_engines, question_of
from planner.jobs.settle import settle
from planner.jobs.solved import solve_lifted
from planner.scenario.default import Default
from planner.scenario.scenario import AnyScenario
from planner.solver.settings import Effort
from planner.units import show_usd


def by_cheaper_engine(plan: Plan, scenario: AnyScenario, defaults: Sequence[Default], catalog: Catalog, effort: Effort
                      ) -> list[str]:
    """Return in words which other engine costs least, where that is below the plan's by more than can be told apart.

    It is planned on the node types of the plan and of its alternatives alone, and replayed as the plan is. Of an engine
    that nobody measured with such a model on such GPUs nothing is said.
    """
    cost, asked = plan.objective.value, any(default.name == ENGINE for default in defaults)
    if cost is None or not plan.assignments or not asked or scenario.objective != "cost" or effort.is_over:
        return []
    nodes = tuple(dict.fromkeys(one.node for one in (*plan.assignments, *plan.alternatives)))
    least, most = dict[str, float](), cost / (1.0 + catalog.kernels.resolution)
    for _, name, _, changed in by_engines(scenario, catalog):
        if effort.is_over:
            break
        there = changed.model_copy(update={"hardware": changed.hardware.model_copy(update={"candidates": nodes})})
        try:
            solved = solve_lifted(question_of(there, catalog), effort, so_far=True, lifts=False)
            if (solved.objective.value or cost) >= most:
                continue
            found = settle(solved, None)
        except PlannerError:
            continue
        value = found.solved.objective.value
        if found.met and value is not None and value < most and _is_known(found.solved.assignments()):
            least[name] = value
    if not least:
        return []
    name = min(least, key=lambda one: least[one])
    was = next(default.value for default in defaults if default.name == ENGINE)
    return [f"engine {was} is the default, and {name} does the same for {show_usd(least[name])} "
            f"({least[name] / cost - 1:+.0%}) as far as its speed is known: --engine {name} plans that"]


def _is_known(assignments: Sequence[Assignment]) -> bool:
    """Say whether the speed of all of them is held against measured runs of the like."""
    return all(one.time is not None and one.time.evidence is not None and one.time.evidence.validated
               for one in assignments)

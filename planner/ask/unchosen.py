"""A "no" that hangs on a default which nobody chose is none: what is enough instead is planned, and said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.answer.relaxation import Relaxation
from planner.answer.schema import Plan
from planner.scenario.default import Default, Defaults
from planner.scenario.diffusion import DiffusionScenario
from planner.scenario.scenario import AnyScenario, GenerationScenario

KEYS = ("quantization", "frames", "audio", "resolution")
"""Defaults of a sample and of the format of weights, those that change least of what is made first."""


def enough_instead(plan: Plan, scenario: AnyScenario, defaults: Sequence[Default]
                   ) -> tuple[AnyScenario, Defaults, str] | None:
    """Return the question with the first default changed of which a change is enough, its defaults, and what is said.

    None where there is a plan, or where what binds was asked for.
    """
    work = scenario.workload if isinstance(scenario, DiffusionScenario | GenerationScenario) else None
    if plan.infeasible is None or work is None:
        return None
    open_ends = {default.name for default in defaults}
    enough: Mapping[str, Relaxation] = {each.limit: each for each in reversed(plan.infeasible.relaxations)}
    for key in KEYS:
        if key in open_ends and key in enough and (asks := enough[key].work):
            was, to = enough[key].from_, enough[key].to
            changed = work.model_copy(update=dict(asks))
            said = [default for default in defaults if default.name != key]
            said.append(Default(name=key, value=to, why=f"{was}, which nobody asked for, fits nowhere here"))
            return scenario.model_copy(update={"workload": changed}), said, (
                f"{key} {was}, the default, fits nowhere here: planned for {to}; --{key} {was} holds to it")
    return None

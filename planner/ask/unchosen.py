"""A "no" that hangs on a default which nobody chose is none, nor is a wait of years an answer: what is enough instead
is planned, and said.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from planner.answer.assignment import Assignment
from planner.answer.relaxation import Relaxation
from planner.answer.schema import Plan
from planner.catalog.load import Catalog
from planner.jobs.otherwise import by_engines, in_narrower_formats
from planner.jobs.solved import Solved
from planner.money.rent import candidates_with_offers
from planner.physics.shapes import active_parameters, parameters
from planner.scenario.default import Default, Defaults
from planner.scenario.limits import Deadline, Rent
from planner.scenario.scenario import AnyScenario, ServingScenario
from planner.units import DAY, plural, show_seconds, show_usd

KEYS = ("quantization", "frames", "audio", "resolution", "sequence_length")
"""Defaults of a sample and of the format of weights, those that change least of what is made first."""
FLAG_OF = {"sequence_length": "seq-len"}
"""Keys whose flag has another name."""
ASSUMED = "sample length"
"""The default by which samples of unknown lengths are as long as a sequence, which then cannot be shorter."""
LIGHTER = ("lora", "qlora")
"""Methods that take less than all weights, where tuning these was nobody's choice."""


LONG = 10**11
"""Tokens that the fewest GPUs with room for a dense model train for months, about as long for a large as for a small
one; of a mixture of experts, which has more to hold than it works with, as many more.
"""
ENGINE, FORMAT = "engine", "quantization"


def may_be_long(scenario: AnyScenario, defaults: Sequence[Default], catalog: Catalog) -> bool:
    """Say whether the cheapest run may well end after any that is usual, where no deadline is given.

    A guess, by which nothing but the order of searches goes.
    """
    tokens = getattr(scenario.workload, "tokens", None) or 0
    if tokens <= LONG or scenario.workload is None or not is_open_ended(scenario, defaults):
        return False
    model = catalog.model(scenario.workload.model)
    return tokens * active_parameters(model) > LONG * parameters(model)


def is_open_ended(scenario: AnyScenario, defaults: Sequence[Default]) -> bool:
    """Say whether the cheapest way is asked for with no deadline, and nothing that says how much hardware there is."""
    limits = scenario.limits
    named = any((limits.deadline, limits.gpus, limits.max_gpus, limits.max_nodes, limits.max_power,
                 scenario.sourcing.own, scenario.sourcing.buy))
    counted = any(default.name == "hardware" for default in defaults)
    return not named and not counted and scenario.objective == "cost"


def usual_deadline(made: Sequence[Assignment], scenario: AnyScenario, defaults: Sequence[Default], catalog: Catalog
                   ) -> Deadline | None:
    """Return the deadline that runs usually have, for the cheapest run that ends after it.

    None where a deadline is given, or where what is named says how much hardware there is.
    """
    usual = catalog.recipes.whole
    if not is_open_ended(scenario, defaults) or len(made) != 1 or made[0].cost_usd is None:
        return None
    return Deadline(usual.longest) if (made[0].duration_days or 0.0) * DAY > usual.longest else None


def by_deadline(scenario: AnyScenario, deadline: Deadline) -> AnyScenario:
    """Return the question with a deadline."""
    return scenario.model_copy(update={"limits": scenario.limits.model_copy(update={"deadline": deadline})})


def no_deadline(found: Assignment, deadline: Deadline, catalog: Catalog) -> str:
    """Return in words that a deadline is taken which nobody gave, and what costs least without."""
    days = found.duration_days or 0.0
    return (f"no deadline is given: planned for {deadline}, as long as {catalog.recipes.whole.example}; the least "
            f"money without one is {show_usd(found.cost_usd or 0.0)}, {found.gpus:,} x {found.gpu} for "
            f"{show_seconds(days * DAY)}: --deadline {math.ceil(days)}d asks for that")


def soon_enough(solved: Solved, scenario: AnyScenario, defaults: Sequence[Default], catalog: Catalog
                ) -> tuple[AnyScenario, Defaults, str] | None:
    """Return the question with the deadline that runs usually have, its defaults, and what is said.

    None where it has one, or ends within it, or was stopped: the least money may be that of one GPU for years, which
    nobody would choose.
    """
    made = [] if solved.fleet.demands or solved.status != "optimal" else solved.assignments()
    deadline = usual_deadline(made, scenario, defaults, catalog)
    if deadline is None:
        return None
    said = [*defaults, Default(name="deadline", value=str(deadline),
                               why=f"as long as {catalog.recipes.whole.example}")]
    return by_deadline(scenario, deadline), said, no_deadline(made[0], deadline, catalog)


def by_lighter_methods(plan: Plan, scenario: AnyScenario, defaults: Sequence[Default]
                       ) -> Iterator[tuple[AnyScenario, Defaults, str]]:
    """Yield the question of tuning all weights, which nobody asked for, with adapters, its defaults, and what is said.
    """
    work = scenario.workload
    tunes = any(default.name == "method" and default.value == "full" for default in defaults)
    if plan.infeasible is None or work is None or not tunes:
        return
    for method in LIGHTER:
        said = [default for default in defaults if default.name != "method"]
        said.append(Default(name="method", value=method, why="all weights, which nobody asked for, fit nowhere here"))
        yield scenario.model_copy(update={"workload": work.model_copy(update={"method": method})}), said, (
            f"method full, the default, has no plan here: planned for {method}; --method full holds to it")


def by_another_engine(plan: Plan, scenario: AnyScenario, defaults: Sequence[Default], catalog: Catalog
                      ) -> Iterator[tuple[AnyScenario, Defaults, str]]:
    """Yield the question of a service by each other engine, its defaults, and what is said.

    None where there is a plan, or where the engine, or its release, was asked for.
    """
    if plan.infeasible is None or not any(default.name == ENGINE for default in defaults):
        return
    why = plan.infeasible.because[0] if plan.infeasible.because else "it has no plan"
    for was, name, release, changed in by_engines(scenario, catalog):
        said = [default for default in defaults if default.name not in (ENGINE, "engine_version")]
        said += [Default(name=ENGINE, value=name, why=f"{was}, which nobody asked for, has no plan here"),
                 *([release] if release else [])]
        yield changed, said, (f"engine {was}, the default, has no plan ({why}): planned for {name}; --engine {was} "
                              "holds to it")


def in_fewer_bits(scenario: AnyScenario, defaults: Sequence[Default]
                  ) -> Iterator[tuple[ServingScenario, Defaults, str]]:
    """Yield the question of a service with its weights in fewer bits, its defaults, and what is said.

    None where the format was asked for.
    """
    was = next((default.value for default in defaults if default.name == FORMAT), None)
    for name, changed in in_narrower_formats(scenario) if was is not None else ():
        said = [default for default in defaults if default.name != FORMAT]
        said.append(Default(name=FORMAT, value=name, why=f"{was}, which nobody asked for, has no plan here"))
        yield changed, said, (f"quantization {was}, the default, has no plan here: planned for {name}; --quantization "
                              f"{was} holds to it")


def as_counted(plan: Plan, scenario: AnyScenario, catalog: Catalog, defaults: Sequence[Default]
               ) -> Iterator[tuple[AnyScenario, Defaults, str]]:
    """Yield the question of so many GPUs on the machines of its hardware that nobody offers, as the user's own, where
    none that are offered make up that number.
    """
    sourcing, count = scenario.sourcing, scenario.limits.gpus
    if plan.infeasible is None or count is None or sourcing.rent != Rent() or sourcing.own or sourcing.buy:
        return
    named = scenario.hardware.candidates
    if dropped := candidates_with_offers(sorted(named), sourcing, catalog)[2]:
        hardware = scenario.hardware.model_copy(update={"candidates": tuple(dropped)})
        yield scenario.model_copy(update={"hardware": hardware}), list(defaults), (
            f"what is offered of {', '.join(dict.fromkeys(catalog.node(name).gpu for name in dropped))} has no plan on "
            f"{plural(count, 'GPU')}")


def enough_instead(plan: Plan, scenario: AnyScenario, defaults: Sequence[Default]
                   ) -> tuple[AnyScenario, Defaults, str] | None:
    """Return the question with the first default changed of which a change is enough, its defaults, and what is said.

    None where there is a plan, or where what binds was asked for.
    """
    work = scenario.workload
    if plan.infeasible is None or work is None:
        return None
    open_ends = {default.name for default in defaults}
    enough: Mapping[str, Relaxation] = {each.limit: each for each in reversed(plan.infeasible.relaxations)}
    for key in KEYS:
        if key == "sequence_length" and ASSUMED in open_ends:
            continue
        if key in open_ends and key in enough and (asks := enough[key].work):
            was, to = enough[key].from_, enough[key].to
            changed = work.model_copy(update=dict(asks))
            said = [default for default in defaults if default.name != key]
            said.append(Default(name=key, value=to, why=f"{was}, which nobody asked for, has no plan here"))
            return scenario.model_copy(update={"workload": changed}), said, (
                f"{key} {was}, the default, has no plan here: planned for {to}; --{FLAG_OF.get(key, key)} "
                f"{was.replace(',', '')} holds to it")
    return None

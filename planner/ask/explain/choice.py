"""Why not another choice: the best plan with it, solved like the plan itself, or what rules it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from pydantic import TypeAdapter, ValidationError

from planner.answer.assignment import Assignment
from planner.answer.explanation import WhyNot
from planner.answer.objective import show_amount
from planner.ask.explain.cause import infeasible_of
from planner.catalog.hardware import Precision
from planner.catalog.load import Catalog
from planner.catalog.price import Term
from planner.catalog.stack import Method
from planner.errors import InputError, UnknownName
from planner.jobs.kinds import question_of
from planner.jobs.settle import wholly_settled
from planner.jobs.solved import ResolvedScenario, Solved, solve
from planner.scenario.hardware_names import candidate_nodes
from planner.scenario.load import only_one
from planner.scenario.portfolio import AnyQuestion
from planner.scenario.scenario import AnyScenario
from planner.scenario.serving import Quantization

Ask = Callable[[Mapping[str, str]], AnyQuestion]
"""The question with some scenario values replaced, by dotted path."""
PLACES = {"gpu": "hardware.candidates", "node": "hardware.candidates", "provider": "sourcing.rent.providers",
          "region": "sourcing.rent.regions", "terms": "sourcing.rent.terms", "gpus": "limits.gpus"}
"""Choices of every kind of work that are scenario values, and the path of each."""
HARDWARE = frozenset({"on", "candidates", "hardware"})
"""What else the choice of a GPU or node is called, as flags call it."""
RENTED = frozenset({"provider", "region", "terms"})


def parts_of(text: str, question: ResolvedScenario) -> dict[str, str]:
    """Return the parts of a choice, each a layout axis or a scenario value. Raises InputError."""
    known = [*dict.fromkeys(axis for job in question.jobs for axis in job.axes), *values_of(question)]
    parts: dict[str, str] = {}
    for part in text.split(","):
        key, given, value = (piece.strip() for piece in part.partition("="))
        if not given:
            key, value = _named(key, question.catalog, known), key
        key = "gpu" if key in HARDWARE else key
        if not key or not value:
            raise InputError(f"--why-not {part.strip() or text!r}: expected choices such as tp=4,pp=2 or gpu=a100, or "
                             "the name of hardware, of software, of a format, of a method or of a provider")
        if key not in known:
            raise UnknownName("choice in --why-not", key, known)
        if key in parts:
            raise InputError(f"--why-not {text}: {key} is given twice")
        parts[key] = value
    own = sorted(key for key in parts if key in values_of(question) and key not in PLACES)
    if own and len(question.jobs) > 1:
        raise InputError(f"--why-not: {' and '.join(own)} applies to one workload, and the scenario has several")
    return parts


def _named(name: str, catalog: Catalog, known: Sequence[str]) -> str:
    """Return what a name alone is a choice of, "" where it is none: of hardware, software, a format or a provider."""
    finders: dict[str, Callable[[str], object]] = {
        "gpu": lambda candidate: candidate_nodes([candidate], catalog), "stack": catalog.stack,
        "engine": catalog.engine,
        "provider": {prices.name: prices for prices in catalog.price_lists}.__getitem__,
        "terms": TypeAdapter[Term](Term).validate_python,
        "quantization": TypeAdapter[Quantization](Quantization).validate_python,
        "precision": TypeAdapter[Precision](Precision).validate_python,
        "method": TypeAdapter[Method](Method).validate_python}
    for key, find in finders.items():
        if key in known:
            with suppress(UnknownName, KeyError, ValidationError):
                find(name)
                return key
    return ""


def values_of(question: ResolvedScenario) -> dict[str, str]:
    """Return the choices that are scenario values, and the path of each."""
    return PLACES | {key: path for job in question.jobs for key, path in job.choices.items()}


def why_not(ask: Ask, catalog: Catalog, asked: Mapping[str, str], plan: Solved) -> WhyNot:
    """Return what becomes of one choice. Raises InputError."""
    values = values_of(plan.question)
    held = {key: value for key, value in asked.items() if key not in values}
    scenario = as_rented(only_one(ask({values[key]: value for key, value in asked.items() if key in values})), asked)
    try:
        question = question_of(scenario, catalog)
    except InputError as error:
        return WhyNot(asked=dict(asked), verdict="not offered", because=str(error))
    taken, mine = (changed.terms.market for changed in (question, plan.question))
    if any(offer.assumed for offer in taken.offers) and not any(offer.assumed for offer in mine.offers):
        names = ", ".join(sorted({candidate.node.name for candidate in taken.candidates}))
        return WhyNot(asked=dict(asked), verdict="not offered", because=f"no candidate has a usable offer: {names}")
    other = wholly_settled(solve(question, plan.effort, held=held))
    return _ruled_out(asked, other) if other.solution.value is None else _weighed(asked, other, plan)


def as_rented(scenario: AnyScenario, asked: Mapping[str, str]) -> AnyScenario:
    """Return a question as who names an offer asks it: about renting alone."""
    if not RENTED & asked.keys():
        return scenario
    rented = scenario.sourcing.model_copy(update={"own": {}, "buy": None})
    return scenario.model_copy(update={"sourcing": rented})


def _ruled_out(asked: Mapping[str, str], other: Solved) -> WhyNot:
    """Return the verdict on a choice that no plan has, with the reasons and the nearest miss."""
    infeasible = infeasible_of(other)
    if infeasible is None:
        return WhyNot(asked=dict(asked), verdict="undecided", because="time ran out before a plan with it was found")
    nearest = f". Nearest miss: {infeasible.nearest}" if infeasible.nearest else ""
    return WhyNot(asked=dict(asked), verdict="infeasible", because="; ".join(infeasible.because) + nearest,
                  infeasible=infeasible)


def _weighed(asked: Mapping[str, str], other: Solved, plan: Solved) -> WhyNot:
    """Compare the best plan with the choice to the plan."""
    goal, value, best = plan.question.terms.objective, other.objective.value, other.assignments()
    assert value is not None
    shown, whole = show_amount(goal, value), {"asked": dict(asked), "value": value, "assignment": best[0]}
    if plan.objective.value is None:
        return WhyNot(verdict="better", because=f"with it there is a plan: {shown}", **whole)
    taken = plan.assignments()
    excess = value / plan.objective.value - 1 if plan.objective.value else 0.0
    if value == plan.objective.value and [a.chosen for a in best] == [a.chosen for a in taken]:
        return WhyNot(verdict="is the plan", excess=0.0, because="the plan does just that", **whole)
    if excess < 0:
        searched, stack = plan.columns[0].account.domains.get("stack", ()), best[0].stack
        but = "the question excludes it" if not searched or stack in searched else (
            f"by {stack}, which is searched only where the usual stacks have no plan: --stack {stack} asks for it")
        return WhyNot(verdict="better", excess=excess, because=f"it would be better, {shown}, but {but}", **whole)
    tied = goal != "gpus" and excess < plan.question.catalog.kernels.resolution
    return WhyNot(verdict="tied" if tied else "worse", excess=excess,
                  because=f"the best plan with it comes to {shown}: {_why(other, best, taken, excess)}", **whole)


def _why(other: Solved, best: Sequence[Assignment], taken: Sequence[Assignment], excess: float) -> str:
    """Return what makes a choice worse than the plan."""
    if other.alone is not None and other.solution.run is not None:
        return other.alone.beside(other.columns[0], other.solution.run, taken[0]).why
    return f"{excess:+.1%}, of {' and '.join(f'{a.gpus:,} x {a.gpu}' for a in best)}"

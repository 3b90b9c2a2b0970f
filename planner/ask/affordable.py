"""What a budget pays for, or what is done in a time on the hardware that there is, where the amount of work is left
open: the most tokens of a model, or the largest model.

Each try is a plan at its least cost, or the fastest, and the next is where a power law through it meets the bound: a
few are enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from planner.catalog.load import Catalog
from planner.catalog.sized import LEAST, MOST
from planner.errors import PlannerError
from planner.jobs.kinds import question_of
from planner.jobs.solved import solve_lifted
from planner.scenario.default import Default
from planner.scenario.load import load_any, only_one
from planner.scenario.scenario import AnyScenario
from planner.scenario.serving import LOADS
from planner.scenario.words import LARGEST, named
from planner.units import DAY, show_count
from planner.units.reading import MAX_COUNT

BUDGET, DEADLINE, MODEL, TOKENS, METHOD, GOAL = (
    "limits.budget", "limits.deadline", "workload.model", "workload.tokens", "workload.method", "objective")
TRIES = 8
NEAR = 0.97
"""Share of the bound from which no more is tried."""
EPOCHS = "workload.epochs"
START = {TOKENS: 1e9, MODEL: 1e9}
"""What is tried first."""
_AMOUNTS = frozenset(f"workload.{name}" for name in (*LOADS, "samples", "dataset", "steps", "trace", "images"))
_TRAINED = (None, "pretrain", "full", "lora", "qlora")


@dataclass(frozen=True, slots=True)
class Afforded:
    """Values of a question that a bound left open, and what to say of them; nothing of other questions."""

    values: Mapping[str, object] = field(default_factory=dict)
    defaults: tuple[Default, ...] = ()
    text: str = ""


def left_open(values: Mapping[str, object], catalog: Catalog) -> str:
    """Return which value by path a budget, or a deadline, is to decide, that of the tokens or of the model; empty of
    other questions.

    values: all that the question says, by path.
    """
    model = values.get(MODEL)
    known = isinstance(model, str) and catalog.known_diffusion(model) is None and "," not in model
    if (values.get(BUDGET), values.get(DEADLINE)) == (None, None) or not _AMOUNTS.isdisjoint(values) or (
            named(METHOD, values.get(METHOD)) not in _TRAINED) or not (known or model is None):
        return ""
    if model is None:
        return MODEL
    return TOKENS if values.get(TOKENS) is None and GOAL not in values else ""


def afforded(values: Mapping[str, object], catalog: Catalog) -> Afforded:
    """Return the most that the budget pays for, or that is done by the deadline on the hardware that there is, where
    that is left open. Raises InputError.
    """
    left = left_open(values, catalog)
    if not left:
        return Afforded()
    paid = values.get(BUDGET) is not None
    asked = {path: value for path, value in values.items() if path != GOAL or str(value).lower() not in LARGEST}
    if left == MODEL:
        asked.setdefault(TOKENS, "chinchilla")
    whole = only_one(load_any(None, {**asked, left: _written(left, START[left])}, catalog)[0])
    if not paid and not _is_counted(whole):
        return Afforded()
    ends: dict[str, object] = {}
    if paid and values.get(DEADLINE) is None and not _is_counted(whole):
        ends = {DEADLINE: f"{catalog.recipes.whole.longest / DAY:g} d"}  # one cheap GPU for years is no answer
    asked |= ends
    bound, within = _bound(whole, paid=paid)
    power = 2.0 if left == MODEL and asked.get(TOKENS) == "chinchilla" else 1.0
    most = _most(lambda amount: _cost({**asked, left: _written(left, amount)}, catalog, paid=paid), bound, left, power)
    found = {left: _written(left, most), **{path: asked[path] for path in (TOKENS,) if path != left}, **ends}
    goal = {GOAL: "cost"} if GOAL in values and GOAL not in asked else {}
    model, tokens = str(found.get(MODEL, asked.get(MODEL))), found[TOKENS]
    amount = show_count(float(most)) if left == TOKENS else str(tokens)
    what = f"{amount} tokens of {model}" if left == TOKENS else f"a model of {model.upper()} parameters on " + (
        "its compute-optimal tokens (chinchilla)" if amount == "chinchilla" else f"{amount} tokens")
    text = f"About the most that {within}: {what}{_each_pass(asked)}"
    value = amount if left == TOKENS else model
    said = [Default(name=left.removeprefix("workload."), value=value, why=text)]
    said += [Default(name="deadline", value=str(days), why=f"as long as {catalog.recipes.whole.example}")
             for days in ends.values()]
    return Afforded({**found, **goal}, tuple(said), text)


def _each_pass(asked: Mapping[str, object]) -> str:
    """Return in words how many passes there are over the data, whose tokens are those of each; nothing of one."""
    passes = str(asked.get(EPOCHS) or 1)
    return "" if passes in ("1", "1.0") else f" in each of {passes} epochs"


def _is_counted(asked: AnyScenario) -> bool:
    """Say whether a question says how much hardware there is, so that a time has a most that is done in it."""
    limits = asked.limits
    return (limits.gpus, limits.max_gpus, limits.max_nodes) != (None, None, None) or bool(asked.sourcing.own)


def _bound(asked: AnyScenario, *, paid: bool) -> tuple[float, str]:
    """Return the budget in USD or the deadline in seconds, and how it is said."""
    if paid:
        budget = asked.limits.budget
        assert isinstance(budget, float | int)
        return float(budget), f"{budget:,.0f} USD pays for"
    deadline = asked.limits.deadline
    assert deadline is not None
    return deadline.seconds, f"is done within {deadline}"


def _written(left: str, amount: float) -> str:
    return f"{amount:.0f}" if left == TOKENS else f"{amount / 1e9:g}b"


def _cost(values: Mapping[str, object], catalog: Catalog, *, paid: bool) -> float:
    """Return the least cost in USD of a question without its budget, or the least seconds without its deadline;
    infinite where there is no plan.
    """
    bound, goal = (BUDGET, "cost") if paid else (DEADLINE, "time")
    asked = {path: value for path, value in values.items() if path != bound} | {GOAL: goal}
    try:
        scenario, _ = load_any(None, asked, catalog)
        cost = solve_lifted(question_of(scenario, catalog), depth="best").objective.value
    except PlannerError:
        return math.inf
    return math.inf if cost is None else cost if paid else cost * DAY


def _most(cost: Callable[[float], float], budget: float, left: str, power: float) -> float:
    """Return about the largest amount whose cost is within the budget; the least tried where none is."""
    low, high, amount, tried = 0.0, math.inf, START[left], list[float]()
    for _ in range(TRIES):
        amount = _rounded(amount, left)
        tried.append(amount)
        paid = cost(amount)
        low, high = (max(low, amount), high) if paid <= budget else (low, min(high, amount))
        if NEAR * budget <= paid <= budget or high <= low / NEAR:
            break
        amount = amount * (0.99 * budget / paid) ** (1.0 / power) if 0.0 < paid < math.inf else amount / 4.0
        if not low < amount < high:
            amount = math.sqrt(low * high) if low and high < math.inf else amount
        if _rounded(amount, left) in tried:
            break
    return low or min(tried)


def _rounded(amount: float, left: str) -> float:
    """Return an amount with three digits, a size with two, rounded down."""
    least, most, digits = (1e6, float(MAX_COUNT), 3) if left == TOKENS else (LEAST, MOST, 2)
    amount = min(most, max(least, amount))
    unit = 10.0 ** (math.floor(math.log10(amount)) - digits + 1)
    return math.floor(amount / unit + 1e-9) * unit

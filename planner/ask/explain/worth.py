"""What each limit costs: the same question with one unit more of it, and without it, each solved to proof."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.answer.explanation import Worth
from planner.ask.explain.wording import advised, asked_limit, show_limit
from planner.jobs.job import Change, Knob
from planner.jobs.settle import wholly_settled
from planner.jobs.solved import Solved, solve
from planner.solver.progress import part
from planner.units import DAY, plural

HUNDREDTH = 0.01


def worths(plan: Solved) -> list[Worth]:
    """Return what each limit and resource is worth to a plan, those that bind first."""
    knobs, worth = list(_knobs(plan)), list[Worth]()
    for at, knob in enumerate(knobs):
        with part(f"without the {knob.limit.replace('_', ' ')}", at, len(knobs)):
            worth.append(_worth(plan, knob))
    return sorted(worth, key=lambda each: -(each.without or 0.0))


def _worth(plan: Solved, knob: Knob) -> Worth:
    def saves(change: Change) -> float | None:
        if plan.effort.is_over:
            return None
        other = wholly_settled(solve(plan.question.changed(_cheaper(plan, change)), plan.effort, "best")).solution
        if other.status == "infeasible":
            return 0.0  # with more of anything the plan is still there: nothing is cheaper
        if other.value is None or other.status != "optimal" or plan.solution.value is None:
            return None
        return plan.fleet.amount(max(plan.solution.value - other.value, 0))

    without = saves(knob.without)
    # what is worth nothing altogether is worth nothing by the unit
    per_unit = 0.0 if without == 0 else saves(knob.more)
    pays = _pays_from(plan) if knob.limit == "deadline" and without else None
    return Worth(limit=knob.limit, given=knob.given, used=knob.used, binds=bool(without),
                 unit=knob.unit, saves=per_unit,
                 pays_from=pays, without=without)


def _cheaper(plan: Solved, change: Change) -> Change:
    """Return a change with a budget of what the plan costs, where one job's cost is minimized: what costs more is of no
    interest, and need not be looked at.
    """
    terms, value = plan.question.terms, plan.solution.value
    if plan.alone is None or value is None or terms.objective != "cost" or terms.limits.hourly:
        return change
    return replace(change, limits={**change.limits, "budget": plan.fleet.amount(value)})


def _pays_from(plan: Solved) -> str | None:
    """Return the least deadline under which a cheaper plan exists: the fastest plan of all that cost less."""
    if plan.question.terms.objective != "cost" or plan.effort.is_over:
        return None
    budget = plan.fleet.amount((plan.solution.value or 0) - 1)
    solved = solve(plan.question.changed(Change(limits={"deadline": None, "budget": budget}, objective="time")),
                  plan.effort, "best")
    if solved.solution.value is None:
        return None
    least = solved.fleet.used(solved.solution)["deadline"]
    advice = advised(plan.question.terms.limits, "deadline", least)
    return None if advice is None else advice[0]


def _knobs(plan: Solved) -> Iterator[Knob]:
    """Yield what may cost something: limits that are set, what is each job's own, owned nodes."""
    question = plan.question
    yield from _limits(plan)
    for at, (job, columns) in enumerate(zip(question.jobs, plan.columns, strict=True)):
        whose = "" if len(question.jobs) == 1 else f"{job.name} "
        for knob in job.knobs(job.assignments(columns, plan.picks_of(at))):
            yield Knob(whose + knob.limit, knob.given, knob.used, knob.unit, knob.more, knob.without)
    owned = [offer for offer in question.terms.market.offers if offer.how == "owned"]
    if owned:
        nodes = plan.fleet.nodes_on(plan.solution, owned)
        yield Knob("own", " and ".join(plural(offer.nodes or 0, "node") for offer in owned), plural(nodes, "node"),
                   "1 node of each kind", Change(own=1), Change(own=None))


def _limits(plan: Solved) -> Iterator[Knob]:
    limits, used = plan.question.terms.limits, plan.fleet.used(plan.solution)
    hourly, node = limits.hourly, plan.fleet.gpus_of_a_node(plan.solution)
    if limits.deadline is not None:
        yield Knob("deadline", str(limits.deadline), show_limit("deadline", used["deadline"]), "1 d",
                   Change(limits={"deadline": limits.deadline.seconds + DAY}), Change(limits={"deadline": None}))
    for name, step in (("budget", (limits.budget or 0) * HUNDREDTH), ("max_power", 1000.0), ("max_nodes", 1),
                       ("max_gpus", node), ("gpus", node)):
        value = getattr(limits, name)
        if value is not None:
            taken, unit = (show_limit(name, amount, hourly=hourly) for amount in (used[name], step))
            yield Knob(name, asked_limit(limits, name), taken, unit, Change(limits={name: value + step}),
                       Change(limits={name: None}))

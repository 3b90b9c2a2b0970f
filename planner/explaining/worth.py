"""What each limit costs: the same question with one unit more of it, and without it, each solved to proof."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from planner.answer.assignment import Assignment
from planner.answer.explanation import Worth
from planner.answer.objective import amount
from planner.explaining.relaxed import ENDLESS, Change, solved
from planner.explaining.wording import asked_limit, round_up, show_limit
from planner.prepare import Prepared
from planner.render.figures import plural
from planner.scenario.limits import Limits
from planner.solver.settings import UNLIMITED, Effort
from planner.units import DAY, show_bytes, show_usd, show_within

GB, GBIT = 1e9, 1e9 / 8
HUNDREDTH = 0.01


@dataclass(frozen=True, slots=True)
class _Item:
    """One limit: its value, what the plan uses, and the changes that give one unit more, and all."""

    limit: str
    given: str
    used: str
    unit: str
    more: Change
    without: Change


def worths(prepared: Prepared, value: int, assignment: Assignment, effort: Effort = UNLIMITED) -> list[Worth]:
    """Return what each limit and resource is worth to a plan of that objective value, those that bind first."""
    found = [_worth(prepared, value, item, effort) for item in _items(prepared, assignment)]
    return sorted(found, key=lambda one: -(one.without or 0.0))


def _worth(prepared: Prepared, value: int, item: _Item, effort: Effort) -> Worth:
    def saves(change: Change) -> float | None:
        if effort.is_over:
            return None
        choice = solved(prepared, change, effort)
        if choice.value is None or choice.status != "optimal":
            return None
        return amount(prepared.scenario.objective, value - choice.value)

    without = saves(item.without)
    # what is worth nothing altogether is worth nothing by the unit
    one = 0.0 if without == 0 else saves(item.more)
    pays = _pays_from(prepared, value, effort) if item.limit == "deadline" and without else None
    return Worth(limit=item.limit, given=item.given, used=item.used, binds=bool(without), unit=item.unit,
                 saves=one, pays_from=pays, without=without)


def _pays_from(prepared: Prepared, value: int, effort: Effort) -> str | None:
    """Return the least deadline under which a cheaper plan exists: the fastest plan of all that cost less."""
    if prepared.scenario.objective != "cost" or effort.is_over:
        return None
    cheaper = Change(limits={"deadline": None, "budget": (value - 1) / 100}, objective="time")
    choice = solved(prepared, cheaper, effort)
    return None if choice.best is None else show_limit("deadline", round_up(choice.best.column.upper_us * 1e-6))


def _items(prepared: Prepared, a: Assignment) -> Iterator[_Item]:
    limits, question = prepared.scenario.limits, prepared.question
    load = next(one.node.power.load for one in question.candidates if one.node.name == a.node)
    yield from _limits(limits, a, load * (a.nodes + a.spare_nodes))
    memory = sorted({one.gpu.usable_memory for one in question.candidates})
    span = " to ".join(show_bytes(size) for size in dict.fromkeys((memory[0], memory[-1])))
    yield _Item("gpu_memory", f"{span} usable",
                f"{show_bytes(a.memory.peak_bytes)} of {show_bytes(a.memory.usable_bytes)}", "1 GB per GPU",
                Change(memory=GB), Change(memory=ENDLESS))
    rates = sorted({one.nics.bandwidth for one in question.candidates})
    spent = a.time.components
    waits = (spent.data_parallel + spent.pipeline_p2p + spent.context_parallel + spent.expert_parallel)
    yield _Item("nic_bandwidth", " to ".join(f"{rate / GBIT:g}" for rate in dict.fromkeys((rates[0], rates[-1])))
                + " Gbit/s per adapter",
                f"{waits / a.time.step_seconds:.1%} of the step waits",
                "10 Gbit/s per adapter", Change(nics=10 * GBIT), Change(nics=ENDLESS))
    for offer in prepared.offers:
        if offer.how == "owned":
            yield _Item("own", plural(offer.nodes or 0, "node"), plural(a.nodes + a.spare_nodes, "node"),
                        "1 node of each kind", Change(own=1), Change(own=None))
            return


def _limits(limits: Limits, a: Assignment, watts: float) -> Iterator[_Item]:
    """Yield the limits that are set; `watts` is the plan's draw under load."""
    nodes = a.nodes + a.spare_nodes
    used = {"deadline": show_within((a.duration_days or 0.0) * DAY), "budget": show_usd(a.cost_usd or 0.0),
            "max_power": show_limit("max_power", watts), "max_nodes": f"{nodes:,}", "max_gpus": f"{a.gpus:,}",
            "gpus": f"{a.gpus:,}"}
    if limits.deadline:
        yield _Item("deadline", str(limits.deadline), used["deadline"], "1 d",
                    _more("deadline", limits.deadline.seconds + DAY), _more("deadline", None))
    for name, step in (("budget", (limits.budget or 0) * HUNDREDTH), ("max_power", 1000.0), ("max_nodes", 1),
                       ("max_gpus", a.gpus // a.nodes), ("gpus", a.gpus // a.nodes)):
        value = getattr(limits, name)
        if value is not None:
            yield _Item(name, asked_limit(limits, name), used[name], show_limit(name, step),
                        _more(name, value + step), _more(name, None))


def _more(name: str, value: float | None) -> Change:
    return Change(limits={name: value})

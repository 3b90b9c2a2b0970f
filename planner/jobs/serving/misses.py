"""Why no replica meets a service: requests that fit nowhere, or latency targets that no layout meets nearly idle."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from planner.answer.relaxation import Relaxation
from planner.answer.schema import Infeasible
from planner.catalog.load import Catalog
from planner.jobs.columns import Columns
from planner.jobs.job import Change
from planner.jobs.serving.options import Account, options
from planner.jobs.serving.rates import LeastLatency
from planner.jobs.serving.service import Service
from planner.layouts.candidate import Candidate
from planner.scenario.demand import Target
from planner.units import DAY, SECONDS, at_least, parse, show_bytes, show_seconds

MOST_REASONS = 3
"""Of an engine that runs on no candidate."""
ROOM = 1.05
"""Over the least latency seen, so that a rate above zero meets it."""


def answerable(columns: Columns, at_hand: Collection[int]) -> bool:
    """Say whether some layouts on these candidates answer every class of a service."""
    met = {demand for demand, column in columns.replicas if column.candidate in at_hand}
    count = max(demand.classes[1] for demand in columns.demands) + 1
    reached = {0}
    for _ in range(count):
        reached |= {demand.classes[1] + 1 for at, demand in enumerate(columns.demands)
                    if at in met and demand.classes[0] in reached}
    return count in reached


def nothing_meets(name: str, catalog: Catalog, service: Service, candidates: Sequence[Candidate],
                  possible: Callable[[Change], bool]) -> Infeasible:
    """Return the cause where no layout at all on the candidates does; possible: whether a changed question has a plan.
    """
    account = Account()
    options(catalog, service, candidates, account)
    if account.lacking and not account.nearest and not account.missing:
        return Infeasible(because=tuple(sorted(account.lacking)[:MOST_REASONS]))
    if not account.nearest:
        missing, where = min(account.missing, default=(0.0, "the candidates"))
        lacks = f"{where} lacks {show_bytes(missing)} per GPU" if account.missing else None
        return Infeasible(because=(f"{name} with a request of {service.length:,} tokens fits on no candidate",),
                          nearest=lacks)
    nearest, where = min(account.nearest, key=lambda pair: _excess(service, pair[0]))
    # the targets that no hardware meets even alone; where each is met somewhere, it is all of them together
    missed = [pair for pair in service.asked.levels
              if min(getattr(least, pair[0]) for least, _ in account.nearest) > pair[1].seconds]
    asked = [f"{which} {level}" for which, level in missed or service.asked.levels]
    return Infeasible(
        because=(f"no layout of the candidates meets {' and '.join(asked)} for {name}, even nearly idle",),
        nearest=f"{where}: {_latencies(service, nearest)} nearly idle",
        relaxations=tuple(_eased_levels(name, service, account, possible)))


def _latencies(service: Service, least: LeastLatency) -> str:
    shown = [("TTFT", least.ttft), ("TPOT", least.tpot), *([("whole answer", least.e2e)] if service.asked.e2e else [])]
    return ", ".join(f"{name} {show_seconds(seconds)}" for name, seconds in shown)


def _excess(service: Service, least: LeastLatency) -> float:
    limits = (least.ttft, service.level.ttft), (least.tpot, service.level.tpot), (least.e2e, service.level.e2e)
    return max(reached / limit[0] for reached, limit in limits if limit is not None)


def _eased_levels(name: str, service: Service, account: Account, possible: Callable[[Change], bool]
                  ) -> Iterator[Relaxation]:
    """Yield the target with which alone, raised so far, there is a plan; where with none, both together."""
    alone, asked = False, dict(service.asked.levels)
    for which, level in asked.items():
        eased = _eased(level, min(getattr(nearest, which) for nearest, _ in account.nearest) * ROOM)
        if eased is not None and possible(Change(work={name: {which: eased}})):
            alone = True
            yield Relaxation(limit=which, from_=str(level), to=str(eased))
    # the least of each may be of different hardware, so that the nearest of one candidate is taken
    nearest, _ = min(account.nearest, key=lambda pair: _excess(service, pair[0]))
    both = {which: _eased(level, getattr(nearest, which) * ROOM) for which, level in asked.items()}
    known = {which: eased for which, eased in both.items() if eased is not None}
    if not alone and len(asked) == len(known) > 1 and possible(Change(work={name: known})):
        yield Relaxation(limit=" and ".join(asked), from_=", ".join(map(str, asked.values())),
                         to=", ".join(map(str, known.values())))


def _eased(level: Target, seconds: float) -> Target | None:
    """Return a target raised to at least so many seconds, in words of three digits; none beyond what may be asked."""
    if seconds <= level.seconds:
        return level
    raised = parse(at_least(seconds, SECONDS, "s", "ms", "us"), SECONDS, "latency", "2 s")
    return level._replace(seconds=raised) if raised <= DAY else None

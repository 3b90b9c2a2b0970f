"""Why no fleet holds a service: what does not fit, what level no layout meets, or which limit is too low."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from planner.answer.schema import Infeasible, Relaxation
from planner.explaining.wording import MOST_STEPS, advised, asked_limit
from planner.layouts.candidate import Candidate
from planner.scenario.demand import Level
from planner.scenario.limits import ServingLimits
from planner.serving.fleet import Fleet
from planner.serving.options import Account, options
from planner.serving.prepared import Prepared, prepare
from planner.serving.service import Service
from planner.solver.fleet.cover import cover
from planner.solver.fleet.covering import Cover, Covered
from planner.units import DAY, SECONDS, at_least, parse, show_bytes, show_seconds

STEPS = 12
"""Halvings in the search for the rate that the limits admit."""
ROOM = 1.05
"""Over the least latency seen, so that a rate above zero holds it."""


def infeasible_of(prepared: Prepared, fleet: Fleet, found: Covered) -> Infeasible:
    """Return why there is no plan, the nearest miss, and single changes that are enough."""
    for service in prepared.services:
        if service.prompts is None and not _answerable(prepared, fleet, service.of):
            return _nothing_holds(prepared, service, {offer.candidate for offer in fleet.offers})
    return _limits_bind(prepared, fleet)


def _answerable(prepared: Prepared, fleet: Fleet, of: int) -> bool:
    """Say whether some layouts answer every class of a service."""
    mine = [(service.classes, any(owner == at for (owner, _), _ in fleet.pairs))
            for at, service in enumerate(prepared.services) if service.of == of]
    count = max(last for (_, last), _ in mine) + 1
    reached = {0}
    for _ in range(count):
        reached |= {last + 1 for (first, last), holds in mine if holds and first in reached}
    return count in reached


def _nothing_holds(prepared: Prepared, service: Service, admitted: set[int]) -> Infeasible:
    """Return the cause where no layout at all on the candidates admitted holds a service."""
    account, name = Account(), service.asked.label
    candidates = [candidate for at, candidate in enumerate(prepared.candidates) if at in admitted]
    options(prepared.catalog, service, candidates, account)
    if not account.nearest:
        missing, where = min(account.missing, default=(0.0, "the candidates"))
        lacks = f"{where} lacks {show_bytes(missing)} per GPU" if account.missing else None
        return Infeasible(because=(f"{name} with a request of {service.length:,} tokens fits on no candidate",),
                          nearest=lacks)
    nearest, where = min(account.nearest, key=lambda pair: _excess(service, pair[0].ttft, pair[0].tpot))
    # the levels that no hardware meets even alone; where each is met somewhere, it is all of them together
    missed = [pair for pair in service.asked.levels
              if min(getattr(least, pair[0]) for least, _ in account.nearest) > pair[1].seconds]
    asked = [f"{which} {level}" for which, level in missed or service.asked.levels]
    return Infeasible(
        because=(f"no layout of the candidates holds {' and '.join(asked)} for {name}, even nearly idle",),
        nearest=f"{where}: TTFT {show_seconds(nearest.ttft)}, TPOT {show_seconds(nearest.tpot)} nearly idle",
        relaxations=tuple(_relaxed_levels(prepared, service, candidates, account)))


def _excess(service: Service, ttft: float, tpot: float) -> float:
    limits = service.level.ttft, service.level.tpot
    return max(found / limit[0] for found, limit in zip((ttft, tpot), limits, strict=True) if limit is not None)


def _relaxed_levels(prepared: Prepared, service: Service, candidates: Sequence[Candidate],
                    account: Account) -> Iterator[Relaxation]:
    """Yield the level with which alone, raised so far, there is a plan; where with none, both together."""
    alone, asked = False, dict(service.asked.levels)
    for which, level in asked.items():
        eased = _eased(level, min(getattr(nearest, which) for nearest, _ in account.nearest) * ROOM)
        if eased is not None and _plans(prepared, service, candidates, {which: eased}):
            alone = True
            yield Relaxation(limit=which, from_=str(level), to=str(eased))
    # the least of each may be of different hardware, so that the nearest of one candidate is taken
    nearest, _ = min(account.nearest, key=lambda pair: _excess(service, pair[0].ttft, pair[0].tpot))
    both = {which: _eased(level, getattr(nearest, which) * ROOM) for which, level in asked.items()}
    known = {which: eased for which, eased in both.items() if eased is not None}
    if not alone and len(asked) == len(known) > 1 and _plans(prepared, service, candidates, known):
        yield Relaxation(limit=" and ".join(asked), from_=", ".join(map(str, asked.values())),
                         to=", ".join(map(str, known.values())))


def _eased(level: Level, seconds: float) -> Level | None:
    """Return a level raised to at least so many seconds, in words of three digits; none beyond what may be asked."""
    if seconds <= level.seconds:
        return level
    raised = parse(at_least(seconds, SECONDS, "s", "ms", "us"), SECONDS, "latency", "2 s")
    return level._replace(seconds=raised) if raised <= DAY else None


def _plans(prepared: Prepared, service: Service, candidates: Sequence[Candidate], levels: dict[str, Level]) -> bool:
    """Say whether the whole question has a plan at changed levels: some layout holds them, within all limits."""
    eased = {which: (level.seconds, getattr(service.level, which)[1]) for which, level in levels.items()}
    one = replace(service, level=replace(service.level, **eased))
    if not options(prepared.catalog, one, candidates, Account()):
        return False
    scenario = prepared.scenario
    changed = [asked.model_copy(update=levels) if at == service.of else asked
               for at, asked in enumerate(scenario.services)]
    again = prepare(scenario.model_copy(update={"workload": changed[0]} if scenario.workload is not None
                                        else {"workloads": tuple(changed)}), prepared.catalog)
    return again.fleet().solve().value is not None


def _limits_bind(prepared: Prepared, fleet: Fleet) -> Infeasible:
    """Return the cause where replicas hold the level, and the limits admit too few of them."""
    limits = prepared.scenario.limits
    given = [name for name in ServingLimits.model_fields if getattr(limits, name) is not None]
    rate = _share(fleet.problem())
    total = sum(service.needed for service in prepared.services if service.prompts is None)
    return Infeasible(because=tuple(_because(fleet, given)),
                      nearest=f"within them {rate:.0%} of the {total:.4g} requests/s that must be held are answered",
                      relaxations=tuple(_relaxed_limits(fleet, given)))


def _because(fleet: Fleet, given: list[str]) -> list[str]:
    """Return the limits of which each alone admits no plan; else a set of them from which none can be left out."""
    def admits(names: list[str]) -> bool:
        kept = {name: None for name in given if name not in names}
        return fleet.solve(limits=fleet.limits.model_copy(update=kept)).value is not None

    if not admits([]):
        owned = any(offer.nodes is not None for offer in fleet.offers)
        return ["the nodes at hand are too few" if owned else "no fleet of the candidates is large enough"]
    core = [name for name in given if not admits([name])]
    if not core:
        core = list(given)
        for name in given:
            fewer = [other for other in core if other != name]
            core = core if admits(fewer) else fewer
    return [f"{name.replace('_', ' ')} is {asked_limit(fleet.limits, name)}" for name in core]


def _share(problem: Cover) -> float:
    """Return the largest share of every rate that the limits admit."""
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        needs = tuple(tuple(int(need * middle) for need in service) for service in problem.needs)
        low, high = (middle, high) if cover(replace(problem, needs=needs)).value is not None else (low, middle)
    return low


def _relaxed_limits(fleet: Fleet, given: list[str]) -> Iterator[Relaxation]:
    """Yield each limit which, alone raised, lets a plan exist, and what that plan uses."""
    for name in given:
        limits = fleet.limits.model_copy(update={name: None})
        found = fleet.solve(limits=limits)
        if found.value is None:
            continue
        least = fleet.used(found)[name]
        for more in range(MOST_STEPS):
            advice = advised(fleet.limits, name, least, more)
            if advice is None:
                break
            # what is confirmed is what the words read back to
            text, value = advice
            if fleet.solve(limits=fleet.limits.model_copy(update={name: _typed(name, value)})).value is not None:
                yield Relaxation(limit=name, from_=asked_limit(fleet.limits, name), to=text)
                break


def _typed(name: str, value: float) -> float:
    return value if name in ("budget", "max_power") else int(value)

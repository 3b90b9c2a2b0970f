"""Why no replica meets a service: requests that fit nowhere, or latency targets that no layout meets nearly idle."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import get_args

from planner.answer.relaxation import Relaxation
from planner.answer.schema import Infeasible
from planner.catalog.load import Catalog
from planner.jobs.columns import Columns
from planner.jobs.job import Change, Leaner, Short, Terms
from planner.jobs.market import Market
from planner.jobs.serving.blocks import Account
from planner.jobs.serving.deployed import lacks
from planner.jobs.serving.narrower import in_fewer_bits
from planner.jobs.serving.options import options
from planner.jobs.serving.rates import LeastLatency
from planner.jobs.serving.service import Service
from planner.layouts.candidate import Candidate
from planner.physics.serving.formats import format_of
from planner.scenario.demand import Level
from planner.scenario.limits import Limits, ServingLimits
from planner.scenario.serving import MOST_CONCURRENT, Gguf, Quantization
from planner.units import DAY, SECONDS, at_least, parse, show_bytes, show_seconds

MOST_REASONS = 3
"""Of an engine that runs on no candidate."""
CLEARLY = 0.8
"""Of the bytes of a format, those of one that is worth trying instead."""
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
                          nearest=lacks, relaxations=tuple(_lightened(name, catalog, service, candidates, possible)))
    nearest, where = min(account.nearest, key=lambda pair: _excess(service, pair[0]))
    # the targets that no hardware meets even alone; where each is met somewhere, it is all of them together
    missed = [pair for pair in service.asked.levels
              if min(getattr(least, pair[0]) for least, _ in account.nearest) > pair[1].seconds]
    asked = [f"{which} {level}" for which, level in missed or service.asked.levels]
    return Infeasible(
        because=(f"no layout of the candidates meets {' and '.join(asked)} for {name}, even nearly idle",),
        nearest=f"{where}: {_latencies(service, nearest)} nearly idle",
        relaxations=(*_eased_levels(name, service, account, possible),
                     *_lightened(name, catalog, service, candidates, possible)))


def too_few(name: str, catalog: Catalog, service: Service, columns: Columns, terms: Terms) -> Short:
    """Return that the smallest replica within the targets takes more GPUs than any candidate may have, and what one
    with those lacks; nothing where some may have enough.
    """
    market, limits = terms.market, terms.limits
    least: dict[int, int] = {}
    for demand, column in columns.replicas:
        if columns.demands[demand].classes[0] == 0:
            least[column.candidate] = min(column.gpus, least.get(column.candidate, column.gpus))
    room = {at: _room(market, limits, at) for at in market.at_hand}
    if not least or any(room[at] >= gpus for at, gpus in least.items() if at in room):
        return Short("")
    at = min((at for at in least if at in room), key=lambda at: (least[at] / room[at], at))
    account, candidate = Account(), market.candidates[at]
    options(catalog, service, [candidate], account)
    missing = min(account.missing, default=None)
    takes = f"{least[at]:,} {candidate.gpu.name} of {candidate.node.name}"
    cause = f"memory: the smallest replica of {name} that holds a request" if missing else (
        f"the smallest replica of {name} that meets its targets")
    return Short(f"{cause} takes {takes}, and {room[at]:,} may be used",
                 f"{missing[1]} lacks {show_bytes(missing[0])} per GPU within a node" if missing else None)


def _room(market: Market, limits: Limits | ServingLimits, candidate: int) -> int:
    """Return the most GPUs of a candidate that offers and limits leave."""
    each = market.candidates[candidate].node.gpus
    nodes = [offer.nodes for offer in market.offers if offer.candidate == candidate]
    most = [limits.gpus, limits.max_gpus, None if limits.max_nodes is None else limits.max_nodes * each,
            None if None in nodes else sum(count or 0 for count in nodes) * each]
    return min((count for count in most if count is not None), default=MOST_CONCURRENT)


def lighter(catalog: Catalog, service: Service, candidates: Sequence[Candidate]) -> Iterator[Leaner]:
    """Yield formats of the weights that take clearly less than those asked for, and that the engine runs on some
    candidate: those that people run first, and of these and the others the heaviest.
    """
    asked = service.asked.quantization or ("bf16",)
    sizes = {name: form.matrix for name in get_args(Quantization)
             if (form := format_of(catalog.formats, str(name), service.model)) is not None}
    sizes |= {str(kind): catalog.formats.gguf[str(kind)].matrix for kind in get_args(Gguf)}
    held = least = min(sizes[name] for name in asked)
    usual = {name for name, _ in in_fewer_bits(service.asked)}
    for name, size in sorted(sizes.items(), key=lambda pair: (pair[0] not in usual, -pair[1])):
        if size < held * CLEARLY and any(lacks(catalog, service, candidate, name) is None for candidate in candidates):
            held = size
            yield Leaner("quantization", ", ".join(asked), name, least / size, {"quantization": (name,)})


def _lightened(name: str, catalog: Catalog, service: Service, candidates: Sequence[Candidate],
               possible: Callable[[Change], bool]) -> Iterator[Relaxation]:
    """Yield the first lighter format of the weights with which there is a plan."""
    for less in lighter(catalog, service, candidates):
        if possible(Change(work={name: less.work})):
            yield Relaxation(limit=less.limit, from_=less.asked, to=less.instead, work=less.work)
            return


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
        # of the layouts that meet the other targets
        left = [getattr(nearest, which) for nearest, _ in account.nearest
                if all(getattr(nearest, other) <= asked[other].seconds for other in asked if other != which)]
        eased = _eased(level, min(left) * ROOM) if left else None
        if eased is not None and possible(Change(work={name: {which: eased}})):
            alone = True
            yield Relaxation(limit=which, from_=str(level), to=str(eased))
    # the least of each may be of different layouts, so that those of one are taken
    nearest, _ = min(account.nearest, key=lambda pair: _excess(service, pair[0]))
    both = {which: _eased(level, getattr(nearest, which) * ROOM) for which, level in asked.items()}
    known = {which: eased for which, eased in both.items() if eased is not None}
    if not alone and len(asked) == len(known) > 1 and possible(Change(work={name: known})):
        yield Relaxation(limit=" and ".join(asked), from_=", ".join(map(str, asked.values())),
                         to=", ".join(map(str, known.values())))


def _eased(level: Level, seconds: float) -> Level | None:
    """Return a target raised to at least so many seconds, in words of three digits; none beyond what may be asked."""
    if seconds <= level.seconds:
        return level
    raised = parse(at_least(seconds, SECONDS, "s", "ms", "us"), SECONDS, "latency", "2 s")
    return level._replace(seconds=raised) if raised <= DAY else None

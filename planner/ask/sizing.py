"""How many nodes does a log of jobs need, so that they wait no longer than asked; and what to own, what to rent."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from pydantic import ValidationError

from planner.answer.sizing import Burst, LogReplay, Size, Sizing
from planner.catalog.hardware import Node
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.jobs.market import market_of
from planner.money.purchase import YEAR_HOURS
from planner.money.rent import RentalOffer
from planner.scenario.fleet import fleet_of
from planner.scenario.limits import Limits, Sourcing
from planner.simulate.backlog import Waited, replay
from planner.simulate.joblog import JobLog, read_jobs
from planner.units import DAY, HOUR

MOST_MISSED = 200
"""Fleets smaller than the answer that are replayed to show that they miss, nearest first."""
WINDOWS = (0.25, 0.5, 1, 2, 4, 7, 14, 28, 56, 112, 224)
"""Days of the stretches of time in which a bound counts the work that cannot be put off."""
STEPS = 40
"""Places of each window, evenly over the log."""
TRIED = 9
"""Fleets with rented peaks that are replayed at a time; the best of them is closed in on."""


class Wait(NamedTuple):
    """So many seconds at most, for this share of jobs."""

    seconds: float
    share: float

    def most_late(self, jobs: int) -> int:
        """Return how many jobs may wait longer."""
        return math.floor((1 - self.share) * jobs + 1e-9)


_SHARE = re.compile(r"\bp(\d{1,2}(?:\.\d{1,6})?)\b|\b(\d{1,9}(?:\.\d{1,6})?) ?%", re.ASCII | re.IGNORECASE)
_BESIDE = frozenset({"at", "of", "jobs", "all", "for", "in", "within", "under", "with", "confidence", "wait", "most"})
"""Words about the share of jobs and their wait that say nothing else."""


def wait_of(text: str) -> Wait:
    """Return what a wait such as `4 h at 95%` or `p95 4h` asks; without a share all jobs. Raises InputError."""
    found = _SHARE.search(text)
    share = 1.0 if found is None else float(found[1] or found[2]) / 100
    said = text if found is None else f"{text[:found.start()]} {text[found.end():]}"
    time = " ".join(word for word in said.replace("@", " ").replace(",", " ").split() if word.lower() not in _BESIDE)
    try:
        asked = Limits.model_validate({"deadline": time}).deadline
    except ValidationError:
        raise InputError(f"--wait: {text!r} is no time that jobs may wait: expected one such as '4 h at 95%', "
                         "or 4h for all jobs") from None
    if not 0.5 <= share <= 1:
        raise InputError(f"--wait: {text!r}: the share of jobs must be from 50% to 100%")
    if asked is None or not asked.seconds > 0:
        raise InputError("--wait: expected more than no time, such as '4 h at 95%'")
    return Wait(asked.seconds, share)


def sized(log: Path, wait: str | None, overrides: Mapping[str, object], catalog: Catalog, labels: Mapping[str, str]
          ) -> Sizing:
    """Return the fewest nodes for a log, on the hardware that scenario values by path name. Raises InputError."""
    if wait is None:
        raise InputError("--jobs needs --wait: how long jobs may wait, such as --wait '4 h at 95%'")
    asked, (fleet, _) = wait_of(wait), fleet_of(overrides, catalog, labels)
    return size(read_jobs(log), asked, fleet.hardware.candidates, fleet.sourcing, catalog)


def size(log: JobLog, wait: Wait, nodes: tuple[str, ...], sourcing: Sourcing, catalog: Catalog) -> Sizing:
    """Return the fewest nodes of each type, and what they cost. Raises InputError where nobody offers any."""
    market = market_of(nodes, sourcing, catalog)
    by_node, largest = dict[str, list[RentalOffer]](), int(log.gpus.max())
    for offer in market.every_offer:
        candidate = market.candidates[offer.candidate]
        if candidate.clustered or candidate.node.gpus >= largest:
            by_node.setdefault(candidate.node.name, []).append(offer)
    if not by_node:
        raise InputError(f"the largest job has {largest:,} GPUs, and the nodes named are offered without a network "
                         f"that joins several: {', '.join(nodes)}")
    sizes = [_size(log, wait, catalog.node(name), offers, sourcing.own.get(name)) for name, offers in by_node.items()]
    sizes.sort(key=lambda sized: (sized.usd_per_year is None, min(
        sized.usd_per_year or 0.0, sized.burst.usd_per_year if sized.burst else math.inf), sized.fewest.nodes))
    out = [f"{count:,} {why} are left out of the log" if count > 1 else
           f"1 {why.replace('jobs', 'job', 1).replace('steps of job', 'step of a job')} is left out of the log"
           for why, count in log.left_out]
    told = "jobs take as long on every GPU as the log says" if len(sizes) > 1 else None
    return Sizing(jobs=len(log.submit), days=log.span / DAY, gpu_hours=float(log.gpus @ log.seconds) / HOUR,
                  most_gpus=largest, wait_seconds=wait.seconds, share=wait.share, sizes=tuple(sizes),
                  notes=(*out, *((told,) if told else ()), *market.notes))


def _size(log: JobLog, wait: Wait, node: Node, offers: list[RentalOffer], owned: int | None) -> Size:
    late = (wait.seconds, wait.most_late(len(log.submit)))

    @cache
    def waited(nodes: int) -> Waited:
        return replay(log, nodes, node.gpus, most_late=late)

    least = bound(log, wait, node.gpus)
    fewest, missed = _fewest(least, lambda nodes: not waited(nodes).stopped)
    sized = Size(node=node.name, gpus_of_node=node.gpus, fewest=_shown(log, wait, fewest, node.gpus, waited(fewest)),
                 bound=least, missed=missed, status="optimal" if fewest - least == missed else "feasible")
    always = [(_yearly(quote, fewest), quote) for quote in offers if quote.nodes is None or quote.nodes >= fewest]
    if always:
        usd, offer = min(always, key=lambda quote: (quote[0], quote[1].label))
        how: Literal["buy", "own", "rent"] = "own" if offer.how == "owned" else offer.how
        sized = sized.model_copy(update={"usd_per_year": usd, "offer": offer.label, "sourcing": how})
    burst = _burst(log, wait, offers, fewest, node.gpus, owned)
    if burst is not None and burst.usd_per_year < (sized.usd_per_year or math.inf):
        sized = sized.model_copy(update={"burst": burst})
    return sized


def _fewest(least: int, meets: Callable[[int], bool]) -> tuple[int, int]:
    """Return the fewest nodes found that meet the wait, and how many smaller fleets from `least` on were replayed.

    A fleet may do worse than a smaller one, as backfill then goes another way; so those below are replayed too.
    """
    high = least
    while not meets(high):
        high *= 2
    low = max(least, high // 2)
    high = low + bisect_left(range(low, high), True, key=meets)
    missed = 0
    while high - 1 - missed >= least and missed < MOST_MISSED:
        if meets(high - 1 - missed):
            high, missed = high - 1 - missed, 0
        else:
            missed += 1
    return high, missed


def bound(log: JobLog, wait: Wait, gpus_of_node: int) -> int:
    """Return nodes below which no scheduler keeps the wait: by the largest job, and by work that cannot be put off.

    A job that waits no longer than asked is in a window at least as long as it is when it starts at once, or as late
    as it may; of each window the work of as many jobs as may be late is left out, the largest (Baptiste, Le Pape and
    Nuijten, Constraint-Based Scheduling, 2001: energetic reasoning).
    """
    whole = np.where(log.gpus >= gpus_of_node, -(-log.gpus // gpus_of_node) * gpus_of_node, log.gpus).astype(float)
    least, spared = int(-(-log.gpus.max() // gpus_of_node)), wait.most_late(len(log.submit))
    first = log.submit
    last = first + wait.seconds
    for days in WINDOWS:
        length = days * DAY
        for begin in np.linspace(0.0, max(log.span - length, 0.0), STEPS):
            end = begin + length
            inside = np.minimum(*(np.minimum(start + log.seconds, end) - np.maximum(start, begin)
                                  for start in (first, last))).clip(0.0)
            work = inside * whole
            if 0 < spared < len(work):
                work = np.partition(work, len(work) - spared)[:len(work) - spared]
            least = max(least, math.ceil(float(work.sum()) / length / gpus_of_node - 1e-9))
        if length > log.span:
            break
    return least


def _shown(log: JobLog, wait: Wait, nodes: int, gpus: int, waited: Waited) -> LogReplay:
    quantiles = np.quantile(waited.seconds, (0.5, 0.95, 0.99, 1.0), method="inverted_cdf")
    here, ran = float((log.gpus * log.seconds).sum() - waited.burst.sum()), waited.burst == 0
    ends = log.submit + waited.seconds + log.seconds
    span = float(ends[ran].max()) if ran.any() else 0.0
    return LogReplay(nodes=nodes, wait_seconds=dict(zip(("p50", "p95", "p99", "longest"), map(float, quantiles),
                                                       strict=True)),
                    in_time=float((waited.seconds <= wait.seconds).mean()),
                    busy=here / span / (nodes * gpus) if nodes and span else 0.0)


def _yearly(offer: RentalOffer, nodes: int) -> float:
    """Return USD for so many nodes that are there all year."""
    if offer.estate is not None:
        return sum(offer.estate.yearly(nodes).values()) if nodes else 0.0
    return nodes * offer.usd_per_node_hour * YEAR_HOURS


def _burst(log: JobLog, wait: Wait, offers: list[RentalOffer], fewest: int, gpus: int, owned: int | None
           ) -> Burst | None:
    """Return the cheapest fleet found that is smaller, with what would wait too long on rented nodes."""
    rented = [offer for offer in offers if offer.how == "rent" and offer.commitment < DAY]
    always = [offer for offer in offers if offer.how != "rent" or offer.commitment >= DAY] or rented
    if not rented or not always:
        return None
    hourly = min(rented, key=lambda offer: (offer.usd_per_node_hour, offer.label))
    # what is rented by the node is paid for whole
    whole = -(-log.gpus // gpus) * gpus / log.gpus

    @cache
    def tried(nodes: int) -> Burst:
        waited = replay(log, nodes, gpus, patience=wait.seconds if nodes else 0.0)
        taken = float((waited.burst * whole).sum())
        yearly = taken / gpus / HOUR * hourly.usd_per_node_hour * YEAR_HOURS * HOUR / max(log.span, DAY)
        return Burst(replayed=_shown(log, wait, nodes, gpus, waited), jobs=int((waited.burst > 0).sum()),
                     gpu_hours=taken / HOUR, offer=hourly.label,
                     usd_per_year=yearly + min(_yearly(offer, nodes) for offer in always))

    if owned is not None and all(offer.how in ("owned", "rent") for offer in offers):
        return tried(owned) if owned < fewest else None
    best = min(_closing_in(fewest, lambda nodes: tried(nodes).usd_per_year), key=lambda nodes: (
        tried(nodes).usd_per_year, nodes))
    return tried(best)


def _closing_in(most: int, cost: Callable[[int], float]) -> Iterator[int]:
    """Yield numbers of nodes, evenly at first and then about the cheapest, down to every one of its neighbors."""
    low, high = 0, most
    while True:
        step = max(1, (high - low) // (TRIED - 1))
        tried = [*range(low, high, step), high]
        yield from tried
        if step == 1:
            return
        best = min(tried, key=cost)
        low, high = max(0, best - step), min(most, best + step)


def replayed(log: JobLog, nodes: int, gpus_of_node: int) -> LogReplay:
    """Return what a log does on so many nodes, however long jobs wait. Raises InputError where a job is larger."""
    waited = replay(log, nodes, gpus_of_node)
    if waited.stopped:
        raise InputError(f"a job in the log has {int(log.gpus.max()):,} GPUs, more than {nodes:,} nodes of "
                         f"{gpus_of_node:,}")
    return _shown(log, Wait(math.inf, 1.0), nodes, gpus_of_node, waited)

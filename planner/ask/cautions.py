"""What to know before a plan is counted on: what to ask of a provider, and what is taken for granted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.answer.assignment import Assignment
from planner.answer.level import Percentiles, Replayed, ServingFigures
from planner.catalog.load import Catalog
from planner.jobs.market import Market
from planner.money.caution import at_once, outlying, taken_back
from planner.units import DAY, show_seconds

UNLIKE = 1.5
"""Times from which on latencies by formula and by replay are told apart."""


def cautions(made: Sequence[Assignment], catalog: Catalog, *, spared: bool = False) -> Iterator[str]:
    """Yield cautions about the prices of a plan, many nodes that a job has for a short time, nodes of a service that
    may be taken back, unless it is `spared`: asked for with nodes that may fail; and latencies that a replay has
    otherwise.
    """
    yield from outlying([each.offer or "" for each in made], catalog)
    yield from taken_back([(each.offer or "", each.nodes) for each in made if each.serving is not None
                           and each.serving.documents is None and not spared], catalog)
    yield from unlike_replay(made)
    ending = [each for each in made if each.serving is None or each.serving.documents is not None]
    yield from at_once([(each.offer or "", each.nodes + each.spare_nodes, each.duration_days * DAY) for each in ending
                        if each.duration_days], catalog)


def more_than_one(made: Sequence[Assignment], market: Market) -> Iterator[str]:
    """Yield which machines, taken as the user's own, a plan has more of than the one that the user is taken to have."""
    single = {market.candidates[offer.candidate].node.name for offer in market.offers
              if offer.assumed and offer.nodes == 1}
    for name in sorted(single):
        nodes = sum(each.nodes + each.spare_nodes for each in made if each.node == name)
        if nodes > 1:
            yield (f"one {name} does not do it: {nodes} of your own are counted, as many as it takes; --max-nodes 1 "
                   "says what one lacks")


def unlike_replay(made: Sequence[Assignment]) -> Iterator[str]:
    """Yield the latencies whose 95th percentile by formula, of each kind of a service's replicas, is far from that of
    the replay of all of them.
    """
    for name in dict.fromkeys(each.workload for each in made):
        mine = [each.serving for each in made if each.workload == name and each.serving is not None]
        for latency, of in (("TTFT", _ttft), ("TPOT", _tpot)):
            seen = [of(each.replayed).p95 for each in mine if each.replayed is not None]
            computed = [of(each).p95 for each in mine]
            if not seen or not seen[0] or not all(computed):
                continue
            least, most = min(computed), max(computed)
            nearest = most if seen[0] > most else least
            if max(seen[0] / most, least / seen[0]) > UNLIKE:
                yield (f"{latency} of {name} at p95 is {show_seconds(nearest)} by formula and {show_seconds(seen[0])} "
                       "by replay, which the plan goes by")


def _ttft(level: ServingFigures | Replayed) -> Percentiles:
    return level.ttft_seconds


def _tpot(level: ServingFigures | Replayed) -> Percentiles:
    return level.tpot_seconds

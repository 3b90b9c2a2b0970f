"""What pools offer a job: its columns as options and blocks of the fleet, few enough to be looked at together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from planner.catalog.calibration import Reliability
from planner.errors import Unsupported
from planner.jobs.columns import MICRO, Columns, ReplicaColumn
from planner.jobs.pools import Supplier
from planner.scenario.portfolio import Portfolio
from planner.scenario.portfolio_job import PortfolioJob
from planner.solver.column import Column
from planner.solver.fleet.schedule import CENT, HOUR_SECONDS, NodeBlock, Option
from planner.solver.quantize import DURATION_QUANTUM, cost_cents, duration_limit, price

MOST_WAYS = 1_000_000
"""Ways of all tasks, columns times periods, up to which every column is offered."""
MOST_OPTIONS = 8
"""Above that: columns of a job offered on one pool, evenly over the times; the plan counts those left out."""
MOST_ENDLESS = 12
"""The same over all pools whose nodes are taken as needed."""


@dataclass(frozen=True, slots=True)
class Offering:
    """Turns columns into options and blocks, on every pool of their hardware."""

    portfolio: Portfolio
    suppliers: Sequence[Supplier]
    reliability: Reliability

    def options(self, columns: Columns) -> list[tuple[Option, Column]]:
        """Return every run on every pool that has as many nodes, none as good as another in all that counts."""
        options = self.every(columns)
        return [pair for number, pair in enumerate(options) if not any(
            self._stands_for(other[0], pair[0], first=at < number) for at, other in enumerate(options) if at != number)]

    def every(self, columns: Columns) -> list[tuple[Option, Column]]:
        """Return every run on every pool that has as many nodes."""
        return [(self._option(at, supplier, column), column) for column in columns.runs
                for at, supplier in enumerate(self.suppliers) if supplier.offer.candidate == column.candidate
                and (supplier.most is None or column.rented_nodes <= supplier.most)]

    def _option(self, at: int, supplier: Supplier, column: Column) -> Option:
        each, nodes = supplier.pool.micro_usd_per_node_hour, column.rented_nodes
        seconds = math.ceil(column.duration_us * DURATION_QUANTUM - DURATION_QUANTUM / 2)
        write = column.checkpoint_bytes / (self.reliability.checkpoint_write_per_node * column.nodes)
        pause = math.ceil(write + self.reliability.restart)
        paid = max(column.duration_us, duration_limit(supplier.offer.commitment))
        cents = 0 if supplier.pool.lots else cost_cents(nodes, price(supplier.offer.usd_per_node_hour), paid)
        more = -(-nodes * each * pause // (HOUR_SECONDS * CENT)) * CENT
        return Option(at, nodes, max(1, seconds), cents * CENT, pause, more)

    def _stands_for(self, other: Option, kept: Option, *, first: bool) -> bool:
        """Say whether `other` is as good in all that counts; of equals the first."""
        mine, theirs = ((option.micro_usd, option.seconds) for option in (kept, other))
        return self._as_good(mine, theirs, kept, other, first=first)

    def _as_good(self, mine: tuple[int, int], theirs: tuple[int, int], option: Option | NodeBlock,
                 other: Option | NodeBlock, *, first: bool) -> bool:
        """Say whether `other` can always stand for `option`: no worse itself, nor in what it shares with others."""
        pools, limits = [self.suppliers[used.pool] for used in (option, other)], self.portfolio.limits
        alike = option.pool == other.pool
        if not alike and not all(supplier.pool.is_endless for supplier in pools):
            return False
        rent = self.portfolio.sourcing.rent
        quotas = [supplier.node if rent and supplier.node in rent.quota else "" for supplier in pools]
        if quotas[1] not in ("", quotas[0]):
            return False
        nodes = bool(quotas[1]) or limits.max_nodes is not None or (alike and not pools[0].pool.is_endless)
        worse, better = (
            (*own, used.nodes * nodes, used.nodes * supplier.pool.watts * (limits.max_power is not None),
             used.nodes * supplier.pool.gpus * (limits.max_gpus is not None))
            for own, used, supplier in ((mine, option, pools[0]), (theirs, other, pools[1])))
        return all(a <= b for a, b in zip(better, worse, strict=True)) and (better != worse or first)

    def blocks(self, asked: PortfolioJob, columns: Columns) -> list[tuple[NodeBlock, ReplicaColumn, int]]:
        """Return whole nodes filled with replicas of one layout, on every pool; with the replicas of each block.

        Raises Unsupported for a service without replicas that answer whole requests.
        """
        blocks = self.every_block(columns)
        if columns.replicas and not any(demand == 0 and column.role == "whole" for demand, column in columns.replicas):
            raise Unsupported(f"prefill and decode on separate replicas in a portfolio ({asked.name}): leave "
                              "disaggregated out")
        return [entry for number, entry in enumerate(blocks) if not any(
            self._cheaper(other[0], entry[0], first=at < number) for at, other in enumerate(blocks) if at != number)]

    def every_block(self, columns: Columns) -> list[tuple[NodeBlock, ReplicaColumn, int]]:
        """Return the best block of each number of nodes on every pool, none weaker by the node than a smaller one."""
        whole = [column for demand, column in columns.replicas if demand == 0 and column.role == "whole"]
        blocks: list[tuple[NodeBlock, ReplicaColumn, int]] = []
        for at, supplier in enumerate(self.suppliers):
            best: dict[int, tuple[NodeBlock, ReplicaColumn, int]] = {}
            for column in sorted(whole, key=lambda choice: choice.plainness):
                if column.candidate != supplier.offer.candidate:
                    continue
                nodes, each = -(-column.gpus // supplier.pool.gpus), max(1, supplier.pool.gpus // column.gpus)
                rate = each * math.floor(column.rate * MICRO)
                if rate > (best[nodes][0].micro_rate if nodes in best else 0):
                    best[nodes] = NodeBlock(at, nodes, rate), column, each
            blocks += [entry for nodes, entry in sorted(best.items()) if not any(
                fewer < nodes and other[0].micro_rate * nodes >= entry[0].micro_rate * fewer
                for fewer, other in best.items())]
        return blocks

    def _cheaper(self, other: NodeBlock, new: NodeBlock, *, first: bool) -> bool:
        """Say whether a block can always stand for another."""
        mine, theirs = ((block.nodes * self.suppliers[block.pool].pool.micro_usd_per_node_hour, -block.micro_rate)
                        for block in (new, other))
        return self._as_good(mine, theirs, new, other, first=first)


def spread(options: Sequence[tuple[Option, Column]], suppliers: Sequence[Supplier], *,
           every: bool) -> list[tuple[Option, Column]]:
    """Return every option by pool, or few of each: the cheapest, the fastest, the smallest, some evenly between."""
    groups: dict[int, list[tuple[Option, Column]]] = {}
    for option in options:
        pool = option[0].pool
        groups.setdefault(-1 if suppliers[pool].pool.is_endless else pool, []).append(option)
    kept = []
    for pool, mine in sorted(groups.items()):
        most = MOST_ENDLESS if pool < 0 else MOST_OPTIONS
        mine.sort(key=lambda pair: (pair[0].seconds, pair[0].nodes, pair[0].pool, pair[1].key))
        cheapest = min(range(len(mine)), key=lambda at: (mine[at][0].micro_usd, mine[at][0].seconds))
        smallest = min(range(len(mine)), key=lambda at: (mine[at][0].nodes, mine[at][0].seconds))
        chosen = {0, cheapest, smallest, len(mine) - 1}
        steps = [math.log(max(1, pair[0].seconds)) for pair in mine]
        for number in range(1, most - 1):
            wanted = steps[0] + (steps[-1] - steps[0]) * number / (most - 1)
            if len(chosen) < most:
                chosen.add(min(range(len(mine)), key=lambda at: abs(steps[at] - wanted)))
        kept += [pair for at, pair in enumerate(mine) if every or len(mine) <= most or at in chosen]
    return kept


def beyond(options: Sequence[tuple[Option, Column]], kept: Sequence[tuple[Option, Column]]) -> tuple[Option, ...]:
    """Return what no option that was left out is better than: of those between two kept ones, the least of each figure.

    A schedule of all options costs no less than one of the kept ones and of these, which proves how good it is.
    """
    offered, best = {id(pair) for pair in kept}, list[Option]()
    for pool in sorted({pair[0].pool for pair in options}):
        between: list[Option] = []
        mine = sorted((pair for pair in options if pair[0].pool == pool), key=lambda pair: (
            pair[0].seconds, pair[0].nodes, pair[1].key))
        for pair in (*mine, None):
            if pair is not None and id(pair) not in offered:
                between.append(pair[0])
                continue
            if between:
                best.append(Option(pool, *(min(getattr(option, name) for option in between) for name in (
                    "nodes", "seconds", "micro_usd", "resume_seconds", "resume_micro_usd"))))
            between = []
    return tuple(best)

"""What turns a step into a plan, in the solver's integers: durations, costs, sort keys and columns of layouts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from planner.catalog.calibration import Reliability
from planner.layouts.candidate import Candidate
from planner.layouts.memo import Memo
from planner.layouts.offload import level_of
from planner.layouts.table import Floats, Ints, Layouts, distinct
from planner.money.goodput import goodput, interruptions, paying, running, spare_nodes
from planner.solver.column import Column
from planner.solver.fleet.problem import FleetOffer, Goal
from planner.solver.quantize import duration_floor, duration_use
from planner.solver.search.complexity import complexities
from planner.solver.search.keys import Key, Keys

DOUBLINGS = 24
"""Past the runs by which errors are known; more count as these."""
MOST_NODES = 2**32
"""Above the spare nodes of any run."""
HAIR = 1e-9
"""Of a doubling, that floats may lose."""
HARDEST = 2**10
"""Above every complexity."""


class Spared(NamedTuple):
    """What GPUs and candidate decide, with as many spare nodes as pay and there is room for, or with any fewer."""

    spares: Floats
    """The most: with more than that a run takes more node-hours, or there are no nodes or no power."""
    share: Floats
    """The largest goodput, which is that with the most spares, as are the fewest node-hours."""
    price: Floats
    """The least micro-USD per hour of progress."""
    billed: Floats
    """The fewest cents that a commitment bills, however soon the job ends."""
    patient: Floats
    """The largest goodput with spares that it bills no more for."""


@dataclass(frozen=True, slots=True)
class JobTerms:
    """What turns a step into a plan: tokens, checkpoint, failures, prices and limits. Units of `quantize`."""

    tokens: int
    sequence_length: int
    checkpoint_bytes: float
    reliability: Reliability
    objective: Goal
    offers: tuple[FleetOffer, ...]
    """The cheapest of each candidate, in their order."""
    upper: tuple[float, ...]
    """Measured over predicted duration at the confidence the deadline asks for, by candidate; 1 without one."""
    uppers: tuple[tuple[float, ...], ...] = ()
    """The same by candidate and by doublings of GPUs begun past `known`; without any, `upper`."""
    means: tuple[tuple[tuple[float, ...], ...], ...] = ()
    """Mean of measured over predicted duration, which costs count, by candidate, precision and such doublings; without
    any, costs count the duration as predicted."""
    known: int = 2**40
    """GPUs of the largest run of those by which the error is known."""
    reclaims: tuple[float, ...] = ()
    """Node-hours until a provider takes a node back, by candidate; without any, none does."""
    deadline_us: int | None = None
    budget_cents: int | None = None
    max_power_w: int | None = None
    place: int = 0
    """Of its stack among those that are searched: of equals the first one's are taken."""
    timed: bool = True
    """False where nothing but the number of GPUs is asked, so that a faster GPU is no better."""
    sized: Memo = field(default_factory=partial(Memo, len(Spared._fields)), init=False, compare=False, repr=False)
    """What GPUs and candidate decide, as far as it was asked for."""


@dataclass(frozen=True)
class Pricing:
    """A job on its candidates: turns step seconds of rows into least keys, and of one row into its column."""

    job: JobTerms
    candidates: tuple[Candidate, ...]
    trades: bool = False
    """Whether time counts by itself, and not only where objective and cost are equal."""

    def doublings(self, gpus: Ints) -> Ints:
        """Return the doublings begun past the runs by which errors are known; of more GPUs no fewer."""
        past = np.ceil(np.log2(np.maximum(gpus / self.job.known, 1)) - HAIR)
        return np.minimum(past, DOUBLINGS).astype(np.int64)

    def upper(self, rows: Layouts) -> Floats:
        """Return measured over predicted duration of each row at the confidence the deadline asks for."""
        if not self.job.uppers:
            return np.array(self.job.upper)[rows.candidate]
        return np.array(self.job.uppers)[rows.candidate, self.doublings(rows.gpus)]

    def mean(self, rows: Layouts) -> Floats | None:
        """Return what costs count of each row over its predicted duration; none where they count that itself."""
        if not self.job.means:
            return None
        return np.array(self.job.means)[rows.candidate, rows.precision, self.doublings(rows.gpus)]

    @cached_property
    def node_gpus(self) -> Ints:
        """GPUs per node, by candidate."""
        return np.array([c.node.gpus for c in self.candidates], np.int64)

    @cached_property
    def loads(self) -> Floats:
        """Watts of a node under load, by candidate."""
        return np.array([candidate.node.power.load for candidate in self.candidates])

    @cached_property
    def limits(self) -> Ints:
        """Nodes that there are, by candidate."""
        return np.array([10**9 if offer.max_nodes is None else offer.max_nodes for offer in self.job.offers])

    @cached_property
    def paid(self) -> Ints:
        """Microseconds that are paid for at least, by candidate."""
        return np.array([offer.least_us for offer in self.job.offers], np.int64)

    def steps(self, rows: Layouts) -> Ints:
        """Return the optimizer steps that cover the job's tokens, by each row's own batch."""
        sequences = -(-self.job.tokens // self.job.sequence_length)
        return -(-sequences // rows.batch)

    def nodes(self, rows: Layouts) -> Ints:
        """Return the nodes of each row; the last may be used in part."""
        return -(-rows.gpus // self.node_gpus[rows.candidate])

    def waits(self, rows: Layouts, spares: int) -> float:
        """Return the share of time that the first row waits for repairs with so many spares."""
        every = running(self.job.reliability, rows.gpus, self.nodes(rows), self._reclaims(rows))
        return 1 - float(next(islice(every, spares, None))[0])

    def interruptions(self, rows: Layouts) -> tuple[Floats, Floats, Floats]:
        """Return seconds between interruptions, between checkpoints, and to write one, for each row."""
        return interruptions(self.job.reliability, rows.gpus, self.nodes(rows), self.job.checkpoint_bytes,
                             self._reclaims(rows))

    def usual_spares(self, rows: Layouts) -> Ints:
        """Return with how many spare nodes each row takes the fewest node-hours."""
        return spare_nodes(self.job.reliability, rows.gpus, self.nodes(rows), self._reclaims(rows))

    def sized(self, rows: Layouts) -> Spared:
        """Return what GPUs and candidate decide of each row; no two rows are alike in these."""
        return Spared(*self.job.sized.recall((rows.gpus, rows.candidate),
                                             lambda unknown: np.stack(self._sized(rows.take(unknown)), axis=1)).T)

    def _sized(self, rows: Layouts) -> Spared:
        nodes = self.nodes(rows)
        found = Spared(*(np.full(len(rows), value) for value in (-1.0, 0.0, np.inf, np.inf, 0.0)))
        for spares, (at, share) in enumerate(self._shares(rows)):
            total = nodes[at] + spares
            mine = rows.take(at)
            found.spares[at], found.share[at] = spares, share
            found.price[at] = np.minimum(found.price[at], total * self._prices(mine, total) / share)
            billed = self._committed(mine, total)
            found.patient[at] = np.where(billed <= found.billed[at], share, found.patient[at])
            found.billed[at] = np.minimum(found.billed[at], billed)
        return found

    def _shares(self, rows: Layouts) -> Iterator[tuple[Ints, Floats]]:
        """Yield the rows for which no spare node, one, and so on pay and there is room, and their goodput."""
        nodes, most = self.nodes(rows), self.limits[rows.candidate]
        full = goodput(self.job.reliability, rows.gpus, nodes, self.job.checkpoint_bytes, self._reclaims(rows))
        if self.job.max_power_w is not None:
            most = np.minimum(most, np.floor(self.job.max_power_w / self.loads).astype(np.int64)[rows.candidate])
        for spares, (at, share) in enumerate(paying(self.job.reliability, rows.gpus, nodes, self._reclaims(rows))):
            room = (nodes[at] + spares <= most[at]) | (spares == 0)
            if not room.any():
                return
            yield at[room], full[at[room]] * share[room]

    def _reclaims(self, rows: Layouts) -> Floats:
        """Return the node-hours until a node of each row is taken back."""
        if not self.job.reclaims:
            return np.full(len(rows), np.inf)
        return np.array(self.job.reclaims, np.float64)[rows.candidate]

    def _prices(self, rows: Layouts, total: Ints) -> Floats:
        """Return micro-USD per node-hour of each row with `total` nodes; with more than there are, perhaps none."""
        offers = self.job.offers
        prices = np.array([offer.micro_usd_per_node_hour for offer in offers], np.float64)[rows.candidate]
        for at, offer in enumerate(offers):
            if offer.by_count is not None:
                mine = np.flatnonzero((rows.candidate == at) & (total <= self.limits[at]))
                prices[rows.candidate == at] = 0.0
                counts, inverse = np.unique(total[mine], return_inverse=True)
                prices[mine] = np.array([offer.price(count) for count in counts.tolist()], np.float64)[inverse]
        return prices

    def _committed(self, rows: Layouts, total: Ints) -> Floats:
        """Return the cents that the commitment of each row bills at least for `total` nodes, if there are as many."""
        found = np.zeros(len(rows))
        mine = np.flatnonzero((self.paid[rows.candidate] > 0) & (total <= self.limits[rows.candidate]))
        for at in np.unique(rows.candidate[mine]).tolist():
            own = mine[rows.candidate[mine] == at]
            found[own] = self.job.offers[at].committed_cents(total[own])
        return found

    def least(self, rows: Layouts, step: Floats) -> Keys:
        """Turn least step seconds into least durations, costs and keys, rounded down."""
        # what depends on hardware and GPUs alone is worked out once for each
        first, place = distinct(rows.gpus, rows.candidate)
        few = rows.take(first)
        sized, nodes, loads = self.sized(few), self.nodes(few), self.loads[few.candidate]

        useful = self.steps(rows) * step
        seconds = useful / sized.share[place]
        micros = duration_floor(seconds) if self.job.timed else np.zeros(len(rows), np.int64)
        uppers = np.maximum(micros, duration_floor(seconds * self.upper(few)[place]))
        mean = self.mean(rows)
        counted = useful * (mean if mean is not None else 1.0) if self.job.timed else np.zeros(len(rows))
        # a hair below the exact product, so that float rounding never lifts a bound
        cents = np.minimum(np.floor(sized.price[place] * counted / 3.6e7 * (1 - 1e-12)), 9e18).astype(np.int64)
        # exact, as of many rows a commitment bills the same, of which the fastest with no more nodes is best
        billed = sized.billed.astype(np.int64)[place]
        cents = np.maximum(cents, billed)
        watts = np.ceil(nodes * loads).astype(np.int64)[place]
        surplus = (nodes - self.limits[few.candidate])[place]
        drawn = ((nodes + sized.spares) * loads)[place]
        energy = np.minimum(np.floor(drawn * (micros / 3.6e9) * (1 - 1e-12)) - 1, 9e18).astype(np.int64)
        objective = {"cost": cents, "time": micros, "gpus": rows.gpus, "energy": energy}[self.job.objective]
        waits = np.flatnonzero((cents == billed) & (billed > 0))
        if self.job.timed and not self.trades and len(waits):
            micros = micros.copy()
            micros[waits] = duration_floor(useful[waits] / sized.patient[place[waits]])
        third = micros if self.job.timed else nodes[place] * HARDEST + complexities(rows)
        return Keys(objective, cents, third, uppers, watts, surplus, rows.gpus, energy)

    def cost(self, column: Column) -> int:
        """Return the cost of a column in cents at the cheapest offer."""
        return self.job.offers[column.candidate].cents(column.rented_nodes, column.paid_us)

    def key(self, column: Column) -> Key:
        """Return what the objective sorts by, ties broken by cost, time, GPUs, nodes, then the simpler layout.

        Where time does not count, nodes and complexity are in its place: known of a row before it is staged, they end
        the search at the first layout that fits.
        """
        cents = self.cost(column)
        first = {"cost": cents, "time": column.duration_us, "gpus": column.gpus,
                 "energy": column.energy_wh}[self.job.objective]
        third = column.duration_us if self.job.timed else column.rented_nodes * HARDEST + column.complexity
        return (first, cents, third, column.gpus, column.rented_nodes, column.complexity, column.key)

    def columns(self, rows: Layouts, row: int, step: float) -> list[tuple[Column, float]]:
        """Return the columns of one staged row that takes `step` seconds, and their goodputs: by its spare nodes."""
        one = rows.take(np.array([row]))
        gpus, candidate, nodes = int(one.gpus[0]), int(one.candidate[0]), int(self.nodes(one)[0])
        useful, upper, mean = int(self.steps(one)[0]) * step, float(self.upper(one)[0]), self.mean(one)
        name, hard = identity(rows, row, self.job.place), int(complexities(one)[0])
        load, found = self.candidates[candidate].node.power.load, list[tuple[Column, float]]()
        for spares, (_, shares) in enumerate(self._shares(one)):
            share = float(shares[0])
            seconds, power = useful / share, math.ceil(load * (nodes + spares))
            micros = duration_use(seconds) if self.job.timed else 0
            found.append((Column(
                key=name * MOST_NODES + spares, candidate=candidate, nodes=nodes, spare_nodes=spares, gpus=gpus,
                duration_us=micros, upper_us=max(micros, duration_use(seconds * upper)),
                energy_wh=-(-power * micros // (3600 * 10**6)),
                power_w=power, checkpoint_bytes=int(self.job.checkpoint_bytes), complexity=hard,
                mean_us=0 if mean is None or not self.job.timed else duration_use(seconds * float(mean[0]))), share))
        return found


def identity(rows: Layouts, row: int, place: int = 0) -> int:
    """Return a number that tells layouts (of the stack at a place) apart in any order, for the last tie-break."""
    code = place
    for axis in ("candidate", "tp", "cp", "pp", "vpp", "ep", "dp", "micro_batch", "zero", "precision"):
        code = code * 2**18 + int(getattr(rows, axis)[row])
    rest = (rows.expert_tp[row], rows.schedule[row], rows.no_sync[row], rows.hsdp[row], 1 - rows.sp[row],
            abs(rows.recompute[row]))
    for value in (*rest, *(100 * value for value in level_of(rows, row).values)):
        code = code * 512 + int(value)
    return code

"""What turns a step into a plan, in the solver's integers: durations, costs, sort keys and columns of layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial

import numpy as np

from planner.catalog.calibration import Reliability
from planner.layouts.candidate import Candidate
from planner.layouts.memo import Memo
from planner.layouts.offload import level_of
from planner.layouts.table import Floats, Ints, Layouts, Mask, distinct
from planner.money.goodput import goodput, interruptions, running, spare_nodes
from planner.solver.column import Column
from planner.solver.fleet.problem import FleetOffer, Goal
from planner.solver.quantize import duration_floor, duration_use
from planner.solver.search.complexity import complexities

Key = tuple[int, ...]
DOUBLINGS = 24
"""Past the runs by which errors are known; more count as these."""
HAIR = 1e-9
"""Of a doubling, that floats may lose."""


@dataclass(frozen=True, slots=True)
class Job:
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
    spares: Memo = field(default_factory=partial(Memo, 1), init=False, compare=False, repr=False)
    """The usual spare nodes by GPUs and candidate, as far as they were asked for."""


@dataclass(frozen=True, slots=True)
class Keys:
    """Least values of each row: what the objective sorts by, cents, microseconds; and watts, which are exact."""

    first: Ints
    cents: Ints
    micros: Ints
    uppers: Ints
    watts: Ints
    surplus: Ints
    """Nodes above what there is of the candidate; exact."""
    gpus: Ints
    energy: Ints

    @property
    def measures(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """What an entry holds: the objective, cents, microseconds, GPUs, Wh."""
        return (self.first, self.cents, self.micros, self.gpus, self.energy)

    def entry(self, row: int) -> Key:
        """Return the least measures of one row."""
        return tuple(int(column[row]) for column in self.measures)

    def order(self, *before: Ints) -> Ints:
        """Return the rows by `before`, then objective, cost and time."""
        same = self.cents is self.first or np.array_equal(self.cents, self.first)
        parts = (self.micros, self.first) if same else (self.micros, self.cents, self.first)
        order: Ints = np.lexsort((*parts, *before))
        return order

    def take(self, rows: Ints | slice) -> Keys:
        """Return the keys of the chosen rows."""
        return Keys(*(getattr(self, name)[rows] for name in _KEYS))


_KEYS = tuple(f.name for f in fields(Keys))


def joined_keys(parts: Sequence[Keys]) -> Keys:
    """Return the keys of all parts, of which there is at least one."""
    return Keys(*(np.concatenate([getattr(part, name) for part in parts]) for name in _KEYS))


@dataclass(frozen=True)
class Pricing:
    """A job on its candidates: turns step seconds of rows into least keys, and of one row into its column."""

    job: Job
    candidates: tuple[Candidate, ...]

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
        sequences = -(-self.job.tokens // self.job.sequence_length)  # in 64 bits, which padded tokens may leave
        return -(-sequences // rows.batch)

    def nodes(self, rows: Layouts) -> Ints:
        """Return the nodes of each row; the last may be used in part."""
        return -(-rows.gpus // self.node_gpus[rows.candidate])

    def share(self, rows: Layouts) -> Floats:
        """Return the goodput of each row, less the time that it waits for repairs where there are too few spares."""
        nodes, reclaims = self.nodes(rows), self._reclaims(rows)
        found = goodput(self.job.reliability, rows.gpus, nodes, self.job.checkpoint_bytes, reclaims)
        spares = self.spares(rows)
        few = np.flatnonzero(spares < self.usual_spares(rows)) if self._is_limited else np.zeros(0, np.int64)
        if len(few):
            found[few] *= self.running(rows.take(few))
        return found

    def running(self, rows: Layouts) -> Floats:
        """Return the share of time in which each row does not wait for repairs."""
        return running(self.job.reliability, rows.gpus, self.nodes(rows), self._reclaims(rows), self.spares(rows))

    def interruptions(self, rows: Layouts) -> tuple[Floats, Floats, Floats]:
        """Return seconds between interruptions, between checkpoints, and to write one, for each row."""
        return interruptions(self.job.reliability, rows.gpus, self.nodes(rows), self.job.checkpoint_bytes,
                             self._reclaims(rows))

    def spares(self, rows: Layouts) -> Ints:
        """Return the spare nodes of each row: the usual ones, as far as nodes or power are left for them."""
        usual = self.usual_spares(rows)
        if not self._is_limited:
            return usual
        most = self.limits
        if self.job.max_power_w is not None:
            most = np.minimum(most, np.floor(self.job.max_power_w / self.loads).astype(np.int64))
        found: Ints = np.clip(most[rows.candidate] - self.nodes(rows), 0, usual)
        return found

    @cached_property
    def _is_limited(self) -> bool:
        """Whether nodes or their power may leave no room for spares."""
        return self.job.max_power_w is not None or any(offer.max_nodes is not None for offer in self.job.offers)

    def usual_spares(self, rows: Layouts) -> Ints:
        """Return the spare nodes that cover repairs with the stated confidence, for each row."""
        gpus, memo = rows.gpus, self.job.spares
        first, inverse = distinct(gpus, rows.candidate)

        def work(unknown: Ints) -> Floats:
            few = rows.take(first[unknown])
            spares = spare_nodes(self.job.reliability, few.gpus, self.nodes(few), self._reclaims(few))
            return spares[:, None].astype(np.float64)

        found: Ints = memo.recall((gpus[first], rows.candidate[first]), work)[inverse, 0].astype(np.int64)
        return found

    def _reclaims(self, rows: Layouts) -> Floats:
        """Return the node-hours until a node of each row is taken back."""
        if not self.job.reclaims:
            return np.full(len(rows), np.inf)
        return np.array(self.job.reclaims, np.float64)[rows.candidate]

    def _prices(self, rows: Layouts, total: Ints, most: Ints) -> Floats:
        """Return micro-USD per node-hour of each row with `total` nodes; with more than there are, perhaps none."""
        offers = self.job.offers
        prices = np.array([offer.micro_usd_per_node_hour for offer in offers], np.float64)[rows.candidate]
        for at, offer in enumerate(offers):
            if offer.by_count is not None:
                mine = np.flatnonzero((rows.candidate == at) & (total <= most))
                prices[rows.candidate == at] = 0.0
                counts, inverse = np.unique(total[mine], return_inverse=True)
                prices[mine] = np.array([offer.price(count) for count in counts.tolist()], np.float64)[inverse]
        return prices

    def _committed(self, rows: Layouts, total: Ints, flat: Mask, cents: Ints) -> Ints:
        """Return `cents` with exact values where a commitment outlasts the job: many rows then cost the same."""
        mine = np.flatnonzero(flat)
        if len(mine):
            first, inverse = distinct(rows.candidate[mine], total[mine])
            pairs = zip(rows.candidate[mine][first].tolist(), total[mine][first].tolist(), strict=True)
            exact = np.array([self.job.offers[at].cents(count, 0) for at, count in pairs], np.int64)
            cents[mine] = exact[inverse]
        return cents

    def least(self, rows: Layouts, step: Floats) -> Keys:
        """Turn least step seconds into least durations, costs and keys, rounded down."""
        # what depends on hardware and GPUs alone is worked out once for each
        first, place = distinct(rows.gpus, rows.candidate)
        few = rows.take(first)
        at = few.candidate
        totals, most = self.nodes(few) + self.spares(few), self.limits[at]
        prices = self._prices(few, totals, most)
        watts = np.ceil(totals * self.loads[at]).astype(np.int64)
        least_us = self.paid[at]

        seconds = self.steps(rows) * step / self.share(few)[place]
        micros = duration_floor(seconds) if self.job.timed else np.zeros(len(rows), np.int64)
        uppers = np.maximum(micros, duration_floor(seconds * self.upper(few)[place]))
        mean = self.mean(rows)
        counted = micros if mean is None or not self.job.timed else duration_floor(seconds * mean)
        paid = np.maximum(counted, least_us[place])
        # a hair below the exact product, so that float rounding never lifts a bound
        cents = np.minimum(np.floor((totals * prices)[place] * paid / 3.6e13 * (1 - 1e-12)), 9e18).astype(np.int64)
        if least_us.any():
            cents = self._committed(rows, totals[place], (paid > counted) & (totals <= most)[place], cents)
        watts, surplus = watts[place], (totals - most)[place]
        energy = np.minimum(np.floor(watts * (micros / 3.6e9) * (1 - 1e-12)) - 1, 9e18).astype(np.int64)
        objective = {"cost": cents, "time": micros, "gpus": rows.gpus, "energy": energy}[self.job.objective]
        return Keys(objective, cents, micros, uppers, watts, surplus, rows.gpus, energy)

    def cost(self, column: Column) -> int:
        """Return the cost of a column in cents at the cheapest offer."""
        return self.job.offers[column.candidate].cents(column.rented_nodes, column.paid_us)

    def key(self, column: Column) -> Key:
        """Return what the objective sorts by, ties broken by cost, time, GPUs, nodes, then the simpler layout."""
        cents = self.cost(column)
        first = {"cost": cents, "time": column.duration_us, "gpus": column.gpus,
                 "energy": column.energy_wh}[self.job.objective]
        return (first, cents, column.duration_us, column.gpus, column.rented_nodes, column.complexity, column.key)

    def column(self, rows: Layouts, row: int, step: float) -> Column:
        """Return the column of one staged row that takes `step` seconds."""
        one = rows.take(np.array([row]))
        gpus, candidate = int(one.gpus[0]), int(one.candidate[0])
        nodes = int(self.nodes(one)[0])
        spares = int(self.spares(one)[0])
        seconds = int(self.steps(one)[0]) * step / float(self.share(one)[0])
        micros = duration_use(seconds) if self.job.timed else 0
        mean = self.mean(one)
        power = int(np.ceil(self.candidates[candidate].node.power.load * (nodes + spares)))
        return Column(
            key=identity(rows, row, self.job.place), candidate=candidate, nodes=nodes, spare_nodes=spares, gpus=gpus,
            duration_us=micros, upper_us=max(micros, duration_use(seconds * float(self.upper(one)[0]))),
            energy_wh=-(-power * micros // (3600 * 10**6)),
            power_w=power, checkpoint_bytes=int(self.job.checkpoint_bytes),
            complexity=int(complexities(one)[0]),
            mean_us=0 if mean is None or not self.job.timed else duration_use(seconds * float(mean[0])))


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

"""A tighter admissible bound for the few layouts next in line: whole layers and whole recomputed layers per stage.

With no stage above M seconds, stage s holds at most l_s(M) layers, a closed form rounded down; the slowest stage of any
split is at least the least M at which these add up to all layers, found by bisection from below.

Symbols: rows r, stages s; `left` bytes a stage has for its layers, `flight` micro-batches it holds at its peak.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, replace

import numpy as np

from planner.layouts.axes import STAGED
from planner.layouts.table import Floats, Ints, Layouts, Mask
from planner.physics.training.estimate import LayerTerms, TimeTerms, step_seconds
from planner.physics.training.memory import MemoryTerms
from planner.physics.training.question import Question
from planner.physics.training.schedule import in_flight_chunks, splits_evenly
from planner.solver.search.bounds import PIECE, end_times, even_splits, mixes

REACH, HALVINGS = 1.5, 8
"""How far above the mean stage the slowest is looked for, and how often that span is halved."""
HAIR = 1e-12
"""Relative slack for what floats lose."""


@dataclass(frozen=True, slots=True)
class _Table:
    """Per row and stage, shape (rows, stages): seconds its ends add, bytes for its layers, micro-batches in flight.

    Per row, shape (rows, 1): seconds and state bytes of a layer; `kept` and `added` by mode, shape (3, rows, 1).
    """

    extra: Floats
    left: Floats
    flight: Floats
    exists: Mask
    layer: Floats
    state: Floats
    kept: Floats
    added: Floats
    mixes: tuple[tuple[int, ...], ...]

    def seconds(self, layers: Ints) -> Floats:
        """Return the least seconds of every stage with `layers` layers, inf where none of the mixes holds them."""
        base = self.extra + self.layer * layers
        least: Floats = base + np.min([self._recompute(mix, layers) for mix in self.mixes], axis=0)
        return least

    def _recompute(self, mix: tuple[int, ...], layers: Ints) -> Floats:
        """Return the seconds of recompute of one mix: the fewest lean layers that fit."""
        fast, lean = mix[0], mix[-1]
        room = (self.left - self.state * layers) / self.flight * (1 + HAIR)
        over = self.kept[fast] * layers - room - 1  # a byte that floats may have lost
        freed = self.kept[fast] - self.kept[lean]
        with np.errstate(divide="ignore", invalid="ignore"):
            many = np.where(over > 0, np.where(freed > 0, np.ceil(over / freed * (1 - HAIR)), np.inf), 0.0)
        took = np.where(many > 0, self.added[lean] - self.added[fast], 0.0) * np.where(np.isfinite(many), many, 0.0)
        total: Floats = np.where(many <= layers, self.added[fast] * layers + took, np.inf)
        return total

    def most_layers(self, slowest: Floats, layers: int) -> Floats:
        """Return how many layers the stages of each row hold at most with none above `slowest`, (rows,)."""
        least = np.maximum(self.state + self.flight * self.kept.min(axis=0), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            count = np.minimum((slowest[:, None] - self.extra) / self.layer, self.left / least)
        held: Ints = np.floor(np.clip(count * (1 + HAIR), 0, layers)).astype(np.int64)
        # whole recomputed layers may leave room for fewer; what is not taken back only loosens the bound
        held -= (held > 0) & (self.seconds(held) > slowest[:, None] * (1 + HAIR))
        total: Floats = np.where(self.exists, held, 0).sum(axis=1)
        return total


def refined_bound(question: Question, rows: Layouts, time: TimeTerms, memory: MemoryTerms, known: Floats) -> Floats:
    """Return a bound on the step seconds of each row that is at least `known`, that of `bound`, and at most the staged
    optimum.
    """
    layers = question.shape.layers
    total, slowest = layers * time.layer + time.first + time.last, np.zeros(len(rows))
    fixed = splits_evenly(rows.vpp, rows.schedule)
    every = {mix for recompute in np.unique(rows.recompute).tolist() for mix in mixes(question.stack, recompute)}
    for evenly, mine in ((True, np.flatnonzero(fixed)), (False, np.flatnonzero(~fixed))):
        for some in _pieces(rows.pp, mine):
            table = _table(question, rows.take(some), time.take(some), memory.take(some), time.added[some], every)
            slowest[some] = (_slowest_even(table, layers, rows.pp[some]) if evenly
                             else _least_slowest(table, layers, total[some] / rows.pp[some]))
    finite = np.where(np.isfinite(slowest), slowest, 0.0)
    return np.where(np.isfinite(slowest), np.maximum(known, step_seconds(time, rows, finite, total)), np.inf)


def stem_slowest(question: Question, stems: Layouts, terms: LayerTerms, memory: MemoryTerms) -> Floats:
    """Return the least seconds of the slowest stage of whatever grows from each stem; inf where nothing can be held.

    memory: as of `stem_recompute`.
    """
    slowest = np.zeros(len(stems))
    if "dualpipe" in question.stack.schedules:
        # which would share out the ends
        half = (terms.first + terms.last) / 2
        terms = replace(terms, first=np.minimum(terms.first, half), last=np.minimum(terms.last, half))
    for some in _pieces(stems.pp, np.arange(len(stems))):
        table = _table(question, stems.take(some), terms.take(some), memory.take(some), terms.modes[some],
                       set(mixes(question.stack, STAGED)))
        mean = (question.shape.layers * terms.layer + terms.first + terms.last)[some] / stems.pp[some]
        slowest[some] = _least_slowest(table, question.shape.layers, mean)
    return slowest


def _pieces(stages: Ints, rows: Ints) -> Iterator[Ints]:
    """Yield the rows in pieces that are about as deep, small enough to stay in the cache."""
    rows = rows[np.argsort(stages[rows], kind="stable")]
    while len(rows):
        # as many as would have `PIECE` stages if all were as deep as the last of them
        most = max(1, int(np.searchsorted(stages[rows] * np.arange(1, len(rows) + 1), PIECE)))
        yield rows[:most]
        rows = rows[most:]


def _slowest_even(table: _Table, layers: int, stages: Ints) -> Floats:
    """Return the slowest stage of even splits; inf where one does not hold its layers."""
    even = even_splits(layers, table.exists.shape[1])[stages]
    slowest: Floats = np.where(table.exists, table.seconds(even), 0.0).max(axis=1)
    return slowest


def _least_slowest(table: _Table, layers: int, low: Floats) -> Floats:
    """Return a lower bound, from `low` up, on the slowest stage of any split; inf where none holds all layers.

    Where the span ends below it, its upper end is the bound.
    """
    longest = (table.extra + layers * (table.layer + table.added.max(axis=0))).max(axis=1)
    possible = table.most_layers(longest, layers) >= layers
    high = np.where(table.most_layers(low, layers) >= layers, low, low * REACH)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        enough = table.most_layers(middle, layers) >= layers
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    return np.where(possible, low, np.inf)


def _table(question: Question, rows: Layouts, time: LayerTerms | TimeTerms, memory: MemoryTerms, added: Floats,
           staged: Set[tuple[int, ...]]) -> _Table:
    """Return what every stage of each row has and takes; `added` is what recompute adds to a layer, by mode."""
    stage = np.arange(int(rows.pp.max(initial=1)))
    pp, vpp, batches, order = (column[:, None] for column in (rows.pp, rows.vpp, rows.micro_batches, rows.schedule))
    exists, final = stage < pp, stage == pp - 1
    flight = np.where(exists, in_flight_chunks(pp, vpp, batches, np.minimum(stage, pp - 1), order) / vpp, 1.0)
    persist = question.stack.gradients_persist
    first, last = memory.first.held(persist), memory.last.held(persist)
    ended = np.maximum(memory.live, memory.logits) - memory.live + last
    left = (memory.capacity - memory.gathered - memory.live)[:, None] - np.where(final, ended[:, None], 0.0)
    left = left - np.where(stage == 0, first[:, None] + memory.kept_first[:, None] * flight, 0.0)
    at_first, at_last = end_times(rows, time)
    extra = np.where(stage == 0, at_first[:, None], 0.0) + np.where(final, at_last[:, None], 0.0)
    return _Table(extra=extra, left=left, flight=flight, exists=exists, layer=time.layer[:, None],
                  state=memory.layer.held(persist)[:, None], kept=memory.kept.T[:, :, None],
                  added=added.T[:, :, None], mixes=tuple(sorted(staged)))

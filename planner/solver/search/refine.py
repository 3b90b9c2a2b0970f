"""A tighter admissible bound for the few layouts next in line: whole layers and whole recomputed layers per stage.

With no stage above M seconds, stage s holds at most l_s(M) layers, a closed form rounded down; the slowest stage of any
split is at least the least M at which these add up to all layers, found by bisection from below.

`left` is the bytes a stage has for its layers, `flight` the micro-batches it holds at its peak.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
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
ALL = 1e200
"""Layers that are too many for each byte that none of them frees."""


@dataclass(frozen=True, slots=True)
class _Mix:
    """What two modes of recompute ask of the stages of each row: `slope` bytes a layer under the faster one, less than
    `room`, or a layer more under the leaner one for every 1 / `each` bytes.

    Seconds a layer under the faster one, and how many more the leaner one takes.
    """

    slope: Floats
    room: Floats
    each: Floats
    fast: Floats
    more: Floats

    def seconds(self, layers: Floats) -> Floats:
        """Return the seconds of recompute: of the fewest lean layers that fit, inf where not even all do."""
        # in place, as the bisections spend most of their time here
        many = self.slope * layers
        many -= self.room
        many *= self.each
        np.ceil(many, out=many)
        np.maximum(many, 0.0, out=many)
        took: Floats = self.more * many
        took += self.fast * layers
        took[many > layers] = np.inf
        return took


@dataclass(frozen=True, slots=True)
class _Table:
    """Per row and stage, shape (rows, stages): seconds its ends add, and whole layers that it holds at most.

    Per row, shape (rows, 1): seconds of a layer; how much longer a layer takes at most.
    """

    extra: Floats
    most: Floats
    exists: Mask
    layer: Floats
    added: Floats
    mixes: tuple[_Mix, ...]

    def seconds(self, layers: Floats) -> Floats:
        """Return the least seconds of every stage with `layers` layers, inf where none of the mixes holds them."""
        least = self.mixes[0].seconds(layers)
        for mix in self.mixes[1:]:
            np.minimum(least, mix.seconds(layers), out=least)
        least += self.extra + self.layer * layers
        return least

    def most_layers(self, slowest: Floats, layers: int) -> Floats:
        """Return how many layers the stages of each row hold at most with none above `slowest`, (rows,)."""
        held = slowest[:, None] - self.extra
        held /= self.layer
        held *= 1 + HAIR
        np.minimum(held, self.most, out=held)
        np.maximum(held, 0.0, out=held)
        np.floor(held, out=held)
        # whole recomputed layers may leave room for fewer; what is not taken back only loosens the bound
        held -= (held > 0) & (self.seconds(held) > slowest[:, None] * (1 + HAIR))
        total: Floats = held.sum(axis=1)
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
    """Return the least seconds of the slowest stage of whatever grows from each stem, inf where nothing can be held.

    memory: as of `stem_recompute`.
    """
    slowest, layers = np.zeros(len(stems)), question.shape.layers
    ends = _least_ends(question, terms)
    for some in _pieces(stems.pp, np.arange(len(stems))):
        table = _table(question, stems.take(some), ends.take(some), memory.take(some), terms.modes[some],
                       set(mixes(question.stack, STAGED)))
        slowest[some] = _least_slowest(table, layers, _mean(layers, ends, stems.pp)[some])
    return slowest


def stem_fastest(question: Question, stems: Layouts, terms: LayerTerms) -> Floats:
    """Return what `stem_slowest` does if memory were free."""
    layers, ends = question.shape.layers, _least_ends(question, terms)
    alone = stems.pp == 1
    first, last = np.where(alone, ends.first + ends.last, ends.first), np.where(alone, 0.0, ends.last)

    def most_layers(slowest: Floats, layers: int) -> Floats:
        at_first, at_last, within = (np.floor(np.clip((slowest - extra) / ends.layer * (1 + HAIR), 0, layers))
                                     for extra in (first, last, 0.0))
        held: Floats = at_first + np.where(alone, 0.0, at_last) + np.maximum(stems.pp - 2, 0) * within
        return held

    return _bisected(most_layers, layers, _mean(layers, ends, stems.pp))


def _least_ends(question: Question, terms: LayerTerms) -> LayerTerms:
    """Return the terms with the least that any schedule leaves to the first and the last stage: DualPipe shares it out.
    """
    if "dualpipe" not in question.stack.schedules:
        return terms
    half = (terms.first + terms.last) / 2
    return replace(terms, first=np.minimum(terms.first, half), last=np.minimum(terms.last, half))


def _mean(layers: int, terms: LayerTerms, stages: Ints) -> Floats:
    """Return the seconds of the mean stage."""
    mean: Floats = (layers * terms.layer + terms.first + terms.last) / stages
    return mean


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
    even = even_splits(layers, table.exists.shape[1])[stages].astype(np.float64)
    slowest: Floats = np.where(table.exists, table.seconds(even), 0.0).max(axis=1)
    return slowest


def _least_slowest(table: _Table, layers: int, low: Floats) -> Floats:
    """Return a lower bound, from `low` up, on the slowest stage of any split; inf where none holds all layers."""
    longest = (table.extra + layers * (table.layer + table.added)).max(axis=1)
    possible = table.most_layers(longest, layers) >= layers
    return np.where(possible, _bisected(table.most_layers, layers, low), np.inf)


def _bisected(most_layers: Callable[[Floats, int], Floats], layers: int, low: Floats) -> Floats:
    """Return a lower bound, from `low` up, on the seconds at which `most_layers` are all.

    Where the span ends below it, its upper end is the bound.
    """
    high = np.where(most_layers(low, layers) >= layers, low, low * REACH)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        enough = most_layers(middle, layers) >= layers
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    return low


def _table(question: Question, rows: Layouts, time: LayerTerms | TimeTerms, memory: MemoryTerms, added: Floats,
           staged: Set[tuple[int, ...]]) -> _Table:
    """Return what every stage of each row has and takes; `added` is what recompute adds to a layer, by mode."""
    stage = np.arange(int(rows.pp.max(initial=1)))
    pp, vpp, batches, order = (column[:, None] for column in (rows.pp, rows.vpp, rows.micro_batches, rows.schedule))
    exists, final = stage < pp, stage == pp - 1
    flight = np.where(exists, in_flight_chunks(pp, vpp, batches, np.minimum(stage, pp - 1), order) / vpp, 1.0)
    persist = question.stack.gradients_persist
    first, last = memory.first.held(persist), memory.last.held(persist)
    left = np.broadcast_to((memory.capacity - memory.gathered - memory.live)[:, None], exists.shape).copy()
    left -= np.where(final, (np.maximum(memory.live, memory.logits) - memory.live + last)[:, None], 0.0)
    left[:, 0] -= first + memory.kept_first * flight[:, 0]
    at_first, at_last = end_times(rows, time)
    extra = np.where(final, at_last[:, None], 0.0)
    extra[:, 0] += at_first
    state = memory.layer.held(persist)[:, None]
    fewest = np.maximum(state + flight * memory.kept.min(axis=1)[:, None], 1.0)
    states, room = state * (1 + HAIR) / flight, left * (1 + HAIR) / flight + 1  # a byte that floats may have lost

    def mix(modes: tuple[int, ...]) -> _Mix:
        fast, lean = modes[0], modes[-1]
        freed = memory.kept[:, fast] - memory.kept[:, lean]
        each = np.where(freed > 0, (1 - HAIR) / np.where(freed > 0, freed, 1.0), ALL)
        return _Mix(memory.kept[:, fast, None] + states, room, each[:, None], added[:, fast, None],
                    (added[:, lean] - added[:, fast])[:, None])

    held = np.clip(left / fewest * (1 + HAIR), 0, question.shape.layers)
    return _Table(extra=extra, most=np.where(exists, held, 0.0), exists=exists, layer=time.layer[:, None],
                  added=added.max(axis=1)[:, None], mixes=tuple(map(mix, sorted(staged))))

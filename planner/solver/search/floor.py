"""Bounds on what is not enumerated: the work of the layers with the traffic inside them, on all GPUs at once.

What a layer takes depends on neither the number of copies nor of stages, so that a few thousand rows stand for any
grid; bubbles, other traffic, failures and spares only add to it. Where time does not count, the bound is by memory: the
states of the model have to be somewhere, however they are split.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.layouts.axes import AXES, Space, column_type, domain
from planner.layouts.table import Floats, Ints, Layouts, constant, from_columns
from planner.physics.training.estimate import layer_terms
from planner.physics.training.memory import memory_terms
from planner.physics.training.question import Question, computes
from planner.solver.search.bounding import offers
from planner.solver.search.holding import leanest
from planner.solver.search.job import Pricing
from planner.solver.search.keys import Key
from planner.solver.search.leaders import LAST

DECISIVE = ("candidate", "precision", "tp", "cp", "micro_batch", "sp", "ep", "expert_tp")
"""What decides how long a layer takes."""
AT_ONE = ("pp", "vpp", "hsdp")
HAIR = 1 - 1e-9
"""Slack for what floats lose."""


@dataclass(frozen=True, slots=True)
class Floors:
    """Objective and cents that no layout is below."""

    least: Mapping[int, Key]
    """By candidate; of none that computes nothing."""
    places: tuple[Ints, ...]
    """Of each decisive axis the place of every value."""
    first: Ints
    """The objective, shape (values of each decisive axis in turn,); 0 for what no layout has."""

    def of(self, columns: Mapping[str, Ints]) -> Ints:
        """Return the objective that no layout with the decisive axes of each row is below."""
        places = tuple(place[columns[name]] for name, place in zip(DECISIVE, self.places, strict=True))
        found: Ints = self.first[places]
        return found

    def lowest(self, candidates: Iterable[float]) -> Key | None:
        """Return objective and cents that nothing on some candidates is below; none where none computes anything."""
        return min((self.least[int(at)] for at in candidates if int(at) in self.least), default=None)


def floors(question: Question, space: Space, pricing: Pricing) -> Floors:
    """Return objective and cents that no layout of the space is below."""
    domains = tuple(tuple(domain(name, space)) for name in DECISIVE)
    if pricing.job.timed:
        rows, work = _work(question, domains)
        first, cents = _least(question, space, pricing, rows, work)
    else:
        rows = _every(question, domains)
        first, cents = fewest(question, space)[rows.candidate], np.zeros(len(rows), np.int64)
    order = np.lexsort((cents, first, rows.candidate))
    order = order[np.flatnonzero(np.diff(rows.candidate[order], prepend=-1))]
    least = {int(rows.candidate[row]): (int(first[row]), int(cents[row])) for row in order}
    values = [np.array(domain(name, space), np.int64) for name in DECISIVE]
    places = tuple(_places(one) for one in values)
    table = np.zeros([len(one) for one in values], np.int64)
    table[tuple(place[getattr(rows, name)] for name, place in zip(DECISIVE, places, strict=True))] = first
    return Floors(least, places, table)


def _places(values: Ints) -> Ints:
    """Return the place of each value among the values."""
    places = np.zeros(int(values.max(initial=0)) + 1, np.int64)
    places[values] = np.arange(len(values))
    return places


def _least(question: Question, space: Space, pricing: Pricing, rows: Layouts, work: Floats) -> tuple[Ints, Ints]:
    """Return objective and cents that no layout with the decisive axes of each row is below."""
    job, at = pricing.job, rows.candidate
    gpu_seconds = (work * rows.tp * rows.cp / rows.micro_batch * question.stack.slowdown * HAIR
                   * -(-job.tokens // job.sequence_length))
    node_seconds = gpu_seconds / pricing.node_gpus[at]
    prices = np.array([0 if offer.by_count is not None else offer.micro_usd_per_node_hour for offer in job.offers])
    # on one GPU, hence where least is added for the number of GPUs
    least = 1.0 if not job.means else np.array(job.means)[at, rows.precision, 0]
    cents = np.floor(node_seconds * least * prices[at] / 3.6e7).astype(np.int64)
    loads = np.array([candidate.node.power.load for candidate in pricing.candidates])
    fewest = gpu_seconds * 1e6 / job.deadline_us if job.deadline_us else np.zeros(len(rows))
    first = {"cost": cents, "time": gpu_seconds / space.max_gpus * 1e6, "gpus": np.maximum(fewest, 1),
             "energy": node_seconds * loads[at] / 3600}[job.objective]
    return np.floor(first).astype(np.int64), cents


def fewest(question: Question, space: Space) -> Ints:
    """Return by candidate GPUs below which all of them together do not hold one copy of every state, in any precision,
    at any ZeRO stage, and with whatever may be outside.
    """
    count, kinds = len(question.candidates), len(question.precisions)
    single = np.ones(count * kinds, np.int64)
    rows = from_columns({"candidate": np.repeat(np.arange(count), kinds), "dp": single, "micro_batch": single,
                         "precision": np.tile(np.arange(kinds), count)}, 1)
    stack, levels = question.stack, offers(question, space)
    least = np.full(len(rows), np.inf)
    for stage in map(int, domain("zero", space)):
        for one in leanest(question, levels, space.flash, rows, stage):
            memory = memory_terms(question, one)
            layer, first, last = (states.held(stack.gradients_persist)
                                  for states in (memory.layer, memory.first, memory.last))
            # a byte at least, where frameworks alone take more than there is
            room = np.maximum(1.0, memory.usable - stack.context_bytes) / stack.allocator_ratio
            least = np.minimum(least, (question.shape.layers * layer + first + last) * HAIR / room)
    found: Ints = np.ceil(np.clip(least.reshape(count, kinds).min(axis=1), 1, LAST)).astype(np.int64)
    return found


@lru_cache(maxsize=8)
def _work(question: Question, domains: tuple[tuple[float, ...], ...]) -> tuple[Layouts, Floats]:
    """Return every combination of what decides how long a layer takes and its hardware can run, once, and the seconds
    of all layers for one micro-batch. domains: of each decisive axis.
    """
    rows = _every(question, domains)
    terms = layer_terms(question, rows)
    return rows, question.shape.layers * terms.layer + terms.first + terms.last


def _every(question: Question, domains: tuple[tuple[float, ...], ...]) -> Layouts:
    values = [np.array(domain, column_type(name)) for name, domain in zip(DECISIVE, domains, strict=True)]
    columns = dict(zip(DECISIVE, (one.ravel() for one in np.meshgrid(*values, indexing="ij")), strict=True))
    runs = np.array([[computes(candidate, rates, precision) for precision in question.precisions]
                     for candidate, rates in zip(question.candidates, question.rates, strict=True)])
    per_node = np.array([candidate.node.gpus for candidate in question.candidates])
    tp, expert_tp = columns["tp"], columns["expert_tp"]
    keep = (runs[columns["candidate"], columns["precision"]] & (per_node[columns["candidate"]] % tp == 0)
            & ((expert_tp == 0) | ((expert_tp < tp) & (columns["sp"] == 1))))
    columns = {name: column[keep] for name, column in columns.items()}
    count = len(columns["tp"])
    rest = {axis.name: constant(1 if axis.name in AT_ONE else 0, column_type(axis.name), count) for axis in AXES}
    # with several micro-batches experts are reached behind compute
    return Layouts(**{**rest, **columns, "dp": columns["ep"]}, micro_batches=constant(2, np.int64, count))

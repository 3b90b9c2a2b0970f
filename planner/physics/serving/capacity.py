"""What a replica of an inference engine holds: weights, pool, tokens and sequences, for many cuts at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.catalog.architecture import Model
from planner.catalog.engine import Engine, Release
from planner.layouts.table import Floats
from planner.physics.serving.cache import Serving, activation_bytes, pool_bytes
from planner.physics.serving.formats import WeightFormat
from planner.physics.serving.sequences import Cut, Paging, printed_tokens, sequence_bytes, slot_bytes
from planner.physics.serving.weights import weight_bytes


@dataclass(frozen=True, slots=True)
class Asked:
    """What is served and how, beside the cut. Bytes unless said otherwise."""

    model: Model
    weights: WeightFormat
    element: float
    """Of one cached element."""
    engine: Engine
    release: Release
    memory: float
    """What a program can allocate of a GPU."""
    fraction: float | None = None
    """As the engine means it; none for its default, which may differ by cut."""
    length: int = 1
    """Tokens of the longest sequence that is admitted."""
    architecture: str = ""
    """Of the GPU, where an engine's defaults depend on it."""
    drafts: int = 0
    """Layers of a speculative head that hold a cache."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Answers, a row for each cut. Bytes are of one GPU, tokens and sequences of a whole replica."""

    weights: Floats
    """On a GPU of the first stage."""
    activations: Floats
    """The widest moment of a step there."""
    apart: Floats
    """Context, libraries and communicators."""
    pool: Floats
    """What the first stage gives to the cache; below zero the engine does not start."""
    worst_pool: Floats
    """The same where it is least: all stages hold as many tokens."""
    tokens: Floats
    """As the engine prints them, for one rank of attention data parallelism."""
    sequence: Floats
    """What a sequence of the asked length takes of the pool."""
    concurrency: Floats
    """Sequences of the asked length that are held at once, all ranks of attention data parallelism together."""


def capacity(asked: Asked, cut: Cut) -> Capacity:
    """Return what a replica holds for each cut."""
    tp, pp, data = (np.broadcast_to(column, len(cut)) for column in (cut.tp, cut.pp, cut.data))
    whole = Cut(tp, pp, data, np.broadcast_to(cut.context, len(cut)))
    fractions = _fractions(asked, whole)
    stages = [_pool(asked, whole, fractions, last=last) for last in (False, True)]
    worst = np.minimum(*stages)
    paging = paging_of(asked)
    sequence = sequence_bytes(asked.model, asked.length, asked.element, whole, paging, asked.drafts)
    context, shared = asked.release.apart(asked.memory, asked.architecture)
    concurrency = np.maximum(worst, 0.0) / sequence
    tokens = (np.floor(concurrency * asked.length) if asked.release.tokens_of_concurrency
              else printed_tokens(asked.model, worst, asked.element, whole, paging, asked.drafts))
    return Capacity(
        weights=weight_bytes(asked.model, asked.weights, tp, pp, data),
        activations=activation_bytes(_serving(asked, 1.0), tp, pp),
        apart=context + np.where(tp > 1, shared, 0.0),
        pool=stages[0], worst_pool=worst,
        tokens=tokens, sequence=sequence, concurrency=concurrency * data)


def paging_of(asked: Asked) -> Paging:
    """Return how the engine's release holds sequences."""
    return Paging(asked.engine.block, asked.release.by_kind, _serving(asked, 1.0).limits.tokens)


def _fractions(asked: Asked, cut: Cut) -> Floats:
    """Return the fraction of each row: as asked, else the engine's default."""
    if asked.fraction is not None:
        return np.full(len(cut), asked.fraction)
    kinds, rows = np.unique(np.stack([cut.tp, cut.pp, cut.data]), axis=1, return_inverse=True)
    each = [asked.engine.default_fraction(asked.release, asked.memory, *map(int, kind)) for kind in kinds.T]
    found: Floats = np.array(each)[np.ravel(rows)]
    return found


def _serving(asked: Asked, fraction: float) -> Serving:
    return Serving(asked.model, asked.engine, asked.release, asked.memory, fraction, asked.length, asked.architecture,
                   asked.weights.activation)


def _pool(asked: Asked, cut: Cut, fractions: Floats, *, last: bool) -> Floats:
    weights = weight_bytes(asked.model, asked.weights, cut.tp, cut.pp, cut.data, last=last)
    if not asked.release.by_kind:
        # states of as many sequences as may run lie beside the pool
        weights = weights + _serving(asked, 1.0).limits.sequences * slot_bytes(asked.model, cut)
    found = np.zeros(len(cut))
    for fraction in np.unique(fractions):
        mine = fractions == fraction
        serving = _serving(asked, float(fraction))
        found[mine] = pool_bytes(serving, weights[mine], cut.tp[mine], cut.pp[mine], last=last)
    return found

"""What a replica of an inference engine holds: weights, pool, tokens and sequences, for many cuts at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from planner.catalog.architecture import Model
from planner.catalog.engine import Engine, Release, StepLimits
from planner.catalog.engine_reach import StatePool
from planner.catalog.formats import StoredCache, WeightFormat
from planner.layouts.table import Floats, Ints
from planner.physics.encoders import TowerWork
from planner.physics.serving.adapters import AdapterSlots
from planner.physics.serving.adapters import slot_bytes as slot_bytes_of
from planner.physics.serving.cache import CacheFacts, activation_bytes, pool_bytes
from planner.physics.serving.sequences import Cut, Paging, printed_tokens, sequence_bytes, slot_bytes
from planner.physics.serving.settings import USUAL, EngineSettings
from planner.physics.serving.weights import weight_bytes


@dataclass(frozen=True, slots=True)
class CacheInput:
    """What is served and how, beside the cut. Bytes unless said otherwise."""

    model: Model
    weights: WeightFormat
    cache: StoredCache
    engine: Engine
    release: Release
    memory: float
    """What a program can allocate of a GPU."""
    settings: EngineSettings = USUAL
    """A default fraction may differ by cut."""
    length: int = 1
    """Tokens of the longest sequence that is admitted."""
    architecture: str = ""
    """Of the GPU, where an engine's defaults depend on it."""
    drafts: int = 0
    """Layers of a speculative head that hold a cache."""
    adapters: AdapterSlots | None = None
    seen: tuple[TowerWork, ...] = ()
    """What encoders do for a request."""

    @property
    def crossed(self) -> int:
        """Positions of a request that cross attention reads."""
        return round(sum(part.memory for part in self.seen))

    @property
    def limits(self) -> StepLimits:
        """Tokens and sequences of a step."""
        return _serving(self, 1.0).limits(self.settings)


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

    def take(self, rows: Ints) -> Capacity:
        """Return the answers of the chosen rows."""
        return Capacity(*(getattr(self, f.name)[rows] for f in fields(self)))


def capacity(asked: CacheInput, cut: Cut) -> Capacity:
    """Return what a replica holds for each cut."""
    whole = _whole(cut)
    weights = _weights(asked, whole)
    pool, worst = _pools(asked, whole, weights)
    paging = paging_of(asked)
    sequence = sequence_bytes(asked.model, asked.length, asked.cache, whole, paging, asked.drafts, asked.crossed)
    context, shared = asked.release.apart(asked.memory, asked.architecture)
    concurrency = _sequences(asked, whole, worst, sequence)
    tokens = (np.floor(concurrency * asked.length) if asked.release.tokens_of_concurrency
              else printed_tokens(asked.model, worst, asked.cache, whole, paging, asked.drafts))
    return Capacity(
        weights=weights[0], activations=activation_bytes(_serving(asked, 1.0), whole.tp, whole.pp),
        apart=context + np.where(whole.tp > 1, shared, 0.0), pool=pool, worst_pool=worst,
        tokens=tokens, sequence=sequence, concurrency=concurrency * whole.data)


def held_each(asked: CacheInput, cut: Cut, lengths: Sequence[int], choices: Sequence[EngineSettings]) -> Floats:
    """Return how many sequences are held at once: for each choice of settings, each of `lengths` tokens, each row."""
    cut = _whole(cut)
    each = [replace(asked, settings=settings) for settings in choices]
    _, worst = _pools(asked, cut, _weights(asked, cut), choices)
    pools, held = np.broadcast_to(worst, (len(choices), len(cut))), np.zeros((len(choices), len(lengths), len(cut)))
    known: dict[tuple[Paging, int], Floats] = {}
    for at, (paging, pool) in enumerate(zip(map(paging_of, each), pools, strict=True)):
        for number, length in enumerate(lengths):
            if (paging, length) not in known:
                known[paging, length] = sequence_bytes(
                    asked.model, length, asked.cache, cut, paging, asked.drafts, asked.crossed)
            held[at, number] = _sequences(each[at], cut, pool, known[paging, length]) * cut.data
    return held


def _sequences(asked: CacheInput, cut: Cut, pool: Floats, each: Floats) -> Floats:
    """Return how many sequences a pool holds that take so many bytes each, for each row.

    States that lie beside the pool take none of it, and are there for as many sequences as a step takes, or as a pool
    of their own holds.
    """
    beside = np.where(pool >= 0, float(asked.limits.sequences), 0.0)
    held: Floats = np.divide(np.maximum(pool, 0.0), each, where=each > 0, out=beside)
    if (states := _states(asked)) is None:
        return held
    slots = states.slots * slot_bytes(asked.model, asked.cache, cut)
    of_states = np.divide(np.maximum(pool, 0.0) * states.per_token_byte, slots, where=slots > 0,
                          out=np.full_like(held, np.inf))
    return np.minimum(held, np.floor(of_states))


def _states(asked: CacheInput) -> StatePool | None:
    """Return how states have a pool of their own; none where they have none."""
    return asked.engine.states if asked.model.recurs and not asked.release.by_kind else None


def _whole(cut: Cut) -> Cut:
    return Cut(*(np.broadcast_to(column, len(cut)) for column in (cut.tp, cut.pp, cut.data, cut.context)))


def paging_of(asked: CacheInput) -> Paging:
    """Return how the engine's release holds sequences."""
    return Paging(asked.engine.block, asked.release.by_kind, asked.limits.tokens)


def _fractions(asked: CacheInput, cut: Cut, choices: Sequence[EngineSettings]) -> Floats:
    """Return the fraction of each row, a row of them for each of several choices: as asked, else the engine's default.
    """
    kinds, rows = np.unique(np.stack([cut.tp, cut.pp, cut.data]), axis=1, return_inverse=True)
    known: dict[int | None, list[float]] = {}
    for tokens in dict.fromkeys(settings.tokens for settings in choices if settings.fraction is None):
        known[tokens] = [asked.engine.default_fraction(asked.release, asked.memory, int(tp), int(pp), int(data), tokens)
                         for tp, pp, data in kinds.T]
    fractions: Floats = np.array([known[settings.tokens] if settings.fraction is None else
                                  [settings.fraction] * kinds.shape[1] for settings in choices])[:, np.ravel(rows)]
    return fractions if len(choices) > 1 else fractions[0]


def _serving(asked: CacheInput, fraction: float | Floats, choices: Sequence[EngineSettings] = ()) -> CacheFacts:
    return CacheFacts(asked.model, asked.engine, asked.release, asked.memory, fraction, asked.length,
                      asked.architecture, asked.weights.activation, choices or (asked.settings,), asked.seen)


def _weights(asked: CacheInput, cut: Cut) -> tuple[Floats, Floats]:
    """Return bytes of weights on a GPU of the first stage, and of the last."""
    first, last = (weight_bytes(asked.model, asked.weights, cut.tp, cut.pp, cut.data, last=last)
                   for last in (False, True))
    slots = 0.0 if asked.adapters is None else slot_bytes_of(asked.model, asked.adapters, cut)
    return first + slots, last + slots


def _pools(asked: CacheInput, cut: Cut, weights: tuple[Floats, Floats], choices: Sequence[EngineSettings] = ()
           ) -> tuple[Floats, Floats]:
    """Return what the first stage gives to the cache, and the stage that gives least; of several choices of settings a
    row each.
    """
    serving = _serving(asked, _fractions(asked, cut, choices or (asked.settings,)), choices)
    states = _states(asked)
    # states of as many sequences as may run lie beside the pool, unless layers are held by kind or it is shared out
    beside = 0.0 if asked.release.by_kind or states else serving.step.sequences * slot_bytes(
        asked.model, asked.cache, cut)
    first, last = (pool_bytes(serving, held + beside, cut.tp, cut.pp, last=bool(at)) for at, held in enumerate(weights))
    of_tokens = 1 if states is None else 1 / (1 + states.per_token_byte)
    return of_tokens * first, of_tokens * np.minimum(first, last)

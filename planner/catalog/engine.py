"""Inference engines: how each shares out a GPU's memory, by release."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, model_validator

from planner.catalog.architecture import Model
from planner.catalog.engine_reach import (
    Apart,
    Crosses,
    Delays,
    Runs,
    StatePool,
    Without,
    lacks_crossing,
    order_of,
)
from planner.catalog.ranges import Few, Mib, Share, Width
from planner.catalog.sourced import AsOf, Kind, Sourced
from planner.units import GIB, Bytes
from planner.yaml_io import Frozen

Copies = Literal["none", "narrow", "wide"]
"""What copies of attention a replica may have: one, several of one GPU each, or several of any."""
Shared = Literal["memory", "what is free", "what is left", "nothing"]
"""Of what the fraction is a share: all memory; what is free before the weights load, activations living outside it;
what weights and activations leave free; or of nothing, where a cache is allocated for the context asked."""


class StepLimits(Frozen):
    """What a step may hold at most unless the user says otherwise."""

    tokens: Width
    sequences: Width


class Tier(Frozen):
    """Defaults of an engine on GPUs of so much memory and more: tokens of a prefill chunk, widest decode graph."""

    memory: Mib
    """In MiB, as the engine compares it."""
    chunk: Width
    graphs: Width
    graphs_split: Width
    """The widest decode graph where four or more GPUs share a layer."""


class Reserve(Frozen):
    """What an engine keeps of a GPU's memory, in MiB, when no fraction is asked: the rest of it is the fraction."""

    constant: Mib
    token: Mib
    """For each token of a prefill chunk."""
    graph: Mib
    """For each sequence of the widest decode graph."""
    gpu: Mib
    """For each GPU of a replica."""
    data: Mib
    """For each sequence of the widest decode graph and rank of attention data parallelism."""
    data_wide: Mib
    """On top, where that graph is wider than `wide`."""
    wide: Width
    least: Mib
    least_from: Mib
    """`least` holds on GPUs of so much memory and more."""
    tiers: tuple[Tier, ...] = Field(min_length=1)

    def tier(self, memory: float) -> Tier:
        """Return the defaults on a GPU of that many bytes."""
        return next(tier for tier in reversed(self.tiers) if memory / GIB * 1024 >= tier.memory)

    def fraction(self, memory: float, tp: int, pp: int, data: int, chunk: int | None = None) -> float:
        """Return the fraction on a GPU of that many bytes; a chunk of the default's tokens unless stated."""
        size, tier = memory / GIB * 1024, self.tier(memory)
        graphs = tier.graphs if tp < 4 else tier.graphs_split
        kept = self.constant + self.token * (chunk or tier.chunk) + self.graph * graphs + self.gpu * tp * pp
        each = self.data + (self.data_wide if graphs > self.wide else 0)
        kept += each * graphs * data if data > 1 else 0
        return 1 - max(kept, self.least if size > self.least_from else 0) / size


class Release(Frozen):
    """Memory of an engine from one version on, until the next entry."""

    version: str = Field(pattern=r"^\d+(\.\d+)*$")
    small: StepLimits
    large: StepLimits
    """On GPUs of `large_from` and more."""
    large_from: Bytes
    large_except: frozenset[str] = frozenset()
    """Architectures whose GPUs count as small ones whatever their memory."""
    sampler_bytes: Annotated[float, Field(ge=0, le=1000)] = 0.0
    """Of each logit, while the profile run samples."""
    context: Bytes
    """What a GPU holds besides weights, activations and cache, alone."""
    communicators: Bytes
    """The same on top, where several GPUs share a layer."""
    communicators_small: Bytes | None = None
    """The same on small GPUs, whose links no switch reduces over; by default as on large ones."""
    whole_to: Annotated[int, Field(ge=0, le=10**9)] = 0
    """The profile run passes over a whole sequence, where sequences are no longer than this; beyond, over a chunk."""
    hidden_copies: Few = 2
    """Tensors as wide as the model that live beside a layer's widest moment; compiled steps fuse some away."""
    by_kind: bool = False
    """Whether a sliding window holds no more than its window; before, every layer held the whole sequence."""
    tokens_of_concurrency: bool = False
    """Whether the tokens printed are those of as many longest sequences as fit, whatever kinds of layers hold them."""
    fractions: dict[Few, Share] = Field(default_factory=dict)
    """Where no fraction is asked, by the number of GPUs of a replica and more."""
    reserve: Reserve | None = None
    source: str | None = None
    as_of: AsOf | None = None
    kind: Kind | None = None

    @property
    def order(self) -> tuple[int, ...]:
        """The version as numbers."""
        return order_of(self.version)

    def is_large(self, memory: float, architecture: str = "") -> bool:
        """Say whether the defaults of large GPUs hold on one of that many bytes."""
        return memory >= self.large_from and architecture not in self.large_except

    def limits(self, memory: float, architecture: str = "") -> StepLimits:
        """Return what a step holds at most by default on a GPU of that many bytes."""
        usual = self.large if self.is_large(memory, architecture) else self.small
        if self.reserve is None:
            return usual
        return StepLimits(tokens=self.reserve.tier(memory).chunk, sequences=usual.sequences)

    def apart(self, memory: float, architecture: str = "") -> tuple[float, float]:
        """Return the bytes besides weights, activations and cache: on any GPU, and on top where GPUs share a layer."""
        small = self.communicators_small
        return self.context, self.communicators if small is None or self.is_large(memory, architecture) else small


class Engine(Sourced):
    """One inference engine. `fraction_of` says of what `memory_fraction` is a share."""

    fraction_of: Shared
    memory_fraction: float = Field(ge=1e-4, le=1)
    memory_fraction_most: float | None = Field(default=None, ge=1e-4, le=1)
    """A larger fraction that still leaves room for what the engine does not count, for caches that are too small."""
    block: Width
    """Tokens of a cache block."""
    releases: tuple[Release, ...] = Field(min_length=1)
    runs: tuple[Runs, ...] = Field(min_length=1)
    """What runs where: a combination that is not here does not run."""
    sequences_most: Annotated[int, Field(gt=0, le=10**6)] | None = None
    """Sequences of a step that no setting goes above; none where any number can be set."""
    adapters: bool = False
    """Whether requests for different LoRA adapters run in one batch."""
    apart: Apart | None = None
    """How prefill and decode of a request may be on different replicas; none where they are not."""
    copies: Copies = "wide"
    """Of attention, in one replica."""
    delays: Delays | None = None
    """None where every prompt is taken as soon as its copy of attention has room."""
    ahead: str | None = Field(default=None, pattern=r"^\d+(\.\d+)*$")
    """The first release that chooses the batch of a step when the step before begins; none where none does."""
    crosses: tuple[Crosses, ...] = ()
    without: tuple[Without, ...] = ()
    """Models of the catalog that it has no code for; it is taken to have that of all others."""
    states: StatePool | None = None
    """None where states of as many sequences as a step takes lie beside the pool, or layers are held by kind."""
    issues: dict[Annotated[int, Field(gt=0, le=10**9)], str] = Field(default_factory=dict)
    """The version that was current when the project's issue of that number was opened."""

    @model_validator(mode="after")
    def _releases_rise(self) -> Engine:
        orders = [release.order for release in self.releases]
        if orders != sorted(set(orders)):
            raise ValueError("releases must rise by version")
        return self

    def lacks(self, architecture: str, weights: str, cache: str, version: str | None) -> str | None:
        """Return why a release does not run formats on an architecture, and what does; none where it runs them."""
        here = [run for run in self.runs if architecture in run.on]
        asked = order_of(version or self.newest)
        ends = [run.until for run in here if run.until is not None]
        if len(ends) == len(here) > 0 and all(asked >= order_of(until) for until in ends):
            return (f"{self.name} {version or self.newest} does not run on {architecture} GPUs: releases before "
                    f"{max(ends, key=order_of)} do (engine_version {self.last_on(architecture)})")
        if not here:
            known = sorted({name for run in self.runs for name in run.on})
            return f"{self.name} does not run on {architecture} GPUs: it runs on {', '.join(known)}"
        for what, wanted in (("weights", weights), ("cache", cache)):
            having = [runs for runs in here if wanted in getattr(runs, what)]
            said = f"{wanted} {what} on {architecture} GPUs"
            if not having:
                known = sorted({name for runs in here for name in getattr(runs, what)})
                return f"{self.name} has no {said}: it has {', '.join(known)}"
            first = min((runs.since for runs in having), key=order_of)
            if version is not None and order_of(version) < order_of(first):
                return f"{self.name} {version} has no {said}: {first} and later have"
        return None

    def lacks_model(self, model: Model, version: str | None) -> str | None:
        """Return why a release does not run a model; none where it does."""
        release = version or self.newest
        for one in self.without:
            if (reason := one.lacks(self.name, model, release)) is not None:
                return reason
        return lacks_crossing(self.name, self.crosses, model, release)

    def parts_in(self, version: str | None) -> bool:
        """Say whether a release can have prefill apart from decode."""
        return self.apart is not None and order_of(version or self.newest) >= order_of(self.apart.since)

    def stages_of(self, role: str) -> bool:
        """Say whether replicas of a role may be in pipeline stages."""
        return role == "whole" or (self.apart is not None and role in self.apart.stages)

    def delays_in(self, version: str | None) -> Delays | None:
        """Return how a release can have prompts wait for each other; none where it cannot."""
        known = self.delays
        return known if known and (version is None or order_of(version) >= order_of(known.since)) else None

    def chooses_ahead(self, version: str | None) -> bool:
        """Say whether a release chooses the batch of a step when the step before begins."""
        return self.ahead is not None and (version is None or order_of(version) >= order_of(self.ahead))

    @property
    def newest(self) -> str:
        """The newest version of which anything is known."""
        ends = (one.until for one in (*self.runs, *self.crosses, *self.without) if one.until is not None)
        begins = (one.since for one in (*self.runs, *self.crosses, *self.without))
        return max((*(release.version for release in self.releases), *self.issues.values(), *ends, *begins),
                   key=order_of)

    def last_on(self, architecture: str) -> str | None:
        """Return the last version that runs on an architecture which the newest does not run on; none elsewhere."""
        ends = [run.until for run in self.runs if architecture in run.on]
        until = max((end for end in ends if end is not None), key=order_of, default=None)
        if until is None or None in ends or order_of(self.newest) < order_of(until):
            return None
        known = (*(release.version for release in self.releases), *self.issues.values())
        return max((version for version in known if order_of(version) < order_of(until)), key=order_of)

    def release(self, version: str | None) -> Release:
        """Return the entry that holds for a version; the newest without one, the oldest for what is older."""
        if version is None:
            return self.releases[-1]
        asked = order_of(version)
        return next((release for release in reversed(self.releases) if release.order <= asked), self.releases[0])

    def version_at(self, issue: int) -> str | None:
        """Return the version that was current when an issue was opened; none before the first that is known."""
        held = [version for number, version in sorted(self.issues.items()) if number <= issue]
        return held[-1] if held else None

    def default_fraction(self, release: Release, memory: float, tp: int = 1, pp: int = 1, data: int = 1,
                         chunk: int | None = None) -> float:
        """Return the fraction where the user asks none, on a GPU of that many bytes.

        data: ranks of attention data parallelism among the tp GPUs; chunk: tokens of a prefill chunk, where asked.
        """
        if release.reserve is not None:
            return release.reserve.fraction(memory, tp, pp, data, chunk)
        held = [share for gpus, share in sorted(release.fractions.items()) if gpus <= tp * pp]
        return held[-1] if held else self.memory_fraction


def first_running(engines: Iterable[Engine], model: Model) -> Engine | None:
    """Return the first engine whose newest release runs a model; those that answer few users at once come last."""
    in_turn = sorted(engines, key=lambda engine: engine.sequences_most is not None)
    return next((engine for engine in in_turn if engine.lacks_model(model, None) is None), None)

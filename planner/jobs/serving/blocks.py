"""All layouts of a service on all hardware, with what the cache of each holds; the account of what was looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from planner.catalog.load import Catalog
from planner.jobs.columns import ReplicaColumn
from planner.jobs.serving.deployed import cache_input, cut_of, deployment, lacks
from planner.jobs.serving.rates import LeastLatency, domain, layouts
from planner.jobs.serving.service import Service
from planner.layouts.candidate import Candidate
from planner.layouts.table import Floats
from planner.physics.serving.capacity import CacheInput, held_each
from planner.physics.serving.deployment import Deployment, Replicas
from planner.physics.serving.settings import EngineSettings
from planner.solver.settings import Effort

Admitted = Callable[[ReplicaColumn], bool]
TOKENS = (2048, 8192, 16384)
SEQUENCES = (64, 256, 1024)
"""Of a step at most, beside the engine's default: prefill chunks and batch limits that are tried."""
DELAYS = (1, 4)
"""Times the engine's default: steps that prompts wait for each other, beside not at all."""


@dataclass(slots=True)
class Account:
    """What was looked at."""

    layouts: int = 0
    legal: int = 0
    fit: int = 0
    removed: Counter[str] = field(default_factory=Counter)
    nearest: list[tuple[LeastLatency, str]] = field(default_factory=list)
    """For hardware where no layout meets the targets: what comes nearest, and its name."""
    lacking: Counter[str] = field(default_factory=Counter)
    """Why the engine does not run a format on a GPU, for those of the candidates on which it does not."""
    missing: list[tuple[float, str]] = field(default_factory=list)
    """Of hardware where no layout fits: bytes a GPU lacks at least, and its name."""
    cut_short: bool = False
    """Whether time ran out before all was looked at."""
    searched: list[ServiceRows] = field(default_factory=list)
    """Of services with targets, in turn, what was searched."""


@dataclass(frozen=True, slots=True)
class ServiceRows:
    """A service, its layouts on all hardware, and what of these keeps its targets by formula."""

    service: Service
    blocks: Sequence[Kindred]
    made: Sequence[list[tuple[int, ReplicaColumn]]]
    """Of each block, with its row, what is answered with the first chunk."""
    wanted: Sequence[list[int]]
    """Of these the rows that no other matches."""
    admitted: Admitted
    delays: tuple[int | None, ...]
    """Steps that prompts wait for each other at most, as tried on these."""
    kept: list[ReplicaColumn]
    """What is left in the end, with other chunks too."""


@dataclass(slots=True)
class Kindred:
    """Layouts on one kind of hardware; those inside a node are the same whatever network joins the nodes."""

    candidates: list[int]
    labels: list[str]
    d: Deployment
    asked: CacheInput
    rows: Replicas
    choices: list[EngineSettings]
    """Simple ones first."""
    held: Floats
    """Sequences of the longest and of mean length, by choice, length and row."""

    @property
    def chunk(self) -> int | None:
        """The chunk that is tried first: the one asked for, else the engine's."""
        return self.choices[0].tokens

    def most(self, tokens: int | None) -> Floats:
        """Return how many sequences run at once with the best settings of that chunk, by choice and row."""
        limits = np.array([c.sequences or self.asked.limits.sequences for c in self.choices], np.float64)
        held = np.minimum(self.held[:, 1], limits[:, None] * self.rows.dp)
        possible = (self.held[:, 0] >= 1) & np.array([c.tokens == tokens for c in self.choices])[:, None]
        return np.where(possible, held, 0.0)


def blocks_of(catalog: Catalog, service: Service, candidates: Mapping[int, Candidate], account: Account,
            effort: Effort) -> list[Kindred]:
    """Return all layouts on all hardware, with what each holds. Raises OutOfTime."""
    blocks: list[Kindred] = []
    known: dict[tuple[str, str], Kindred] = {}
    copies = catalog.engine(service.asked.engine).copies
    for at, candidate in candidates.items():
        for name in service.asked.quantization or ():
            effort.check()
            if (reason := lacks(catalog, service, candidate, name)) is not None:
                account.layouts += domain(service.model)
                account.removed["engine_format"] += domain(service.model)
                account.lacking[f"{candidate.gpu.name}: {reason}"] += 1
                continue
            d = deployment(catalog, service, candidate, name)
            rows = layouts(service.model, candidate, account.removed, copies)
            label = f"{candidate.label} in {name}"
            account.layouts += domain(service.model)
            account.legal += len(rows)
            inside = rows.gpus <= candidate.node.gpus
            key = candidate.node.name, name
            if key in known:
                known[key].candidates.append(at)
                known[key].labels.append(label)
            else:
                known[key] = _block(catalog, service, d, rows.take(np.flatnonzero(inside)), at, label)
                blocks.append(known[key])
            if not inside.all():
                blocks.append(_block(catalog, service, d, rows.take(np.flatnonzero(~inside)), at, label))
    return blocks


def _block(catalog: Catalog, service: Service, d: Deployment, rows: Replicas, at: int, label: str) -> Kindred:
    asked = cache_input(catalog, service, d, service.length, stated := service.settings)
    fractions = (stated.fraction,) if stated.fraction else (None, asked.engine.memory_fraction_most)
    # an engine that takes prompts whole has no chunk to choose
    chunks = (stated.tokens,) if stated.tokens or d.engine.prefill_first else (None, *(
        count for count in TOKENS if count != asked.limits.tokens))
    most = catalog.engine(service.asked.engine).sequences_most
    sequences = (stated.sequences,) if stated.sequences else (None, *(
        count for count in SEQUENCES if count != asked.limits.sequences and count <= (most or count)))
    choices = sorted((EngineSettings(*values) for values in product(fractions, chunks, sequences)),
                     key=lambda each: (each.changed, each.fraction or 0, each.tokens or 0, each.sequences or 0))
    return Kindred([at], [label], d, asked, rows, choices,
                  held_each(asked, cut_of(rows), (service.length, service.mean_length), choices))

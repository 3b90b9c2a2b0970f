"""Every way to run a service: hardware, weight formats, layouts and settings, with what each holds and answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from planner.catalog.load import Catalog
from planner.errors import MissingFact, Unsupported
from planner.jobs.columns import ReplicaColumn, Role
from planner.jobs.serving.fronts import fronts, plain_too
from planner.jobs.serving.rates import LeastLatency, domain, idle, largest, layouts, queued
from planner.jobs.serving.service import Service
from planner.layouts.candidate import Candidate
from planner.layouts.table import Floats, Ints
from planner.physics.serving.capacity import CacheInput, Capacity, capacity, held_each
from planner.physics.serving.deployment import Deployment, Replicas, deployment_of, joined, seeing
from planner.physics.serving.formats import format_of
from planner.physics.serving.sequences import Cut
from planner.physics.serving.settings import EngineSettings
from planner.solver.settings import UNLIMITED, Effort, OutOfTime

Admitted = Callable[[ReplicaColumn], bool]
TOKENS = (2048, 8192, 16384)
SEQUENCES = (64, 256, 1024)
"""Of a step at most, beside the engine's default: prefill chunks and batch limits that are tried."""


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
    searched: list[Searched] = field(default_factory=list)
    """Of services with targets, in turn, what was searched."""


@dataclass(frozen=True, slots=True)
class Searched:
    """A service, its layouts on all hardware, and what of these keeps its targets by formula."""

    service: Service
    blocks: Sequence[Block]
    made: Sequence[list[tuple[int, ReplicaColumn]]]
    """Of each block, with its row, what is answered with the first chunk."""
    wanted: Sequence[list[int]]
    """Of these the rows that no other matches."""
    admitted: Admitted
    kept: list[ReplicaColumn]
    """What is left in the end, with other chunks too."""


@dataclass(slots=True)
class Block:
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


def lacks(catalog: Catalog, service: Service, candidate: Candidate, name: str) -> str | None:
    """Return why the engine does not run the service in a format on that hardware; none where it does."""
    asked, engine = service.asked, catalog.engine(service.asked.engine)
    cache = "bf16" if asked.kv_cache == "auto" else asked.kv_cache
    return engine.lacks_model(service.model, asked.engine_version) or engine.lacks(
        candidate.gpu.architecture, name, cache, asked.engine_version)


def deployment(catalog: Catalog, service: Service, candidate: Candidate, name: str,
               settings: EngineSettings | None = None) -> Deployment:
    """Return a service on one kind of hardware with its weights in the format `name`. Raises PlannerError."""
    asked = service.asked
    if (reason := lacks(catalog, service, candidate, name)) is not None:
        raise Unsupported(f"{candidate.gpu.name}: {reason}")
    weights = format_of(catalog.formats, name, service.model)
    if weights is None:
        raise MissingFact(f"model {service.model.name}", f"weights in {name}")
    speed = catalog.speeds(asked.engine).release(asked.engine_version, candidate.gpu.architecture)
    cache = "bf16" if asked.kv_cache == "auto" else asked.kv_cache
    d = deployment_of(catalog, service.model, name, weights, catalog.formats.cache(cache), (candidate,), speed)
    limits = _asked(catalog, service, d, service.length, settings or service.settings).limits
    speed = speed.model_copy(update={"chunk": limits.tokens, "sequences": limits.sequences})
    return seeing(catalog, replace(d, engine=speed, adapters=service.adapters), service.seen, service.stream.input)


def held(catalog: Catalog, service: Service, d: Deployment, rows: Replicas, length: int,
         settings: EngineSettings | None = None) -> Capacity:
    """Return what each layout holds of sequences of that length; settings: other than the question's own."""
    return capacity(_asked(catalog, service, d, length, settings or service.settings), _cut(rows))


def _asked(catalog: Catalog, service: Service, d: Deployment, length: int, settings: EngineSettings) -> CacheInput:
    engine, gpu = catalog.engine(service.asked.engine), d.candidates[0].gpu
    return CacheInput(service.model, d.weights, d.cache, engine, engine.release(service.asked.engine_version),
                 gpu.usable_memory, settings, length=length, architecture=gpu.architecture,
                 drafts=1 if service.stream.drafts else 0, adapters=service.adapters, seen=service.seen)


def _cut(rows: Replicas) -> Cut:
    return Cut(rows.tp * rows.dp, rows.pp, rows.dp)


def options(catalog: Catalog, service: Service, candidates: Sequence[Candidate], account: Account,
            admitted: Admitted = lambda column: True, here: Collection[int] | None = None,
            effort: Effort = UNLIMITED) -> list[ReplicaColumn]:
    """Return the columns admitted of a service on all candidates, or those `here`; `account` is told what was removed
    and why, and whether time ran out.

    Of each layout and chunk the settings that let most sequences run are taken, which answer most. Chunks other than
    the engine's are tried on the layouts that no other matches with it.
    """
    at_all = range(len(candidates)) if here is None else sorted(here)
    try:
        blocks = _blocks(catalog, service, {at: candidates[at] for at in at_all}, account, effort)
        made = _answered(service, blocks, service.settings.tokens, account, effort)
    except OutOfTime:
        account.cut_short = True
        return []
    made = [[(row, column) for row, column in columns if admitted(column)] for columns in made]
    front = {at: fronts(column for block, columns in zip(blocks, made, strict=True) if at in block.candidates
                        for _, column in columns) for at in at_all}
    shown = {id(column) for columns in front.values() for column in columns}
    wanted = [[row for row, column in columns if id(column) in shown] for columns in made]
    for tokens in () if service.settings.tokens else TOKENS:
        if effort.is_over:
            account.cut_short = True
            break
        for at, column in again(service, blocks, wanted, tokens):
            front[at].append(column)
    # formats are told apart, so that each can be shown beside the best
    kept = [column for at, columns in front.items() for name in service.asked.quantization or ()
            for column in plain_too([replace(c, candidate=at) for c in columns if c.format == name])]
    answering = sum(len(block.candidates) * len(columns) for block, columns in zip(blocks, made, strict=True))
    account.removed["dominated"] += answering - len({column.layout for column in kept})
    if service.asked.levels:
        account.searched.append(Searched(service, blocks, made, wanted, admitted, kept))
    return kept


def again(service: Service, blocks: Sequence[Block], rows: Sequence[Collection[int]], tokens: int | None
           ) -> Iterator[tuple[int, ReplicaColumn]]:
    """Yield what some rows of each block answer with a chunk, each for every candidate of its own."""
    few = [replace(block, rows=block.rows.take(mine), held=block.held[:, :, mine])
           for block, some in zip(blocks, rows, strict=True)
           if any(c.tokens == tokens for c in block.choices) and len(mine := np.array(sorted(set(some)), np.int64))]
    for block, answered in zip(few, _answered(service, few, tokens, None), strict=True):
        for at in block.candidates:
            yield from ((at, replace(column, candidate=at)) for _, column in answered)


def _blocks(catalog: Catalog, service: Service, candidates: Mapping[int, Candidate], account: Account,
            effort: Effort) -> list[Block]:
    """Return all layouts on all hardware, with what each holds. Raises OutOfTime."""
    blocks: list[Block] = []
    known: dict[tuple[str, str], Block] = {}
    for at, candidate in candidates.items():
        for name in service.asked.quantization or ():
            effort.check()
            if (reason := lacks(catalog, service, candidate, name)) is not None:
                account.layouts += domain(service.model)
                account.removed["engine_format"] += domain(service.model)
                account.lacking[f"{candidate.gpu.name}: {reason}"] += 1
                continue
            d = deployment(catalog, service, candidate, name)
            rows, label = layouts(service.model, candidate, account.removed), f"{candidate.label} in {name}"
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


def _block(catalog: Catalog, service: Service, d: Deployment, rows: Replicas, at: int, label: str) -> Block:
    asked = _asked(catalog, service, d, service.length, stated := service.settings)
    fractions = (stated.fraction,) if stated.fraction else (None, asked.engine.memory_fraction_most)
    # an engine that takes prompts whole has no chunk to choose
    chunks = (stated.tokens,) if stated.tokens or d.engine.prefill_first else (None, *(
        count for count in TOKENS if count != asked.limits.tokens))
    most = catalog.engine(service.asked.engine).sequences_most
    sequences = (stated.sequences,) if stated.sequences else (None, *(
        count for count in SEQUENCES if count != asked.limits.sequences and count <= (most or count)))
    choices = sorted((EngineSettings(*values) for values in product(fractions, chunks, sequences)),
                     key=lambda each: (each.changed, each.fraction or 0, each.tokens or 0, each.sequences or 0))
    return Block([at], [label], d, asked, rows, choices,
                  held_each(asked, _cut(rows), (service.length, service.mean_length), choices))


def _answered(service: Service, blocks: Sequence[Block], tokens: int | None, account: Account | None,
              effort: Effort = UNLIMITED) -> list[list[tuple[int, ReplicaColumn]]]:
    """Return the columns of each block with a chunk, each with its row; `account` is told what fell out.

    Raises OutOfTime.
    """
    answers: list[list[tuple[int, ReplicaColumn]]] = [[] for _ in blocks]
    alike: dict[object, list[int]] = defaultdict(list)
    for at, block in enumerate(blocks):
        alike[block.d.format, block.d.engine].append(at)
    for members in alike.values():
        mine = [blocks[at] for at in members]
        each = [np.flatnonzero(block.most(tokens).any(axis=0)) for block in mine]
        d, rows = joined([block.d for block in mine],
                         [block.rows.take(fits) for block, fits in zip(mine, each, strict=True)])
        if tokens is not None:
            d = replace(d, engine=d.engine.model_copy(update={"chunk": tokens}))
        most = np.concatenate([block.most(tokens).max(axis=0)[fits] for block, fits in zip(mine, each, strict=True)])
        ends = np.cumsum([len(fits) for fits in each])
        for role in _roles(service):
            effort.check()
            results = (most,) * 3 if not len(rows) else queued(d, rows, service.stream, most) if (
                service.asked.documents) else largest(d, role, rows, service.stream, service.level, most)
            for at, block, fits, end in zip(members, mine, each, ends, strict=True):
                part = slice(end - len(fits), end)
                answers[at] += _columns(block, role, tokens, fits, *(values[part] for values in results))
    for block, columns in zip(blocks, answers, strict=True):
        if account is not None:
            _told(account, service, block, columns)
    return answers


def _columns(block: Block, role: Role, tokens: int | None, fits: Ints, rate: Floats, load: Floats,
             crowd: Floats) -> Iterable[tuple[int, ReplicaColumn]]:
    """Yield what meets the targets, with the simplest settings that let as many sequences run as there are."""
    most, rows = block.most(tokens), block.rows
    for number in np.flatnonzero(rate > 0):
        at = fits[number]
        # prefill alone holds what it works on, whatever the settings
        needed = min(float(crowd[number]), float(most[:, at].max()))
        choice = int(np.argmax((most[:, at] > 0) & (most[:, at] >= needed)))
        yield int(at), ReplicaColumn(0, block.d.format, role, int(rows.tp[at]), int(rows.pp[at]), int(rows.ep[at]),
                                     int(rows.dp[at]), float(rate[number]), float(load[number]),
                                     float(most[choice, at]), block.choices[choice])


def _told(account: Account, service: Service, block: Block, columns: list[tuple[int, ReplicaColumn]]) -> None:
    """Count the layouts of a block for each of its candidates, and keep what comes nearest where none is left."""
    fits = np.flatnonzero(block.most(block.chunk).any(axis=0))
    times, roles = len(block.candidates), len(_roles(service))
    account.fit += times * len(fits)
    account.removed["memory"] += times * (len(block.rows) - len(fits))
    account.removed["level"] += times * (roles * len(fits) - len(columns))
    if not len(block.rows):
        return
    if not len(fits):
        longest = capacity(block.asked, _cut(block.rows))
        lacks = float((longest.sequence - longest.worst_pool).min())
        account.missing += [(lacks, label) for label in block.labels]
    elif not columns:
        each = idle(block.d, block.rows.take(fits), service.stream, service.level)
        account.nearest += [(nearest, label) for nearest in each for label in block.labels]


def _roles(service: Service) -> tuple[Role, ...]:
    """Return what of a request replicas may do."""
    apart: dict[str, tuple[Role, ...]] = {"no": ("whole",), "allowed": ("whole", "prefill", "decode"),
                                          "only": ("prefill", "decode")}
    return apart[service.asked.disaggregated]

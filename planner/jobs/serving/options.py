"""Every way to run a service: hardware, weight formats, layouts and settings, with what each holds and answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from planner.catalog.load import Catalog
from planner.jobs.columns import ReplicaColumn, Role
from planner.jobs.serving.blocks import DELAYS, TOKENS, Account, Admitted, Kindred, ServiceRows, blocks_of
from planner.jobs.serving.deployed import cut_of, delayed
from planner.jobs.serving.fronts import fronts, plain_too
from planner.jobs.serving.rates import idle, largest, queued
from planner.jobs.serving.service import Service
from planner.layouts.candidate import Candidate
from planner.layouts.table import Floats, Ints
from planner.physics.serving.capacity import capacity
from planner.physics.serving.deployment import joined
from planner.physics.serving.settings import can_wait
from planner.solver.settings import UNLIMITED, Effort, OutOfTime


def options(catalog: Catalog, service: Service, candidates: Sequence[Candidate], account: Account,
            admitted: Admitted = lambda column: True, here: Collection[int] | None = None,
            effort: Effort = UNLIMITED) -> list[ReplicaColumn]:
    """Return the columns admitted of a service on all candidates, or those `here`; `account` is told what was removed
    and why, and whether time ran out.

    Of each layout and chunk the settings that let most sequences run are taken, which answer most. Prompts that wait
    for each other are tried wherever they can. Chunks other than the engine's are tried on the layouts that no other
    matches with it.
    """
    at_all, tokens = range(len(candidates)) if here is None else sorted(here), service.settings.tokens
    waits = delays_of(catalog, service)
    try:
        blocks = blocks_of(catalog, service, {at: candidates[at] for at in at_all}, account, effort)
        made = _answered(service, blocks, tokens, _roles(service), account, effort)
        held_up = [_waiting(block) for block in blocks]
        for steps in waits[1:]:
            made = [[*columns, *others] for columns, others in zip(
                made, _again(catalog, service, blocks, held_up, tokens, steps), strict=True)]
    except OutOfTime:
        account.cut_short = True
        return []
    made = [[(row, column) for row, column in columns if admitted(column)] for columns in made]
    front = {at: fronts(column for block, columns in zip(blocks, made, strict=True) if at in block.candidates
                        for _, column in columns) for at in at_all}
    shown = {id(column) for columns in front.values() for column in columns}
    wanted = [[row for row, column in columns if id(column) in shown] for columns in made]
    for chunk, steps in () if service.settings.tokens else product(TOKENS, waits):
        if effort.is_over:
            account.cut_short = True
            break
        for at, column in again(catalog, service, blocks, wanted, chunk, steps):
            front[at].append(column)
    # formats are told apart, so that each can be shown beside the best
    kept = [column for at, columns in front.items() for name in service.asked.quantization or ()
            for column in plain_too([replace(c, candidate=at) for c in columns if c.format == name])]
    answering = sum(len(block.candidates) * len({column.layout for _, column in columns})
                    for block, columns in zip(blocks, made, strict=True))
    account.removed["dominated"] += answering - len({column.layout for column in kept})
    if service.asked.levels:
        account.searched.append(ServiceRows(service, blocks, made, wanted, admitted, waits, kept))
    return kept


def delays_of(catalog: Catalog, service: Service) -> tuple[int | None, ...]:
    """Return the steps that prompts may wait for each other, as they are tried: as asked, else not at all first."""
    engine, asked = catalog.engine(service.asked.engine), service.settings.delay
    known = engine.delays_in(service.asked.engine_version)
    whole = "whole" in _roles(service)  # of prefill apart, nobody waits for decoding
    if asked is not None or known is None or service.asked.documents or not whole:
        return (asked,)
    return (None, *(times * known.steps for times in DELAYS))


def _waiting(block: Kindred) -> list[int]:
    """Return the rows of a block whose prompts can wait for each other."""
    return [int(row) for row in np.flatnonzero(can_wait(block.rows.dp, block.rows.pp))]


def again(catalog: Catalog, service: Service, blocks: Sequence[Kindred], rows: Sequence[Collection[int]],
          tokens: int | None, steps: int | None) -> Iterator[tuple[int, ReplicaColumn]]:
    """Yield what some rows of each block answer with a chunk, each for every candidate of its own.

    steps: that prompts wait for each other at most; rows whose prompts cannot are left out where there are some.
    """
    for block, answered in zip(blocks, _again(catalog, service, blocks, rows, tokens, steps), strict=True):
        for at in block.candidates:
            yield from ((at, replace(column, candidate=at)) for _, column in answered)


def _again(catalog: Catalog, service: Service, blocks: Sequence[Kindred], rows: Sequence[Collection[int]],
           tokens: int | None, steps: int | None) -> list[list[tuple[int, ReplicaColumn]]]:
    """Return likewise the columns of each block, each with its row."""
    besides = steps is not None and service.settings.delay is None
    mine = [np.array(sorted({*some} & {*_waiting(block)} if besides else {*some}), np.int64)
            for block, some in zip(blocks, rows, strict=True)]
    roles: tuple[Role, ...] = ("whole",) if besides else _roles(service)
    few = {at: replace(block, rows=block.rows.take(taken), held=block.held[:, :, taken],
                       d=delayed(catalog, service, block.d, steps))
           for at, (block, taken) in enumerate(zip(blocks, mine, strict=True))
           if any(c.tokens == tokens for c in block.choices) and len(taken)}
    answered = dict(zip(few, _answered(service, [*few.values()], tokens, roles), strict=True))
    return [[(int(mine[at][row]), column) for row, column in answered.get(at, ())] for at in range(len(blocks))]


def _answered(service: Service, blocks: Sequence[Kindred], tokens: int | None, roles: Sequence[Role],
              account: Account | None = None, effort: Effort = UNLIMITED) -> list[list[tuple[int, ReplicaColumn]]]:
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
        for role in roles:
            effort.check()
            rate, load, crowd = (most,) * 3 if not len(rows) else queued(d, rows, service.stream, most) if (
                service.asked.documents) else largest(d, role, rows, service.stream, service.level, most)
            for at, block, fits, end in zip(members, mine, each, ends, strict=True):
                part = slice(end - len(fits), end)
                possible = (rows.pp[part] == 1) | block.asked.engine.stages_of(role)
                answers[at] += _columns(block, role, tokens, fits, np.where(possible, rate[part], 0.0), load[part],
                                        crowd[part])
    for block, columns in zip(blocks, answers, strict=True):
        if account is not None:
            _told(account, service, block, columns)
    return answers


def _columns(block: Kindred, role: Role, tokens: int | None, fits: Ints, rate: Floats, load: Floats,
             crowd: Floats) -> Iterable[tuple[int, ReplicaColumn]]:
    """Yield what meets the targets, with the simplest settings that let as many sequences run as there are."""
    most, rows = block.most(tokens), block.rows
    for number in np.flatnonzero(rate > 0):
        at = fits[number]
        # prefill alone holds what it works on, whatever the settings
        needed = min(float(crowd[number]), float(most[:, at].max()))
        choice = int(np.argmax((most[:, at] > 0) & (most[:, at] >= needed)))
        tp, pp, ep, dp = (int(degree[at]) for degree in (rows.tp, rows.pp, rows.ep, rows.dp))
        steps = block.d.delay.steps if block.d.delay and role == "whole" and can_wait(dp, pp) else None
        yield int(at), ReplicaColumn(0, block.d.format, role, tp, pp, ep, dp, float(rate[number]), float(load[number]),
                                     float(most[choice, at]), replace(block.choices[choice], delay=steps))


def _told(account: Account, service: Service, block: Kindred, columns: list[tuple[int, ReplicaColumn]]) -> None:
    """Count the layouts of a block for each of its candidates, and keep what comes nearest where none is left."""
    fits = np.flatnonzero(block.most(block.chunk).any(axis=0))
    times, roles = len(block.candidates), len(_roles(service))
    account.fit += times * len(fits)
    account.removed["memory"] += times * (len(block.rows) - len(fits))
    account.removed["level"] += times * (roles * len(fits) - len(columns))
    if not len(block.rows):
        return
    if not len(fits):
        longest = capacity(block.asked, cut_of(block.rows))
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

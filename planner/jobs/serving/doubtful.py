"""What the formula turns down and a replay may admit: layouts at the rates within targets that are eased."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from planner.catalog.load import Catalog
from planner.jobs.columns import ReplicaColumn
from planner.jobs.serving.blocks import ServiceRows
from planner.jobs.serving.fronts import fronts
from planner.jobs.serving.options import again


def doubtful(catalog: Catalog, searched: ServiceRows) -> Iterator[ReplicaColumn]:
    """Yield the columns kept, and those of layouts that miss a target at any rate that no other matches then, at the
    rates up to which they keep targets that are eased; with other chunks as much further as with the first.
    """
    service, found = searched.service, defaultdict[int, list[ReplicaColumn]](list)
    # what others match by formula is left out, and what misses is not
    rows = [{*rows, *range(len(block.rows))} - ({row for row, _ in made} - {*rows})
            for block, made, rows in zip(searched.blocks, searched.made, searched.wanted, strict=True)]
    eased = replace(service, level=service.level.eased)
    for steps in searched.delays:
        for at, column in again(catalog, eased, searched.blocks, rows, service.settings.tokens, steps):
            if searched.admitted(column):
                found[at].append(column)
    most = {(column.layout, column.settings.delay): column.rate for columns in found.values() for column in columns}
    first = {(column.layout, column.settings.delay): column.rate for column in searched.kept
             if column.settings.tokens == service.settings.tokens}
    for column in searched.kept:
        alike = column.layout, column.settings.delay
        further = most.get(alike, 0.0) / first.get(alike, column.rate)
        yield replace(column, rate=column.rate * max(further, 1.0))
    answering = {column.layout for column in searched.kept}
    for columns in found.values():
        yield from (column for column in fronts(columns) if column.layout not in answering)

"""What is the same replica, on whatever offer."""

from __future__ import annotations

from collections.abc import Sequence

from planner.jobs.columns import Pick, ReplicaColumn
from planner.jobs.fleet import Owner
from planner.layouts.candidate import Candidate
from planner.physics.serving.settings import EngineSettings

Key = tuple[Owner, tuple[object, ...], object]
"""A column: its demand, layout and settings."""


def chunked(key: Key) -> tuple[object, ...]:
    """Return what is the same replica but for the share of memory and the sequences that may be there."""
    settings = key[2]
    return (*key[:2], *((settings.tokens, settings.delay) if isinstance(settings, EngineSettings) else (settings,)))


def replica_of(column: ReplicaColumn, candidates: Sequence[Candidate]) -> tuple[tuple[object, ...], object]:
    """Return layout and settings of what is the same replica: inside a node, whatever network joins the nodes."""
    mine = candidates[column.candidate]
    alone = column.role == "whole" and column.gpus <= mine.node.gpus
    return (mine.node.name if alone else column.candidate, *column.layout[1:]), column.settings


def owner_of(pick: Pick) -> Owner:
    """Return whose demand a pick answers."""
    return pick.job, pick.demand

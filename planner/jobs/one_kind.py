"""A fleet of services on one node type alone, of the columns of one on all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from planner.jobs.columns import Columns, Pick, ReplicaColumn
from planner.jobs.solved import Solved


def node_of(solved: Solved, column: ReplicaColumn) -> str:
    """Return the node type that a replica runs on."""
    return solved.question.terms.market.candidates[column.candidate].node.name


def nodes_of(solved: Solved) -> set[str]:
    """Return the node types that the replicas of a fleet run on."""
    return {node_of(solved, pick.column) for pick in solved.picks if isinstance(pick, Pick)}


def only(solved: Solved, node: str) -> Solved:
    """Return the best fleet by formula whose replicas are all on one node type."""
    def on(found: Sequence[tuple[int, ReplicaColumn]]) -> tuple[tuple[int, ReplicaColumn], ...]:
        return tuple((at, column) for at, column in found if node_of(solved, column) == node)

    def doubted(mine: Columns) -> Sequence[tuple[int, ReplicaColumn]]:
        return on(mine.doubtful())

    columns = tuple(replace(mine, replicas=on(mine.replicas), doubtful=partial(doubted, mine))
                    for mine in solved.columns)
    fleet = replace(solved.fleet, columns=columns)
    return replace(solved, columns=columns, fleet=fleet, solution=fleet.solve())

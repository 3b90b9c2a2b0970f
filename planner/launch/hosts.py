"""Node types that are several servers, such as a rack of trays on one NVLink: what starts a program counts servers."""

from __future__ import annotations

from typing import TypeVar

from planner.answer.assignment import (
    Assignment,
    DiffusionAssignment,
    PostTrainingAssignment,
    ServingAssignment,
    TrainingAssignment,
)
from planner.catalog.hardware import Node
from planner.catalog.load import Catalog

A = TypeVar("A", TrainingAssignment, ServingAssignment, DiffusionAssignment, PostTrainingAssignment)


def host(catalog: Catalog, node: str) -> Node:
    """Return one server of a node type, with the GPUs that its operating system sees."""
    whole = catalog.node(node)
    return whole if whole.hosts == 1 else whole.model_copy(update={"gpus": whole.gpus // whole.hosts, "hosts": 1})


def on_hosts(placed: A, catalog: Catalog) -> A:
    """Return an assignment whose nodes are servers."""
    if catalog.node(placed.node).hosts == 1:
        return placed
    return placed.model_copy(update={"nodes": -(-placed.gpus // host(catalog, placed.node).gpus)})


def hosts_note(placed: Assignment, catalog: Catalog) -> tuple[str, ...]:
    """Return what a reader has to know of a node type that is several servers."""
    node = catalog.node(placed.node)
    return () if node.hosts == 1 else (
        f"A {node.name} is {node.hosts} servers of {host(catalog, node.name).gpus} GPUs each, and the files count "
        f"servers, which have to come from whole racks: Slurm has `sbatch --segment={node.hosts}` from 24.05.",)

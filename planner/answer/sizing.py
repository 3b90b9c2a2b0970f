"""What `planner plan --jobs` prints as JSON: schema planner.sizing/1."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from planner.yaml_io import Frozen


class LogReplay(Frozen):
    """The log replayed on so many nodes."""

    nodes: int = Field(ge=0)
    """Nodes of one type."""
    wait_seconds: dict[str, float]
    """From submission to start: p50, p95, p99 and the longest."""
    in_time: float = Field(ge=0, le=1)
    """Share of jobs that wait no longer than asked."""
    busy: float = Field(ge=0)
    """Share of the GPUs' time, from the first submission to the last end, that jobs take."""


class Burst(Frozen):
    """Nodes that are always there, and rented ones for each job that would wait longer than asked."""

    replayed: LogReplay
    """On the nodes that are always there; what bursts waits as long as asked."""
    jobs: int = Field(ge=0)
    """How many run on rented nodes."""
    gpu_hours: float = Field(ge=0)
    """Rented in the time of the log: whole nodes for each job."""
    offer: str
    """Where they are rented."""
    usd_per_year: float = Field(ge=0)
    """Of both, the rented ones scaled from the log's time to a year."""


class Size(Frozen):
    """The fewest nodes of one type on which the log waits no longer than asked."""

    node: str
    """Node type, by its catalog name."""
    gpus_of_node: int = Field(gt=0)
    """GPUs of a node."""
    fewest: LogReplay
    """The fewest nodes found."""
    bound: int = Field(ge=1)
    """No scheduler keeps the wait on fewer nodes."""
    missed: int = Field(ge=0)
    """How many smaller fleets were replayed; all of them miss."""
    status: Literal["optimal", "feasible"]
    """optimal: every smaller fleet was replayed and misses, or lies below the bound; feasible: not all were."""
    sourcing: Literal["buy", "own", "rent"] | None = None
    """How the nodes cost least for a year; none where nobody offers them."""
    offer: str | None = None
    """Of that."""
    usd_per_year: float | None = Field(default=None, ge=0)
    """Of the fewest nodes."""
    burst: Burst | None = None
    """Fewer nodes, with rented ones for the peaks, where that costs less; none where it does not."""


class Sizing(Frozen):
    """How many nodes a log of jobs needs."""

    model_config = ConfigDict(populate_by_name=True)

    schema_: Literal["planner.sizing/1"] = Field(default="planner.sizing/1", alias="schema")
    """Edition of this document."""
    jobs: int = Field(gt=0)
    """In the log, with a GPU and an end."""
    days: float = Field(ge=0)
    """From the first submission to the last."""
    gpu_hours: float = Field(ge=0)
    """That they took."""
    most_gpus: int = Field(gt=0)
    """Of the largest job."""
    wait_seconds: float = Field(ge=0)
    """What was asked: as long as that at most ..."""
    share: float = Field(gt=0, le=1)
    """... for this share of jobs."""
    sizes: tuple[Size, ...]
    """One for each node type, the cheapest first."""
    notes: tuple[str, ...] = ()
    """What the user should know."""

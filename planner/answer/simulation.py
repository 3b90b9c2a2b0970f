"""What `planner simulate` prints as JSON: schema planner.simulation/1."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field

from planner.answer.level import Percentiles
from planner.yaml_io import Frozen


class Latencies(Frozen):
    """Seconds that shares of the requests stay within, and their mean."""

    p50: float
    """Half of them."""
    p90: float
    """90% of them."""
    p95: float
    """95% of them."""
    p99: float
    """99% of them."""
    mean: float
    """On average."""


class Simulation(Frozen):
    """A trace replayed on the replicas of one service."""

    model_config = ConfigDict(populate_by_name=True)

    schema_: Literal["planner.simulation/1"] = Field(default="planner.simulation/1", alias="schema")
    """Edition of this document."""
    workload: str
    """The service."""
    policy: str
    """Of the router."""
    replicas: int
    """Of the plan."""
    requests: int
    """Of the trace."""
    rejected: int
    """Requests that no replica could ever hold."""
    preempted: int
    """Times that a sequence gave up its cache for older ones, and began again."""
    requests_per_second: float | None
    """Of the trace, from its first request to its last; none where all come at once."""
    seconds: float
    """From the first arrival to the last token."""
    output_tokens_per_second: float
    """Total over all replicas."""
    busy_share: float
    """Of the time in which a step ran, on average over the replicas."""
    share_within_level: float
    """Share of the requests that met every latency target."""
    made: str | None = None
    """What a request asks for, image or clip, whose one token it then is; none of a language model."""
    latency_seconds: dict[str, Latencies]
    """ttft, tpot, e2e and queue."""
    computed: dict[str, Percentiles]
    """TTFT and TPOT, and e2e where it has a target, as the plan has them, at its own rate."""

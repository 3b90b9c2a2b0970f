"""Requests that are tried for the longest that a service holds, alone or as many at once as the question has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planner.catalog.load import Catalog
from planner.scenario.lengths import Length
from planner.scenario.scenario import AnyScenario, ServingScenario
from planner.scenario.serving import LOADS

STEP = 1024
"""Tokens by which requests are tried."""
LONGEST = 2**24
Keys = dict[str, Any]
"""Of a workload."""


def request_sizes(scenario: AnyScenario, catalog: Catalog) -> tuple[Callable[[int], Keys], int, int] | None:
    """Return the keys of a service with requests of a rising length, the last number, and how many
    are held at once; none of other work.

    A prompt takes what the answer leaves, up to the model's table of positions, if it has one.
    """
    if not isinstance(scenario, ServingScenario):
        return None
    (service,) = scenario.services
    out = service.output.mean if service.output is not None else 0.0
    most = catalog.model(service.model).position_rows or LONGEST
    first = int(out // STEP)
    at_once = service.concurrency or service.users or 1

    def keys(count: int) -> Keys:
        tokens = min((first + count) * STEP, most)
        return {**dict.fromkeys(LOADS), "concurrency": at_once, "max_model_len": tokens,
                "input": Length("mean", tokens - out, 0.0)}

    return keys, -(-most // STEP) - first, at_once

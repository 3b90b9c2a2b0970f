"""Processes of tests: what they share, their children, and whether they are gone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

ANSWERS = "PLANNER_TESTS_ANSWERS"
"""The variable that names the folder of the plans that processes of a test run share."""

PATIENCE = 300
"""Seconds that what must end may take, on a busy machine too."""


def _state(pid: int) -> tuple[str, int] | None:
    """Return the state of a process and its parent; none where there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            state, parent, *_ = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return state, int(parent)


def children(pid: int) -> list[int]:
    """Return the processes that a process has started and that run."""
    found = {int(name): _state(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    return [one for one, state in found.items() if state is not None and state[1] == pid and state[0] not in "ZX"]


def gone(pids: Iterable[int], within: float = PATIENCE) -> bool:
    """Say whether all processes end within so many seconds; one that nobody has waited for has ended too."""
    until = time.monotonic() + within
    left = list(pids)
    while left and time.monotonic() < until:
        left = [pid for pid in left if (found := _state(pid)) is not None and found[0] not in "ZX"]
        time.sleep(0.01)
    return not left

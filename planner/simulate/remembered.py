"""Replays that were run before: other limits, terms and offers often come to the same replicas and requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from planner.layouts.memo import ByValue
from planner.simulate.fleet import ReplicaGroup, Shift, Transfer, simulate, simulate_hoping
from planner.simulate.hopes import Hopes
from planner.simulate.outcome import Outcome
from planner.simulate.trace import Trace, Users

LONGEST = 16_000
"""Requests of a trace whose outcome is kept: about 1.3 MB."""
MOST = 64 * LONGEST
"""Requests of all outcomes that are kept."""
OUTCOMES = ByValue[Outcome](MOST, lambda outcome: len(outcome.arrival))
HOPED = ByValue[Outcome | None](MOST, lambda outcome: 1 if outcome is None else len(outcome.arrival))


def replayed_once(trace: Trace, groups: Sequence[ReplicaGroup], policy: str, transfer: Transfer | None,
                  progress: Callable[[float], None] | None, users: Users | None = None,
                  phases: Sequence[Shift] = ()) -> Outcome:
    """Return what `simulate` does, remembered by the values of all that decides it. Raises InputError."""
    trace = _deciding(trace, users)

    def run() -> Outcome:
        return simulate(trace, groups, policy, transfer, progress, users, phases)

    if not _is_kept(trace, transfer):
        return run()
    outcome = OUTCOMES.recall((trace, tuple(groups), policy, transfer, users, tuple(phases)), run)
    if progress is not None:
        progress(1.0)
    return outcome


def hoped_once(hopes: Hopes, trace: Trace, groups: Sequence[ReplicaGroup], transfer: Transfer | None,
               users: Users | None) -> Outcome | None:
    """Return what `simulate_hoping` does, remembered likewise. Raises InputError."""
    trace = _deciding(trace, users)

    def run() -> Outcome | None:
        return simulate_hoping(hopes, trace, groups, transfer=transfer, users=users)

    return HOPED.recall((hopes, trace, tuple(groups), transfer, users), run) if _is_kept(trace, transfer) else run()


def _is_kept(trace: Trace, transfer: Transfer | None) -> bool:
    """Say whether an outcome is remembered: where values tell all that decides it, and it is not long."""
    return (transfer is None or isinstance(transfer, partial)) and len(trace) <= LONGEST


def _deciding(trace: Trace, users: Users | None) -> Trace:
    """Return a trace without the arrivals that count for nothing, as users ask when they are answered."""
    return trace if users is None else replace(trace, arrival=np.zeros(len(trace)))

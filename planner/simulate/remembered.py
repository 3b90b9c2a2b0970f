"""Replays that were run before: other limits, terms and offers often come to the same replicas and requests."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import sha256

from planner.simulate.fleet import Phase, ReplicaGroup, Transfer, simulate
from planner.simulate.outcome import Outcome
from planner.simulate.trace import Trace, Users

KEPT = 64
"""Outcomes, the last used."""
LONGEST = 16_000
"""Requests of a trace whose outcome is kept: about 1.3 MB."""
_outcomes: OrderedDict[bytes, Outcome] = OrderedDict()


def replayed_once(trace: Trace, groups: Sequence[ReplicaGroup], policy: str, transfer: Transfer | None,
                  progress: Callable[[float], None] | None, users: Users | None = None,
                  phases: Sequence[Phase] = ()) -> Outcome:
    """Return what `simulate` does, remembered by the values of all that decides it. Raises InputError."""
    if transfer is not None or len(trace) > LONGEST:
        return simulate(trace, groups, policy, transfer, progress, users, phases)
    key = sha256(pickle.dumps((trace, tuple(groups), policy, users, tuple(phases)))).digest()
    if key in _outcomes:
        _outcomes.move_to_end(key)
        if progress is not None:
            progress(1.0)
        return _outcomes[key]
    outcome = _outcomes[key] = simulate(trace, groups, policy, transfer, progress, users, phases)
    if len(_outcomes) > KEPT:
        _outcomes.popitem(last=False)
    return outcome

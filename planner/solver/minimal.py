"""A minimal set of reasons, by leaving out one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence


def minimal(names: Sequence[str], possible: Callable[[Sequence[str]], bool]) -> list[str]:
    """Return a minimal part of `names` that is infeasible when held alone; empty where nothing held is infeasible too.

    `names` as a whole must be infeasible. One that is enough by itself is preferred.
    """
    if not possible([]):
        return []
    if len(names) <= 1:
        return list(names)
    for name in names:
        if not possible([name]):
            return [name]
    reasons = list(names)
    for name in names:
        rest = [other for other in reasons if other != name]
        # each alone is known to be no reason
        if len(rest) > 1 and not possible(rest):
            reasons = rest
    return reasons

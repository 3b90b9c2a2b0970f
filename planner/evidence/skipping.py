"""Why a row gets no prediction."""

from __future__ import annotations

from pydantic import ValidationError

from planner.catalog.quirk import Sources
from planner.errors import PlannerError
from planner.evidence.rows import StatedRun


class SkippedError(PlannerError):
    """The row is outside the model or not stated well enough; the message is the reason."""


UNREADABLE = (PlannerError, ValidationError)
"""What may be wrong with a row: outside the model, not in the catalog, or of values that no model or node can have."""


def why(reason: Exception) -> str:
    """Return in one line what is wrong with a row; of a value, which and what was expected."""
    if not isinstance(reason, ValidationError):
        return str(reason)
    first = reason.errors()[0]
    name = ".".join(str(part) for part in first["loc"] if part not in ("run", "measured"))
    problem = "required, but empty" if first["type"] == "missing" else first["msg"].removeprefix("Value error, ")
    return f"{name}: {problem}"


def refuse(run: StatedRun, sources: Sources) -> None:
    """Raise SkippedError for what the physics does not cover, and for rows that contradict themselves."""
    reason = sources.word("refused", run)
    if reason is not None:
        for column, cell in run:
            reason = reason.replace(f"{{{column}}}", str(cell))
        raise SkippedError(reason)

"""The exit code that an answer has, on the command line and of a server."""

from __future__ import annotations

from planner.answer.comparison import Comparison
from planner.answer.explanation import Explanation
from planner.answer.schema import Plan
from planner.errors import EXIT_INFEASIBLE, EXIT_OK, EXIT_STOPPED


def exit_code(made: Plan | Comparison | Explanation) -> int:
    """Return the exit code: of a comparison, infeasible only where no row has a plan."""
    if isinstance(made, Plan) and made.objective.is_load and made.objective.by_replay and made.objective.by_replay.met:
        return EXIT_OK  # the largest load is shown by replay, whatever is proven by formula
    statuses = {row.status for row in made.rows} if isinstance(made, Comparison) else {made.status}
    if statuses & {"feasible", "undecided"}:
        return EXIT_STOPPED
    return EXIT_OK if "optimal" in statuses else EXIT_INFEASIBLE

"""Of fleets that are equally good for services without a latency target, the one whose answers come quickest.

Stages of a pipeline answer as much as matrices that are split, or more, and each token waits for all of them in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from planner.jobs.columns import Columns
from planner.jobs.fleet import Fleet
from planner.jobs.job import Job, Replayable
from planner.jobs.solved import Solved, settings_of

DEGREES = (8, 4, 2)
"""Over how many GPUs of a node matrices are split where there are no stages."""
WRITTEN = 100
"""Tokens of an answer by which the first and those after it are weighed."""


def quicker(solved: Solved) -> Solved:
    """Return the quickest fleet of those as good that have no pipeline stages on the hardware that was picked, or the
    one given.
    """
    staged = {pick.column.candidate for pick in solved.replicas if pick.column.pp > 1}
    if not staged or solved.status != "optimal" or solved.held or not all(map(_waited_for, solved.question.jobs)):
        return solved
    return min((solved, *_as_good(solved, staged)), key=_wait)


def _waited_for(job: Job) -> bool:
    """Say whether somebody waits for each answer of a service, and no target says for how long."""
    return isinstance(job, Replayable) and job.has_requests and "pp" in job.axes and not job.can_miss


def _as_good(solved: Solved, staged: set[int]) -> Iterator[Solved]:
    """Yield the fleets of the same value without stages on the candidates `staged`."""
    market = replace(solved.question.terms.market, of_use=tuple(sorted(staged)))
    there = solved.question.under(replace(solved.question.terms, market=market))
    for degree in DEGREES:
        if all(market.candidates[at].node.gpus % degree for at in staged):
            continue
        columns = tuple(_flat(known, job.columns(solved.effort, held={"pp": "1", "tp": str(degree)}), staged)
                        for job, known in zip(there.jobs, solved.columns, strict=True))
        fleet = Fleet(columns, solved.question.terms, settings_of(solved.effort))
        flat = replace(solved, columns=columns, fleet=fleet, solution=fleet.solve())
        if (flat.status, flat.solution.value) == ("optimal", solved.solution.value):
            yield flat


def _flat(known: Columns, flat: Columns, staged: set[int]) -> Columns:
    """Return the columns known, on the candidates `staged` those without stages in their place."""
    return replace(known, replicas=(*(each for each in known.replicas if each[1].candidate not in staged),
                                    *(each for each in flat.replicas if each[1].candidate in staged)))


def _wait(solved: Solved) -> float:
    """Return the seconds to the first token and between tokens, of the slowest replicas."""
    return max(each.serving.ttft_seconds.p50 + each.serving.tpot_seconds.p50 * WRITTEN
               for each in solved.assignments() if each.serving)

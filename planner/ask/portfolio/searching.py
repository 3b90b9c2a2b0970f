"""The columns of a portfolio's jobs: what asks the same is searched once, and Ctrl-C leaves a few of every job."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from planner.jobs.columns import Columns
from planner.jobs.job import Job
from planner.solver.settings import Effort

Known = dict[object, Columns]
"""Columns by what they depend on."""
SOON = 3.0
"""Seconds of the clock in which a first column of a job is looked for after Ctrl-C, and a first schedule."""


@dataclass(slots=True)
class Searching:
    """Searches for columns, until Ctrl-C; from then on for a first few."""

    effort: Effort
    known: Known = field(default_factory=Known)
    so_far: bool = False
    """Whether Ctrl-C leaves what there is; it is raised where not."""
    interrupted: bool = False

    @property
    def soon(self) -> Effort:
        """A few seconds from now on."""
        return replace(self.effort, stop=time.monotonic() + SOON)

    def columns(self, key: object, job: Job) -> Columns:
        """Return the columns of a job, searched unless they are known. Raises KeyboardInterrupt without any."""
        if key in self.known:
            return self.known[key]
        found = self._searched(job)
        if self.interrupted:
            if not self.so_far:
                raise KeyboardInterrupt
            if found is None or not (found.runs or found.replicas):
                found = job.columns(self.soon, "shared")
            if not (found.runs or found.replicas):
                raise KeyboardInterrupt
        assert found is not None
        self.known[key] = found
        return found

    def _searched(self, job: Job) -> Columns | None:
        """Return what is found until Ctrl-C; none where that was before."""
        if self.interrupted:
            return None
        try:
            found = job.columns(self.effort, "shared")
        except KeyboardInterrupt:
            self.interrupted = True
            return None
        self.interrupted = found.interrupted
        return found

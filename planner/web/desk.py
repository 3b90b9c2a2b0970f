"""The desk of the server: takes questions, gives each a job, and keeps what was answered."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from pathlib import Path

from planner.web.answering import Answered, Folders, answer, open_catalog
from planner.web.kept import AnswerStore, code
from planner.web.limits import BEHIND, ESTIMATORS, MOST_PLANS, MOST_REMEMBERED, MOST_SECONDS_AT_ONCE
from planner.web.pool import Ended, Full, Processes, Queued
from planner.web.question import Verb


class Desk:
    """What answers: processes for estimates, others for searches, and the answers that there are."""

    def __init__(self, folders: Folders, keep: Path) -> None:
        """Start the processes. folders: the user's catalogs; keep: where finished answers are kept."""
        self.folders, self.kept = folders, AnswerStore(keep)
        self.digest = f"{open_catalog(folders).digest} {code()}"
        """What an answer is of: another planner, or another catalog, answers anew."""
        self.jobs: OrderedDict[str, Queued] = OrderedDict()
        self.asked: dict[str, Queued] = {}
        """Questions that are being answered or wait, by key: who asks the same waits for the same."""
        self.searches = Processes(MOST_PLANS, BEHIND, folders, self._ended)
        self.estimates = Processes(ESTIMATORS, 0, folders, self._ended, warm=True, most_seconds=MOST_SECONDS_AT_ONCE)

    def ask(self, question: Verb) -> Queued:
        """Return the job of a question: a new one, one that runs, or one that is done. Raises Full."""
        key = question.key(self.digest)
        known = self.asked.get(key)
        if known is not None and known.told_to_end is None:
            return known
        job = Queued(partial(answer, question, self.folders), key, outlives=question.verb != "estimate")
        found = self.kept.get(key)
        if found is not None:
            job.result.set_result(found)
        else:
            self.asked[key] = job
            try:
                (self.searches if job.outlives else self.estimates).add(job)
            except Full:
                del self.asked[key]
                raise
        self.jobs[job.id] = job
        while len(self.jobs) > MOST_REMEMBERED and next(iter(self.jobs.values())).result.done():
            self.jobs.popitem(last=False)
        return job

    def make(self, job: Queued) -> Queued:
        """Put a job in line, behind estimates, for which no answer is kept: a file made of an answer. Raises Full."""
        self.estimates.add(job, later=True)
        return job

    def place(self, job: Queued) -> int | None:
        """Return how many wait before a job; none where it does not wait."""
        return self.searches.place(job)

    def close(self) -> None:
        """End all processes; what has been answered is kept."""
        for pool in (self.searches, self.estimates):
            pool.close()

    def _ended(self, job: Queued, ended: Ended) -> None:
        """Keep an answer, before anybody hears of it."""
        if job.key and isinstance(ended, Answered) and ended.is_final:
            self.kept.put(job.key, ended, on_disk=job.outlives)
        if self.asked.get(job.key) is job:
            del self.asked[job.key]

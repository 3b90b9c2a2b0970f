"""Processes that answer questions: a thread for each, a line for what waits, and how far each search is."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from secrets import token_urlsafe
from threading import Condition, Thread
from typing import Any

from planner.errors import EXIT_INTERRUPTED, EXIT_STOPPED, InputError, PlannerError
from planner.process.workers import LostWorker, Workers
from planner.solver.progress import SoFar
from planner.units import show_seconds
from planner.web.answering import Answered, File, Folders, prepare
from planner.web.limits import LEAVE_SECONDS, MOST_MEMORY, MOST_SECONDS, MOST_WAITING
from planner.web.openapi import State
from planner.web.refusing import CANCELED, Refusal, bug

Ended = Answered | Refusal | File
HEARTBEAT = 0.1
"""Seconds between looks at whether a search is to end."""


@dataclass(eq=False)
class Queued:
    """A question that waits, is answered, or was: what a process is to call for it, and what tells it from others."""

    call: Callable[[], Ended]
    key: str
    outlives: bool = False
    """Whether its answer is kept beyond the end of the server, and goes on when who asked leaves."""
    askers: int = 0
    """Who wait for it now."""
    id: str = field(default_factory=lambda: token_urlsafe(12))
    began: float | None = None
    so_far: SoFar | None = None
    told_to_end: float | None = None
    result: Future[Ended] = field(default_factory=Future)

    @property
    def state(self) -> State:
        """How it stands."""
        if not self.result.done():
            return "waiting" if self.began is None else "running"
        ended = self.result.result()
        if not isinstance(ended, Refusal):
            return "done"
        return "canceled" if ended.exit_code == EXIT_INTERRUPTED else "failed"

    def cancel(self) -> None:
        """End the search with the best that it has; what still waits is not begun."""
        if self.told_to_end is None:
            self.told_to_end = time.monotonic()


class Full(PlannerError):
    """Too many questions wait."""


class Processes:
    """So many processes that answer, and the questions in line for them."""

    def __init__(self, count: int, behind: int, folders: Folders, ended: Callable[[Queued, Ended], None], *,
                 warm: bool = False, most_seconds: float = MOST_SECONDS) -> None:
        """Start the threads; `behind` is how much the processes yield to others. ended: is told of each answer.

        warm: the processes are started before anything is asked. most_seconds: how long each question may take.
        """
        self.folders, self.behind, self.ended, self.warm = folders, behind, ended, warm
        self.most_seconds = most_seconds
        self.waiting: deque[Queued] = deque()
        self.later: deque[Queued] = deque()
        self.changed = Condition()
        self.closing = False
        self.threads = [Thread(target=self._serve, daemon=True) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def add(self, job: Queued, *, later: bool = False) -> None:
        """Put a question in line; `later`: behind all that are not. Raises Full."""
        with self.changed:
            if len(self.waiting) + len(self.later) >= MOST_WAITING:
                raise Full(f"{MOST_WAITING} questions wait already: ask again in a minute")
            (self.later if later else self.waiting).append(job)
            self.changed.notify()

    def place(self, job: Queued) -> int | None:
        """Return how many are before a question in line; none where it does not wait."""
        with self.changed:
            return self.waiting.index(job) if job in self.waiting else None

    def close(self) -> None:
        """Begin nothing more, end what runs with what it has, and wait for that."""
        with self.changed:
            self.closing = True
            waiting = [*self.waiting, *self.later]
            self.waiting, self.later = deque(), deque()
            self.changed.notify_all()
        for job in waiting:
            job.result.set_result(Refusal("the server was stopped before the search began", EXIT_INTERRUPTED))
        for thread in self.threads:
            thread.join(LEAVE_SECONDS + 5)

    def _next(self) -> Queued | None:
        with self.changed:
            while not (self.waiting or self.later or self.closing):
                self.changed.wait()
            return None if self.closing else (self.waiting or self.later).popleft()

    def _serve(self) -> None:
        """Answer questions one by one: the life of a thread."""
        running: dict[str, Queued] = {}
        with Workers[str](1, heard=partial(_hear, running), most_losses=1, behind=self.behind) as workers:
            if self.warm:
                with suppress(PlannerError):  # what is asked will say it
                    self._start(workers)
            while (job := self._next()) is not None:
                if job.told_to_end is not None:
                    self._end(job, Refusal("canceled before it began", EXIT_INTERRUPTED))
                    continue
                running[job.id] = job
                job.began = time.monotonic()
                try:
                    if not workers.ready():  # the first, or the one before is gone
                        self._start(workers)
                    ended = self._answer(job, workers)
                except PlannerError as error:  # no process can be started
                    ended = Refusal(str(error), EXIT_STOPPED)
                del running[job.id]
                self._end(job, ended)

    def _start(self, workers: Workers[str]) -> None:
        workers.add("", partial(prepare, self.folders, MOST_MEMORY))
        for found in workers.answers():
            if found.error is not None:  # without its limit of memory no process answers
                raise InputError("a process for searches ended as it began, perhaps for memory: ask again")

    def _answer(self, job: Queued, workers: Workers[str]) -> Ended:
        workers.add(job.id, job.call)
        stopped, is_late = None, False
        while True:
            for found in workers.answers(HEARTBEAT):
                ended = _result(found.value, found.error)
                return self._too_long() if is_late and ended == CANCELED else ended
            now = time.monotonic()
            is_late = is_late or (job.told_to_end is None and now - (job.began or now) > self.most_seconds)
            if self.closing or is_late:
                job.cancel()
            if job.told_to_end is not None and stopped is None:
                stopped = now
                workers.stop()
            if stopped is not None and now - stopped > LEAVE_SECONDS:
                workers.end()
                return self._too_long() if is_late else Refusal(
                    "the search did not end when it was told to, and was ended without an answer", EXIT_INTERRUPTED)

    def _too_long(self) -> Refusal:
        return Refusal(f"there was no answer within {show_seconds(self.most_seconds)}, the limit of this server: ask "
                       "for less, or use the command line", EXIT_STOPPED)

    def _end(self, job: Queued, ended: Ended) -> None:
        self.ended(job, ended)
        job.result.set_result(ended)


def _hear(running: dict[str, Queued], key: str, news: Any) -> None:  # noqa: ANN401 - what a call tells
    if key in running and isinstance(news, SoFar):
        before = running[key].so_far
        # what comes after a part may turn out to be more than was thought: the bar stays where it is
        running[key].so_far = replace(news, done=max(news.done, before.done)) if before else news


def _result(value: object, error: BaseException | None) -> Ended:
    if isinstance(error, LostWorker):
        return Refusal(f"the process of this search was lost, perhaps for memory (limit {MOST_MEMORY >> 30} GiB): ask "
                       "for less, or use the command line", EXIT_STOPPED)
    if isinstance(error, KeyboardInterrupt):
        return CANCELED
    if error is not None:
        return bug(error)
    assert isinstance(value, Ended)
    return value

"""Variants answered on this machine: in this process, or in worker processes that may be lost."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection
from threading import Thread

from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.sweep.answering import answer
from planner.sweep.task import Answers, Outcome, Task, Terms

MOST_LOSSES = 3
"""Worker processes that one variant may lose before it is given up."""


def cores() -> int:
    """Return how many processes can run at once here."""
    count: int | None = getattr(os, "process_cpu_count", os.cpu_count)()
    return count or 1


@contextmanager
def this_process(terms: Terms, catalog: Catalog) -> Iterator[Answers]:
    """Answer one variant after the other, here."""
    def answers(tasks: Sequence[Task]) -> Iterator[Outcome]:
        for task in tasks:
            yield answer(task, terms, catalog)

    yield answers


@contextmanager
def processes(terms: Terms, workers: int) -> Iterator[Answers]:
    """Answer variants in `workers` spawned processes, which are ended at the end whatever they do."""
    crew = _Crew(terms, workers)
    try:
        yield crew.answers
    finally:
        crew.end()


class _Crew:
    """Worker processes, each a pool of one, so that a loss is blamed on the variant it had and on no other."""

    def __init__(self, terms: Terms, workers: int) -> None:
        self.terms = terms
        self.free = [_pool() for _ in range(workers)]
        self.pools = list(self.free)
        self.running: dict[Future[Outcome], tuple[ProcessPoolExecutor, Task]] = {}
        self.losses: Counter[int] = Counter()

    def answers(self, tasks: Sequence[Task]) -> Iterator[Outcome]:
        """Yield outcomes as they are done; a variant whose process was lost is redone, a few times."""
        waiting = deque(tasks)
        while waiting or self.running:
            while waiting and self.free:
                self._start(waiting.popleft())
            for future in wait(self.running, return_when=FIRST_COMPLETED).done:
                pool, task = self.running.pop(future)
                try:
                    outcome = future.result()
                    self.free.append(pool)
                except BrokenProcessPool:
                    self.free.append(self._replaced(pool))
                    self.losses[task.index] += 1
                    if self.losses[task.index] < MOST_LOSSES:
                        waiting.appendleft(task)
                        continue
                    outcome = Outcome(task.index, None, f"its worker process was lost {MOST_LOSSES} times: killed, "
                                      "perhaps for memory; fewer --workers need less")
                yield outcome

    def _start(self, task: Task) -> None:
        pool = self.free.pop()
        try:
            future = self._submitted(pool, task)
        except BrokenProcessPool:  # lost while it had nothing to do
            pool = self._replaced(pool)
            future = self._submitted(pool, task)
        self.running[future] = pool, task

    def _submitted(self, pool: ProcessPoolExecutor, task: Task) -> Future[Outcome]:
        with _spawning():
            return pool.submit(answer, task, self.terms)

    def _replaced(self, pool: ProcessPoolExecutor) -> ProcessPoolExecutor:
        pool.shutdown(wait=False)
        self.pools.remove(pool)
        self.pools.append(_pool())
        return self.pools[-1]

    def end(self) -> None:
        """End every process; what still runs is not waited for."""
        for pool in self.pools:
            for worker in list((pool._processes or {}).values()):
                worker.terminate()
        for pool in self.pools:
            pool.shutdown(wait=True, cancel_futures=True)


def _pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), initializer=_settle)


@contextmanager
def _spawning() -> Iterator[None]:
    """Start a process that Ctrl-C does not reach, not even while it imports; here it arrives a moment later."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot start a worker process: {error.strerror}; try fewer --workers") from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _settle() -> None:
    """Make this process a worker: Ctrl-C is its parent's, and it does not outlive that one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def leave() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    Thread(target=leave, daemon=True).start()

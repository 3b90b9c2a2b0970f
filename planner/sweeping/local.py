"""Variants answered on this machine: in this process, or in worker processes that may be lost."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from planner.catalog.load import Catalog
from planner.process.workers import LostWorker, Workers
from planner.sweeping.answering import answer
from planner.sweeping.task import Answers, SweepTask, SweepTerms, VariantOutcome


def cores() -> int:
    """Return how many processes can run at once here."""
    count: int | None = getattr(os, "process_cpu_count", os.cpu_count)()
    return count or 1


@contextmanager
def this_process(terms: SweepTerms, catalog: Catalog) -> Iterator[Answers]:
    """Answer one variant after the other, here."""
    def answers(tasks: Sequence[SweepTask]) -> Iterator[VariantOutcome]:
        for task in tasks:
            yield answer(task, terms, catalog)

    yield answers


@contextmanager
def processes(terms: SweepTerms, workers: int) -> Iterator[Answers]:
    """Answer variants in `workers` processes, which are ended at the end whatever they do."""
    with Workers[int](workers) as crew:
        yield partial(_answers, crew, terms)


def _answers(crew: Workers[int], terms: SweepTerms, tasks: Sequence[SweepTask]) -> Iterator[VariantOutcome]:
    """Yield outcomes as they are done; a variant that loses its process again and again is given up alone."""
    for task in tasks:
        crew.add(task.index, partial(answer, task, terms))
    for done in crew.answers():
        lost = isinstance(done.error, LostWorker)
        yield VariantOutcome(done.key, None, str(done.error)) if lost else done.result()

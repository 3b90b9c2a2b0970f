"""The sweep itself: what is open goes to an engine, and what comes back is written and counted, or collected."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from planner.catalog.load import Catalog
from planner.scenario.load import Reference
from planner.sweeping.line import Sweep, SweepLine, line_of
from planner.sweeping.local import processes, this_process
from planner.sweeping.output import Output
from planner.sweeping.task import Answers, SweepTask, SweepTerms, spelled, tasks
from planner.sweeping.variants import Varied
from planner.text_io import real

STOPPED = ("feasible", "undecided")
"""Statuses of plans whose search was stopped before a proof."""


class _Lines:
    """Keeps each line as it is done."""

    def __init__(self) -> None:
        self.lines: dict[int, str] = {}

    def add(self, index: int, line: str) -> None:
        self.lines[index] = line


def collected(reference: Reference, axes: Sequence[Varied], catalog: Catalog, also: Mapping[str, object],
              names: Mapping[str, str], time_limit: float | None, workers: int) -> Sweep:
    """Return every variant of a question with its answer, in order. Raises InputError where one is no question."""
    asked = tasks(reference, axes, catalog, also, names)
    terms = SweepTerms(tuple(str(real(folder)) for folder in catalog.roots[1:]), catalog.digest, time_limit)
    workers, output = min(workers, len(asked)), _Lines()
    with processes(terms, workers) if workers > 1 else this_process(terms, catalog) as answers:
        run(asked, (), answers, output, lambda done: None)
    return Sweep(lines=tuple(SweepLine.model_validate_json(output.lines[task.index]) for task in asked))


@dataclass(frozen=True, slots=True)
class Summary:
    """How a sweep ended: errors by variant, how many the time limit stopped, and what their plans note, once each."""

    errors: dict[str, str]
    stopped: int
    notes: tuple[str, ...]


def run(tasks: Sequence[SweepTask], done: Collection[int], answers: Answers, output: Output,
        progress: Callable[[int], None]) -> Summary:
    """Answer the tasks that are not `done`; `progress` is told how many are, first and after each."""
    errors: dict[int, str] = {}
    notes: dict[int, tuple[str, ...]] = {}
    stopped, count = 0, len(done)
    progress(count)
    for outcome in answers([task for task in tasks if task.index not in done]):
        output.add(outcome.index, line_of(tasks[outcome.index].variant, outcome))
        if outcome.error is not None:
            errors[outcome.index] = outcome.error
        stopped += outcome.plan is not None and outcome.plan["status"] in STOPPED
        notes[outcome.index] = outcome.notes
        count += 1
        progress(count)
    return Summary({spelled(tasks[index].variant): errors[index] for index in sorted(errors)}, stopped,
                   tuple(dict.fromkeys(note for index in sorted(notes) for note in notes[index])))

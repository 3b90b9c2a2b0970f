"""The sweep itself: what is open goes to an engine, and what comes back is written and counted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from planner.sweeping.line import line_of
from planner.sweeping.output import Output
from planner.sweeping.task import Answers, Task, spelled

STOPPED = ("feasible", "undecided")
"""Statuses of plans whose search was stopped before a proof."""


@dataclass(frozen=True, slots=True)
class Summary:
    """How a sweep ended: errors by variant, how many the time limit stopped, and what their plans note, once each."""

    errors: dict[str, str]
    stopped: int
    notes: tuple[str, ...]


def run(tasks: Sequence[Task], done: Collection[int], answers: Answers, output: Output,
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

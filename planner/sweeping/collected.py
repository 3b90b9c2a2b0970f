"""A sweep whose lines are kept as objects, for Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.catalog.load import Catalog
from planner.scenario.load import Reference
from planner.sweeping.line import Sweep, SweepLine
from planner.sweeping.local import processes, this_process
from planner.sweeping.run import run
from planner.sweeping.task import Terms, tasks
from planner.sweeping.variants import Varied
from planner.text_io import real


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
    terms = Terms(tuple(str(real(folder)) for folder in catalog.roots[1:]), catalog.digest, time_limit)
    workers, output = min(workers, len(asked)), _Lines()
    with processes(terms, workers) if workers > 1 else this_process(terms, catalog) as answers:
        run(asked, (), answers, output, lambda done: None)
    return Sweep(lines=tuple(SweepLine.model_validate_json(output.lines[task.index]) for task in asked))

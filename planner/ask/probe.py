"""`planner probe`: what this machine reaches, measured and written as a catalog folder and a CSV of evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from planner.catalog.load import Catalog
from planner.probe.backend import Backend
from planner.probe.entries import entries
from planner.probe.journal import Journal
from planner.probe.tasks import Machine, ProbeTask, seconds_of, tasks_of
from planner.text_io import write_folder

SCHEMA = "planner.probe/1"
Progress = Callable[[int, int, ProbeTask], None]
"""Tasks done, all tasks, and the one that is done."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What was, or would be, measured."""

    machine: Machine
    tasks: tuple[ProbeTask, ...]
    left: tuple[ProbeTask, ...]
    """Tasks that are not measured yet."""
    seconds: float
    """That they take, about."""
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return machine, tasks, what is left, files and notes, schema planner.probe/1."""
        return {"schema": SCHEMA, "machine": asdict(self.machine), "tasks": [task.key for task in self.tasks],
                "left": [task.key for task in self.left], "seconds": self.seconds,
                "files": [str(path) for path in self.files], "notes": list(self.notes)}


def probe(folder: Path, catalog: Catalog, backend: Backend, as_of: str, *, dry_run: bool = False,
          progress: Progress = lambda done, of, task: None) -> Probe:
    """Measure what is not in the folder's journal yet, and write what all of it says.

    A rank of torchrun that does not lead measures with the others and writes nothing. Raises InputError where the
    folder's journal is of another machine.
    """
    machine = backend.machine()
    tasks = tasks_of(machine)
    journal = Journal(folder, machine) if backend.leads else None
    left = [task for task in tasks if journal is None or task.key not in journal.measured]
    if dry_run:
        return Probe(machine, tuple(tasks), tuple(left), seconds_of(left))
    for task, result in backend.measured(left):
        if journal is not None:
            journal.add(task.key, result)
            progress(len(journal.measured), len(tasks), task)
    if journal is None:
        return Probe(machine, tuple(tasks), (), 0.0)
    probed = entries(machine, tasks, journal.measured, catalog, as_of)
    files = [path for kind in dict.fromkeys(name.rpartition("/")[0] for name in probed.files)
             for path in write_folder(folder / kind, {name.rpartition("/")[2]: text for name, text in
                                                      probed.files.items() if name.rpartition("/")[0] == kind})]
    return Probe(machine, tuple(tasks), (), 0.0, tuple(files), probed.notes)

"""Files that a scenario names: as seen from its own folder, or shipped beside the scenarios."""

from __future__ import annotations

import os
from pathlib import Path

from planner.catalog.load import data_root
from planner.yaml_io import Document


def existing_file(name: str, document: Document, at: tuple[str | int, ...]) -> Path:
    """Return the file of `name`; `at` is where the document has it. Raises InputError where there is none.

    A relative path is seen from the scenario file, or from here where a flag gives it; else from the shipped scenarios.
    """
    beside = os.path.dirname(document.file) if at not in document.labels else ""
    for folder in (beside, str(data_root("scenarios"))):
        path = os.path.abspath(os.path.join(folder, name))
        if os.path.isfile(path):
            return Path(path)
    raise document.error(at, f"no such file {name!r}: a path is seen from the folder of the scenario")


def trace_file(trace: str) -> Path:
    """Return the file of a resolved `trace`."""
    return data_root("scenarios") / trace


def trace_named(trace: str, document: Document, at: tuple[str | int, ...]) -> str:
    """Return an absolute path, or of a trace that comes with the planner the one below its scenarios."""
    path, shipped = str(existing_file(trace, document, at)), str(data_root("scenarios"))
    inside = path.startswith(os.path.abspath(shipped) + os.sep)
    return Path(os.path.relpath(path, shipped)).as_posix() if inside else path

"""dstack's own model of a run's configuration, which forbids what it does not know."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from dstack._internal.core.models.configurations import parse_run_configuration


def resolve(folder: Path) -> dict[str, object]:
    """Return the nodes and the GPUs of each that a task comes to."""
    with (folder / ".dstack.yml").open() as file:
        task = parse_run_configuration(import_module("yaml").safe_load(file))
    return {"cluster": [task.nodes, task.resources.gpu.count.min]}

"""dstack's own model of a run's configuration, which forbids what it does not know."""

from __future__ import annotations

from pathlib import Path

from dstack._internal.core.models.configurations import parse_run_configuration
from dstack._internal.core.services.repos import yaml as _yaml


def resolve(folder: Path) -> dict[str, object]:
    """Return the nodes and the GPUs of each that a task comes to."""
    with (folder / ".dstack.yml").open() as file:
        task = parse_run_configuration(_yaml.safe_load(file))
    return {"cluster": [task.nodes, task.resources.gpu.count.min]}

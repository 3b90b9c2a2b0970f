"""Jobs of a file of their own, added to a portfolio: `planner plan portfolio.yaml --add job.yaml`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.errors import InputError
from planner.scenario.load import Reference, find
from planner.scenario.portfolio import PortfolioJob
from planner.yaml_io import Document, read, validate


def with_jobs(reference: Reference, files: Sequence[Path]) -> dict[str, Any]:
    """Return what a portfolio's file holds with the jobs of other files at its end. Raises InputError.

    A file has one job (`name`, `workload`, ...), or several under `jobs`.
    """
    data: Any = read(find(reference)).data if isinstance(reference, str) else reference
    known = data.get("jobs") if isinstance(data, Mapping) else None
    if not isinstance(known, list):
        raise InputError("--add is for a portfolio: the scenario must have jobs to which others are added")
    return {**data, "jobs": [*known, *(job for file in files for job in _jobs(file))]}


def _jobs(file: Path) -> list[object]:
    document = read(file)
    listed = document.data.get("jobs", [document.data]) if isinstance(document.data, dict) else [document.data]
    for job in listed if isinstance(listed, list) else [listed]:
        validate(Document(job, document.file, document.lines if job is document.data else {}), PortfolioJob)
    return list(listed)

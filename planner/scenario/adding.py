"""Jobs of a file of their own, added to a portfolio: `planner plan portfolio.yaml --add job.yaml`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.scenario.job_words import JOB_WORDS, with_jobs_listed
from planner.scenario.load import Reference, as_question, document_of, find
from planner.yaml_io import Document, read

ONLY = ("jobs.0.", "jobs.0: ")
"""What messages call the keys of the one job of a file, and the job."""


def with_jobs(reference: Reference, files: Sequence[Path], catalog: Catalog) -> dict[str, Any]:
    """Return what a portfolio's file holds with the jobs of other files at its end. Raises InputError.

    A file has one job (`name`, `workload`, ...), or several, as a list or under `jobs`.
    """
    asked = _listed(read(find(reference)).data if isinstance(reference, str) else reference)
    if asked is None:
        raise InputError("--add is for a portfolio: the scenario must have jobs to which others are added")
    return {**asked, "jobs": [*asked["jobs"], *(job for file in files for job in _jobs(file, asked, catalog))]}


def _listed(data: Any) -> dict[str, Any] | None:  # noqa: ANN401 - as a file has it
    """Return what a file of jobs holds with their list under `jobs`; none of another file."""
    data = {"jobs": data} if isinstance(data, list) else data
    told = with_jobs_listed(dict(data)) if isinstance(data, Mapping) else {}
    return told if isinstance(told.get("jobs"), list) else None


def _jobs(file: Path, asked: Mapping[str, Any], catalog: Catalog) -> list[object]:
    """Return the jobs of a file, read with what the portfolio has beside its own, so that errors name this file."""
    document = read(file)
    several = _listed(document.data)
    jobs: list[Any] = several["jobs"] if several else [document.data]
    lines = document.lines if several else {
        ("jobs",): 1, **{("jobs", 0, *path): line for path, line in document.lines.items()}}
    # what they wait for may be in the portfolio, where it is looked up
    alone = [{key: value for key, value in job.items() if JOB_WORDS.get(key, key) != "after"}
             if isinstance(job, dict) else job for job in jobs]
    try:
        as_question(document_of(Document({**asked, "jobs": alone}, document.file, lines), {}, {}, catalog))
    except InputError as error:
        if several or not error.problem.startswith(ONLY):
            raise
        # its keys stand at the top of the file, and are called so
        told = error.problem.removeprefix(ONLY[0]).removeprefix(ONLY[1])
        raise InputError(told, file=error.file, line=error.line) from None
    return jobs

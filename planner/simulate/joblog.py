"""Logs of jobs as schedulers and published traces write them: CSV, or Slurm's `sacct --parsable2`.

Columns are told by their names: when a job was submitted, how long it ran (or when it started and ended), and its GPUs.
Philly as in siasosp23/artifacts: timestamp, duration, num_gpus. Alibaba's openb: creation_time, deletion_time,
scheduled_time, num_gpu. Helios and Acme: submit_time, start_time, end_time, gpu_num.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from planner.errors import InputError
from planner.layouts.table import Floats, Ints
from planner.text_io import read_text, visible
from planner.units import YEAR

MOST_BYTES = 2**30
MOST_YEARS = 50
"""Of a log; there is none as long."""
NAMES = {
    "submit": ("submit", "submittime", "submittedtime", "timestamp", "creationtime", "submitted"),
    "start": ("start", "starttime", "scheduledtime", "started"),
    "end": ("end", "endtime", "deletiontime", "finishtime", "ended"),
    "seconds": ("duration", "elapsed", "elapsedraw", "runtime", "seconds", "runtimes"),
    "gpus": ("gpus", "numgpus", "gpunum", "numgpu", "ngpus", "gpurequest", "alloctres", "reqtres", "allocgres",
             "reqgres"),
    "limit": ("timelimit", "timelimitraw", "limit", "walltime"),
    "id": ("jobid", "jobidraw"),
}
"""Column -> what it is called, in lower case and without blanks and underscores."""
_GPUS = re.compile(r"(?:gres/)?gpu(?::[^=:,]+)?[=:](\d+)", re.ASCII)
_CLOCK = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?", re.ASCII)
UNSTARTED = "jobs that never started, or had not ended"
SACCT = "sacct --parsable2 --allocations --format JobID,Submit,Start,End,Elapsed,Timelimit,AllocTRES"
_NEVER = ("", "unknown", "none", "n/a", "partition_limit", "unlimited", "invalid")


@dataclass(frozen=True, slots=True)
class JobLog:
    """Jobs by their submission, in seconds after the first; `planned` is the limit that a scheduler knows."""

    submit: Floats
    seconds: Floats
    planned: Floats
    gpus: Ints
    left_out: tuple[tuple[str, int], ...] = ()
    """Rows that are no job to be replayed: why, and how many."""

    @property
    def span(self) -> float:
        """Seconds from the first submission to the last."""
        return float(self.submit[-1])


def check_header(path: Path) -> None:
    """Raise InputError where the first line of a file is not that of a log of jobs."""
    _columns(_rows(_lines(path)[:2], path)[0], str(path))


def _lines(path: Path) -> list[str]:
    lines = [line for line in read_text(path, MOST_BYTES).splitlines() if line.strip()]
    if not lines:
        raise InputError("the file is empty: expected a log of jobs with a header", file=str(path))
    return lines


def _rows(lines: Sequence[str], path: Path) -> list[list[str]]:
    if lines[0].lstrip().startswith("{"):
        return _objects(lines, path)
    if len(lines) > 1 and set(lines[1]) == {"-", " "}:  # sacct without --parsable2: as wide as the dashes
        ends = [found.span() for found in re.finditer(r"-+", lines[1])]
        return [[line[start:end].strip() for start, end in ends] for line in (lines[0], *lines[2:])]
    mark = max(",|;\t", key=lines[0].count)
    try:
        return list(csv.reader(lines, delimiter=mark))
    except csv.Error as error:
        raise InputError(f"not CSV: {error}", file=str(path)) from None


def _objects(lines: Sequence[str], path: Path) -> list[list[str]]:
    """Return JSON lines as rows below the names of the first."""
    try:
        rows = [json.loads(line) for line in lines]
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON lines: {error}", file=str(path)) from None
    if not all(isinstance(row, dict) for row in rows):
        raise InputError("expected one JSON object a line", file=str(path))
    header = list(rows[0])
    return [header, *([str("" if row.get(name) is None else row[name]) for name in header] for row in rows)]


def read_jobs(path: Path) -> JobLog:
    """Return the jobs of a log. Raises InputError with file, line, column, value and what was expected."""
    rows = _rows(_lines(path), path)
    columns = _columns(rows[0], str(path))
    jobs: list[tuple[float, float, float, int]] = []
    out: Counter[str] = Counter()
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(rows[0]):
            raise InputError(f"{len(row)} values in a row of {len(rows[0])} columns", file=str(path), line=number)
        job = _job({name: row[at].strip() for name, at in columns.items()}, str(path), number)
        if isinstance(job, str):
            out[job] += 1
        else:
            jobs.append(job)
    if not jobs:
        raise InputError("no job in it has both GPUs and an end" + "".join(
            f"; {count:,} {why}" for why, count in out.items()), file=str(path))
    jobs.sort(key=lambda entry: entry[0])
    submit, seconds, planned, gpus = (np.array(each) for each in zip(*jobs, strict=True))
    if (years := float(submit[-1] - submit[0]) / YEAR) > MOST_YEARS:
        raise InputError(f"submit: in seconds the log spans {years:,.0f} years, so that its times are likely in "
                         "milliseconds: divide them by 1,000, durations too", file=str(path))
    return JobLog(submit - submit[0], seconds, planned, gpus, tuple(sorted(out.items())))


def _columns(header: Sequence[str], file: str) -> dict[str, int]:
    plain = [re.sub(r"[^a-z]", "", name.lower()) for name in header]
    columns = {name: next(plain.index(alias) for alias in known if alias in plain)
             for name, known in NAMES.items() if any(alias in plain for alias in known)}
    slurm = f"; of Slurm: {SACCT}" if "jobid" in plain else ""
    for name in ("submit", "gpus"):
        if name not in columns:
            raise InputError(f"no column for {name} in {visible(','.join(header))[:120]!r}: expected one of "
                             f"{', '.join(NAMES[name])}{slurm}", file=file, line=1)
    if "seconds" not in columns and not {"start", "end"} <= columns.keys():
        raise InputError("neither a column for the duration nor both for start and end: expected one of "
                         f"{', '.join(NAMES['seconds'])}, or {NAMES['start'][0]} and {NAMES['end'][0]}{slurm}",
                         file=file, line=1)
    return columns


def _job(row: dict[str, str], file: str, number: int) -> tuple[float, float, float, int] | str:
    """Return submission, duration, planned duration and GPUs; or why a row is no job."""
    if "." in row.get("id", ""):
        return "steps of jobs"

    def moment(name: str) -> float:
        return _moment(row[name], name, file, number)

    gpus = _count(row["gpus"], file, number)
    if not gpus:
        return UNSTARTED if row.get("start", "then").lower() in _NEVER else "jobs without a GPU"
    dated = "start" in row and "end" in row
    if (dated and "seconds" not in row and (row["start"].lower() in _NEVER or row["end"].lower() in _NEVER)) or (
            row.get("seconds", "0").lower() in _NEVER):
        return UNSTARTED
    seconds = _length(row["seconds"], file, number) if "seconds" in row else moment("end") - moment("start")
    if seconds < 0:
        return "jobs that ended before they started"
    if not seconds > 0:
        return "jobs that took no time"
    limit = row.get("limit", "")
    planned = seconds if limit.lower() in _NEVER else max(seconds, _length(limit, file, number, minutes=True))
    return moment("submit"), seconds, planned, gpus


def _count(text: str, file: str, number: int) -> int:
    named = _GPUS.findall(text)
    if named:
        # a kind of GPU is listed beside their sum: gres/gpu=8,gres/gpu:a100=8
        return max(map(int, named))
    if not text or "=" in text or ":" in text:
        return 0
    try:
        count = float(text)
    except ValueError:
        count = -1.0
    if not 0 <= count <= 10**6:
        raise InputError(f"gpus {text[:40]!r}: expected a number of GPUs, or TRES such as gres/gpu=8", file=file,
                         line=number)
    return math.ceil(count)


def _length(text: str, file: str, number: int, *, minutes: bool = False) -> float:
    """Return seconds of `1-02:03:04`, `02:03:04` or a number; a limit that is a number is in minutes, as Slurm's."""
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        days, hours, mins, secs = (int(part or 0) for part in clock.groups())
        return float(((days * 24 + hours) * 60 + mins) * 60 + secs)
    try:
        value = float(text) * (60 if minutes else 1)
    except ValueError:
        value = math.nan
    if not value < 1e10:
        raise InputError(f"duration {text[:40]!r}: expected seconds, or days-hours:minutes:seconds", file=file,
                         line=number)
    return value


def _moment(text: str, name: str, file: str, number: int) -> float:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        raise InputError(f"{name} {text[:40]!r}: expected seconds, or a moment such as 2027-01-04T08:30:00", file=file,
                         line=number) from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()

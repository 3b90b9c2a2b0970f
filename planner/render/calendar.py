"""The schedule of many jobs as a calendar (iCalendar, RFC 5545) and as CSV: an entry for each stretch of work."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from hashlib import sha256
from io import StringIO

from planner.answer.assignment import Assignment
from planner.answer.portfolio import Segment
from planner.answer.schema import Plan
from planner.errors import InputError
from planner.render.portfolio import is_portfolio
from planner.units import DAY, show_seconds

COLUMNS = ("job", "workload", "kind", "status", "start", "end", "nodes", "node", "gpus", "offer", "sourcing",
           "late_days")
FOLD = 70
"""Octets of a line of a calendar; longer ones go on after a space."""


def stretches(plan: Plan) -> Iterator[tuple[Assignment, Segment]]:
    """Yield every stretch of work in the order of the plan. Raises InputError for a plan without dates."""
    if not is_portfolio(plan):
        raise InputError("only a portfolio of jobs has a schedule: this plan has one workload, and no dates")
    for assignment in plan.assignments:
        for segment in assignment.segments or ():
            yield assignment, segment


def as_csv(plan: Plan) -> str:
    """Return a line for each stretch of work; a rejected job has one without dates."""
    text = StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for assignment, segment in [*stretches(plan), *((part, None) for part in plan.assignments if not part.segments)]:
        nodes = assignment.nodes + assignment.spare_nodes
        when = ("", "", nodes) if segment is None else (segment.start, segment.end, segment.nodes)
        gpus = when[2] * assignment.gpus // assignment.nodes
        rows.writerow((assignment.job, assignment.workload, assignment.kind, assignment.status, *when, assignment.node,
                       gpus, assignment.offer, assignment.sourcing, assignment.late_days or 0))
    return text.getvalue()


def as_ics(plan: Plan) -> str:
    """Return a calendar; the same plan gives the same bytes."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//planner//portfolio//EN"]
    for at, (stretch, segment) in enumerate(stretches(plan)):
        known = f"{plan.provenance.scenario.get('name')} {stretch.job} {stretch.workload} {segment.start} {at}"
        late = f", {show_seconds(stretch.late_days * DAY)} late" if stretch.late_days else ""
        lines += ["BEGIN:VEVENT", f"UID:{sha256(known.encode()).hexdigest()[:32]}@planner",
                  f"DTSTAMP:{_stamp(segment.start)}", f"DTSTART:{_stamp(segment.start)}",
                  f"DTEND:{_stamp(segment.end)}",
                  f"SUMMARY:{_text(f'{stretch.workload}: {segment.nodes:,} x {stretch.node}')}",
                  f"DESCRIPTION:{_text(f'{stretch.stack}, {stretch.offer}{late}')}", "END:VEVENT"]
    return "".join(f"{folded}\r\n" for line in [*lines, "END:VCALENDAR"] for folded in _folded(line))


def _stamp(moment: str) -> str:
    return moment.replace("-", "").replace(":", "")


def _text(value: str) -> str:
    for mark in ("\\", ";", ","):
        value = value.replace(mark, "\\" + mark)
    return value.replace("\n", "\\n")


def _folded(line: str) -> Iterator[str]:
    """Yield a line in pieces of at most 75 octets, each but the first after a space (RFC 5545, 3.1)."""
    piece = ""
    for letter in line:
        if len((piece + letter).encode()) > FOLD:
            yield piece
            piece = " "
        piece += letter
    yield piece

"""Answers as files to download: a table as CSV, the report, what starts the plan."""

from __future__ import annotations

import csv
import io
import tempfile
import zipfile
from pathlib import Path

from planner.answer.comparison import Comparison
from planner.answer.schema import Plan
from planner.catalog.load import Catalog
from planner.errors import PlannerError
from planner.render.report.page import report
from planner.scenario.launchable import to_be_launched
from planner.web.answering import File, Folders, open_catalog
from planner.web.refusing import Refusal, refusal

KINDS = {"plan": ("yaml", "json", "html", "csv", "zip"), "compare": ("yaml", "json", "csv"),
         "estimate": ("yaml", "json"), "explain": ("yaml", "json")}
"""Verb -> the files that its answer is downloaded as."""


def as_file(verb: str, text: str, kind: str, folders: Folders) -> File | Refusal:
    """Return the JSON of an answer as another kind of file, or why that cannot be."""
    try:
        if verb == "compare" and kind == "csv":
            return File("comparison.csv", "text/csv", _csv(Comparison.model_validate_json(text)))
        plan, catalog = Plan.model_validate_json(text), open_catalog(folders)
        if kind == "csv":
            return File("plan.csv", "text/csv", _csv(plan))
        if kind == "html":
            return File("plan.html", "text/html; charset=utf-8", report(plan, catalog).encode())
        return File("launch.zip", "application/zip", _launch(plan, catalog))
    except PlannerError as error:
        return refusal(error)


def _csv(answer: Plan | Comparison) -> bytes:
    rows = answer.records()
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def _launch(plan: Plan, catalog: Catalog) -> bytes:
    """Return the files that start a plan, or the best that its stack can be told, packed. Raises InputError."""
    from planner.ask.plan import make_plan
    from planner.launch.given import question_of
    from planner.launch.written import startable, write_all

    asked = question_of(plan)
    made = None
    if asked is not None:
        held, defaults = to_be_launched(asked, [])
        plan, made = startable(plan, catalog, None if held == asked else lambda: make_plan(
            held, catalog, defaults=defaults))
    packed = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "launch"
        write_all(plan, catalog, written, made=made)
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(path for path in written.rglob("*") if path.is_file()):
                archive.write(file, file.relative_to(folder))
    return packed.getvalue()

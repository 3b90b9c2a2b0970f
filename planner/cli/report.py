"""`planner report`: a plan as an HTML page with plots and sources, or its schedule as a calendar or CSV."""

from __future__ import annotations

from pathlib import Path

import click

from planner.cli.options import common, is_quiet, open_catalog
from planner.cli.plan_file import read_plan
from planner.cli.printing import say
from planner.errors import EXIT_OK, InputError
from planner.text_io import write_text


@click.command("report")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, metavar="FILE",
              help="The page to write; of a portfolio's plan also its schedule: FILE.ics or FILE.csv.")
@common
def command(plan: Path, output: Path, as_json: bool, catalogs: tuple[Path, ...]) -> int:
    """Write what `planner plan --json` found as one HTML page, with plots and sources.

    PLAN is the file with that JSON. The page needs no network; sources are those of the catalogs named here. Of many
    jobs, a FILE that ends in .ics or .csv is the schedule, an entry for each stretch of work.
    """
    from planner.render.calendar import as_csv, as_ics
    from planner.render.report.page import report

    if as_json:
        raise InputError("report writes a page: --json is for planner plan")
    if output.suffix.lower() not in ("", ".html", ".htm", ".ics", ".csv"):
        raise InputError(f"-o {output}: expected a name that ends in .html, .ics or .csv")
    made, schedule = read_plan(plan), {".ics": as_ics, ".csv": as_csv}.get(output.suffix.lower())
    write_text(output, report(made, open_catalog(catalogs)) if schedule is None else schedule(made))
    if not is_quiet():
        say(f"Wrote {output}")
    return EXIT_OK

"""`planner calibrate`: constants fitted to your runs, as a catalog folder."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import date
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from planner.cli import options
from planner.cli.options import common, console, is_quiet, open_catalog
from planner.cli.printing import say_json
from planner.cli.started import of_a_log, started_by
from planner.errors import EXIT_OK
from planner.render.page import Head, Page
from planner.text_io import json_text
from planner.units import plural

if TYPE_CHECKING:
    from planner.ask.calibrate import Calibration

PARTS = 1000
"""Steps of the progress bar."""


@click.command("calibrate")
@click.argument("evidence", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="EVIDENCE.csv...")
@click.option("-o", "--output", "--out", required=True, type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Catalog folder to write, for --catalogs.")
@click.option("--as-of", metavar="YEAR-MONTH", callback=options.as_of, help="Date to record. Default: this month.")
@options.run
@of_a_log
@common
def command(evidence: tuple[Path, ...], output: Path, as_of: str | None, stated: dict[str, str], from_: str | None,
            node: str | None, gpus: int | None, as_json: bool, catalogs: tuple[Path, ...]) -> int:
    """Fit constants to measured runs, and write them as a catalog folder.

    Rows are those of `planner validate`. A constant that the rows do not decide keeps the catalog's figure. The folder
    takes effect with --catalogs.
    """
    started = started_by(from_, node, gpus, open_catalog(catalogs), as_json=True)

    from planner.ask.calibrate import calibrate

    silent = is_quiet() or as_json or not sys.stderr.isatty()
    with click.progressbar(length=PARTS, label="fitting", file=StringIO() if silent else sys.stderr) as bar:
        def progress(share: float) -> None:
            bar.update(max(0, int(share * PARTS) - bar.pos))

        calibration = calibrate(evidence, output, catalogs, as_of or f"{date.today():%Y-%m}", stated=stated,
                                started=started, progress=progress)
    result = calibration.as_json()
    if as_json:
        say_json(json_text(result, indent=2))
        return EXIT_OK
    page = Page(console())
    page.paragraph(_sentence(calibration, result))
    if not is_quiet():
        _show(page, result)
    return EXIT_OK


def _sentence(calibration: Calibration, result: Mapping[str, Any]) -> str:
    """Say of every kind of rows what was made of them."""
    said = []
    if calibration.parts:
        before, after = result["errors"]["before"], result["errors"]["after"]
        fitted = sum(constant["fitted"] for constant in result["constants"])
        said.append(f"fitted {fitted} of {len(result['constants'])} constants to "
                    f"{sum(part.count for part in calibration.parts)} runs: median error "
                    f"{before['median_abs_error']:.1%} before, {after['median_abs_error']:.1%} after")
    said += [f"{what} {plural(count, rows)}" for what, count, rows in (
        ("wrote the links of", calibration.links, "measured collective"),
        ("fitted the phases of reinforcement learning to", calibration.learned, "run"),
        ("fitted what whole runs add to their steps to", calibration.whole, "run")) if count]
    text = "; ".join(said)
    return text[0].upper() + text[1:]


def _show(page: Page, result: Mapping[str, Any]) -> None:
    if result["errors"]:
        _show_fit(page, result)
    page.facts([("written", path) for path in result["files"]])


def _show_fit(page: Page, result: Mapping[str, Any]) -> None:
    page.heading("Error of speed, predicted over measured")
    page.table((Head("constants"), Head("median", True), Head("90% below", True), Head("bias", True)), [
        (label, f"{e['median_abs_error']:.1%}", f"{e['p90_abs_error']:.1%}", f"{e['bias']:+.1%}")
        for label, e in (("of the catalog", result["errors"]["before"]), ("fitted", result["errors"]["after"]),
                         ("fitted without the row, or its source", result["errors"]["left_out"]))])
    page.heading("Constants (spread: of the logarithm, of the logit for a share)")
    fitted = [constant for constant in result["constants"] if constant["fitted"]]
    page.table((Head("entry"), Head("field"), Head("before", True), Head("fitted", True),
                Head("spread", True), Head("rows", True)), [
        (_short(c), c["field"], f"{c['prior']:.4g}", f"{c['value']:.4g}", f"{c['spread']:.2f}", f"{c['rows']}")
        for c in fitted])
    left = [constant for constant in result["constants"] if not constant["fitted"]]
    if left:
        page.paragraph(f"Not decided by these runs, so left as they were: {len(left)} constants: "
                       + ", ".join(f"{_short(c)} {c['field']}" for c in left))


def _short(constant: Mapping[str, Any]) -> str:
    return str(constant["entry"]).rpartition("/")[2]

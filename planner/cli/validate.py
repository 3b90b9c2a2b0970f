"""`planner validate`: predicted against measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import click

from planner.cli.options import common, console, is_quiet, is_verbose, open_catalog
from planner.cli.printing import say_json
from planner.errors import EXIT_OK
from planner.render.page import Column, Page
from planner.text_io import json_text

VERDICTS = ("true_fit", "false_fit", "tight_fit", "true_oom", "false_oom", "tight_oom")


@click.command("validate")
@click.argument("evidence", type=click.Path(path_type=Path), metavar="EVIDENCE.csv")
@common
def command(evidence: Path, as_json: bool, catalogs: tuple[Path, ...]) -> int:
    """Hold predictions against the measurements in a CSV file.

    The kind of file is recognized by its header. Skipped rows are listed with -v; they change no exit code.
    """
    catalog = open_catalog(catalogs)

    from planner.ask.validate import validate_file

    result = validate_file(evidence, catalog)
    if as_json:
        say_json(json_text(result, indent=2))
        return EXIT_OK
    page = Page(console())
    _show(page, result["summary"])
    if not is_quiet():
        _show_skipped(page, result["skipped"])
    return EXIT_OK


def _show(page: Page, summary: Mapping[str, Mapping[str, float | None]]) -> None:
    errors = [(name, s) for name, s in summary.items() if "median_abs_error" in s]
    if errors:
        page.table([Column("quantity"), *(Column(label, figure=True) for label in (
            "rows", "median error", "90% below", "bias", "in 90% interval"))],
            [[name, f"{s['n']}", *(_percent(s.get(key)) for key in (
                "median_abs_error", "p90_abs_error", "bias", "interval90_coverage"))] for name, s in errors])
    if "fits" in summary:
        fits = summary["fits"]
        page.paragraph(f"fits: {fits['n']} rows")
        page.facts([(verdict.replace("_", " "), f"{fits.get(verdict, 0)}") for verdict in VERDICTS])
    if summary.get("rank", {}).get("groups"):
        rank = summary["rank"]
        spearman = rank.get("median_spearman")
        page.paragraph(f"rank: {rank['groups']} groups, median Spearman "
                       f"{'-' if spearman is None else format(spearman, '.2f')}, "
                       f"mean loss by picking our best {_percent(rank.get('mean_top1_regret'))}")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _show_skipped(page: Page, skipped: list[dict[str, str]]) -> None:
    if not skipped:
        return
    page.paragraph(f"skipped: {len(skipped)} rows")
    if is_verbose():
        page.facts([(row["id"], row["reason"]) for row in skipped])
    else:
        page.facts([(f"{n}", reason) for reason, n in Counter(r["reason"] for r in skipped).most_common(8)])

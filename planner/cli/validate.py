"""`planner validate`: predicted against measured, for a CSV of measurements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

from planner.answer.validation import Entry, Errors, Rank, Skipped, Validation, Verdicts
from planner.cli import options
from planner.cli.options import common, console, is_quiet, is_verbose, open_catalog
from planner.cli.printing import say_json
from planner.cli.started import of_a_log, started_by
from planner.errors import EXIT_OK
from planner.render.page import Head, Page

FEW = 8
"""Entries that are shown one by one."""


@click.command("validate")
@click.argument("evidence", type=click.Path(path_type=Path), metavar="EVIDENCE.csv")
@options.run
@of_a_log
@common
def command(evidence: Path, stated: dict[str, str], from_: str | None, node: str | None, gpus: int | None,
            as_json: bool, catalogs: tuple[Path, ...]) -> int:
    """Compare predictions with the measurements in a CSV file.

    The kind of file is recognized by its header; the output of nccl-tests, vllm bench serve, SGLang's bench_serving and
    GuideLLM is read too, and so are logs of Megatron-LM, torchtitan and DeepSpeed, and the Trainer's
    trainer_state.json, beside the plan.json that started the run, or with --from and --node.
    Skipped rows are listed with -v; they change no exit code.
    """
    catalog = open_catalog(catalogs)

    from planner.answer.schema import to_json
    from planner.ask.validate import validate_file

    result = validate_file(evidence, catalog, stated, started_by(from_, node, gpus, catalog, as_json=as_json))
    if as_json:
        say_json(to_json(result))
        return EXIT_OK
    page = Page(console())
    _show(page, result)
    if 0 < len(result.rows) <= FEW or is_verbose():
        _show_rows(page, result.rows)
    if not is_quiet():
        _show_skipped(page, result.skipped)
    return EXIT_OK


def _show_rows(page: Page, rows: Sequence[Entry]) -> None:
    """Print what was predicted and measured, row by row."""
    several = len({row.id for row in rows}) > 1
    page.table([*([Head("row")] if several else []), Head("quantity"), *(Head(label, figure=True) for label in (
        "predicted", "measured", "error", "90% interval"))],
        [[*([row.id] if several else []), row.quantity, _figure(row.predicted), _figure(row.measured),
          "-" if row.error is None else f"{row.error:+.1%}",
          "-" if row.interval90 is None else " to ".join(map(_figure, row.interval90))] for row in rows])


def _figure(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def _show(page: Page, result: Validation) -> None:
    summary = result.summary
    errors = [(name, statistic) for name, statistic in summary.items() if isinstance(statistic, Errors)]
    if errors:
        page.table([Head("quantity"), *(Head(label, figure=True) for label in (
            "rows", "median error", "90% below", "bias", "in 90% interval"))],
            [[name, f"{s.n}", *map(_percent, (s.median_abs_error, s.p90_abs_error, s.bias, s.interval90_coverage))]
             for name, s in errors])
        for name, s in errors:
            if s.new_sources_n:
                page.paragraph(f"{name}: {_percent(s.new_sources_coverage)} of {s.new_sources_n} from sources that the "
                               "intervals do not know are inside")
        if result.held_out:
            page.paragraph("; ".join(result.held_out))
    for rank in summary.values():
        if isinstance(rank, Verdicts):
            page.paragraph(f"fits: {rank.n} rows")
            page.facts([(name.replace("_", " "), f"{count}") for name, count in rank if name != "n"])
        elif isinstance(rank, Rank) and rank.groups:
            spearman = "-" if rank.median_spearman is None else format(rank.median_spearman, ".2f")
            page.paragraph(f"rank: {rank.groups} groups, median Spearman {spearman}, "
                           f"mean loss by picking our best {_percent(rank.mean_top1_regret)}")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _show_skipped(page: Page, skipped: Sequence[Skipped]) -> None:
    if not skipped:
        return
    page.paragraph(f"skipped: {len(skipped)} rows")
    if is_verbose():
        page.facts([(row.id, row.reason) for row in skipped])
    else:
        page.facts([(f"{n}", reason) for reason, n in Counter(row.reason for row in skipped).most_common(8)])

"""A fleet sized by a log of jobs as text: the answer in a sentence, then waits, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from planner.answer.sizing import Burst, LogReplay, Size, Sizing
from planner.render.figures import percent
from planner.render.page import Head, Page, Sheet
from planner.units import plural, show_seconds, show_usd

MOST_SIZES = 10
"""Node types on a screen."""


def sizing_sentence(sizing: Sizing) -> str:
    """Return the fewest nodes of the cheapest type, and how far that is proven."""
    size = sizing.sizes[0]
    cost = "" if size.usd_per_year is None else f", {show_usd(size.usd_per_year)} a year"
    wait = "wait" if sizing.jobs > 1 else "waits"
    return (f"Fewest: {plural(size.fewest.nodes, 'node')} of {size.node} "
            f"({size.fewest.nodes * size.gpus_of_node:,} GPUs): {percent(size.fewest.in_time)} of "
            f"{plural(sizing.jobs, 'job')} {wait} at most {show_seconds(sizing.wait_seconds)}{cost} ({_proof(size)})")


def _proof(size: Size) -> str:
    if size.status == "optimal":
        return "proven for this scheduler: every smaller fleet misses"
    return f"the {size.missed:,} next smaller fleets miss; none below {size.bound:,} can do"


def render_sizing(sizing: Sizing, console: Console) -> None:
    """Print the sentence, a table of fleets, and how they were found."""
    write_sizing(sizing, Page(console))


def write_sizing(sizing: Sizing, page: Sheet) -> None:
    """Write the same on a page of whatever kind."""
    page.paragraph(sizing_sentence(sizing), "bold")
    page.heading("Fleets")
    rows = [row for size in sizing.sizes[:MOST_SIZES] for row in _rows(size)]
    page.lines([Head("nodes"), Head("hardware"), Head(""), *(Head(head, True) for head in (
        "in use", "wait p50", "p95", "p99", "USD a year"))], rows)
    if len(sizing.sizes) > MOST_SIZES:
        page.paragraph(f"  {len(sizing.sizes) - MOST_SIZES} more node types with --json")
    page.heading("The log, and how it was replayed")
    first = sizing.sizes[0]
    page.facts([("log", f"{plural(sizing.jobs, 'job')} of {sizing.days:,.1f} days, {sizing.gpu_hours:,.0f} GPU-hours, "
                 f"{sizing.most_gpus:,} GPUs at most"),
                ("scheduler", "first come first served with backfill; a job smaller than a node stays on one"),
                ("smaller", f"{plural(first.missed, 'smaller fleet')} replayed, all miss; below "
                 f"{plural(first.bound, 'node')} no scheduler keeps the wait"),
                *((("peaks", _peaks(first.burst, sizing)),) if first.burst else ())])


def _peaks(burst: Burst, sizing: Sizing) -> str:
    nodes = burst.replayed.nodes
    who = f"the {burst.jobs:,} jobs that would wait longer" if nodes else f"all {sizing.jobs:,} jobs"
    return (f"{who} get rented nodes of their own, {burst.gpu_hours:,.0f} GPU-hours: {burst.offer}; the cheapest of "
            "the fleets tried, not proven")


def _rows(size: Size) -> Iterator[tuple[str, ...]]:
    how = {"buy": "bought", "own": "owned", "rent": "rented", None: "at hand"}[size.sourcing]
    yield (f"{size.fewest.nodes:,}", size.node, how, *_waits(size.fewest),
           "-" if size.usd_per_year is None else show_usd(size.usd_per_year))
    if size.burst is not None:
        yield (f"{size.burst.replayed.nodes:,}", size.node, "and peaks rented", *_waits(size.burst.replayed),
               show_usd(size.burst.usd_per_year))


def _waits(replayed: LogReplay) -> tuple[str, ...]:
    return (percent(replayed.busy), *(_wait(replayed.wait_seconds[name]) for name in ("p50", "p95", "p99")))


def _wait(seconds: float) -> str:
    return show_seconds(seconds) if seconds else "none"


def replayed_sentence(replayed: LogReplay, node: str, jobs: int) -> str:
    """Return what a log does on a fleet."""
    waits = ", ".join(f"{name} {_wait(replayed.wait_seconds[name])}" for name in replayed.wait_seconds)
    return (f"{jobs:,} jobs on {plural(replayed.nodes, 'node')} of {node}: waits {waits}; "
            f"{percent(replayed.busy)} of the GPUs' time in use")

"""The published runs behind an answer's speed: a scatter whose points lead to their sources, and a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from math import ceil, log, log2

from markupsafe import Markup

from planner.answer.assignment import Assignment
from planner.catalog.load import Catalog
from planner.catalog.published import DIFFUSION, MAKING, RUNS, TASK, PublishedRun
from planner.render.report.charts import BOTTOM, CHART, HIGH, LEFT, RIGHT, TOP, WIDE, framed
from planner.render.report.templates import templates
from planner.units import plural

MOST_SHOWN = 6
MOST_DRAWN = 400
"""Beside those most alike."""
LEAST, MOST = 1 / 3, 3.0
"""Measured over predicted at the edges of the chart; what lies beyond is drawn on them."""
TICKS = (0.5, 0.75, 1.0, 1.33, 2.0)


def published_runs(a: Assignment, catalog: Catalog) -> Markup | None:
    """Return a section of a page: the runs that the answer's speed was held against; none where there are none."""
    alike = a.time.evidence.alike if a.time.evidence else None
    if not alike:
        return None
    head = next(iter(alike))
    task = alike.get(TASK)
    runs = [run for run in catalog.published_runs(RUNS[task] if task else "tpot-runs" if a.serving else "step-runs")
            if run.traits.get(head) == alike[head]]
    near = [run for run in runs if alike.items() <= run.traits.items()]
    if not near:
        return None
    # of those as near as each other the ones first whose source can be opened
    near.sort(key=lambda run: (abs(log(run.gpus / a.gpus)), not run.what.lower().startswith(f"{a.model} on "),
                               run.link is None, run.what, run.source, run.measured))
    others = [run for run in runs if not alike.items() <= run.traits.items()]
    others = others[::-(-len(others) // MOST_DRAWN) or 1]
    low, high = (seconds / a.time.step_seconds for seconds in a.time.interval90_seconds)
    timed = task in (MAKING, DIFFUSION)
    return Markup(templates().get_template("runs.html.j2").render(
        drawn=Markup(_drawn(near, others, (low, high), a, _predicted if timed else _gpus)), near=near, timed=timed,
        others=len(others), unit=near[0].unit,
        traits=", ".join(alike), head=alike[head], most=MOST_SHOWN))


def _gpus(run: PublishedRun) -> float:
    return run.gpus


def _predicted(run: PublishedRun) -> float:
    return run.predicted


def _drawn(near: Sequence[PublishedRun], others: Sequence[PublishedRun], band: tuple[float, float], a: Assignment,
           by: Callable[[PublishedRun], float]) -> str:
    """Return the scatter: measured over predicted upward, to the right GPUs or, of runs that mostly have one GPU,
    predicted seconds; both logarithmic.
    """
    mine = a.gpus if by is _gpus else a.time.step_seconds
    counts = [mine, *map(by, (*near, *others))]
    least, most = min(counts), max(counts)

    def x(count: float) -> float:
        share = log(count / least) / log(most / least) if most > least else 0.5
        return LEFT + 12 + share * (WIDE - LEFT - RIGHT - 24)

    def y(ratio: float) -> float:
        share = log(min(max(ratio, LEAST), MOST) / LEAST) / log(MOST / LEAST)
        return HIGH - BOTTOM - share * (HIGH - TOP - BOTTOM)

    top, foot = y(band[1]), y(band[0])
    parts = [f'<rect x="{LEFT}" y="{top:.1f}" width="{WIDE - LEFT - RIGHT}" height="{foot - top:.1f}" '
             'fill="var(--b)" opacity="0.12"/>',
             f'<line class="grid" x1="{x(mine):.1f}" x2="{x(mine):.1f}" y1="{TOP}" y2="{HIGH - BOTTOM}"/>']
    for value in TICKS:
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDE - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}"/>'
                     f'<text class="tick" x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    count = 2.0 ** ceil(log2(least)) if most > least else least
    while count <= most:
        parts.append(f'<text class="tick" x="{x(count):.1f}" y="{HIGH - BOTTOM + 18}" text-anchor="middle">{count:,g}'
                     "</text>")
        count *= 8 if most > 64 * least else 2
    parts.append(f'<text class="tick" x="{(LEFT + WIDE - RIGHT) / 2}" y="{HIGH - 8}" text-anchor="middle">'
                 f'{"GPUs" if by is _gpus else "predicted seconds"}</text>')
    for run, color, size in (*((run, "--a", 2.5) for run in others), *((run, "--b", 4.5) for run in near)):
        told = (f"{run.what}, {plural(run.gpus, 'GPU')}: measured {run.measured:.4g}, predicted {run.predicted:.4g} "
                f"{run.unit}; {run.source}")
        point = (f'<circle cx="{x(by(run)):.1f}" cy="{y(run.ratio):.1f}" r="{size}" fill="var({color})">'
                 f"<title>{escape(told)}</title></circle>")
        parts.append(f'<a href="{escape(run.link)}" tabindex="-1" aria-label="{escape(told)}">{point}</a>'
                     if run.link else point)
    return framed("Published runs, measured over predicted", f"{WIDE} {HIGH}", parts, CHART, role="group")

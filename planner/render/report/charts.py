"""Charts as SVG text: cost over time of renting against buying, and plans by days and cost.

Colors are CSS variables of the page, so that light, dark and print each have their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import floor, log10

WIDE, HIGH, LEFT, RIGHT, TOP, BOTTOM = 640, 300, 78, 18, 16, 46
"""Size of a chart and the room around what is plotted, in px."""
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """A line with its label and the CSS variable of its color."""

    label: str
    color: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """A point that is called out. The label stands beside it, the whole text is shown on pointing at it."""

    at: Point
    label: str
    color: str
    text: str = ""


def chart(title: str, x: str, y: str, lines: Sequence[Line], marks: Sequence[Mark],
          show: Callable[[float], str]) -> str:
    """Return a chart from zero up; `show` writes values of the y axis."""
    points = [point for line in lines for point in line.points] + [mark.at for mark in marks]
    most_x, most_y = (max((point[axis] for point in points), default=1.0) * 1.05 or 1.0 for axis in (0, 1))

    def place(point: Point) -> Point:
        return (LEFT + point[0] / most_x * (WIDE - LEFT - RIGHT),
                HIGH - BOTTOM - point[1] / most_y * (HIGH - TOP - BOTTOM))
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {HIGH}" role="img" '
             f'aria-label="{escape(title)}"><title>{escape(title)}</title>']
    for value in ticks(most_y):
        _, at = place((0, value))
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDE - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
                     f'<text class="tick" x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">'
                     f"{escape(show(value))}</text>")
    for value in ticks(most_x):
        at, _ = place((value, 0))
        parts.append(f'<text class="tick" x="{at:.1f}" y="{HIGH - BOTTOM + 18}" text-anchor="middle">{value:g}</text>')
    parts.append(f'<text class="tick" x="{(LEFT + WIDE - RIGHT) / 2}" y="{HIGH - 8}" text-anchor="middle">{escape(x)}'
                 f'</text><text class="tick" x="{LEFT}" y="{TOP - 4}">{escape(y)}</text>')
    for line in lines:
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in map(place, line.points))
        parts.append(f'<polyline points="{path}" fill="none" stroke="var({line.color})" stroke-width="2"/>')
        end, at = place(line.points[-1])
        parts.append(f'<text x="{end - 6:.1f}" y="{at - 6:.1f}" text-anchor="end" style="fill: var({line.color})">'
                     f"{escape(line.label)}</text>")
    for mark in marks:
        a, b = place(mark.at)
        anchor, off = ("end", -9) if a > WIDE * 0.7 else ("start", 9)
        parts.append(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="5" fill="var({mark.color})"><title>'
                     f'{escape(mark.text or mark.label)}</title></circle><text x="{a + off:.1f}" y="{b + 15:.1f}" '
                     f'text-anchor="{anchor}">{escape(mark.label)}</text>')
    return "\n".join([*parts, "</svg>"])


def ticks(most: float) -> list[float]:
    """Return four to ten round values from zero to at most `most`."""
    step = 10.0 ** floor(log10(most))
    for finer in (0.1, 0.2, 0.25, 0.5, 1.0):
        if most / (step * finer) <= 8:
            step *= finer
            break
    return [round(i * step, 12) for i in range(int(most / step) + 1)]

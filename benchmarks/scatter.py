"""A scatter plot of predicted against measured speed as SVG, one color a GPU architecture; readable light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence

SIDE, MARGIN = 640, 56
COLORS = {"ampere": "#2b6cb0", "hopper": "#2f855a", "blackwell": "#c05621", "ada": "#6b46c1", "volta": "#718096"}
"""Architecture -> color, legible on white and on black."""
Point = tuple[str, float, float]


def scatter(points: Sequence[Point], unit: str) -> str:
    """Return the SVG of (architecture, measured, predicted), axes logarithmic, with lines of no and 20% error."""
    values = [value for _, *pair in points for value in pair]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

    def at(value: float) -> float:
        return MARGIN + (math.log10(value) - low) / (high - low) * (SIDE - 2 * MARGIN)

    def line(factor: float, dashes: str) -> str:
        first, last = 10.0**low, 10.0**high
        return (f'<line x1="{at(first):.1f}" y1="{SIDE - at(first * factor):.1f}" x2="{at(last):.1f}" '
                f'y2="{SIDE - at(last * factor):.1f}" stroke="#888" stroke-dasharray="{dashes}"/>')

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE} {SIDE}" font-family="sans-serif" '
             'font-size="13" fill="#888">', f"<title>Predicted against measured {unit}</title>",
             line(1.0, "none"), line(1.2, "4 4"), line(1 / 1.2, "4 4")]
    for power in range(low, high + 1):
        place, label = at(10.0**power), f"{10**power:,}" if power >= 0 else f"{10.0**power:g}"
        parts += [f'<text x="{place:.1f}" y="{SIDE - MARGIN + 20}" text-anchor="middle">{label}</text>',
                  f'<text x="{MARGIN - 8}" y="{SIDE - place + 4:.1f}" text-anchor="end">{label}</text>']
    parts += [f'<circle cx="{at(measured):.1f}" cy="{SIDE - at(predicted):.1f}" r="2.4" fill-opacity="0.7" '
              f'fill="{COLORS.get(name, "#888")}"/>' for name, measured, predicted in points]
    parts += [f'<text x="{SIDE / 2:.0f}" y="{SIDE - 12}" text-anchor="middle">measured {unit}</text>',
              f'<text x="16" y="{SIDE / 2:.0f}" text-anchor="middle" '
              f'transform="rotate(-90 16 {SIDE / 2:.0f})">predicted {unit}</text>']
    named = sorted({name for name, _, _ in points})
    parts += [f'<text x="{MARGIN + 12}" y="{MARGIN + 18 * number}" fill="{COLORS.get(name, "#888")}">{name}</text>'
              for number, name in enumerate(named)]
    return "\n".join([*parts, "</svg>"]) + "\n"

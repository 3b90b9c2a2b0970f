"""The links of one node as SVG: host on top, PCIe below, then GPUs and NICs, then scale-up and network."""

from __future__ import annotations

from html import escape
from itertools import pairwise

from planner.layouts.candidate import Candidate
from planner.physics.topology import OUTSIDE, node_graph
from planner.render.topology import number_of, rate

BOX, HIGH, GAP, MARGIN, STEP, LEFT = 60, 30, 14, 24, 110, 210
"""Width and height of a place, the space between two, the border, the distance of two rows, and where
the places begin, in px."""
COLORS = {"memory": "#718096", "socket": "#718096", "pcie": "#6b46c1", "gpu": "#2f855a", "nic": "#c05621",
          "nvswitch": "#2b6cb0", OUTSIDE: "#c05621"}
"""Kind of place -> color, legible on white and on black."""
ROWS = {"memory": 0, "socket": 1, "pcie": 2, "gpu": 3, "nic": 3, "nvswitch": 4, OUTSIDE: 5}


def topology_svg(candidate: Candidate) -> str:
    """Return the node as SVG, from the same graph that group bandwidths come from; rates in GB/s and direction."""
    graph = node_graph(candidate)
    spans = _spans(list(graph))
    width = max(right for _, right in spans.values()) + MARGIN
    floor = MARGIN + 3 * STEP + HIGH
    seen: dict[tuple[str, str], list[float]] = {}
    lines = []
    for a, b, link in graph.edges(data=True):
        ends = sorted((a, b), key=lambda place: (ROWS[_kind(place)], spans[place]))
        if [a, b] != ends:  # both directions are one line
            continue
        kinds = (_kind(a), _kind(b))
        seen.setdefault(kinds, []).append(link["capacity"])
        shape = _arc(spans[a], spans[b], floor) if kinds == ("gpu", "gpu") else _line(a, b, spans)
        lines.append(f'<path d="{shape}" fill="none" stroke="{COLORS[kinds[1]]}">'
                     f"<title>{a} to {b}: {rate(link['capacity'])}</title></path>")
    boxes = [_box(place, spans[place], _label(place, candidate)) for place in graph]
    notes: dict[int, list[str]] = {}
    for (above, below), speeds in seen.items():
        least, most = min(speeds), max(speeds)
        speed = rate(most) if least == most else f"{least / 1e9:.4g} to {rate(most)}"
        notes.setdefault(ROWS[below] + (above == below), []).append(f"{above} to {below}: {speed}")
    labels = [f'<text x="{MARGIN}" y="{MARGIN + row * STEP - 52 + 16 * i}">{escape(text)}</text>'
              for row, texts in notes.items() for i, text in enumerate(texts)]
    high = MARGIN + 5 * STEP + HIGH + MARGIN
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {high}" font-family="sans-serif" '
        'font-size="12" fill="#888">',
        f"<title>{escape(candidate.node.name)}, GB/s per direction</title>", *lines, *boxes, *labels, "</svg>"]) + "\n"


def _kind(place: str) -> str:
    return place.rstrip("0123456789")


def _spans(places: list[str]) -> dict[str, tuple[float, float]]:
    """Return left and right of each place: GPUs and NICs side by side in the order of PCIe, the rest over them."""
    count = {kind: sum(_kind(place) == kind for place in places) for kind in ROWS}

    def share(place: str) -> float:
        return number_of(place) / count[_kind(place)]

    leaves = sorted((p for p in places if _kind(p) in ("gpu", "nic")), key=lambda p: (share(p), _kind(p)))
    starts = {leaf: float(LEFT + i * (BOX + GAP)) for i, leaf in enumerate(leaves)}
    spans = {leaf: (left, left + BOX) for leaf, left in starts.items()}
    right = spans[leaves[-1]][1]
    for kind in ("memory", "nvswitch", OUTSIDE, "socket", "pcie"):
        edges = [LEFT + (right + GAP - LEFT) * i / max(count[kind], 1) for i in range(count[kind] + 1)]
        for place, (left, end) in zip(sorted((p for p in places if _kind(p) == kind), key=number_of),
                                      pairwise(edges), strict=True):
            spans[place] = (left, end - GAP)
    return spans


def _line(a: str, b: str, spans: dict[str, tuple[float, float]]) -> str:
    """Return a line down from the upper place to the lower, straight where the wider one lies over the other."""
    (x1, x2), (x3, x4) = spans[a], spans[b]
    narrow = (x1, x2) if x2 - x1 < x4 - x3 else (x3, x4)
    wide = (x3, x4) if narrow == (x1, x2) else (x1, x2)
    middle = sum(narrow) / 2
    other = min(max(middle, wide[0] + 4), wide[1] - 4)
    top, bottom = (middle, other) if narrow == (x1, x2) else (other, middle)
    return (f"M{top:.0f} {MARGIN + ROWS[_kind(a)] * STEP + HIGH} "
            f"L{bottom:.0f} {MARGIN + ROWS[_kind(b)] * STEP}")


def _arc(a: tuple[float, float], b: tuple[float, float], floor: float) -> str:
    first, last = sum(a) / 2, sum(b) / 2
    depth = min(30 + 0.25 * abs(last - first), 3 * STEP)
    return f"M{first:.0f} {floor} Q{(first + last) / 2:.0f} {floor + depth:.0f} {last:.0f} {floor}"


def _label(place: str, candidate: Candidate) -> str:
    return {"memory": "host memory", "nvswitch": candidate.scaleup.name if candidate.scaleup else "",
            OUTSIDE: candidate.fabric.name}.get(place, place)


def _box(place: str, span: tuple[float, float], label: str) -> str:
    top = MARGIN + ROWS[_kind(place)] * STEP
    return (f'<rect x="{span[0]:.0f}" y="{top}" width="{span[1] - span[0]:.0f}" height="{HIGH}" rx="4" '
            f'fill="{COLORS[_kind(place)]}"/><text x="{sum(span) / 2:.0f}" y="{top + 20}" text-anchor="middle" '
            f'fill="#fff">{escape(label)}</text>')

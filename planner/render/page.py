"""A page of text on a rich console: paragraphs, facts, tables and bars that survive pipes and plain ASCII.

Names and reasons may hold anything, so no text is read as rich markup, none is cut, and what the
console's encoding lacks is replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rich import box
from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from planner.text_io import visible

BAR_CELLS = 30
"""Cells of a bar at a share of one, on a console of 80 columns or more."""
BESIDE = 80
"""Columns from which two blocks stand side by side."""
LEAST_SHARE = 0.005
"""Share of the whole below which a bar would say more than there is."""


@dataclass(frozen=True, slots=True)
class Head:
    """One table column; a figure is right-aligned and never wrapped."""

    label: str
    figure: bool = False
    style: str = ""
    whole: bool = False
    """Never wrapped, as a bar."""


@dataclass(frozen=True, slots=True)
class FigureTable:
    """A small table under a heading: label, figure, share."""

    heading: str
    rows: Sequence[tuple[str, str, str]]
    style: str = ""


class Sheet(Protocol):
    """What an answer is written on: a console, or a part of an HTML page."""

    def paragraph(self, value: str, style: str = "") -> None:
        """Write one paragraph."""

    def heading(self, value: str, style: str = "") -> None:
        """Write a heading."""

    def items(self, rows: Sequence[str]) -> None:
        """Write a list."""

    def facts(self, rows: Sequence[tuple[str, str]]) -> None:
        """Write label and value pairs."""

    def table(self, columns: Sequence[Head], rows: Sequence[Sequence[str]]) -> None:
        """Write a table."""

    def lines(self, columns: Sequence[Head], rows: Sequence[Sequence[str]]) -> None:
        """Write a table of a line a row."""


@dataclass(frozen=True, slots=True)
class Page:
    """Writes to `console`, in the order of the calls."""

    console: Console

    @property
    def unicode(self) -> bool:
        """Whether the console can show more than ASCII."""
        return self.console.encoding.startswith("utf")

    def text(self, value: str, style: str = "") -> Text:
        """Return `value` as it stands, in characters that the console can show: no control characters among them."""
        value = "\n".join(visible(line) for line in value.split("\n"))
        if not self.unicode:
            value = value.encode("ascii", "replace").decode("ascii")
        return Text(value, style=style, overflow="fold")

    def paragraph(self, value: str, style: str = "") -> None:
        """Print one wrapped paragraph."""
        self.console.print(self.text(value, style))

    def heading(self, value: str, style: str = "") -> None:
        """Print an empty line and a heading."""
        self.console.print()
        self.console.print(self.text(value, f"bold {style}".strip()))

    def items(self, rows: Sequence[str]) -> None:
        """Print a list, a paragraph each."""
        for row in rows:
            self.paragraph(f"  - {row}")

    def facts(self, rows: Sequence[tuple[str, str]]) -> None:
        """Print label and value pairs; values wrap beside their label."""
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True, style="dim")
        grid.add_column(overflow="fold")
        for label, value in rows:
            grid.add_row(self.text(label), self.text(value))
        self.console.print(Padding(grid, (0, 0, 0, 2), expand=False))

    def table(self, columns: Sequence[Head], rows: Sequence[Sequence[str]], *, totals: int = 0,
              gap: int = 0) -> None:
        """Print a table with `gap` empty lines between rows; the last `totals` rows stand apart."""
        table = Table(box=box.SIMPLE, show_edge=False, leading=gap)
        for column in columns:
            table.add_column(self.text(column.label), justify="right" if column.figure else "left",
                             no_wrap=column.figure or column.whole, overflow="fold", style=column.style)
        for index, row in enumerate(rows):
            table.add_row(*(self.text(cell) for cell in row), end_section=index == len(rows) - totals - 1)
        self.console.print(Padding(table, (0, 0, 0, 1), expand=False))

    def lines(self, columns: Sequence[Head], rows: Sequence[Sequence[str]]) -> None:
        """Print a table of a line a row, as narrow as can be."""
        grid = Table(box=None, padding=(0, 1), collapse_padding=False, pad_edge=False, show_edge=False)
        for column in columns:
            grid.add_column(self.text(column.label), justify="right" if column.figure else "left",
                            no_wrap=column.figure, overflow="fold", header_style="dim")
        for row in rows:
            grid.add_row(*map(self.text, row))
        self.console.print(Padding(grid, (0, 0, 0, 2), expand=False))

    def blocks(self, left: FigureTable, right: FigureTable) -> None:
        """Print two blocks side by side, or one under the other where the console is too narrow."""
        made = [self._block(block) for block in (left, right)]
        if self.console.width < BESIDE:
            for group in made:
                self.console.print(group)
            return
        beside = Table.grid(padding=(0, 3, 0, 0))
        beside.add_row(*made)
        self.console.print(beside)

    def _block(self, block: FigureTable) -> Group:
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(no_wrap=True, style="dim")
        for _ in range(2):
            grid.add_column(no_wrap=True, justify="right")
        for row in block.rows:
            grid.add_row(*map(self.text, row))
        return Group(self.text(block.heading, f"bold {block.style}".strip()),
                     Padding(grid, (0, 0, 0, 2), expand=False))

    def bar(self, share: float) -> str:
        """Return a bar as long as `share` (0 to 1); less than LEAST_SHARE shows nothing."""
        cells = max(8, min(BAR_CELLS, self.console.width - 50))
        filled = round(max(0.0, min(1.0, share)) * cells)
        return ("█" if self.unicode else "#") * max(filled, 1 if share >= LEAST_SHARE else 0)

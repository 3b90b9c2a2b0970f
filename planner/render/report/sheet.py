"""What is written on a page of text, as a part of an HTML page: the same calls, the same words, in tables and lists."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from planner.render.page import Head


@dataclass(slots=True)
class HtmlSheet:
    """Collects paragraphs, facts, lists and tables; what follows a heading is its section."""

    parts: list[Markup] = field(default_factory=list)
    is_open: bool = False

    def paragraph(self, value: str, style: str = "") -> None:
        """Write one paragraph; the first bold one is the answer."""
        kind = Markup(' class="answer"') if "bold" in style and not self.parts else ""
        self.parts.append(Markup("<p{}>{}</p>").format(kind, value))

    def heading(self, value: str, style: str = "") -> None:
        """Begin a section."""
        self._close()
        self.parts.append(Markup("<section><h2>{}</h2>").format(value))
        self.is_open = True

    def items(self, rows: Sequence[str]) -> None:
        """Write a list."""
        self.parts.append(Markup("<ul>{}</ul>").format(_joined(Markup("<li>{}</li>").format(row) for row in rows)))

    def facts(self, rows: Sequence[tuple[str, str]]) -> None:
        """Write label and value pairs."""
        self.parts.append(Markup("<dl>{}</dl>").format(_joined(
            Markup("<dt>{}</dt><dd>{}</dd>").format(label, value) for label, value in rows)))

    def table(self, columns: Sequence[Head], rows: Sequence[Sequence[str]]) -> None:
        """Write a table, which scrolls by itself where it is wider than the page."""
        kinds = [Markup(' class="figure"') if column.figure else Markup() for column in columns]
        head = _joined(Markup("<th{}>{}</th>").format(kind, column.label)
                       for kind, column in zip(kinds, columns, strict=True))
        body = _joined(Markup("<tr>{}</tr>").format(_joined(
            Markup("<td{}>{}</td>").format(kind, cell) for kind, cell in zip(kinds, row, strict=True))) for row in rows)
        self.parts.append(Markup('<div class="wide" tabindex="0" role="group" aria-label="Table"><table><thead><tr>{}'
                                 "</tr></thead><tbody>{}</tbody></table></div>").format(head, body))

    lines = table

    def html(self) -> Markup:
        """Return all that was written."""
        self._close()
        return _joined(self.parts)

    def _close(self) -> None:
        if self.is_open:
            self.parts.append(Markup("</section>"))
        self.is_open = False


def _joined(parts: Iterable[Markup]) -> Markup:
    return Markup("\n").join(parts)

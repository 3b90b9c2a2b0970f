"""How far a search is: a line on stderr that is written over while it goes on, and gone before the answer."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from planner.answer.objective import amount, show_amount
from planner.cli.options import is_quiet, is_verbose
from planner.cli.printing import message, note
from planner.process.news import hearing
from planner.render.figures import gap_shown
from planner.solver.progress import SoFar
from planner.units import show_seconds

WRITTEN_OVER, APART = 1.0, 10.0
"""Seconds between lines on a terminal, where each is written over the last, and elsewhere."""


@contextmanager
def progress(*, shown: bool = True) -> Iterator[None]:
    """Say meanwhile how far the search is: on a terminal, and with -v anywhere; with -q nowhere."""
    terminal = sys.stderr.isatty()
    if not shown or is_quiet() or not (terminal or is_verbose()):
        yield
        return
    line = _LastHeard(over=terminal)
    writing = Thread(target=line.write, daemon=True)
    writing.start()
    try:
        with hearing(line.hear):
            yield
    finally:
        line.ended.set()
        writing.join()
        line.clear()


class _LastHeard:
    """What was heard last, written now and then."""

    def __init__(self, *, over: bool) -> None:
        self.over, self.began, self.ended, self.width = over, time.monotonic(), Event(), 0
        self.news: SoFar | None = None

    def hear(self, news: object) -> None:
        """Note how far the search is."""
        if isinstance(news, SoFar):
            self.news = news

    def write(self) -> None:
        """Write it until the search has ended."""
        while not self.ended.wait(WRITTEN_OVER if self.over else APART):
            if self.news is None:
                continue
            text = f"{show_seconds(round(time.monotonic() - self.began))}: {so_far(self.news)}"
            if not self.over:
                note(text)
                continue
            text = text[:shutil.get_terminal_size().columns - 1]
            message(f"\r{text:{self.width}}", nl=False)
            self.width = len(text)

    def clear(self) -> None:
        """Leave no line that another is to be written over."""
        if self.width:
            message(f"\r{'':{self.width}}\r", nl=False)


def so_far(news: SoFar) -> str:
    """Return how far a search is, the best that it has, and how far below that an answer may still be."""
    value, bound = (None if quanta is None else amount(news.goal, quanta) for quanta in (news.value, news.bound))
    known = [f"{news.part or 'searching'} {news.done:.0%}" if news.done < 1 else news.part or "searching"]
    if value is not None:
        known.append(f"best {show_amount(news.goal, value)}")
    if bound is not None:
        known.append(f"bound {show_amount(news.goal, bound)}")
    if value and bound is not None:
        known.append(f"gap {gap_shown(1 - bound / value)}")
    return ", ".join(known)

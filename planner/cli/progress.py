"""A bar on stderr while something takes long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click


@contextmanager
def bar(*, shown: bool) -> Iterator[Callable[[float], None]]:
    """Give what to call with the share that is done; a bar on stderr shows it where that is a terminal."""
    hidden = not shown or not sys.stderr.isatty()
    with click.progressbar(length=100, label="Replaying", file=sys.stderr, hidden=hidden) as line:
        def advance(share: float) -> None:
            line.update(round(100 * share) - line.pos)

        yield advance

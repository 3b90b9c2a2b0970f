"""Golden texts in tests/golden: compare, or rewrite with PLANNER_UPDATE_GOLDEN=1."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

from rich.console import Console

GOLDEN = Path(__file__).parent.parent / "golden"


def printed(write: Callable[[Console], None], *, width: int = 80, encoding: str = "utf-8") -> str:
    """What `write` prints to a pipe of `encoding`, without the spaces that pad tables."""
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding=encoding, newline="\n") as stream:
        write(Console(file=stream, width=width, force_terminal=False, no_color=True, _environ={}))
        stream.flush()
        text = raw.getvalue().decode(encoding)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def check(name: str, text: str) -> None:
    """Compare with the golden file of that name."""
    path = GOLDEN / name
    if os.environ.get("PLANNER_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"{path} differs; PLANNER_UPDATE_GOLDEN=1 rewrites it"

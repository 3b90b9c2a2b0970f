"""Where the server keeps what outlives it: in the user's cache."""

from __future__ import annotations

import os
from pathlib import Path


def answers_folder() -> Path:
    """Return where finished answers are kept."""
    return _cache() / "answers"


def files_folder() -> Path:
    """Return where uploads are kept."""
    return _cache() / "files"


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "planner"

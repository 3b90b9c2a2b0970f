"""A model by the path of its Hugging Face config, of which no entry is written."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from planner.catalog.architecture import Model

CONFIG = "config.json"


def of_config(name: str) -> Model | None:
    """Return the model of a config.json, or of a folder with one, by its path; none where it is no such path.

    Raises InputError for a config that cannot be read.
    """
    path = Path(name).expanduser()
    path = path / CONFIG if path.is_dir() else path
    return _read(name, path, path.stat().st_mtime_ns) if path.suffix == ".json" and path.is_file() else None


@lru_cache(maxsize=8)
def _read(name: str, path: Path, changed: int) -> Model:
    from planner.catalog.importers.hf import import_config  # a reader of many families, for few questions

    as_of = datetime.fromtimestamp(changed / 1e9, UTC).date().isoformat()
    return import_config(path, as_of).model_copy(update={"name": name})

"""Catalog files as entries: the same text of the same file is read once in a process, however many catalogs open it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from planner.catalog.sourced import Sourced
from planner.text_io import read_text
from planner.yaml_io import Document, parse, validate

S = TypeVar("S", bound=Sourced)


def read_entry(path: Path, model: type[S]) -> tuple[Document, S | None]:
    """Return a file's document and its entry; none for one that is `like` another, and so not whole.

    Raises InputError.
    """
    return _of(read_text(path), str(path), model)


@lru_cache(maxsize=2048)
def _of(text: str, file: str, model: type[S]) -> tuple[Document, S | None]:
    document = parse(text, file)
    whole = not isinstance(document.data, dict) or "like" not in document.data
    return document, validate(document, model) if whole else None

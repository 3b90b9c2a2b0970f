"""Catalog files as entries: the same text of the same file is read once in a process, however many catalogs open it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from planner.catalog.sourced import Sourced, own_fact
from planner.text_io import read_text
from planner.yaml_io import Document, parse, validate

S = TypeVar("S", bound=Sourced)
OWN = frozenset({*Sourced.model_fields, "used_for", "encoders", "last_resort_for", "preference"})
"""Fields that an entry never takes from the one it is like."""


def read_entry(path: Path, model: type[S], files: Mapping[str, Path]) -> tuple[Document, S]:
    """Return a file's document and its entry, which takes what it leaves out from the one that it is `like`.

    files: of all entries of its kind, by name. Raises InputError.
    """
    text = read_text(path)
    document = _parsed(text, str(path))
    base = _base(document, files)
    return document, _of(text, str(path), model, *(("", "") if base is None else (read_text(base), str(base))))


@lru_cache(maxsize=2048)
def _parsed(text: str, file: str) -> Document:
    return parse(text, file)


@lru_cache(maxsize=2048)
def _of(text: str, file: str, model: type[S], base: str, base_file: str) -> S:
    document = _parsed(text, file)
    return validate(_completed(document, _parsed(base, base_file).data) if base else document, model)


def _base(document: Document, files: Mapping[str, Path]) -> Path | None:
    """Return the file of the entry that a document is like; none for one that is whole."""
    data = document.data
    if not isinstance(data, dict) or not isinstance(data.get("like"), str):
        return None
    if data["like"] not in files or data["like"] == data.get("name"):
        raise document.error(("like",), f"no other entry of this kind is called {data['like']!r}")
    return files[data["like"]]


def _completed(document: Document, base: dict[str, Any]) -> Document:
    """Return an entry that says `like: NAME` with what it leaves out taken, with its provenance, from that one's data.

    A dotted key is one figure of a field that is otherwise the other entry's. Raises InputError.
    """
    data = document.data
    if "like" in base:
        raise document.error(("like",), f"{data['like']} is itself like another entry")
    own = own_fact(base)
    taken = {key: value for key, value in base.items() if key not in {*data, *OWN}}
    facts = dict.fromkeys(taken, own) | {
        key: fact for key, fact in base.get("facts", {}).items() if key.split(".")[0] in taken}
    dotted = [key for key in data if "." in str(key)]
    facts = {key: fact for key, fact in facts.items() if key not in dotted}
    whole = {**taken, **{key: value for key, value in data.items() if key not in dotted},
             "facts": {**facts, **{key: own_fact(data) for key in dotted}, **data.get("facts", {})}}
    for key in dotted:
        field, _, figure = key.partition(".")
        if not isinstance(whole.get(field), dict):
            raise document.error((key,), f"{field} of {data['like']} has no figures by name")
        whole[field] = {**whole[field], figure: data[key]}
    return replace(document, data=whole)

"""Catalog files as entries: the same text of the same file is read once in a process, however many catalogs open it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from planner.catalog.sourced import Sourced, own_fact
from planner.text_io import read_text
from planner.yaml_io import Document, parse, read, validate

S = TypeVar("S", bound=Sourced)
OWN = frozenset({*Sourced.model_fields, "used_for", "last_resort_for"})
"""Fields that an entry never takes from the one it is like."""


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


def completed(document: Document, files: Mapping[str, Path]) -> Document:
    """Return an entry that says `like: NAME` with what it leaves out taken, with its provenance, from that one.

    files: of all entries of its kind, by name. A dotted key is one figure of a field that is otherwise the other
    entry's. Raises InputError.
    """
    data = document.data
    if not isinstance(data, dict) or not isinstance(data.get("like"), str):
        return document
    if data["like"] not in files or data["like"] == data.get("name"):
        raise document.error(("like",), f"no other entry of this kind is called {data['like']!r}")
    base = read(files[data["like"]]).data
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

"""The question of an answer: a plan that was written as JSON is asked again where a scenario is expected."""

from __future__ import annotations

from dataclasses import replace

from planner.errors import InputError
from planner.yaml_io import Document

_AT = ("provenance", "scenario")
"""Where an answer has its resolved question."""


def answered(document: Document) -> Document:
    """Return the question of an answer's JSON, and any other document as it is.

    Raises InputError for an answer that holds no question.
    """
    data = document.data
    schema = data.get("schema") if isinstance(data, dict) else None
    if not isinstance(schema, str) or not schema.startswith("planner."):
        return document
    provenance = data.get(_AT[0])
    question = provenance.get(_AT[1]) if isinstance(provenance, dict) else None
    if not isinstance(question, dict) or not question:
        raise InputError(f"this is an answer ({schema}) without its question: expected a scenario, or what "
                         "planner plan --json prints", file=document.file or None)
    return replace(document, data=question, lines={
        path[len(_AT):]: line for path, line in document.lines.items() if path[:len(_AT)] == _AT})

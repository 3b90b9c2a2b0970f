"""The JSON Schema of every document, each field described."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from itertools import pairwise
from typing import Any, get_args

from pydantic import TypeAdapter

from planner.yaml_io import Frozen

DOCUMENTS = {
    "plan": ("planner.answer.schema", "Plan"), "comparison": ("planner.answer.comparison", "Comparison"),
    "sweep": ("planner.sweeping.line", "SweepLine"), "validation": ("planner.answer.validation", "Validation"),
    "scenario": ("planner.scenario.portfolio", "AnyQuestion"),
    "sizing": ("planner.answer.sizing", "Sizing"),
    "explanation": ("planner.answer.explanation", "Explanation")}
"""Document -> where its type is."""


def schema_of(document: str) -> dict[str, Any]:
    """Return the JSON Schema of a document, by its name in DOCUMENTS."""
    module, name = DOCUMENTS[document]
    kind = getattr(import_module(module), name)
    _describe(kind, set())
    # a scenario is read, the others are written
    return TypeAdapter(kind).json_schema(mode="validation" if document == "scenario" else "serialization")


def _describe(kind: object, done: set[object]) -> None:
    """Give every field of the models in an annotation its description, inner models first."""
    if not (isinstance(kind, type) and issubclass(kind, Frozen)):
        for inner in get_args(kind):
            _describe(inner, done)
    elif kind not in done:
        done.add(kind)
        said = {name: text for base in reversed(kind.__mro__) if issubclass(base, Frozen)
                for name, text in texts(base).items()}
        for name, field in kind.model_fields.items():
            _describe(field.annotation, done)
            field.description = said.get(name)
        kind.model_rebuild(force=True)


def texts(model: type[Frozen]) -> dict[str, str]:
    """Return the text under each field that a class itself declares: its help."""
    (declared,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(declared, ast.ClassDef)
    return {field.target.id: " ".join(text.value.value.split()) for field, text in pairwise(declared.body)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr)
            and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)}

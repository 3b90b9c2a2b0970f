"""`planner schema`: the JSON Schema of a document, each field described."""

from __future__ import annotations

import json
from importlib import import_module

import click

from planner.cli.options import common
from planner.errors import EXIT_OK

DOCUMENTS = {
    "plan": ("planner.answer.schema", "Plan"), "comparison": ("planner.answer.comparison", "Comparison"),
    "sweep": ("planner.sweep.line", "SweepLine"), "validation": ("planner.answer.validation", "Validation"),
    "scenario": ("planner.scenario.scenario", "AnyScenario"),
    "explanation": ("planner.answer.explanation", "Explanation")}
"""Document -> where its type is."""


@click.command("schema")
@click.argument("document", type=click.Choice(list(DOCUMENTS)))
@common
def command(document: str, as_json: bool, catalogs: tuple[object, ...]) -> int:
    """Print the JSON Schema of a document: what --json of a command prints, or a scenario file."""
    click.echo(json.dumps(schema_of(document), indent=2, ensure_ascii=False))
    return EXIT_OK


def schema_of(document: str) -> dict[str, object]:
    """Return the JSON Schema of a document, which is JSON whatever --json says."""
    from pydantic import TypeAdapter

    module, name = DOCUMENTS[document]
    kind = getattr(import_module(module), name)
    # a scenario is read, the others are written
    return TypeAdapter(kind).json_schema(mode="validation" if document == "scenario" else "serialization")

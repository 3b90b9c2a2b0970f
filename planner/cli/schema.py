"""`planner schema`: the JSON Schema of a document, each field described."""

from __future__ import annotations

import click

from planner.api.described import DOCUMENTS, schema_of
from planner.cli.options import common
from planner.cli.printing import say_json
from planner.errors import EXIT_OK
from planner.text_io import json_text


@click.command("schema")
@click.argument("document", type=click.Choice(list(DOCUMENTS)))
@common
def command(document: str, as_json: bool, catalogs: tuple[object, ...]) -> int:
    """Print the JSON Schema of a document: what --json of a command prints, or a scenario file."""
    say_json(json_text(schema_of(document), indent=2))
    return EXIT_OK

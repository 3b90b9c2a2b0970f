"""`planner schema`: every document has a JSON Schema that describes each field and that the documents meet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from planner.answer.schema import to_json
from planner.api.described import DOCUMENTS, schema_of
from tests.answer.example_plan import example_plan


def properties(schema: Any, where: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every property of a schema and of its definitions, with its path."""
    if isinstance(schema, list):
        for at, inner in enumerate(schema):
            yield from properties(inner, f"{where}[{at}]")
    elif isinstance(schema, dict):
        for name, inner in schema.get("properties", {}).items():
            yield f"{where}.{name}", inner
        for key, inner in schema.items():
            yield from properties(inner, f"{where}/{key}")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_field_of_every_document_is_described(document: str) -> None:
    schema = schema_of(document)
    found = dict(properties(schema))
    kinds: Any = schema["$defs"]

    def said(field: dict[str, Any]) -> str:
        # a text that is its type's own is there alone
        its = kinds.get(field.get("$ref", "").rsplit("/")[-1], {})
        return str(field.get("description") or its.get("description", ""))

    assert len(found) > 5
    assert [where for where, field in found.items() if len(said(field)) < 5] == []


def test_the_verb_prints_json_and_refuses_other_documents(planner: Any) -> None:
    ran = planner("schema", "plan")
    assert (ran.code, ran.err) == (0, "")
    assert json.loads(ran.out)["properties"]["schema"]["const"] == "planner.plan/2"
    assert planner("schema", "plans").code == 2


def test_assignments_are_told_apart_by_their_kind() -> None:
    items = schema_of("plan")["properties"]["assignments"]["items"]  # type: ignore[index]
    assert items["discriminator"]["propertyName"] == "kind"
    assert set(items["discriminator"]["mapping"]) == {"training", "serving", "diffusion", "posttraining"}


def test_a_schema_has_the_keys_of_its_document() -> None:
    schema = schema_of("plan")
    at_times = ("supply", "periods", "cash", "added", "counted", "doubt")
    keys = [key for key in schema["properties"] if key not in at_times]  # type: ignore[union-attr]
    assert keys == list(json.loads(to_json(example_plan())))


def test_a_quantity_is_text_with_an_example() -> None:
    limits = schema_of("scenario")["$defs"]["Limits"]["properties"]  # type: ignore[index]
    assert {"type": "string", "examples": ["12 MUSD"]}.items() <= limits["budget"]["anyOf"][0].items()

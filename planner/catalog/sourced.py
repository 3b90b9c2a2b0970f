"""What every catalog entry carries: where its figures come from, when, and how sure they are."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from planner.yaml_io import Frozen

Kind = Literal["datasheet", "measured", "quoted", "assumed", "fitted"]
AsOf = Annotated[str, BeforeValidator(lambda v: str(v) if isinstance(v, int) else v),
                 Field(pattern=r"^(19|20)\d\d(-(0[1-9]|1[0-2])(-\d\d)?)?$")]


def own_fact(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the provenance that an entry states for all of its figures."""
    return {key: data[key] for key in ("source", "as_of", "kind") if key in data}


class Fact(Frozen):
    """The provenance of one figure where it differs from the entry's own."""

    source: str = Field(min_length=3)
    as_of: AsOf
    kind: Kind
    note: str = ""


class Sourced(Frozen):
    """Base of catalog entries: a name, and provenance for all fields or, under `facts`, for single ones."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    aliases: tuple[str, ...] = ()
    source: str = Field(min_length=3)
    as_of: AsOf
    kind: Kind
    note: str = ""
    facts: dict[str, Fact] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _facts_name_fields(self) -> Sourced:
        known = type(self).model_fields
        for name in self.facts:
            if name.split(".")[0] not in known:
                raise ValueError(f"facts.{name}: no such field in this entry")
        return self

    def provenance(self, field: str) -> Fact:
        """Return where the figure in `field` (dotted for a nested one) comes from."""
        if not self.facts:
            return _of_all(self.source, self.as_of, self.kind, self.note)
        parts = field.split(".")
        prefixes = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
        stated = next((self.facts[prefix] for prefix in prefixes if prefix in self.facts), None)
        return stated or _of_all(self.source, self.as_of, self.kind, self.note)


@lru_cache(maxsize=1024)
def _of_all(source: str, as_of: str, kind: Kind, note: str) -> Fact:
    """Return the provenance that an entry states for all of its figures, made once for hundreds of them."""
    return Fact(source=source, as_of=as_of, kind=kind, note=note)

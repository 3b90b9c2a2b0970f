"""How a field of an answer asks to be shown to people, where its name and its unit say all that there is to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Group = Literal["hardware", "layout", "memory", "performance", "level", "cost", "purchase"]
"""The headings under which people read an assignment."""


@dataclass(frozen=True, slots=True)
class ShowAs:
    """Metadata of a field, `Annotated[float | None, ShowAs("energy", "cost")]`: text and pages show it if it is set.

    It comes last in its group; the unit is the one that ends the field's name.
    """

    label: str
    group: Group

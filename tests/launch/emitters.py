"""The emitters of each kind of work, by target, and the axes that one says something of."""

from collections.abc import Iterator, Mapping
from typing import TypeVar

from planner.launch.axes import TableOf, W
from planner.launch.emitter import Emitter, ReinforcedEmitter, ServiceEmitter, all_targets

E = TypeVar("E", Emitter, ServiceEmitter, ReinforcedEmitter)


def emitters_of(kind: type[E]) -> Mapping[str, E]:
    """Return those of one kind of work."""
    return {name: found for name, found in all_targets().items() if isinstance(found, kind)}


def axes_of(table: TableOf[W]) -> Iterator[str]:
    """Yield every axis that a table says something of."""
    for names in table:
        yield from names

"""What measures: torch on this machine, or a stand-in in tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, Protocol, TypeAlias

from planner.errors import InputError
from planner.probe.tasks import Machine, ProbeTask

Torch: TypeAlias = Any
"""The torch module or an object of it: an optional library, of which nothing is known where it is not installed."""
Result = tuple[ProbeTask, float | str]
"""A task with its seconds, or with the reason why it has none."""


class Backend(Protocol):
    """A machine that measures tasks."""

    def machine(self) -> Machine:
        """Say what there is to measure."""

    @property
    def leads(self) -> bool:
        """Whether this process writes; of several ranks only the first does."""

    def measured(self, tasks: Sequence[ProbeTask]) -> Iterator[Result]:
        """Yield the result of every task as it comes; a rank that does not lead takes part and yields none."""


def torch_of() -> Torch:
    """Return torch. Raises InputError where it is not installed."""
    try:
        return import_module("torch")
    except ImportError:
        raise InputError("planner probe needs torch: pip install 'planner[probe]'") from None

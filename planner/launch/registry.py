"""What the modules of a folder bring, each one thing: the targets, the schedulers."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

from planner.errors import UnknownName

Thing = TypeVar("Thing")


def brought(folder: ModuleType, attribute: str) -> list[Any]:
    """Return an attribute of every module of a folder, in the order of their names."""
    return [getattr(import_module(f"{folder.__name__}.{module.name}"), attribute)
            for module in pkgutil.iter_modules(folder.__path__)]


def named(what: str, name: str, known: Mapping[str, Thing]) -> Thing:
    """Return what has a name. Raises UnknownName."""
    if name not in known:
        raise UnknownName(what, name, known)
    return known[name]

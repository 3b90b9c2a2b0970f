"""Modules that only a machine with GPUs has, made up so that the code of a stack that reads configs can be imported."""

from __future__ import annotations

import abc
import sys
import types
from collections.abc import Iterator, MutableSequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import Any

RELEASE = "99.0.0"
"""Of a module that is made up: newer than any that a stack asks for."""


class _Named(abc.ABCMeta):
    """A class that has every attribute, and can be iterated and joined with types."""

    def __getattr__(cls, name: str) -> Any:  # noqa: ANN401 - it stands for anything
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __or__(cls, other: object) -> Any:  # noqa: ANN401
        return cls

    __ror__ = __or__


class _Anything(metaclass=_Named):
    """Something that can be called, subscripted and asked for anything; as a decorator it leaves what it decorates."""

    def __init__(self, *given: object, **named: object) -> None:
        pass

    def __call__(self, *given: Any, **named: object) -> Any:  # noqa: ANN401
        return given[0] if len(given) == 1 and callable(given[0]) and not named else self

    def __class_getitem__(cls, key: object) -> Any:  # noqa: ANN401
        return cls

    def __getitem__(self, key: object) -> Any:  # noqa: ANN401
        return self

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything


class _Module(types.ModuleType):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: MutableSequence[str] = []
        self.__version__ = RELEASE

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (_Anything,), {})
        setattr(self, name, made)
        return made


class _Finder:
    def __init__(self, roots: tuple[str, ...]) -> None:
        self.roots = roots

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Find a module that is one of the roots or inside one."""
        mine = any(name == root or name.startswith(root + ".") for root in self.roots)
        return ModuleSpec(name, self, is_package=True) if mine else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Make the module up."""
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Run nothing."""


def install(*roots: str) -> None:
    """Make up those of the modules that are not installed here."""
    missing = tuple(root for root in roots if not _there(root))
    sys.meta_path.insert(0, _Finder(missing))


def _there(root: str) -> bool:
    try:
        return find_spec(root) is not None
    except (ImportError, ValueError):
        return False

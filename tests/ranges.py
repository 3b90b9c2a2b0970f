"""The numbers of a pydantic model, each with the range that its field declares."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel

from planner.units import Quantity


def numbers(model: type[BaseModel], seen: tuple[type[BaseModel], ...] = ()) -> Iterator[tuple[str, Any, Any]]:
    """Yield model.field, least and most of every number, None where there is no such bound."""
    for name, field in model.model_fields.items():
        for least, most, inner in _inside(field.annotation, tuple(field.metadata)):
            if inner is None:
                yield f"{model.__name__}.{name}", least, most
            elif inner not in (model, *seen):
                yield from numbers(inner, (*seen, model))


def _inside(kind: Any, marks: tuple[Any, ...]) -> Iterator[tuple[Any, Any, type[BaseModel] | None]]:
    origin = get_origin(kind)
    if origin is Annotated:
        inner, *more = get_args(kind)
        yield from _inside(inner, (*marks, *more))
    elif origin in (Union, types.UnionType):
        for one in get_args(kind):
            yield from _inside(one, marks)
    elif origin in (tuple, dict, list, frozenset):
        for one in get_args(kind):
            yield from _inside(one, ())
    elif isinstance(kind, type) and issubclass(kind, BaseModel):
        yield None, None, kind
    elif kind in (int, float) and origin is not Literal:
        flat = [one for mark in marks for one in (mark, *getattr(mark, "metadata", ()))]
        quantity = next((mark for mark in flat if isinstance(mark, Quantity)), None)
        least = [getattr(mark, "ge", getattr(mark, "gt", None)) for mark in flat if isinstance(mark, Ge | Gt)]
        most = [getattr(mark, "le", getattr(mark, "lt", None)) for mark in flat if isinstance(mark, Le | Lt)]
        if quantity is not None:
            least, most = [*least, quantity.least], [*most, quantity.most]
        yield max(least, default=None), min(most, default=None), None

"""Figures by the names that people have for them: cost, days, step_time, num_gpus, cost_per_hour."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import BaseModel

from planner.errors import did_you_mean

SHORT = 2
"""Letters of a word that says nothing of what is meant: to, as, of."""


class Meant:
    """What finds figures by other names, as attributes and as keys."""

    __slots__ = ()

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> object:
            """Return what is meant by another name, of the answer or a block of it; refuse any other."""
            try:
                return super().__getattr__(name)
            except AttributeError:
                if name.startswith("_"):
                    raise
                meant = _meant(self, name)
                if len(meant) == 1:
                    return meant[0]
                raise AttributeError(f"{type(self).__name__} has no {name!r}{_alike(self, name)}") from None

    def __getitem__(self, key: str | int) -> object:
        """Return a figure by its name, as an attribute has it, or what the answer lists at a place. Raises KeyError."""
        try:
            if isinstance(key, int):
                fields = getattr(type(self), "model_fields", {})
                listed: tuple[object, ...] = getattr(self, next(name for name in _LISTED if name in fields))
                return listed[key]
            return getattr(self, key)
        except (AttributeError, StopIteration) as error:
            raise KeyError(str(error)) from None


def _meant(answer: BaseModel, name: str) -> list[object]:
    """Return the values that people call by a name (cost, days, step_time), nearest to the answer: its own fields',
    then those of the only assignment, then of its blocks.
    """
    name, level = _OTHERWISE.get(name.lower(), name), [answer]
    empty = False
    while level:
        here = [each for model in level for each in _figures(model)]
        if own := [getattr(model, name) for model in level if isinstance(getattr(type(model), name, None), property)]:
            return own
        empty |= any(value is None and name.lower() in _called(field) for field, value in here)
        if found := [value for field, value in here if value is not None and name.lower() in _called(field)]:
            return found
        level = [inner for field, value in here if field not in _ASIDE for inner in (
            value if isinstance(value, tuple) and len(value) == 1 and field == _ONLY else [value])
            if isinstance(inner, BaseModel)]
    return [None] if empty else []


def _figures(model: BaseModel) -> Iterator[tuple[str, object]]:
    """Yield the fields of a block, and the figures that it sums."""
    yield from ((field, getattr(model, field)) for field in type(model).model_fields)
    yield from ((name, getattr(model, name)) for name in _SUMS
                if isinstance(getattr(type(model), name, None), property))


_LISTED = ("assignments", "rows", "lines")
"""What answers are lists of."""
_SUMS = ("cost_usd", "usd_per_hour", "gpus", "nodes")


def _called(field: str) -> set[str]:
    """Return what people call a field: cost_usd also cost, step_seconds step_time, duration_days days."""
    front, _, unit = field.rpartition("_")
    of_units = {front, *({f"{front}_time"} if unit == "seconds" else ())} if unit in _UNITS else set()
    return {field, *of_units, *({unit} if field == "duration_days" else ())} - {""}


_OTHERWISE = {said: field for field, names in {
    "usd_per_hour": "cost_per_hour hourly_cost price_per_hour hourly_price hourly_usd cost_usd_per_hour usd_hour",
    "usd_per_node_hour": "price_per_node_hour node_hour_price",
    "tokens_per_second": "throughput tokens_per_sec tokens_per_s tokens_s total_tokens_per_second",
    "tokens_per_second_per_gpu": "tokens_per_gpu tokens_per_gpu_second tokens_per_second_gpu tokens_per_sec_per_gpu",
    "gpus": "num_gpus n_gpus ngpus gpu_count total_gpus number_of_gpus",
    "nodes": "num_nodes n_nodes nnodes node_count total_nodes",
    "cost_usd": "total_cost total_cost_usd total_usd cost_in_usd usd", "gpu": "gpu_type gpu_name gpu_model",
    "node": "node_type instance_type node_name", "duration_days": "total_days runtime_days wall_days",
    "step_seconds": "seconds_per_step time_per_step iteration_time iter_time step_duration",
    "peak_bytes": "peak_memory memory_peak max_memory peak memory_bytes memory_used",
    "micro_batch": "micro_batch_size mbs", "requests_per_second": "qps rps requests_per_sec",
    "tp": "tensor_parallel tensor_parallel_size", "pp": "pipeline_parallel pipeline_parallel_size",
    "dp": "data_parallel data_parallel_size", "ep": "expert_parallel expert_parallel_size",
    "cp": "context_parallel context_parallel_size", "goodput": "productive_share",
    "because": "reason reasons why_not message cause explanation", "feasible": "is_feasible ok success found",
    "alternatives": "others runners_up", "assignments": "jobs schedule placements",
    "lines": "rows results variants plans", "memory_gb": "peak_memory_gb peak_gb gpu_memory_gb memory_per_gpu_gb",
    }.items() for said in names.split()}
"""What people call figures that have another name here."""
_UNITS = ("usd", "seconds", "days", "bytes", "kwh", "kg")
"""Units that the names of fields end with."""
_ASIDE = ("provenance", "search", "objective", "doubt", "added", "counted")
"""Blocks of an answer that are of the question or the search, and not of what is planned."""
_ONLY = "assignments"


def _alike(model: object, name: str) -> str:
    """Return which fields are meant by a name, of the answer or of the first in one of its lists, to end a message."""
    assert isinstance(model, BaseModel)
    fields = [*type(model).model_fields, "to_dict()"]
    firsts = {field: value[0] for field in type(model).model_fields if isinstance(
        value := getattr(model, field), tuple) and value and isinstance(value[0], BaseModel)}
    inner = [f"{field}[0].{key}" for field, first in firsts.items() for key in type(first).model_fields]
    words = [word for word in name.lower().split("_") if len(word) > SHORT]
    near = [each for each in (*fields, *inner) if any(word in each for word in words)]
    return f"; did you mean {', '.join(near[:3])}?" if near else did_you_mean(name, fields)

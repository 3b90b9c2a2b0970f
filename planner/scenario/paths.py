"""The dotted paths of a question's values, by which flags and sweeps name them; a job's by its name."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import cache
from typing import get_args, get_origin

from planner.scenario.portfolio import Portfolio
from planner.scenario.portfolio_job import PortfolioJob
from planner.scenario.scenario import SCENARIOS
from planner.yaml_io import Frozen


def paths(model: type[Frozen] | None = None) -> Iterator[tuple[str, bool]]:
    """Yield the dotted path of every scenario value, and whether it is a list; of all kinds where none is named."""
    yield from _known(model).items()


@cache
def _known(model: type[Frozen] | None) -> Mapping[str, bool]:
    """Return the paths of a model, or of all kinds: read off the classes once, for whoever asks again and again."""
    kinds = SCENARIOS.values() if model is None else (model,)
    return {path: is_list for kind in kinds for path, is_list in _values(kind, "")}


def paths_in(data: object) -> dict[str, bool]:
    """Return the paths of the values that what a file holds has, and whether each is a list."""
    jobs = data.get("jobs") if isinstance(data, dict) else None
    if jobs is None:
        return dict(paths())
    named = [str(job["name"]) for job in jobs if isinstance(job, dict) and "name" in job] if isinstance(
        jobs, list) else []
    return dict(paths(Portfolio)) | {path: is_list for name in named
                                     for path, is_list in _values(PortfolioJob, f"jobs.{name}.")} | dict.fromkeys(
        _counted_in(data), False)


def _counted_in(data: object) -> dict[str, tuple[Hashable, ...]]:
    """Return the paths of numbers of nodes that a portfolio gives by node type, as keys: sourcing.own.dgx-h100."""
    sourcing = data.get("sourcing") if isinstance(data, dict) else None
    if not isinstance(data, dict) or not isinstance(sourcing, dict) or "jobs" not in data:
        return {}
    own, rent = sourcing.get("own"), sourcing.get("rent")
    found: dict[str, tuple[Hashable, ...]] = {f"sourcing.own.{node}": ("sourcing", "own", node)
                                              for node in (own if isinstance(own, dict) else ())}
    nodes = [block.get("node") if isinstance(block, dict) else None for block in own] if isinstance(own, list) else []
    found |= {f"sourcing.own.{node}": ("sourcing", "own", at, "nodes")
              for at, node in enumerate(nodes) if node is not None and nodes.count(node) == 1}
    quota = rent.get("quota") if isinstance(rent, dict) else None
    return found | {f"sourcing.rent.quota.{node}": ("sourcing", "rent", "quota", node)
                    for node in (quota if isinstance(quota, dict) else ())}


def _values(model: type[Frozen], prefix: str) -> Iterator[tuple[str, bool]]:
    for field_name, field in model.model_fields.items():
        name = field.alias or field_name
        types = (field.annotation, *get_args(field.annotation))
        nested = [t for t in types if isinstance(t, type) and issubclass(t, Frozen)]
        is_list = any(get_origin(t) is tuple for t in types)
        # a block in a list has no path of its own
        for inner in nested if not is_list else ():
            yield from _values(inner, f"{prefix}{name}.")
        if not nested:
            yield prefix + name, is_list


def keys_of(path: str, data: object) -> tuple[Hashable, ...]:
    """Return a path as keys of `data`, where a job of many is a number."""
    jobs = data.get("jobs") if isinstance(data, dict) else None
    for at, job in enumerate(jobs if isinstance(jobs, list) else []):
        if isinstance(job, dict) and path.startswith(prefix := f"jobs.{job.get('name')}."):
            return ("jobs", at, *path.removeprefix(prefix).split("."))
    return _counted_in(data).get(path) or tuple(path.split("."))

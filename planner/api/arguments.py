"""Arguments of the public functions: read as people give them, refused by name with what was expected."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path

from planner.answer.schema import Plan
from planner.catalog.load import Catalog
from planner.errors import InputError, UnknownName
from planner.layouts.axes import layout_text
from planner.scenario.configs.read import Config, read_config
from planner.scenario.job_words import MANY
from planner.scenario.limits import MOST
from planner.scenario.load import Reference
from planner.units import SECONDS, parse
from planner.yaml_io import Document

FilePath = str | PathLike[str]
Asked = FilePath | Mapping[str, object] | Document | Plan
"""A scenario: a file, the name of a shipped one, or what a file holds (as data, or as it was read); or a
plan, of which the question is asked again."""
MOST_WORKERS = 256
AXES = ("tp", "pp", "cp", "ep", "dp", "vpp", "zero", "mbs", "recompute")
"""Of a layout, which people give beside the other keywords."""
VARIED = ("axes", "grid", "over", "params", "parameters", "space", "variants", "variations")
"""What people call `vary`."""
_CONFIGS = ("from_file", "from_config", "config", "config_file")
"""What people call `from_`, a word that Python keeps to itself."""


def wrong(name: str, value: object, expected: str) -> InputError:
    """Return the error for an argument of another type or out of range."""
    try:
        got = repr(value)
    except Exception:  # whatever somebody's own repr raises
        got = type(value).__name__
    return InputError(f"{name}: expected {expected}, got {got}")


def refuse_renamed(values: Mapping[str, object]) -> None:
    """Raise InputError for what is varied under another name than `vary`."""
    if said := next((name for name in VARIED if name in values), ""):
        raise InputError(f"{said}: what is varied is called vary in planner.sweep, a mapping of keywords to the values "
                         "that they take in turn: vary={'deadline': ['30 d', '60 d'], 'gpus': [8, 16]}")


def path(name: str, value: object) -> Path:
    """Return a file or folder. Raises InputError for what names none."""
    if not isinstance(value, str | PathLike):
        raise wrong(name, value, "a path")
    text = os.fspath(value)
    if not isinstance(text, str) or not text or "\0" in text:
        raise wrong(name, value, "a path as text")
    return Path(text)


def reference(value: object) -> Reference:
    """Return a scenario as `load_any` takes it."""
    if value is None or isinstance(value, Mapping | Document):
        return value
    if isinstance(value, Plan):
        return value.to_dict()
    if not isinstance(value, str | PathLike):
        raise wrong("scenario", value, "a file, the name of a shipped scenario, or a mapping such as a file holds")
    path("scenario", value)
    return os.fspath(value)


def with_jobs(scenario: Asked | None, values: dict[str, object]) -> Asked | None:
    """Return the scenario, or the portfolio that keywords with several jobs are, which are taken out of them."""
    if scenario is not None or not any(isinstance(values.get(name), list | tuple) for name in MANY):
        return scenario
    portfolio = {name: value for name, value in values.items() if value is not None}
    values.clear()
    return portfolio


def with_axes(layout: object, values: dict[str, object]) -> Mapping[str, str]:
    """Return a layout with the axes that stand among the keywords, which are taken out of them."""
    beside = {name: values.pop(name) for name in AXES if values.get(name) is not None}
    return {**axes(layout), **axes(beside)} if beside else axes(layout)


def config(value: object) -> Config | None:
    """Return the config of a framework or an engine: a file, the line that starts it, or what was read of one."""
    if value is None or isinstance(value, Config):
        return value
    return read_config(str(path("from_", value)))


def named_config(values: dict[str, object]) -> FilePath | None:
    """Take the config of a framework out of keywords that call it otherwise: from_file, config."""
    name = next((name for name in values if name in _CONFIGS), None)
    return None if name is None else path(name, values.pop(name))


def catalog(folders: object) -> Catalog:
    """Return the shipped catalog with folders on top: one, or several of which the later wins; or one that is open."""
    return folders if isinstance(folders, Catalog) else Catalog(paths("catalogs", folders), configs=True)


def paths(name: str, value: object) -> list[Path]:
    """Return one file or folder, or several."""
    several = [value] if isinstance(value, str | PathLike) else listed(name, value, "files or folders")
    return [path(name, file) for file in several]


def listed(name: str, value: object, what: str) -> list[object]:
    """Return an argument that is several of something."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise wrong(name, value, f"a list of {what}")
    return list(value)


def seconds(name: str, value: object) -> float | None:
    """Return a time limit: None, a number of seconds, or a duration with its unit."""
    if isinstance(value, str):
        try:
            return parse(value, SECONDS, "duration", "90 s")
        except ValueError as error:
            raise InputError(f"{name}: {error}") from None
    if value is None:
        return None
    # what overflows a float is no time limit either
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1e12 or math.isnan(value):
        raise wrong(name, value, "seconds above zero, or a duration such as '90 s'")
    return float(value)


def nodes(value: object) -> int | None:
    """Return a number of nodes, which may be text, or None."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= len(str(MOST)):
        value = int(value)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST):
        raise wrong("nodes", value, f"a whole number from 1 to {MOST:,}")
    return value


def workers(value: object) -> int:
    """Return a number of processes."""
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_WORKERS:
        raise wrong("workers", value, f"a whole number from 1 to {MOST_WORKERS}")
    return value


def one_of(name: str, value: object, known: Sequence[str]) -> str | None:
    """Return None, or one of some words."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise wrong(name, value, " or ".join(map(repr, known)))
    if value not in known:
        raise UnknownName(name, value, known)
    return value


def words(name: str, value: object, example: str) -> list[str]:
    """Return a list of words: text with commas, a sequence of text, or None for an empty one."""
    if value is None:
        return []
    parts = value.split(",") if isinstance(value, str) else listed(name, value, f"text, such as {example}")
    return [text(name, part, example).strip() for part in parts]


def text(name: str, value: object, example: str) -> str:
    """Return an argument that is text."""
    if not isinstance(value, str):
        raise wrong(name, value, f"text such as {example}")
    return value


def choices(value: object) -> list[str]:
    """Return what explain is asked about: a choice (`"tp=4,pp=2"`, `{"tp": 4}`), or several."""
    if value is None:
        return []
    several = [value] if isinstance(value, str | Mapping) else listed("why_not", value, "choices, such as 'tp=4,pp=2'")
    return [",".join(f"{axis}={_scalar('why_not', chosen)}" for axis, chosen in choice.items())
            if isinstance(choice, Mapping) else text("why_not", choice, "'tp=4,pp=2'") for choice in several]


def axes(value: object) -> dict[str, str]:
    """Return a layout: `{"tp": 8, "pp": 4}`, "tp=8,pp=4", or None."""
    if value is None or isinstance(value, str):
        return layout_text(value or "")
    if not isinstance(value, Mapping):
        raise wrong("layout", value, "axes and their values, such as {'tp': 8} or 'tp=8'")
    return {text("layout", axis, "'tp'"): _scalar("layout", degree) for axis, degree in value.items()}


def varied(value: object, paths: Mapping[str, str]) -> list[str]:
    """Return what a sweep varies as `PATH=V1,V2`: from such text, or from paths or names with their values."""
    if isinstance(value, Mapping):
        return [f"{paths.get(text('vary', name, 'limits.deadline'), name)}={','.join(map(_value, _several(values)))}"
                for name, values in value.items()]
    return [text("vary", spoken, "'limits.deadline=30d,60d'")
            for spoken in ([value] if isinstance(value, str) else listed("vary", value, "'PATH=V1,V2'"))]


def _several(values: object) -> list[object]:
    return [*values.split(",")] if isinstance(values, str) else listed("vary", values, "values")


def _value(value: object) -> str:
    """Return a value as --vary has it: one of a list path may be a list itself."""
    if isinstance(value, list | tuple):
        return "+".join(_value(item) for item in value)
    written = _scalar("vary", value)
    if "," in written:
        raise wrong("vary", value, "values without a comma")
    return written


def _scalar(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if not isinstance(value, str | int | float):
        raise wrong(name, value, "text or numbers as values")
    return str(value)

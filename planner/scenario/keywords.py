"""Keywords of Python, and keys of files, as the planner's names: what people call them, and values of another kind."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from planner.catalog.load import Catalog
from planner.errors import InputError, UnknownName
from planner.scenario.flag_names import INSTEAD, SWITCHES
from planner.scenario.flags import NAMES, plain
from planner.scenario.phrased import phrased
from planner.scenario.said import by_calendar, in_their_places, own_name
from planner.scenario.words import WORKS, says_no_more

KNOWN = frozenset(name.replace("_", "-") for name in NAMES)


def by_path(values: Mapping[str, object], what: str, catalog: Catalog) -> tuple[dict[str, object], dict[str, str]]:
    """Return keywords as values by scenario path, those that are not None, and the name by which each was given.

    Names and places are as people take them: see `in_our_names` and `in_their_places`.

    Raises UnknownName ("argument of planner.plan", which is `what`), and InputError where two names mean the same.
    """
    stated: dict[str, object] = {}
    names: dict[str, str] = {}
    for name, value in in_our_names(values, what, catalog).items():
        if name not in NAMES:
            raise UnknownName(what, name, NAMES)
        if value is None:
            continue
        path = NAMES[name]
        if path in stated:
            raise InputError(f"{names[path]} and {name} mean the same: give one of them")
        stated[path], names[path] = plain(value, name), name
    return by_calendar(in_their_places(stated), date.today()), names


def in_our_names(values: Mapping[str, object], what: str, catalog: Catalog) -> dict[str, object]:
    """Return keywords with those that are called otherwise under their own names.

    Raises InputError for a value that the planner has not, with what to write.
    """
    method = values.get("method")
    values = {name: value for name, value in values.items() if not (name in WORKS and says_no_more(value, method))}
    beside = {name.replace("_", "-"): str(value) for name, value in values.items()
              if isinstance(value, str | int | float)}
    beside |= {own: beside[name] for name in list(beside) if (own := own_name(name, KNOWN)) and own not in beside}
    told = {name: said for name, value in values.items() if name not in NAMES and isinstance(value, str | int | float)
            and not isinstance(value, bool) and (said := phrased(
                name.replace("_", "-"), str(value), beside, KNOWN, catalog.recipes.requests)) is not None}
    meant: dict[str, object] = {said.name.replace("-", "_"): said.value for said in told.values()}
    taken = {each for said in told.values() for each in said.takes}
    for name, value in values.items():
        dashed = name.replace("_", "-")
        if name in told or (own_name(dashed, KNOWN) or dashed) in taken:
            continue
        if name in NAMES or value is None:
            meant[name] = value
        elif dashed in INSTEAD:
            raise InputError(f"{what} {name}: {INSTEAD[dashed]}")
        elif value is True and dashed in SWITCHES:
            flag, _, setting = SWITCHES[dashed].removeprefix("--").partition("=")
            meant[flag.replace("-", "_")] = setting
        else:
            called = (own_name(name, KNOWN) or name).replace("-", "_")
            if called in meant or (called != name and values.get(called) is not None):
                raise InputError(f"{name} and {called} mean the same: give one of them")
            meant[called] = value
    return meant

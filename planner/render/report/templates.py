"""The templates of reports, compiled once a process: the page of `planner web` asks for parts of them live."""

from __future__ import annotations

from functools import cache

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined


@cache
def templates(package: str = "planner.render.report", folder: str = ".") -> Environment:
    """Return the templates of a folder of a package, beside those of reports; what they are given is escaped."""
    loader = ChoiceLoader([PackageLoader(package, folder), PackageLoader("planner.render.report", ".")])
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined,
                       trim_blocks=True, lstrip_blocks=True)

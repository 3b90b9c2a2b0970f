"""The templates of reports, compiled once a process: the page of `planner web` asks for parts of them live."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined


@cache
def templates(package: str = "planner.render.report", folder: str = ".") -> Environment:
    """Return the templates of a folder of a package; what they are given is escaped."""
    return Environment(loader=PackageLoader(package, folder), autoescape=True, undefined=StrictUndefined,
                       trim_blocks=True, lstrip_blocks=True)

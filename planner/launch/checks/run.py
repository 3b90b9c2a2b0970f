"""One process for many folders: a line of JSON for each, with what the stack's parser made of it."""

from __future__ import annotations

import contextlib
import io
import json
import traceback
from importlib import import_module
from pathlib import Path

from planner.launch.checks.releases import release_of

LONGEST = 400
"""Characters of a message."""


def main(target: str, package: str, folders: list[str]) -> None:
    """Print what the parser of `target` makes of every folder; where it cannot be imported, why."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            release = release_of(target, package)  # first: what a stack needs may take seconds to import
            resolve = import_module(f"planner.launch.checks.{target.replace('-', '_')}").resolve
    except ImportError as error:
        print(json.dumps({"missing": f"{type(error).__name__}: {error}"[:LONGEST]}))
        return
    for folder in folders:
        said = io.StringIO()
        found: dict[str, object] = {"folder": folder, "release": release}
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                found["resolved"] = resolve(Path(folder))
        except SystemExit:
            found["error"] = " ".join(said.getvalue().split())[-LONGEST:] or "it stopped"
        except Exception as error:  # whatever a parser raises is what it says of the files
            text = str(error) or traceback.format_exc().strip().splitlines()[-3]
            found["error"] = f"{type(error).__name__}: {' '.join(text.split())}"[:LONGEST]
        print(json.dumps(found), flush=True)

"""`planner launch`: files that start a plan, and a check of them by the stack's own parser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.catalog.load import Catalog
from planner.cli.options import common, is_quiet, open_catalog
from planner.cli.plan_file import read_placed
from planner.cli.printing import note, say, say_json
from planner.errors import EXIT_INPUT, EXIT_OK, InputError
from planner.text_io import json_text

SHELL = "torchrun"
"""The place that is no scheduler: its line is run on every node."""

if TYPE_CHECKING:
    from planner.launch.folder import Launched


@click.command("launch")
@click.argument("plan", type=click.Path(path_type=Path), required=False)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="DIR", help="Folder for the files.")
@click.option("--for", "targets", metavar="TARGET,..", help="What to write for; list names all. Default: the plan's "
              "own stack.")
@click.option("--scheduler", metavar="NAME", help="What starts it: slurm, torchrun, kubernetes, .. Default: slurm for "
              "several nodes.")
@click.option("--alternative", type=click.IntRange(1), metavar="N", help="Alternative N of the plan, in its order.")
@click.option("--check", type=click.Path(path_type=Path), metavar="DIR", help="Have the parser of its stack read the "
              "files of a folder, where it is installed.")
@common
def command(plan: Path | None, output: Path | None, targets: str | None, scheduler: str | None,
            alternative: int | None, check: Path | None, as_json: bool, catalogs: tuple[Path, ...]) -> int:
    """Write the files that start a plan: the stack's config, a job for a scheduler, and a page that says what to do.

    PLAN is the file with the JSON of `planner plan` or `planner estimate`. What a stack cannot express is refused by
    name.
    """
    catalog = open_catalog(catalogs)
    if targets == "list":
        return _list(catalog, as_json=as_json)
    if check is not None:
        return _check(check, catalog, as_json=as_json)
    if plan is None:
        raise InputError("launch needs the file of a plan: planner plan ... --json > plan.json; or --for list")
    if output is None:
        raise InputError("launch needs a folder for the files: -o DIR")
    from planner.launch.folder import write_all

    written = write_all(read_placed(plan), catalog, output, targets, scheduler, alternative)
    if as_json:
        say_json(json_text([{"folder": str(folder), "target": made.target, "scheduler": made.scheduler,
                             "start": made.start, "files": list(made.files)} for folder, made in written], indent=2))
    else:
        note_launched(written, say)
    return EXIT_OK


def note_launched(written: Sequence[tuple[Path, Launched]], tell: Callable[[str], None] = note) -> None:
    """Say which folders were written, and how each is started."""
    for folder, made in () if is_quiet() else written:
        where = f" under {made.scheduler}" if made.scheduler != SHELL else ""
        tell(f"Wrote {folder}: {made.target}{where}; start it with: {made.start}")


def _list(catalog: Catalog, *, as_json: bool) -> int:
    from planner.launch.emitter import all_targets

    releases = catalog.releases
    rows = [(name, one) for name, one in releases.targets.items() if name in all_targets()]
    if as_json:
        say_json(json_text([{"target": name, **one.model_dump(mode="json")} for name, one in rows], indent=2))
        return EXIT_OK
    for name, one in rows:
        say(f"{name:15} {one.package} {one.release} ({one.as_of}), for {', '.join(one.stacks)}")
    for stack, why in releases.nothing.items():
        say(f"{stack:15} nothing is written: {why}")
    return EXIT_OK


def _check(folder: Path, catalog: Catalog, *, as_json: bool) -> int:
    from planner.launch.check import check_folder, wrong

    lines = check_folder(folder, read_placed, catalog)
    failed = wrong(lines)
    if as_json:
        say_json(json_text({"folder": str(folder), "accepted": not failed, "lines": lines}, indent=2))
    else:
        say("\n".join(lines))
    return EXIT_INPUT if failed else EXIT_OK

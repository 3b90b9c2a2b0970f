"""`planner launch`: files that start a plan, and a check of them by the stack's own parser."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.catalog.load import Catalog
from planner.cli.options import common, is_quiet, open_catalog
from planner.cli.plan_file import read_placed
from planner.cli.printing import note, say, say_json
from planner.cli.question import LABELS, overrides, question_options
from planner.errors import EXIT_INPUT, EXIT_OK, InputError
from planner.scenario.flags import FLAGS
from planner.text_io import json_text
from planner.units import parse_count

SHELL = "torchrun"
"""The place that is no scheduler: its line is run on every node."""
ANSWERS = FLAGS["output"]
"""The tokens of an answer, which have the name that was the folder's."""

if TYPE_CHECKING:
    from planner.answer.assignment import Assignment
    from planner.answer.schema import Plan
    from planner.launch.folder import Launched


@click.command("launch")
@partial(question_options, taken=("launchable",))
@click.option("-o", "--folder", type=click.Path(path_type=Path), metavar="DIR", help="Folder for the files; also "
              "--output DIR, where DIR is no number of tokens. Default: launch.")
@click.option("--for", "targets", metavar="TARGET,..", help="What to write for; list names all. Default: the plan's "
              "own stack.")
@click.option("--scheduler", metavar="NAME", help="What starts it: slurm, torchrun, kubernetes, .. Default: slurm for "
              "several nodes.")
@click.option("--alternative", type=click.IntRange(1), metavar="N", help="Alternative N of the plan, in its order.")
@click.option("--check", type=click.Path(path_type=Path), metavar="DIR", help="Have the parser of its stack read the "
              "files of a folder, where it is installed.")
@common
def command(scenario: str | None, folder: Path | None, targets: str | None, scheduler: str | None,
            alternative: int | None, check: Path | None, as_json: bool, catalogs: tuple[Path, ...],
            **flags: object) -> int:
    """Write the files that start a plan: the stack's config, a job for a scheduler, and a page that says what to do.

    SCENARIO is the file with the JSON of `planner plan` or `planner estimate`; or it is a scenario, or flags, which are
    planned first. What a stack cannot express is refused by name.
    """
    catalog = open_catalog(catalogs)
    if targets == "list":
        return _list(catalog, as_json=as_json)
    if check is not None:
        return _check(check, catalog, as_json=as_json)
    where, values = _folder(folder, overrides(flags))
    if scenario is None and not values:
        raise InputError("launch needs the file of a plan, planner plan ... --json > plan.json, or a question as "
                         "planner plan has it; or --for list")
    from planner.launch.written import write_all

    placed = (read_placed(Path(scenario)) if scenario is not None and _is_plan(scenario, values) else
              _planned(scenario, values, targets, catalog))
    written = write_all(placed, catalog, where, targets, scheduler, alternative)
    if as_json:
        say_json(json_text([{"folder": str(folder), "target": made.target, "scheduler": made.scheduler,
                             "start": made.start, "files": list(made.files)} for folder, made in written], indent=2))
    else:
        note_launched(written, say)
    return EXIT_OK


def _folder(folder: Path | None, values: Mapping[str, object]) -> tuple[Path, dict[str, object]]:
    """Return the folder for the files, and the question: `--output 300` is of its answers, `--output run` the folder.

    Raises InputError where two folders are named.
    """
    said = values.get(ANSWERS)
    if said is None or _counts(str(said)):
        return folder or Path("launch"), dict(values)
    if folder is not None:
        raise InputError(f"--output {said} is no number of tokens, and -o {folder} names the folder: give one of them")
    return Path(str(said)), {path: value for path, value in values.items() if path != ANSWERS}


def _counts(said: str) -> bool:
    """Say whether a word is a number of tokens, and not the name of a folder."""
    try:
        parse_count(said, "output", "300")
    except ValueError:
        return False
    return True


def _is_plan(scenario: str, values: Mapping[str, object]) -> bool:
    """Say whether what is named is a plan's file. Raises InputError where it is, and flags ask something too."""
    from planner.scenario.load import shipped

    asks = scenario.endswith((".yaml", ".yml")) or scenario.lower() in shipped()
    if not asks and values:
        given = ", ".join(LABELS[path] for path in values)
        raise InputError(f"{scenario} is a plan: {given} would change its question")
    return not asks


def _planned(scenario: str | None, values: dict[str, object], target: str | None, catalog: Catalog
             ) -> Plan | Assignment:
    """Return the best plan that a target can start; without an amount of work the best layout of the hardware named.

    Raises InputError where there is no plan.
    """
    from planner.ask.estimate import estimating
    from planner.ask.plan import make_plan
    from planner.jobs.holding import asks_what_holds, trained_by
    from planner.scenario.launchable import to_be_launched
    from planner.scenario.load import load_question

    asked, defaults = load_question(scenario, values, catalog, labels=LABELS)
    if asks_what_holds(asked):
        if target is not None and trained_by(asked) is not None:
            values.setdefault("workload.stack", ",".join(catalog.releases.target(target).stacks))
        return estimating(scenario, values, catalog, node=None, layout={}, labels=LABELS).answer().assignment
    if target is not None and trained_by(asked) is not None:
        asked, defaults = load_question(scenario, values | {"workload.launchable": target}, catalog, labels=LABELS)
    plan = make_plan(*to_be_launched(asked, defaults)[:1], catalog, defaults=defaults)
    if not plan.assignments:
        raise InputError("no plan, so there is nothing to start: planner plan says why")
    return plan


def note_launched(written: Sequence[tuple[Path, Launched]], tell: Callable[[str], None] = note) -> None:
    """Say which folders were written, and how each is started."""
    for folder, made in () if is_quiet() else written:
        where = f" under {made.scheduler}" if made.scheduler != SHELL else ""
        tell(f"Wrote {folder}: {made.target}{where}; start it with: {made.start}")
        for open_end in made.unset:
            tell(f"warning: {open_end}")


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

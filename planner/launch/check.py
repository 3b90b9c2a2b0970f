"""Whether the stack's own parser takes the files of a folder, and makes the plan's layout of them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.answer.assignment import Assignment
from planner.answer.schema import Plan
from planner.catalog.load import Catalog
from planner.catalog.releases import Target
from planner.errors import InputError
from planner.launch.adapted import adapted
from planner.launch.diffused import Diffused, diffused_of
from planner.launch.folder import MANIFEST, PLAN
from planner.launch.generated import Generated, generated_of
from planner.launch.given import Given, given_of
from planner.launch.place import place_of
from planner.launch.reinforced import Reinforced, reinforced_of
from planner.launch.served import EngineGroup, served_of
from planner.launch.serving import names_of
from planner.launch.shape import facts_of
from planner.launch.work import Work, work_of
from planner.scenario.portfolio_job import AnyWork
from planner.text_io import read_text

ROOT = Path(__file__).parents[1]
_RUN = ("import sys, importlib.util as u\n"
        "s = u.spec_from_file_location('planner', sys.argv[1] + '/__init__.py', "
        "submodule_search_locations=[sys.argv[1]])\n"
        "sys.modules['planner'] = m = u.module_from_spec(s); s.loader.exec_module(m)\n"
        "from planner.launch.checks.run import main; main(sys.argv[2], sys.argv[3], sys.argv[4:])")
"""Makes the planner's checks, and nothing beside them, known to another interpreter."""
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Found:
    """What a parser made of one folder."""

    folder: str
    release: str = ""
    """Of the stack that read it; empty where it is not installed."""
    resolved: Mapping[str, object] | None = None
    error: str = ""
    missing: str = ""


def parsed(target: str, package: str, folders: Sequence[Path], python: str) -> list[Found]:
    """Have the parser of a target read folders, in the interpreter where it is installed."""
    names = [str(folder.resolve()) for folder in folders]
    ran = subprocess.run([python, "-c", _RUN, str(ROOT), target, package, *names], capture_output=True, text=True,
                         check=False)
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    if not lines or "missing" in lines[0]:
        why = lines[0]["missing"] if lines else " ".join(ran.stderr.split())[-300:]
        return [Found(name, missing=why) for name in names]
    return [Found(**line) for line in lines]


Alone = Reinforced | Diffused | Generated
"""What is told of as a whole, each axis by its name."""
ALONE: Mapping[str, Callable[[Assignment, AnyWork | None, Catalog, str], Work | Alone]] = {
    "posttraining": reinforced_of, "training": work_of, "diffusion": diffused_of, "generation": generated_of}
Told = Work | Alone | Mapping[str, EngineGroup]


def differences(work: Told, resolved: Mapping[str, Any]) -> Iterator[str]:
    """Yield every value that a parser came to and that is not the plan's; of a service, for each kind of replica."""
    if isinstance(work, Work):
        yield from _of_training(work, resolved)
        return
    if isinstance(work, Alone):
        yield from (f"{axis} is {value}, the plan has {work.value(axis)}" for axis, value in resolved.items()
                    if not _same(value, work.value(axis)))
        return
    for name, served in work.items():
        if name not in resolved:
            yield f"{name} was not read"
            continue
        sums = {"gpus": served.gpus, "nodes": served.nodes}
        for axis, value in resolved[name].items():
            expected = sums[axis] if axis in sums else served.value(axis)
            if not _same(value, expected):
                yield f"{name}: {axis} is {value}, the plan has {expected}"


def _same(value: object, expected: object) -> bool:
    if isinstance(value, float) and isinstance(expected, int | float):
        return abs(value - expected) <= TOLERANCE
    return value == expected


def _of_training(work: Work, resolved: Mapping[str, object]) -> Iterator[str]:
    layout = work.layout
    sums: dict[str, object] = {
        "gpus": work.placed.gpus, "micro_batches": layout.micro_batches, "global_batch": work.global_batch,
        "sequence_length": work.sequence_length, "layers": work.model.layers, "hidden": work.model.hidden}
    built = resolved.get("model")
    shape = facts_of(work.model) if isinstance(built, dict) else {}
    yield from (f"model: {name} is {value}, the catalog has {shape[name]}" for name, value in (
        built.items() if isinstance(built, dict) else ()) if name in shape and not _same(value, shape[name]))
    for name, value in resolved.items():
        if name == "model":
            continue
        if name == "adapted":
            expected: object = adapted(work)
        else:
            expected = sums[name] if name in sums else work.value(name)
        if name == "recompute" and isinstance(value, dict):
            expected = {"full": max(stage.recompute_layers.full for stage in layout.stages) // layout.vpp}
        if not _same(value, expected):
            yield f"{name} is {value}, the plan has {expected}"


def syntax_errors(folder: Path) -> Iterator[str]:
    """Yield what bash finds wrong with the scripts of a folder."""
    bash = shutil.which("bash")
    for path in sorted(folder.iterdir()) if bash else ():
        if path.suffix in (".sh", ".sbatch"):
            ran = subprocess.run([str(bash), "-n", str(path)], capture_output=True, text=True, check=False)
            if ran.returncode:
                yield f"{path.name}: {ran.stderr.strip()}"


def interpreters() -> list[str]:
    """Return the interpreters that a stack may be installed in: the one at the front of PATH, and the planner's own."""
    first = shutil.which("python3") or shutil.which("python")
    return list(dict.fromkeys([*([first] if first else []), sys.executable]))


def manifest_of(folder: Path) -> Mapping[str, object]:
    """Return what a folder says it is. Raises InputError."""
    path = folder / MANIFEST
    try:
        found = json.loads(read_text(path))
    except ValueError:
        raise InputError("not JSON", file=str(path)) from None
    if not isinstance(found, dict) or found.get("schema") != "planner.launch/1":
        raise InputError("expected schema planner.launch/1, as planner launch writes it", file=str(path))
    return found


WRONG = "wrong: "
"""How a line begins that says what is not as it should be."""


def check_folder(folder: Path, read: Callable[[Path], Plan | Assignment], catalog: Catalog) -> list[str]:
    """Return lines that say what was checked and how it came out. Raises InputError where it is no such folder."""
    target = str(manifest_of(folder)["target"])
    (given,) = given_of(read(folder / PLAN))
    return [*_scripts(folder), *_parsers(folder, told(given, catalog, target), catalog.releases.target(target), target),
            *_place(folder)]


def told(given: Given, catalog: Catalog, target: str) -> Told:
    """Return what a target was told: the job, or each kind of replica by its name."""
    work = catalog.releases.target(target).work
    if work in ALONE:
        return ALONE[work](given.placed, given.asked, catalog, target)
    served = [served_of(one, given.asked, catalog, target) for one in given.every]
    return dict(zip(names_of(served), served, strict=True))


def wrong(lines: Sequence[str]) -> bool:
    """Say whether some line tells of a failure."""
    return any(line.startswith(WRONG) for line in lines)


def _scripts(folder: Path) -> list[str]:
    return [WRONG + problem for problem in syntax_errors(folder)] or ["bash reads every script"]


def _place(folder: Path) -> list[str]:
    """Return what the schemas or parser of the scheduler say of its files."""
    manifest: Mapping[str, Any] = manifest_of(folder)
    place = place_of(str(manifest["scheduler"]))
    if not place.check:
        return []
    lines, _ = _read(place.check, place.package, folder, lambda resolved: misplaced(manifest, resolved),
                     lambda resolved: f"accepts the files of {place.name}, with the plan's nodes and GPUs")
    return lines


def _read(target: str, package: str, folder: Path, differs: Callable[[Mapping[str, Any]], Iterator[str]],
          agrees: Callable[[Mapping[str, Any]], str]) -> tuple[list[str], str]:
    """Return what the first interpreter that has a package makes of a folder, and the release if it accepts it."""
    tried = interpreters()
    for python in tried:
        (found,) = parsed(target, package, [folder], python)
        if found.missing:
            continue
        who, resolved = f"{package} {found.release}", found.resolved or {}
        if found.error:
            return [f"{WRONG}{who} refuses the files: {found.error}"], ""
        return [f"{WRONG}{who}: {one}" for one in differs(resolved)] or [f"{who} {agrees(resolved)}"], found.release
    return [f"not checked: {package} is not installed for {' or '.join(tried)}"], ""


def misplaced(manifest: Mapping[str, Any], resolved: Mapping[str, Any]) -> Iterator[str]:
    """Yield every part whose copies, nodes and GPUs of each a scheduler takes for others."""
    if "cluster" in resolved:
        found, nodes = resolved["cluster"], manifest["nodes"]
        if found[0] != nodes:
            yield f"it starts {found[0]} nodes, the plan has {nodes}"
        return
    for part in manifest["parts"]:
        if part["nodes"]:
            expected = [part["copies"], part["nodes"], part["gpus"]]
            if resolved.get(part["name"]) != expected:
                yield f"{part['name']} is {resolved.get(part['name'])} (copies, nodes, GPUs), the plan has {expected}"


def _parsers(folder: Path, work: Told, release: Target, target: str) -> list[str]:
    lines, read = _read(target, release.package, folder, lambda resolved: differences(work, resolved),
                        lambda resolved: f"accepts the files, and makes of them the plan's {', '.join(resolved)}")
    return lines + ([f"the files are for {release.package} {release.release}"] if read not in ("", release.release)
                    else [])

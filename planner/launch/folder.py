"""The folder that starts a plan: a stack's files, the job of a scheduler, a page that says what to do, and the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from planner.answer.assignment import Assignment
from planner.answer.schema import Plan
from planner.catalog.load import Catalog
from planner.catalog.releases import WORDS, Kind, Target
from planner.errors import InputError
from planner.launch.diffused import diffused_of
from planner.launch.disk import disk_of
from planner.launch.emitter import (
    DiffusionEmitter,
    GenerationEmitter,
    ReinforcedEmitter,
    ServiceEmitter,
    emitter_of,
)
from planner.launch.generated import generated_of
from planner.launch.given import Given, given_of, started_by
from planner.launch.hosts import hosts_note
from planner.launch.older import for_gpu
from planner.launch.place import asked_job, usual_job
from planner.launch.program import (
    INSTALL,
    VARIABLES,
    Program,
    Rented,
    Variable,
    script,
    variables_file,
    with_host_threads,
)
from planner.launch.readme import readme, unfit
from planner.launch.reinforced import reinforced_of
from planner.launch.replicas import nodes_of
from planner.launch.served import served_of
from planner.launch.work import work_of
from planner.money.rent import offered
from planner.scenario.launchable import held_target
from planner.text_io import json_text

MANIFEST, PLAN, README = "launch.json", "plan.json", "README.md"
HEAD = 200
"""Characters in which a file says which release it is for."""


@dataclass(frozen=True, slots=True)
class Launched:
    """One program at one place, as files."""

    target: str
    scheduler: str
    files: Mapping[str, str]
    start: str
    unset: tuple[str, ...] = ()
    """What has to be filled in before it starts."""


def targets_of(given: Given, catalog: Catalog) -> list[str]:
    """Return the target that the question is held to, or those of the plan's stack, the usual one first.

    Raises Unsupported where there is none.
    """
    if (target := held_target(given.asked)) is not None:
        return [target]
    known = catalog.releases.some(started_by(given.placed))
    return [name for name in known if catalog.releases.target(name).work == work_kind(given.placed)] or known


def work_kind(placed: Assignment) -> Kind:
    """Return the kind of work that a target is for: of replicas, whether they make images or answer with text."""
    return "generation" if placed.serving is not None and placed.serving.made is not None else placed.kind


def by_any(given: Given, catalog: Catalog, scheduler: str | None) -> Launched:
    """Return the files of the first target that can express the plan. Raises what the usual one refuses."""
    usual, *others = targets_of(given, catalog)
    try:
        return launched(given, catalog, usual, scheduler)
    except InputError:
        for name in others:
            with suppress(InputError):
                return launched(given, catalog, name, scheduler)
        raise


Made = Sequence[tuple[Path, Launched]]
"""Folders, beside one another in that of the whole, with their files."""


def every(found: Plan | Assignment, catalog: Catalog, targets: str | None = None, scheduler: str | None = None,
           alternative: int | None = None) -> Made:
    """Return a folder for each workload and each target named; without names, the first that can express it."""
    given = given_of(found, alternative)
    names = [catalog.releases.named(name.strip()) for name in targets.split(",")] if targets else [None]
    return [(Path(one.folder if len(given) > 1 else "") / (name if name and len(names) > 1 else ""),
             by_any(one, catalog, scheduler) if name is None else launched(one, catalog, name, scheduler))
            for one in given for name in names]


def program_of(given: Given, catalog: Catalog, target: str) -> Program:
    """Return what a target runs of a workload. Raises CannotExpress, Unsupported, InputError."""
    emitter = emitter_of(target)
    if isinstance(emitter, ReinforcedEmitter):
        return emitter.emit(reinforced_of(given.placed, given.asked, catalog, target))
    if isinstance(emitter, DiffusionEmitter):
        return emitter.emit(diffused_of(given.placed, given.asked, catalog, target))
    if isinstance(emitter, GenerationEmitter):
        return emitter.emit([generated_of(one, given.asked, catalog, target) for one in given.every])
    if isinstance(emitter, ServiceEmitter):
        return emitter.emit([served_of(one, given.asked, catalog, target) for one in given.every])
    work = work_of(given.placed, given.asked, catalog, target)
    program = emitter.emit(work)
    steps_on_host = work.layout.offload.optimizer and work.gpus_per_node > 1
    return with_host_threads(program, work.gpus_per_node) if steps_on_host else program


def _rented(placed: Assignment, catalog: Catalog) -> Rented | None:
    found = offered(placed.offer, catalog) if placed.offer and placed.sourcing == "rent" else None
    if found is None:
        return None
    _, prices, offer = found
    known = catalog.releases.accelerators.get(placed.gpu, "")
    return Rented(prices.name, offer.instance, offer.region, offer.term, known,
                  catalog.releases.skypilot_at.get(prices.name, {}).get(placed.gpu, known))


def _headed(file: str, text: str, release: Target) -> str:
    """Return the text of a script or a YAML with the release at its head, where that does not stand there yet."""
    first, _, rest = text.partition("\n")
    if not file.endswith((".sh", ".sbatch", ".yaml", ".yml", ".py")) or release.release in text[:HEAD]:
        return text
    head = f"{release.package} {release.release}"
    return f"{first}\n# {head}\n{rest}" if first.startswith("#!") else f"# {head}\n{text}"


def launched(given: Given, catalog: Catalog, target: str, scheduler: str | None = None) -> Launched:
    """Return the files that start one workload. Raises CannotExpress, Unsupported, InputError."""
    placed = given.placed
    release = catalog.releases.target(target)
    if release.work != work_kind(placed):
        raise InputError(f"{target} is for {WORDS[release.work]}, and the plan is of {WORDS[work_kind(placed)]}")
    program = program_of(given, catalog, target)
    release, of_gpu = for_gpu(release, catalog.gpu(placed.gpu), catalog.releases)
    install = script(f"{release.package} {release.release}: installs what the plan needs", {},
                     [*release.install, *program.install])
    media = work_kind(placed) in ("diffusion", "generation")
    maker = "amd" if catalog.gpu(placed.gpu).architecture.startswith("cdna") else "nvidia"
    shapes = () if media else _shapes(program, placed.model, catalog)
    program = replace(program, image=release.image or "", files={**program.files, INSTALL: install},
                      notes=(*program.notes, *of_gpu, *hosts_note(placed, catalog), *shapes),
                      prepare="" if release.complete else INSTALL, resource=f"{maker}.com/gpu",
                      offer=_rented(placed, catalog), disk=0 if media else disk_of(placed, nodes_of(program), catalog),
                      called={name: known[placed.gpu] for name, known in (
                          ("dstack", catalog.releases.dstack), ("ray", catalog.releases.ray)) if placed.gpu in known})
    place, job = asked_job(scheduler, program, placed) if scheduler else usual_job(program, placed)
    image = (Variable("IMAGE", release.image or "", "Container image, where the place runs containers."),)
    variables = (*program.variables, *image, *job.variables)
    manifest = {
        "schema": "planner.launch/1", "target": target, "package": release.package, "release": release.release,
        "as_of": release.as_of, "scheduler": place.name, "start": job.start,
        "nodes": nodes_of(program),
        "parts": [{"name": part.name, "script": part.script, "nodes": part.nodes, "gpus": part.gpus,
                   "copies": part.copies, "role": part.role, **part.facts} for part in program.parts],
        **({"offer": asdict(program.offer)} if program.offer else {}),
        "variables": {one.name: one.default for one in variables}, "files": sorted([*program.files, *job.files])}
    texts = {**program.files, VARIABLES: variables_file(variables), **job.files}
    files = {**{name: _headed(name, text, release) for name, text in texts.items()},
             README: readme(given, program, replace(job, variables=variables), release, catalog),
             MANIFEST: json_text(manifest, indent=2) + "\n", PLAN: given.plan + "\n"}
    return Launched(target, place.name, files, job.start, (*shapes, *unfit(given)))


def _shapes(program: Program, model: str | None, catalog: Catalog) -> tuple[str, ...]:
    """Return what has to be set first: the checkpoint of a model that the catalog knows by its shape alone."""
    return tuple(f"{one.name} is {model}, a shape without a published checkpoint: set it in {VARIABLES} to one of this "
                 "shape" for one in program.variables
                 if model and one.name.startswith("MODEL") and one.default == model and not catalog.model(model).hf_id)

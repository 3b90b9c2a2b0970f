"""The folder that starts a plan: a stack's files, the job of a scheduler, a page that says what to do, and the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from planner.answer.assignment import Assignment
from planner.answer.schema import Plan
from planner.catalog.load import Catalog
from planner.catalog.releases import WORDS, Kind, Target
from planner.errors import InputError, PlannerError, Unsupported
from planner.launch.axes import CannotExpress
from planner.launch.diffused import diffused_of
from planner.launch.disk import disk_of
from planner.launch.emitter import (
    DiffusionEmitter,
    GenerationEmitter,
    ReinforcedEmitter,
    ServiceEmitter,
    all_targets,
    emitter_of,
)
from planner.launch.generated import generated_of
from planner.launch.given import Given, given_of, started_by
from planner.launch.hosts import hosts_note
from planner.launch.nearest import held_to, typed
from planner.launch.older import for_gpu
from planner.launch.place import all_places, asked_job, usual_job
from planner.launch.program import (
    INSTALL,
    VARIABLES,
    Offered,
    Program,
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
from planner.scenario.workload import AUTO, Training
from planner.text_io import json_text, write_folder

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
    if isinstance(given.asked, Training) and given.asked.launchable not in (None, AUTO):
        return [given.asked.launchable]
    known = catalog.releases.some(started_by(given.placed))
    return [name for name in known if catalog.releases.target(name).work == work_kind(given.placed)] or known


def work_kind(placed: Assignment) -> Kind:
    """Return the kind of work that a target is for: of replicas, whether they make images or answer with text."""
    return "generation" if placed.serving is not None and placed.serving.made is not None else placed.kind


def _by_any(given: Given, catalog: Catalog, scheduler: str | None) -> Launched:
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


def _every(found: Plan | Assignment, catalog: Catalog, targets: str | None = None, scheduler: str | None = None,
           alternative: int | None = None) -> Made:
    """Return a folder for each workload and each target named; without names, the first that can express it."""
    given = given_of(found, alternative)
    names = [catalog.releases.named(name.strip()) for name in targets.split(",")] if targets else [None]
    return [(Path(one.folder if len(given) > 1 else "") / (name if name and len(names) > 1 else ""),
             _by_any(one, catalog, scheduler) if name is None else launched(one, catalog, name, scheduler))
            for one in given for name in names]


def startable(plan: Plan, catalog: Catalog, again: Callable[[], Plan] | None) -> tuple[Plan, Made | None]:
    """Return the plan with its files, or where its stack cannot be told it the best that it can, found `again`.

    Without files where something else is in the way, or nothing can be found again: `write_all` says what.
    """
    try:
        return plan, _every(plan, catalog)
    except (CannotExpress, Unsupported) as error:
        refused = error.problem
    except InputError:
        return plan, None
    try:
        held = again() if again is not None else plan
    except InputError:
        return plan, None
    if held is plan:
        return plan, None
    if not held.assignments:
        return plan, None
    note = (f"the best of all plans ({plan.objective.name} {plan.objective.value:,.2f}) cannot be started as it is "
            f"({refused}); this is the best that can")
    return held.model_copy(update={"notes": (*held.notes, note)}), None


def write_all(found: Plan | Assignment, catalog: Catalog, output: Path, targets: str | None = None,
              scheduler: str | None = None, alternative: int | None = None, made: Made | None = None) -> Made:
    """Write the folders, those that are made already or those of the plan, and return them with where they lie.

    Raises CannotExpress, Unsupported, InputError, before anything is written.
    """
    try:
        each = made or _every(found, catalog, targets, scheduler, alternative)
    except CannotExpress as error:
        others = _others(found, catalog, scheduler, alternative)
        raise InputError("; ".join(filter(None, (error.problem, others, _nearest(found, error, catalog))))) from None
    except Unsupported as error:
        instead = (_places(found, catalog, targets, alternative) if scheduler else "") or "; ".join(filter(None, (
            _others(found, catalog, scheduler, alternative), _started(found, catalog, targets)))) or "nothing starts it"
        raise InputError(f"{error.problem}; {instead}") from None
    for folder, files in each:
        write_folder(output / folder, files.files)
    return [(output / folder, files) for folder, files in each]


def _nearest(found: Plan | Assignment, error: CannotExpress, catalog: Catalog) -> str:
    """Return how to come to the nearest plan that a target can express."""
    held = held_to(error.target, catalog, started_by(given_of(found)[0].placed))
    again = f"`planner plan` with {held} finds the best plan that it can" if held else ""
    for number, one in enumerate(found.alternatives if isinstance(found, Plan) else (), 1):
        try:
            launched(given_of(found, number)[0], catalog, error.target)
        except InputError:
            continue
        can = f"it can with --alternative {number} ({one.hardware}, {one.split}, {one.reason})"
        break
    else:
        nearest = typed(error.instead)
        can = f"it can {'' if nearest.startswith('without') else 'with '}{nearest}" if nearest else ""
    return "; ".join(part for part in (can, again) if part)


def _places(found: Plan | Assignment, catalog: Catalog, targets: str | None, alternative: int | None) -> str:
    """Return the schedulers that take the same files; empty where none does."""
    can = _able(all_places(), lambda place: _every(found, catalog, targets, place, alternative))
    return f"it can with --scheduler {_either(can)}" if can else ""


def _able(names: Iterable[str], writes: Callable[[str], object]) -> list[str]:
    """Return the names with which files can be written."""
    can = []
    for name in names:
        with suppress(PlannerError):
            writes(name)
            can.append(name)
    return can


def _either(names: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _others(found: Plan | Assignment, catalog: Catalog, scheduler: str | None, alternative: int | None) -> str:
    """Return the targets that start the same plan; empty where none does."""
    can = _able(all_targets(), lambda name: _every(found, catalog, name, scheduler, alternative))
    return f"as it is it can be started with --for {_either(can)}" if can else ""


def _started(found: Plan | Assignment, catalog: Catalog, targets: str | None) -> str:
    """Return the nearest plan of a stack that files are written for, where there are none for that of the plan."""
    for number, one in enumerate(found.alternatives if isinstance(found, Plan) else (), 1):
        try:
            made = _by_any(given_of(found, number)[0], catalog, None)
        except PlannerError:
            continue
        return f"{made.target} can start --alternative {number} ({one.hardware}, {one.split}, {one.reason})"
    given = given_of(found)[0]
    placed = given.placed
    method = placed.method if placed.kind == "training" else None
    known = catalog.releases.of_work(placed.kind, method) if placed.kind in ("training", "posttraining") else []
    names = [name for name in known if name not in (targets or "").split(",") and _has(given, catalog, name)]
    return f"`planner plan --launchable TARGET` finds the best plan of another: {', '.join(names)}" if names else ""


def _has(given: Given, catalog: Catalog, target: str) -> bool:
    """Say whether a target has the model of a workload, however it is laid out."""
    try:
        _program(given, catalog, target)
    except Unsupported:
        return False
    except InputError:
        return True
    return True


def _program(given: Given, catalog: Catalog, target: str) -> Program:
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


def _rented(placed: Assignment, catalog: Catalog) -> Offered | None:
    found = offered(placed.offer, catalog) if placed.offer and placed.sourcing == "rent" else None
    if found is None:
        return None
    _, prices, offer = found
    known = catalog.releases.accelerators.get(placed.gpu, "")
    return Offered(prices.name, offer.instance, offer.region, offer.term, known,
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
    program = _program(given, catalog, target)
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

"""What is written of a plan, and what can be done where its target cannot be told it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from planner.answer.assignment import Assignment
from planner.answer.schema import Plan
from planner.catalog.load import Catalog
from planner.errors import InputError, PlannerError, Unsupported
from planner.launch.axes import CannotExpress
from planner.launch.emitter import all_targets
from planner.launch.folder import Made, by_any, every, launched, program_of
from planner.launch.given import Given, given_of, started_by
from planner.launch.nearest import held_to, typed
from planner.launch.place import all_places
from planner.scenario.launchable import held_target
from planner.text_io import write_folder


def startable(plan: Plan, catalog: Catalog, again: Callable[[], Plan] | None) -> tuple[Plan, Made | None]:
    """Return the plan with its files, or where its stack cannot be told it the best that it can, found `again`.

    Without files where something else is in the way, or nothing can be found again: `write_all` says what.
    """
    try:
        return plan, every(plan, catalog)
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


def told_to_target(plan: Plan, catalog: Catalog) -> Plan:
    """Return a plan that each target which its question names can be told.

    Raises InputError where what is asked is in the way, whatever the layout: it says what, and the nearest question.
    """
    for given in given_of(plan) if plan.assignments else ():
        target = held_target(given.asked)
        if target is None:
            continue
        try:
            program_of(given, catalog, target)
        except CannotExpress as error:
            raise InputError(f"--launchable: {_instead(plan, error, catalog)}") from None
        except Unsupported as error:
            raise InputError(f"--launchable {target}: {error.problem}") from None
    return plan


def write_all(found: Plan | Assignment, catalog: Catalog, output: Path, targets: str | None = None,
              scheduler: str | None = None, alternative: int | None = None, made: Made | None = None) -> Made:
    """Write the folders, those that are made already or those of the plan, and return them with where they lie.

    Raises CannotExpress, Unsupported, InputError, before anything is written.
    """
    try:
        each = made or every(found, catalog, targets, scheduler, alternative)
    except CannotExpress as error:
        raise InputError(_instead(found, error, catalog, scheduler, alternative)) from None
    except Unsupported as error:
        instead = (_places(found, catalog, targets, alternative) if scheduler else "") or "; ".join(filter(None, (
            _others(found, catalog, scheduler, alternative), _started(found, catalog, targets)))) or "nothing starts it"
        raise InputError(f"{error.problem}; {instead}") from None
    for folder, files in each:
        write_folder(output / folder, files.files)
    return [(output / folder, files) for folder, files in each]


def _instead(found: Plan | Assignment, error: CannotExpress, catalog: Catalog, scheduler: str | None = None,
             alternative: int | None = None) -> str:
    """Return a refusal with what starts the plan as it is, and the nearest plan that the target can be told."""
    return "; ".join(filter(None, (error.problem, _others(found, catalog, scheduler, alternative),
                                   _nearest(found, error, catalog))))


def _nearest(found: Plan | Assignment, error: CannotExpress, catalog: Catalog) -> str:
    """Return how to come to the nearest plan that a target can express."""
    first = given_of(found)[0]
    held = "" if held_target(first.asked) == error.target else held_to(error.target, catalog, started_by(first.placed))
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
    can = _able(all_places(), lambda place: every(found, catalog, targets, place, alternative))
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
    can = _able(all_targets(), lambda name: every(found, catalog, name, scheduler, alternative))
    return f"as it is it can be started with --for {_either(can)}" if can else ""


def _started(found: Plan | Assignment, catalog: Catalog, targets: str | None) -> str:
    """Return the nearest plan of a stack that files are written for, where there are none for that of the plan."""
    for number, one in enumerate(found.alternatives if isinstance(found, Plan) else (), 1):
        try:
            made = by_any(given_of(found, number)[0], catalog, None)
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
        program_of(given, catalog, target)
    except Unsupported:
        return False
    except InputError:
        return True
    return True

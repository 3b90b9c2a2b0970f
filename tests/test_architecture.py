"""The map of the house holds: who may import whom, and which library lives where. There are no exceptions."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("units", "errors", "text_io", "yaml_io", "process", "catalog", "scenario", "layouts", "physics",
         "money", "simulate", "solver", "answer", "jobs", "evidence", "fit", "probe", "ask", "render", "launch",
         "sweeping", "api", "web", "__init__", "cli", "__main__")
"""From the top down: a module imports only from the rooms before its own, and from its own."""
MOST_ROOMS = 26
HOMES = {"ortools": "solver/", "click": "cli/", "yaml": "yaml_io/", "jinja2": ("render/", "web/"),
         "starlette": "web/", "uvicorn": "web/"}
NETWORKX = {"physics/topology.py", "money/fabric.py"}
NO_FILES = {"layouts", "physics", "money", "solver", "answer"}
KINDS = {"Scenario", "ServingScenario", "Training", "Serving", "TrainingAssignment", "ServingAssignment",
         "ServingLimits", "TrainingJob", "ServingJob", "BatchJob"}
FILE_CALLS = {"open", "read_text", "read_bytes", "write_text", "write_bytes"}
FILES = sorted((ROOT / "planner").rglob("*.py"))


def place(path: Path) -> str:
    return path.relative_to(ROOT / "planner").as_posix()


def area(path: Path) -> str:
    return place(path).split("/")[0].removesuffix(".py")


def imports(tree: ast.AST) -> Iterator[str]:
    """Yield every imported module; a relative import comes out as "."."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [f"planner.{alias.name}" for alias in node.names]
            yield from names if node.module == "planner" else ["." if node.level else node.module]


def test_every_room_is_on_the_map_and_there_are_few():
    assert {area(path) for path in FILES} <= set(ROOMS)
    assert len(ROOMS) <= MOST_ROOMS


def calls_only(calls: list[ast.expr], name: str) -> bool:
    """Whether each call of `name` is of the function, none of a path's method."""
    return all(isinstance(call, ast.Name) for call in calls if getattr(call, "id", getattr(call, "attr", "")) == name)


def off_the_map(path: Path) -> Iterator[str]:
    """Yield what a module imports or calls that is another room's."""
    tree, here = ast.parse(path.read_text()), area(path)
    for module in imports(tree):
        package, _, rest = module.partition(".")
        if module == ".":
            yield "imports are absolute"
        if package == "planner":
            there = rest.split(".")[0]
            there = there if there in ROOMS else "__init__"
            if ROOMS.index(there) > ROOMS.index(here):
                yield f"imports {module}"
        if not place(path).startswith(HOMES.get(package, "")):
            yield f"{package} belongs to {HOMES[package]}"
        if package == "networkx" and place(path) not in NETWORKX:
            yield f"networkx belongs to {sorted(NETWORKX)}"
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {getattr(call, "id", getattr(call, "attr", None)) for call in calls}
    if here in NO_FILES and called & FILE_CALLS:
        yield f"opens files: {sorted(called & FILE_CALLS)}"
    # what is written is whole, and what a terminal is shown holds no control characters
    if called & {"write_text", "write_bytes"} and place(path) != "text_io.py" and not calls_only(calls, "write_text"):
        yield "writes files without text_io.py"
    if called & {"echo", "secho", "print_exc"} and place(path) != "cli/printing.py":
        yield "prints without cli/printing.py"


def test_imports_and_file_access_keep_to_the_map():
    assert [f"{place(path)}: {wrong}" for path in FILES for wrong in off_the_map(path)] == []


@pytest.mark.parametrize(("path", "text", "wrong"), [
    ("physics/heat.py", "from planner.solver import engine", "imports planner.solver"),
    ("physics/heat.py", "import planner.cli.main", "imports planner.cli.main"),
    ("physics/heat.py", "from . import layers", "imports are absolute"),
    ("jobs/heat.py", "import ortools.sat", "ortools belongs to solver/"),
    ("jobs/heat.py", "import networkx", "networkx belongs to ['money/fabric.py', 'physics/topology.py']"),
    ("physics/heat.py", "open('file')", "opens files: ['open']"),
    ("cli/heat.py", "path.write_text('')", "writes files without text_io.py"),
    ("ask/heat.py", "click.echo('')", "prints without cli/printing.py")])
def test_what_is_off_the_map_is_found(tmp_path, monkeypatch, path, text, wrong):
    monkeypatch.setattr("tests.test_architecture.ROOT", tmp_path)
    module = tmp_path / "planner" / path
    module.parent.mkdir(parents=True)
    module.write_text(text)
    assert wrong in list(off_the_map(module))


def kinds_known(path: Path) -> set[str]:
    """Return the kinds of work that a module imports or tells apart."""
    tree = ast.parse(path.read_text())
    kinds = ("planner.jobs.training", "planner.jobs.serving")
    imported = {module for module in imports(tree) if module.startswith(kinds)}
    tested = {name.id for call in ast.walk(tree) if isinstance(call, ast.Call)
              and getattr(call.func, "id", None) == "isinstance" for name in ast.walk(call.args[1])
              if isinstance(name, ast.Name)}
    # a plan file is held against its scenario
    return imported | (set() if place(path) == "cli/plan_file.py" else tested & KINDS)


def test_a_verb_knows_no_kind_of_work():
    """What kinds do differently is a method of `Job`, or a function of `jobs/kinds.py`."""
    assert {place(path): known for path in FILES if area(path) in ("ask", "cli", "api")
            if (known := kinds_known(path))} == {}


@pytest.mark.parametrize(("text", "known"), [
    ("from planner.jobs.training import job", "planner.jobs.training"), ("isinstance(job, TrainingJob)", "TrainingJob"),
    ("isinstance(asked, (Serving, str))", "Serving")])
def test_a_verb_that_knows_a_kind_is_found(tmp_path, monkeypatch, text, known):
    monkeypatch.setattr("tests.test_architecture.ROOT", tmp_path)
    (tmp_path / "planner" / "ask").mkdir(parents=True)
    (tmp_path / "planner" / "ask" / "verb.py").write_text(text)
    assert kinds_known(tmp_path / "planner" / "ask" / "verb.py") == {known}


def test_a_class_name_means_one_thing():
    """Who reads `Window` somewhere knows what it is."""
    where = {}
    for path in FILES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                where.setdefault(node.name, []).append(place(path))
    assert {name: places for name, places in where.items() if len(places) > 1} == {}


def test_files_are_short_and_named_for_what_they_hold():
    every = [*FILES, *sorted((ROOT / "tests").rglob("*.py"))]
    assert [str(path) for path in every if len(path.read_text().splitlines()) > (
        300 if ROOT / "planner" in path.parents else 400)] == []
    assert [str(path) for path in every if path.stem in {"utils", "helpers", "common", "misc"}] == []

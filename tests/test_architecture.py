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
HOMES = {"ortools": "solver/", "click": "cli/", "yaml": "yaml_io.py", "jinja2": ("render/", "web/"),
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


@pytest.mark.parametrize("path", FILES, ids=place)
def test_imports_and_file_access_keep_to_the_map(path):
    tree, here = ast.parse(path.read_text()), area(path)
    for module in imports(tree):
        package, _, rest = module.partition(".")
        assert module != ".", "imports are absolute"
        if package == "planner":
            there = rest.split(".")[0]
            there = there if there in ROOMS else "__init__"
            assert ROOMS.index(there) <= ROOMS.index(here), f"{place(path)} imports {module}"
        assert place(path).startswith(HOMES.get(package, "")), f"{package} belongs to {HOMES[package]}"
        assert package != "networkx" or place(path) in NETWORKX
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {getattr(call, "id", getattr(call, "attr", None)) for call in calls}
    assert here not in NO_FILES or not called & FILE_CALLS
    # what is written is whole, and what a terminal is shown holds no control characters
    assert not called & {"write_text", "write_bytes"} or place(path) == "text_io.py" or calls_only(calls, "write_text")
    assert not called & {"echo", "secho", "print_exc"} or place(path) == "cli/printing.py"


@pytest.mark.parametrize("path", [path for path in FILES if area(path) in ("ask", "cli", "api")], ids=place)
def test_a_verb_knows_no_kind_of_work(path):
    """What kinds do differently is a method of `Job`, or a function of `jobs/kinds.py`."""
    tree = ast.parse(path.read_text())
    kinds = ("planner.jobs.training", "planner.jobs.serving")
    assert not [module for module in imports(tree) if module.startswith(kinds)]
    tested = {name.id for call in ast.walk(tree) if isinstance(call, ast.Call)
              and getattr(call.func, "id", None) == "isinstance" for name in ast.walk(call.args[1])
              if isinstance(name, ast.Name)}
    assert not tested & KINDS or place(path) == "cli/plan_file.py", "a plan file is held against its scenario"


@pytest.mark.parametrize("path", [*FILES, *sorted((ROOT / "tests").rglob("*.py"))], ids=lambda p: p.name)
def test_files_are_short_and_named_for_what_they_hold(path):
    assert len(path.read_text().splitlines()) <= (300 if ROOT / "planner" in path.parents else 400)
    assert path.stem not in {"utils", "helpers", "common", "misc"}

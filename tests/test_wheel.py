"""The wheel is whole: catalogs and scenarios are inside it, and a planner run from it alone finds them."""

import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NO_PYTHON = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PLANNER_"))}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel: without network where hatchling is installed, else as pip does, which fetches it."""
    isolated = [] if importlib.util.find_spec("hatchling") is None else ["--no-build-isolation"]
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", str(ROOT), "--no-deps", "-q", "-w", str(folder), *isolated]
    built = subprocess.run(command, capture_output=True, text=True, check=False, env=NO_PYTHON)
    if built.returncode and not isolated:
        pytest.skip(f"hatchling is not installed and pip could not fetch it: {built.stderr.strip()[-300:]}")
    assert built.returncode == 0, built.stderr
    return next(folder.glob("planner-*.whl"))


def shipped(folder):
    files = [path for path in (ROOT / folder).rglob("*") if path.is_file()]
    return {f"planner/_data/{path.relative_to(ROOT).as_posix()}" for path in files}


def test_catalogs_scenarios_code_and_license_are_inside(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    code = {path.relative_to(ROOT).as_posix() for path in (ROOT / "planner").rglob("*.py")}
    assert shipped("catalogs") | shipped("scenarios") | code | {"planner/py.typed"} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith(("tests/", "docs/", "benchmarks/"))]


def test_a_planner_run_from_the_wheel_alone_finds_its_scenario_and_catalog(wheel, tmp_path):
    site, empty = tmp_path / "site", tmp_path / "empty"
    empty.mkdir()
    zipfile.ZipFile(wheel).extractall(site)

    def planner(*args):
        return subprocess.run([sys.executable, "-m", "planner", *args], cwd=empty, capture_output=True, text=True,
                              check=False, env={**NO_PYTHON, "PYTHONPATH": str(site)})

    shown = planner("plan", "llama-3.1-70b-pretrain", "--show-scenario")
    assert shown.returncode == 0, shown.stderr
    assert "model: llama-3.1-70b" in shown.stdout
    where = subprocess.run([sys.executable, "-c", "import planner; print(planner.__file__)"], cwd=empty, check=True,
                           capture_output=True, text=True, env={**NO_PYTHON, "PYTHONPATH": str(site)})
    assert Path(where.stdout.strip()).is_relative_to(site)
    assert planner("catalog", "check").returncode == 0

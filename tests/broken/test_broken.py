"""A hundred broken files, each wrong in one way that its first line states: exit 2, and that file, line and text.

`# expect line 7: TEXT` is what must follow FILE:7; without a line, what must follow FILE alone.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from planner.cli.main import main

HERE = Path(__file__).parent
SCENARIOS = sorted((HERE / "scenarios").glob("*.yaml"))
ENTRIES = sorted((HERE / "catalogs").glob("*/*.yaml"))
EXPECT = re.compile(r"# expect(?: line (\d+))?: (.+)")


def called(path: Path) -> str:
    return path.relative_to(HERE).as_posix()


def assert_refused(argv: list[str], path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = EXPECT.fullmatch(path.read_text(encoding="utf-8").split("\n")[0])
    assert expected, f"{path}: the first line says what is wrong"
    line, text = expected.groups()
    code = main(argv)
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, ""), captured.err
    assert captured.err.startswith(f"Error: {path}:{line + ':' if line else ''} {text}"), captured.err
    assert captured.err.count("\n") == 1


def test_there_are_a_hundred() -> None:
    assert len(SCENARIOS) + len(ENTRIES) >= 100


@pytest.mark.parametrize("path", SCENARIOS, ids=called)
def test_a_broken_scenario_is_refused(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(["plan", str(path)], path, capsys)


@pytest.mark.parametrize("path", ENTRIES, ids=called)
def test_a_broken_catalog_entry_is_refused(path: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path,
                                           monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLANNER_CATALOGS", raising=False)
    copy = tmp_path / path.parent.name / path.name
    copy.parent.mkdir()
    shutil.copy(path, copy)
    assert_refused(["catalog", "check", "--catalogs", str(tmp_path)], copy, capsys)

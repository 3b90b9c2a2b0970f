"""The documentation is true: its examples run and show what they claim, its links resolve, and nothing is left out."""

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pytest

import planner as package
from planner.catalog.load import Catalog
from planner.cli.main import COMMANDS, main
from planner.layouts.axes import AXES, RECOMPUTE
from planner.layouts.rules import RULES
from planner.scenario.limits import Objective
from planner.scenario.serving import CacheFormat, Disaggregated, Quantization, Serving

ROOT = Path(__file__).parents[1]
README, CHANGELOG = ROOT / "README.md", ROOT / "CHANGELOG.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", CHANGELOG, *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\w*) ?([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A fenced block: language, the file that it is or is taken from where it names one, and text."""
SHIPPED = ("catalogs/", "scenarios/")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
EXIT = re.compile(r"\s# exit (\d+)$")


@dataclass(frozen=True)
class Example:
    """One line of a console block: what to run, how it ends, and what the page shows of its (last) output."""

    page: str
    commands: tuple[tuple[str, ...], ...]
    code: int
    shown: tuple[str, ...]

    def __str__(self):
        return f"{self.page}: {' && '.join(map(shlex.join, self.commands))}"


def place(path):
    return path.relative_to(ROOT).as_posix()


def blocks(page, language):
    return [body for tag, _, body in FENCE.findall(page.read_text()) if tag == language]


def files(page):
    """Return (path, text) of the blocks that name a file."""
    return [(name, body) for _, name, body in FENCE.findall(page.read_text()) if name]


def examples():
    for page in PAGES:
        for body in blocks(page, "console"):
            for part in re.split(r"^\$ ", body.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
                command, *shown = part.splitlines()
                code = EXIT.search(command)
                commands = [shlex.split(one) for one in EXIT.sub("", command).split(" && ")]
                for program, *_ in commands:
                    assert program == "planner", f"{place(page)}: console blocks run planner, not {program}"
                yield Example(place(page), tuple(tuple(argv) for _, *argv in commands),
                              int(code.group(1)) if code else 0, tuple(shown))


def partition(words, mark):
    """Return what is before a word, the word, and what is behind it, as str.partition does."""
    at = words.index(mark) if mark in words else len(words)
    return words[:at], words[at:at + 1], words[at + 1:]


def flat(text):
    return " ".join(text.split())


@pytest.mark.parametrize("example", list(examples()), ids=str)
def test_example_runs_and_shows_what_the_page_shows(example, capsys, monkeypatch, tmp_path):
    for name, text in files(ROOT / example.page):
        if not name.startswith(SHIPPED):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PLANNER_CATALOGS", raising=False)
    monkeypatch.setenv("COLUMNS", "110")
    for words in example.commands:
        argv, _, into = (list(part) for part in partition(words, ">"))
        code = main(argv)
        captured = capsys.readouterr()
        if into:
            (tmp_path / into[0]).write_text(captured.out)
    printed, at = flat(captured.err + captured.out), 0
    assert code == example.code, printed
    for line in example.shown:
        # "..." leaves out a figure inside a line, or any lines on its own
        for piece in filter(None, map(flat, line.split("..."))):
            found = printed.find(piece, at)
            assert found >= 0, f"{piece!r} is not in the output, or not in this order:\n{captured.err}{captured.out}"
            at = found + len(piece)


@pytest.mark.parametrize("page", PAGES, ids=place)
def test_python_blocks_run(page):
    for body in blocks(page, "python"):
        exec(compile(body, place(page), "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=place)
def test_excerpts_are_of_the_shipped_file(page):
    for name, text in files(page):
        if name.startswith(SHIPPED):
            shipped = [line.split("  #")[0].rstrip() for line in (ROOT / name).read_text().splitlines()]
            assert [line for line in text.splitlines() if line != "..." and line not in shipped] == [], name


@pytest.mark.parametrize("page", PAGES, ids=place)
def test_links_inside_the_project_resolve(page):
    for target in LINK.findall(FENCE.sub("", page.read_text())):
        if target.startswith(("https://", "http://")):
            continue
        file, _, anchor = target.partition("#")
        linked = (page.parent / file).resolve() if file else page
        assert linked.exists(), f"{place(page)} links to {target}"
        assert not anchor or anchor in anchors(linked), f"{place(page)} links to {target}"


def anchors(page):
    """Return the anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_readme_begins_with_the_two_lines_that_stand_alone():
    _, _, body = FENCE.findall(README.read_text())[0]
    run, test = body.splitlines()
    assert run.startswith("python3 -m venv ")
    assert run.endswith(" plan scenarios/llama-3.1-70b-pretrain.yaml")
    assert test.startswith("python3 -m venv ")
    assert test.endswith(" -m pytest -n 2 --dist loadfile")


def test_readme_has_the_headline_figures_of_the_validation():
    """PLANNER_UPDATE_GOLDEN=1 copies them."""
    validation, readme = (ROOT / "docs" / "validation.md").read_text(), README.read_text()
    for row in re.findall(r"^  (\| \w+ \| \d.*)$", readme, re.MULTILINE):
        head = re.search(rf"^\| {row.split()[1]} \|.*$", validation, re.MULTILINE).group()
        readme = readme.replace(row, head)
    if os.environ.get("PLANNER_UPDATE_GOLDEN"):
        README.write_text(readme)
    assert readme == README.read_text()


def test_readme_lists_every_command():
    assert all(f"`planner {command}" in README.read_text() for command in COMMANDS)


@pytest.mark.parametrize(("page", "names"), [
    ("concepts", [axis.name for axis in AXES]),
    ("concepts", RECOMPUTE),
    ("concepts", get_args(Objective)),
    ("concepts", RULES),
    ("catalogues", Catalog().names("stacks")),
    ("serving", Serving.model_fields),
    ("serving", [*get_args(Quantization), *get_args(CacheFormat), *get_args(Disaggregated)]),
], ids=["axes", "recompute modes", "objectives", "rules", "stacks", "keys of serving", "formats of serving"])
def test_every_name_is_documented(page, names):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    missing = [name for name in names if f"`{name}`" not in text]
    assert not missing, f"docs/{page}.md does not mention {missing}"


def test_contributing_has_every_folder_of_the_house():
    folders = [path.parent.name for path in (ROOT / "planner").glob("*/__init__.py")]
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert all(f"`{folder}/`" in text for folder in folders)


def test_changelog_has_this_version_and_what_is_coming():
    text = CHANGELOG.read_text()
    assert "## [Unreleased]" in text
    assert package.__version__ in text

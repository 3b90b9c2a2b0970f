"""The examples of the documentation run, and show what the pages claim."""

import re
import shlex
from dataclasses import dataclass

import pytest

from planner.cli.main import main
from tests.answered import remembering  # noqa: F401 - plans that pages share
from tests.test_docs import EXIT, PAGES, ROOT, SHIPPED, blocks, files, flat, place


@dataclass(frozen=True)
class Example:
    """One line of a console block: what to run, how it ends, and what the page shows of its (last) output."""

    page: str
    commands: tuple[tuple[str, ...], ...]
    code: int
    shown: tuple[str, ...]

    def __str__(self):
        return f"{self.page}: {' && '.join(map(shlex.join, self.commands))}"


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


@pytest.mark.usefixtures("remembering")
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


@pytest.mark.usefixtures("remembering")
@pytest.mark.parametrize("page", PAGES, ids=place)
def test_python_blocks_run(page):
    for body in blocks(page, "python"):
        exec(compile(body, place(page), "exec"), {})

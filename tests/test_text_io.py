"""Files are written whole or not at all, several of them together, and messages stay short."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from planner.errors import InputError, IOFailure, MissingFact, shortened
from planner.text_io import json_text, read_text, write_folder, write_text


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk on which nothing more can be made to stay."""
    def fsync(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("planner.text_io.os.fsync", fsync)


@pytest.mark.usefixtures("full")
def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    kept, absent = tmp_path / "kept", tmp_path / "absent"
    kept.write_text("before")
    for path in (kept, absent):
        with pytest.raises(IOFailure, match="cannot be written: No space left") as caught:
            write_text(path, "after")
        assert caught.value.exit_code == 74
    with pytest.raises(IOFailure):
        write_folder(tmp_path / "new" / "folder", {"a": "x", "b": "y"})
    with pytest.raises(IOFailure):
        write_folder(tmp_path, {"kept": "after", "b": "y"})
    assert (kept.read_text(), sorted(path.name for path in tmp_path.iterdir())) == ("before", ["kept", "new"])
    assert not list((tmp_path / "new").iterdir())


def test_a_folder_appears_with_all_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, rename = [], os.rename
    monkeypatch.setattr("planner.text_io.os.rename", lambda old, new: (
        seen.append(sorted(p.name for p in Path(old).iterdir())), rename(old, new)))
    folder = tmp_path / "a" / "b"
    assert write_folder(folder, {"x": "1", "y": "2"}) == [folder / "x", folder / "y"]
    assert seen == [["x", "y"]]
    write_folder(folder, {"y": "3"})
    assert [(path.name, path.read_text()) for path in sorted(folder.iterdir())] == [("x", "1"), ("y", "3")]


def test_links_and_modes_stay(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    write_text(tmp_path / "link", "one")
    (tmp_path / "file").chmod(0o640)
    write_text(tmp_path / "link", "two \udcff")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "two \\udcff"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_devices_are_written_to_and_not_replaced() -> None:
    write_text(Path("/dev/null"), "text")
    with pytest.raises(IOFailure, match=r"/dev/full: cannot be written: No space left"):
        write_text(Path("/dev/full"), "text")
    assert not Path("/dev/null").is_file()


@pytest.mark.parametrize("name", ["n" * 300, "loop", "loop/x", "file/x", "."])
def test_a_path_that_cannot_be_is_the_input_s_fault(name: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    for write in (lambda path: write_text(path, "x"), read_text, lambda path: write_folder(path, {"x" * 300: ""})):
        with pytest.raises(InputError, match="cannot"):
            write(tmp_path / name)


def test_messages_keep_what_was_expected_of_a_long_value() -> None:
    long = InputError(f"unknown unit in {'9' * 5000!r}, expected 15 T", file="x.yaml", line=3)
    assert str(long).startswith("x.yaml:3: unknown unit in '999")
    assert str(long).endswith("...', expected 15 T")
    assert max(len(str(MissingFact("x" * 9000, "y"))), len(shortened("a b " * 9000)), len(str(long))) < 1300
    assert shortened("the model's own name is 'x', and the file's is y") == (
        "the model's own name is 'x', and the file's is y")


def test_json_holds_nothing_that_steers_a_terminal() -> None:
    assert json_text({"a": "\x1b[31m\x9b2J\u202e\ud800 é 💥"}) == r'{"a": "\u001b[31m\u009b2J\u202e\ud800 é 💥"}'

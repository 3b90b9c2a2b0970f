"""Any path for any file, read or written: an answer, or one line that says what is wrong, and nothing left behind."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.running import folder, fuzzing, run
from tests.fuzz.tables import text_of
from tests.fuzz.test_foreign_files import SCENARIO, SERVICE, SKYPILOT, asked, plan

SMALL = ("--model", "gpt2", "--tokens", "1M", "--on", "h100-sxm-1x")
NAMES = st.one_of(
    st.sampled_from(["", ".", "..", "/", "~", "absent", "absent/x", "file/x", "folder", "loop", "loop/x", "dangling",
                     "dangling/x", "n" * 300, "n/" * 2500, "n" * 255, os.fsdecode(b"\xff\xfe"), "\x1b[31m", "a\nb",
                     "absent/..", "/dev/null", "/dev/full", "/proc/self/mem", "folder/prices", "plan.json/..",
                     "wrong", "-"]),
    st.text(st.characters(exclude_characters="/\0"), min_size=1, max_size=5).map(
        lambda text: os.fsdecode(text.encode("utf-8", "surrogatepass"))))
READERS: list[Callable[[Path], tuple[str | Path, ...]]] = [
    lambda path: ("plan", path, "--show-scenario"),
    lambda path: ("plan", *SMALL, "--show-scenario", "--catalogs", path),
    lambda path: ("report", path, "-o", path.parent / "out"),
    lambda path: ("simulate", path, "--trace", path),
    lambda path: ("simulate", path.parent / "plan.json", "--trace", path),
    lambda path: ("validate", path), lambda path: ("calibrate", path, "-o", path.parent / "out"),
    lambda path: ("catalog", "import", "hf", path), lambda path: ("catalog", "import", "skypilot", path),
    lambda path: ("catalog", "import", "gpuhunt", path), lambda path: ("sweep", path, "--vary", "objective=time"),
    lambda path: ("catalog", "check", "-q", "--catalogs", path)]
WRITERS: list[Callable[[Path, Path], tuple[str | Path, ...]]] = [
    lambda path, place: ("report", place / "plan.json", "-o", path, "-q"),
    lambda path, place: ("catalog", "show", "dgx-h100", "-q", "--svg", path),
    lambda path, place: ("catalog", "import", "skypilot", place / "aws" / "vms.csv", "-q", "-o", path),
    lambda path, place: ("sweep", place / SCENARIO, "--vary", "objective=cost", "--workers", "1", "-q",
                         "-o", path)]


def furnished(place: Path) -> set[Path]:
    """Fill a folder with what paths may lead to; return all that is in it."""
    (place / "file").write_text("text\n")
    (place / "folder").mkdir()
    (place / "loop").symlink_to("loop")
    (place / "dangling").symlink_to("nowhere/at/all")
    (place / "wrong" / "price").mkdir(parents=True)
    (place / "wrong" / "price" / "x.yaml").write_text("name: x\n")
    (place / "plan.json").write_text(json.dumps(plan(*SERVICE)))
    (place / "aws").mkdir()
    (place / "aws" / "vms.csv").write_text(text_of(SKYPILOT))
    asked(place)
    return set(place.rglob("*"))


def joined(place: Path, name: str) -> Path:
    """The path of `name` below a folder; a device and what is above stay what they are, and the root is spared."""
    return Path(name) if name.startswith("/dev/") or name.startswith("/proc/") else place / name.lstrip("/")


@fuzzing(30)
@given(st.sampled_from(READERS), NAMES)
def test_what_is_read(command: Callable[[Path], tuple[str | Path, ...]], name: str) -> None:
    with folder() as place:
        before = furnished(place)
        assert run(*command(joined(place, name)))[0] in (0, 2, 74)
        assert set(place.rglob("*")) == before


@fuzzing(20)
@given(st.sampled_from(WRITERS), NAMES)
def test_what_is_written(command: Callable[[Path, Path], tuple[str | Path, ...]], name: str) -> None:
    with folder() as place:
        inner = place / "inner"
        inner.mkdir()
        before = furnished(inner)
        code, _ = run(*command(joined(inner, name), inner))
        after = set(place.rglob("*"))
        assert code in (0, 2, 74)
        assert not [path for path in after if path.name.startswith(".planner-")]
        assert code == 0 or after == before | {inner}

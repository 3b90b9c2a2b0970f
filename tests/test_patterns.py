"""No text written into a file or a flag keeps a pattern busy: told by structure and by length, not by the clock."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import pytest
from pydantic import TypeAdapter, ValidationError

from planner import units
from planner.scenario.batch import GlobalBatch
from planner.scenario.demand import Gaps, Latency, Rate, Share
from planner.scenario.lengths import Lengths
from planner.scenario.limits import BudgetPerHour, Limits
from planner.units.reading import MAX_LENGTH
from tests.patterns import patterns, runs_away

PLANNER = Path(__file__).parents[1] / "planner"
FILES = [path for path in sorted(PLANNER.rglob("*.py")) if "import re\n" in path.read_text(encoding="utf-8")]
QUANTITIES: dict[str, Any] = {
    name: kind for name, kind in vars(units).items()
    if get_origin(kind) is Annotated and kind not in (units.Gpus, units.Nodes)} | {
    "Latency": Latency, "Gaps": Gaps, "Rate": Rate, "Share": Share, "Lengths": Lengths, "GlobalBatch": GlobalBatch,
    "BudgetPerHour": BudgetPerHour, "Deadline": Limits.model_fields["deadline"].rebuild_annotation()}
LONG = 100_000
ADVERSE = {"spaces inside": "16" + " " * LONG + "x", "spaces": " " * LONG + "x", "digits": "9" * LONG,
           "digits and spaces": "9 " * LONG, "points": "1." * LONG, "commas": "1,000" * LONG, "at": "2 s at p9" * LONG,
           "percent": "1 d at " * LONG + "%", "signs": "+-" * LONG, "exponent": "1e" * LONG, "lines": "1\n" * LONG}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PLANNER).as_posix())
def test_no_pattern_shares_a_run_of_characters_among_two_repeats(path):
    assert [(line, pattern) for line, pattern, flags, searched in patterns(path)
            if runs_away(pattern, flags, searched=searched)] == []


def test_every_pattern_is_looked_at():
    calls = sum(len(re.findall(r"\bre\.(?:compile|match|fullmatch|search|sub|split|findall|finditer)\(",
                               path.read_text(encoding="utf-8"))) for path in PLANNER.rglob("*.py"))
    tables = sum(len(re.findall(r"re\.search\(pattern,", path.read_text(encoding="utf-8")))
                 for path in PLANNER.rglob("*.py"))
    # a rule's own patterns, which are read and checked with it
    rules = sum(len(re.findall(r"re\.compile\((?:text|wanted|rf)", path.read_text(encoding="utf-8")))
                for path in PLANNER.rglob("*.py"))
    made = rules + sum("f\"prefill" in path.read_text(encoding="utf-8") for path in PLANNER.rglob("*.py"))
    assert len({(path, line) for path in FILES for line, *_ in patterns(path)}) >= calls - tables - made


@pytest.mark.parametrize(("pattern", "searched", "expected"), [
    (r"(.*?)\s+at\s+(\d+)\s*%\s*\Z", False, True), (r"(a+)+b", False, True), (r"\s*\d[\d_]*\d*x", False, True),
    (r"a+b", True, True), (r"\d+(\.\d+)*$", False, False), (r"(.*) at (\d+) ?%", False, False), (r"[^a]+", True, False),
    (r"-\d+g$", True, False), (r"\((.*)\)$", True, True), (r"\([^()]*\)$", True, False)])
def test_the_reader_of_patterns_knows_which_run_away(pattern, searched, expected):
    assert runs_away(pattern, searched=searched) == expected


@pytest.mark.parametrize("name", QUANTITIES)
@pytest.mark.parametrize("kind", ADVERSE)
def test_no_quantity_is_longer_than_anyone_writes(name, kind):
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(QUANTITIES[name]).validate_python(ADVERSE[kind])
    (error,) = caught.value.errors()
    if name != "Gaps":
        assert f"at most {MAX_LENGTH} characters" in error["msg"]


def test_all_kinds_of_quantity_are_tried():
    assert len(QUANTITIES) >= 20
    assert not [name for name, kind in QUANTITIES.items() if not get_args(kind)]

"""Flags of other programs: left out by a note, or refused with what to write."""

from __future__ import annotations

import click
import pytest

from planner.catalog.load import Catalog
from planner.catalog.tool import Tool
from planner.cli.axes import AXES
from planner.cli.foreign import Foreign, good
from planner.cli.main import GlobalOptions
from planner.cli.plan import command
from planner.cli.spoken import hardware_known, joined
from planner.scenario.flag_names import ON, SWITCHES
from planner.scenario.said import own_name

OWN = [option[2:] for param in command.params for option in param.opts if option.startswith("--")]


def read(line: str) -> tuple[list[str], list[str]]:
    """Return the arguments as the planner reads them, and its notes."""
    notes: list[str] = []
    settings = GlobalOptions()
    return joined(line.split(), command, hardware_known(settings), say=notes.append, foreign=Foreign(settings)), notes


def test_what_no_answer_depends_on_is_left_out_by_one_note() -> None:
    argv, notes = read("--rate 5 --host 0.0.0.0 --enable-auto-tool-choice --ddp_timeout 1800 --input 100")
    assert argv == ["--rate", "5", "--input", "100"]
    assert notes == ["--host, --enable-auto-tool-choice, --ddp-timeout are left out: no answer depends on them"]


def test_what_is_counted_otherwise_is_said() -> None:
    argv, notes = read("--rate 5 --enforce-eager --enable-prefix-caching")
    assert argv == ["--rate", "5"]
    assert [note.partition(" is left out: ")[::2] for note in notes] == [
        ("--enforce-eager", "CUDA graphs are counted, which are faster"),
        ("--enable-prefix-caching", "prompts are read whole, unless --prefix-hits 50% says what the cache has")]


@pytest.mark.parametrize("flag", ["--cpu-offload-gb 10", "--use-dora", "--use_galore True"])
def test_what_would_be_missing_from_the_answer_is_refused(flag: str) -> None:
    with pytest.raises(click.UsageError, match="not modeled"):
        read(f"--rate 5 {flag}")


def test_no_flag_of_the_planners_own_is_another_programs() -> None:
    for tool in Catalog().all("tools", Tool):
        for flag in (*tool.idle, *tool.otherwise, *tool.unmodeled):
            known = flag in AXES or flag in ON or flag in SWITCHES or own_name(flag, OWN)
            assert not known, f"{tool.name}: {flag} is {known}"


def test_good_requests_are_those_within_targets() -> None:
    assert good(["ttft:500", "e2el:2s"]) == ["--ttft", "500 ms", "--e2e", "2s"]
    assert good(["beauty:3"]) == []

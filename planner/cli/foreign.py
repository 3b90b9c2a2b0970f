"""Flags of other programs on a command line: left out by one note, or refused with what to write."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

import click

from planner.catalog.tool import Tool
from planner.cli.axes import AXES, OFFLOAD
from planner.scenario.flag_names import IDLE, ON, SWITCHES
from planner.scenario.said import own_name

if TYPE_CHECKING:
    from planner.cli.main import GlobalOptions

TRUE, FALSE = ("true", "yes", "on"), ("false", "no", "off")
GOODPUT = {"ttft": "--ttft", "tpot": "--tpot", "itl": "--tpot", "e2el": "--e2e", "e2e": "--e2e"}
"""What a load test counts as good -> the target that it is, in ms."""


class Foreign:
    """Flags of the programs that the catalog knows."""

    def __init__(self, settings: GlobalOptions) -> None:
        """Take what knows the catalog, which is read where a flag is none of the planner's."""
        self.settings = settings
        self.idle: list[str] = []
        """Flags that were left out as nothing follows from them."""

    def left(self, said: str) -> str | None:
        """Return why a flag, with dashes, is left out, empty for one that is idle; none where no program has it.

        Raises UsageError for one whose effect would be missing from the answer.
        """
        from planner.cli.options import open_catalog

        tools = open_catalog(self.settings.catalogs, self.settings).all("tools", Tool)
        if why := next((tool.unmodeled[said] for tool in tools if said in tool.unmodeled), ""):
            raise click.UsageError(f"No such option: --{said}: {why}")
        if why := next((tool.otherwise[said] for tool in tools if said in tool.otherwise), ""):
            return why
        if any(said in tool.idle for tool in tools):
            self.idle.append(f"--{said}")
            return ""
        return None

    def note(self) -> str:
        """Return one note of all flags that are idle; empty without any."""
        said = list(dict.fromkeys(self.idle))
        many = len(said) > 1
        if not said:
            return ""
        return f"{', '.join(said)} {'are' if many else 'is'} left out: no answer depends on {'them' if many else 'it'}"


def good(values: Sequence[str]) -> list[str]:
    """Return the targets that `--goodput ttft:500 tpot:40` states; none where it states anything else."""
    parts = [part.replace("=", ":").partition(":") for value in values for part in value.replace(",", " ").split()]
    if not parts or any(name.lower() not in GOODPUT or not limit for name, _, limit in parts):
        return []
    return [word for name, _, limit in parts
            for word in (GOODPUT[name.lower()], f"{limit} ms" if limit.replace(".", "").isdigit() else limit)]


def with_switches(args: Sequence[str], options: Mapping[str, click.Option]) -> list[str]:
    """Return the arguments with switches that have a value, as trainers write them, without it: `--bf16 True`.

    Of one that is off nothing is left. What a load test takes for good (`--goodput ttft:500`) is a target.
    """
    argv: list[str] = []
    waiting = list(args)
    while waiting:
        word = waiting.pop(0)
        name, equals, value = word.partition("=")
        if name == "--goodput":
            values = [value] if equals else list(takewhile(lambda each: not each.startswith("-"), waiting))
            del waiting[:0 if equals else len(values)]
            argv += good(values) or [name, *values]
            continue
        behind = value if equals else next(iter(waiting), "")
        if not name.startswith("--") or behind.lower() not in (*TRUE, *FALSE) or not _is_switch(name, options):
            argv.append(word)
            continue
        if not equals:
            waiting.pop(0)
        if behind.lower() in TRUE:
            argv.append(name)
    return argv


def _is_switch(name: str, options: Mapping[str, click.Option]) -> bool:
    """Say whether a flag is one that has no value of its own."""
    said = name[2:].replace("_", "-")
    own = name if name in options else f"--{own_name(said, _names(options)) or ''}"
    if own in options:
        return options[own].is_flag
    return said in SWITCHES or said in ON or said in OFFLOAD or (said not in AXES and said not in IDLE)


def _names(options: Mapping[str, click.Option]) -> Collection[str]:
    return {option[2:] for option in options if option.startswith("--")}

"""A command line as people begin it: a sentence, another name of a verb, a config or a log instead of a scenario."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click

from planner.cli import printing
from planner.cli.asked_back import AskedBackError
from planner.cli.completed import shown
from planner.cli.options import open_catalog
from planner.cli.rephrased import given_flags
from planner.cli.sentence import spoken
from planner.cli.several import portfolio_of
from planner.cli.spoken import Worded, hardware_known, is_scenario
from planner.cli.told import Told
from planner.errors import InputError, did_you_mean
from planner.scenario.flag_names import VERBS
from planner.scenario.flags import NAMES
from planner.scenario.plainly import is_inline
from planner.scenario.said import own_name

if TYPE_CHECKING:
    from planner.cli.main import GlobalOptions

RUN = ("plan", "compare", "estimate", "simulate")
"""Verbs that answer by their other names too, as the options are the same."""
ASKED = ("plan", "compare", "estimate", "explain")
"""Those that a question in a sentence may begin with."""
READ = ("plan", "estimate", "compare", "explain")
"""Those that read the config of another tool."""
FLAG_NAMES = frozenset(f"--{name.replace('_', '-')}" for name in NAMES)
PRICED = frozenset(("price", "prices", "pricing"))
"""What asks of hardware, beside it, what it costs to rent and to buy."""
_FLAG = re.compile(r"\s--?[A-Za-z]")
"""What a command line has and no sentence: a dash alone is one of a sentence."""
LAUNCHERS = frozenset(("vllm", "sglang", "torchrun", "accelerate", "deepspeed", "python", "python3", "llamafactory-cli",
                       "axolotl"))
"""Programs whose command line is a config, typed as it is."""


def as_asked(args: list[str], settings: GlobalOptions, commands: Iterable[str]) -> list[str]:
    """Return the arguments of one of the `commands`, with flags.

    Raises UsageError for a verb of none, and InputError for words that are not understood.
    """
    commands = list(commands)
    # what stands behind a flag is its value: --layout tp=8
    args = [*args[:1], *(word if before.startswith("-") else _as_flag(word) for before, word in pairwise(args))]
    words = args[:next((at for at, word in enumerate(args) if word.startswith("-")), len(args))]
    if (config := _config(args, words, settings)) is not None:
        return config
    mine = args[0] in commands
    if mine and (args[0] not in ASKED or len(words) == 1 or (len(words) == 2 and " " not in words[1])
                 or is_inline(words[1])):
        return args
    meant = next((verb for verb, called in VERBS.items() if args[0].lower() in called.split()), None)
    if meant in (None, *RUN) and not any(map(is_scenario, words[1:])):
        verb = args[0] if mine else meant if len(words) == 1 and meant != "estimate" else None
        flags = args[len(words):]
        told = Told(left_out=[])
        jobs = portfolio_of(words[mine:], open_catalog(settings.catalogs, settings), told) if (
            verb in (None, "plan")) else None
        if jobs is not None:
            _tell(told, settings)
            _say(settings, f"several jobs are a portfolio: read as planner plan {shown([jobs])}")
            return ["plan", jobs, *flags]
        told = Told(left_out=[])
        read = spoken(words[1:] if mine else words, open_catalog(settings.catalogs, settings), verb,
                      given_flags(flags, FLAG_NAMES), told)
        if read is not None:
            _tell(told, settings)
            for what, command in told.first:
                _answer_first(what, [*command, *flags], settings)
            _say(settings, f"read as planner {shown(read)}" if len(words) > 1 or meant is None else
                 f"planner {read[0]} answers that, and takes the same options")
            return [*read, *flags]
    if mine:
        return args
    if meant is None and (sum(len(word.split()) for word in words) > 1 or args[0].endswith("?")):
        raise AskedBackError(())
    if meant not in RUN:
        raise click.UsageError(f"No such command {args[0]!r}" + (did_you_mean(args[0], commands) if meant is None else
                                                                 f": planner {meant} answers that"))
    _say(settings, f"planner {meant} answers that, and takes the same options")
    return as_asked([meant, *args[1:]], settings, commands)


def _tell(told: Told, settings: GlobalOptions) -> None:
    """Note what was left out of a sentence, and what was assumed."""
    if told.left_out:
        _say(settings, f"not taken into account: {', '.join(map(repr, dict.fromkeys(told.left_out)))}")
    for note in dict.fromkeys(told.assumed):
        _say(settings, note)


def _answer_first(what: str, command: Sequence[str], settings: GlobalOptions) -> None:
    """Print the first sentence of the answer to a part of a question, before the whole is answered."""
    from planner.cli.main import main

    _say(settings, f"{what}: planner {shown(command)}")
    quietly = [] if settings.as_json else ["-q"]
    main([*quietly, *command])


def _as_flag(word: str) -> str:
    """Return model=llama-3.1-8b as a flag; every other word as it is."""
    name, equals, value = word.partition("=")
    known = [flag[2:] for flag in FLAG_NAMES]
    is_one = equals and value and name.replace("_", "-").replace("-", "").isalpha() and own_name(name, known)
    return f"--{word}" if is_one else word


def _config(args: list[str], words: Sequence[str], settings: GlobalOptions) -> list[str] | None:
    """Return the arguments where they name, or are, the config of another tool or a log, or list a catalog; else none.
    """
    if _FLAG.search(args[0]):
        return ["estimate", "--from", *args]
    if args[0].lower() in LAUNCHERS and (len(words) < len(args) or "serve" in words):
        return ["estimate", "--from", shlex.join(args)]
    line = words[1].split() if args[0] in READ and len(words) > 1 else []
    if len(line) > 1 and line[0].lower() in LAUNCHERS:
        return [args[0], "--from", *args[1:]]
    if (listed := _of_catalog(args, words, settings)) is not None:
        return listed
    option = _read_as(words[1], settings) if args[0] in READ and len(words) > 1 else ""
    return [args[0], option, *args[1:]] if option else None


def _of_catalog(args: list[str], words: Sequence[str], settings: GlobalOptions) -> list[str] | None:
    """Return the arguments where the words list a catalog, or ask for the price of hardware; else none."""
    kinds = VERBS["catalog"].split()
    if words[0] in ("list", "catalog") and len(words) > 1 and words[1] in kinds and words[1] != "list":
        return ["catalog", "list", *args[1:]]
    if words[0] in PRICED and len(words) > 1 and all(map(hardware_known(settings), words[1:])):
        return ["compare", "--on", ",".join(words[1:]), *args[len(words):]]
    if words[0] in kinds and len(words) == 1:
        return ["catalog", "list", *([] if words[0] == "list" else [words[0]]), *args[1:]]
    return None


def filed(settings: GlobalOptions) -> Callable[[str], str]:
    """Return what tells the option that takes a file, by what is in it; empty for what is no file of a known kind."""
    return partial(_read_as, settings=settings)


def worded(settings: GlobalOptions, verb: str) -> Worded:
    """Return what reads a flag that is none of the planner's as words of a sentence."""
    def read(phrase: str, beside: Mapping[str, str]) -> Sequence[str]:
        try:
            meant = spoken([phrase], open_catalog(settings.catalogs, settings), verb, beside)
        except InputError:
            return ()
        if meant is None or meant[0] != verb or {word[2:] for word in meant if word.startswith("--")} & set(beside):
            return ()
        values = " ".join(meant).lower()
        if any(word not in values for word in re.findall(r"\d+", phrase)):
            return ()
        return meant[1:]

    return read


def saying(settings: GlobalOptions) -> Callable[[str], None]:
    """Return what notes how a command line is read, where notes are wanted."""
    return partial(_say, settings)


def _say(settings: GlobalOptions, text: str) -> None:
    if not settings.quiet:
        printing.note(f"note: {text}")


def _read_as(file: str, settings: GlobalOptions) -> str:
    """Return the option that takes a file which is no scenario: a config of another tool, a log of jobs or of requests.
    """
    if not os.path.isfile(file):
        return ""
    from planner.scenario.configs.read import read_config
    from planner.simulate.joblog import check_header
    from planner.simulate.reading import check_head

    with suppress(InputError):
        settings.configs[file] = read_config(file)
        return "--from"
    with suppress(InputError):
        check_header(Path(file))
        return "--jobs"
    with suppress(InputError):
        check_head(Path(file))
        return "--trace"
    return ""

"""The options that ask a question: a scenario file, flags, or both; for every command that takes a scenario."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import date
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeVar

import click

from planner.catalog.load import Catalog
from planner.cli import options
from planner.cli.options import PIPE_WIDTH, is_quiet, is_verbose, tell_once
from planner.cli.printing import note, say
from planner.scenario.default import Defaults
from planner.scenario.flags import FLAGS, TABLE, Flag
from planner.scenario.load import Reference, load_question
from planner.scenario.portfolio import AnyQuestion
from planner.scenario.said import by_calendar, in_their_places, told_of_calendar
from planner.text_io import visible

if TYPE_CHECKING:
    from planner.scenario.configs.read import Config

F = TypeVar("F", bound=Callable[..., Any])


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


LABELS = {path: _option(name) for name, path in FLAGS.items()}
"""Scenario value -> the flag that sets it."""


def _days(context: click.Context, option: click.Parameter, value: int | None) -> str | None:
    """Return a number of days as scenarios write it."""
    return None if value is None else f"{value} d"


_OWN: dict[str, dict[str, Any]] = {"price_age": {"type": click.IntRange(1, 36500), "callback": _days}}
"""What the command line alone does with a flag."""


def _click_option(name: str, flag: Flag, taken: Collection[str] = ()) -> Callable[[F], F]:
    declared = [name, _option(name), *([_option(flag.also)] if flag.also and flag.also not in taken else [])]
    if flag.switch:
        return click.option(*declared, is_flag=True, default=None, help=flag.help)
    if flag.choices:
        # the words of a value are checked with the scenario, which knows their synonyms
        bare: dict[str, Any] = {"is_flag": False, "flag_value": flag.bare} if flag.bare else {}
        return click.option(*declared, metavar=f"[{'|'.join(flag.choices)}]", help=flag.help, **bare)
    return click.option(*declared, multiple=flag.many, metavar=flag.metavar, help=flag.help, **_OWN.get(name, {}))


def question_options(function: F, taken: Collection[str] = ()) -> F:
    """Add the argument SCENARIO and the flags that override it, but for names that the command has `taken`."""
    for name, flag in reversed(TABLE.items()):
        if name in taken:
            continue
        function = _click_option(name, flag, taken)(function)
    return click.argument("scenario", required=False)(function)


def asking(function: F, taken: Collection[str] = ()) -> F:
    """Add the argument SCENARIO, the flags that override it, --time-limit and --workers."""
    function = click.option("--workers", type=click.IntRange(1, 256), default=1, metavar="N", help="Processes to "
                            "search with; the answer stays the same. Default: 1.")(function)
    function = click.option("--time-limit", type=options.time_limit, metavar="SECONDS",
                            help="Stop after this many seconds and print the remaining gap.")(function)
    return question_options(function, taken)


from_option = click.option(
    "--from", "from_", metavar="FILE", help="Read the question from a config: axolotl, LLaMA-Factory, TRL, accelerate, "
    "DeepSpeed, torchtitan, Megatron-LM's arguments, or the line that starts vLLM or SGLang. Flags override it.")


def read_from(given: str | None) -> Config | None:
    """Return the config that --from names."""
    if given is None:
        return None
    from planner.scenario.configs.read import read_config

    return options.configs_read().get(given) or read_config(given)


def say_read(config: Config | None, *, as_json: bool) -> None:
    """Say what was read of a config and what was not; beside JSON on stderr."""
    if config is None or is_quiet():
        return
    for line in config.notes(full=is_verbose()):
        for part in wrap(visible(line), PIPE_WIDTH, break_on_hyphens=False, break_long_words=False):
            (note if as_json else say)(part)
    if not as_json:
        say("")


def overrides(flags: Mapping[str, object]) -> dict[str, object]:
    """Return the flags that were given as scenario values by path."""
    given = in_their_places({FLAGS[flag]: ",".join(value) if isinstance(value, tuple) else value
                             for flag, value in flags.items() if value not in (None, ())})
    today = date.today()
    for said in told_of_calendar(given, today):
        tell_once(said)
    return by_calendar(given, today)


def any_question(scenario: Reference, flags: Mapping[str, object], catalog: Catalog,
                 replaced: Mapping[str, object] | None = None, config: Config | None = None
                 ) -> tuple[AnyQuestion, Defaults]:
    """Return the question asked, of one workload or of a portfolio of jobs, and its defaults.

    `replaced` holds values by path that override both; those of `config` hold where neither says otherwise.
    """
    labels = LABELS | {path: f"--why-not ({path})" for path in replaced or {}}
    values = overrides(flags) | dict(replaced or {})
    if config is not None:
        labels, values = labels | config.labels(values), config.alone(scenario).planned(values, catalog)
    return load_question(scenario, values, catalog, labels=labels)

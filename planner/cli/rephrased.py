"""Flags that people give with a value of another kind than the planner's: requests a day, tokens a month, a size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from planner.errors import InputError
from planner.scenario.flag_names import CALLED, RATES, SIZES, TOKEN_RATES
from planner.units.reading import parse_count

HOLDING = ("context", "context-length", "context-window")
"""What asks for room for so many tokens, where nothing that is trained or served is named beside it."""
_NEUTRAL = frozenset(("model", "node", "on", "gpus", "json", "catalogs", "verbose", "quiet"))


def rephrased(args: Sequence[str], options: Mapping[str, click.Option]) -> list[str]:
    """Return the arguments with such flags in the planner's terms. Raises UsageError with what is missing."""
    argv: list[str] = []
    flags = _flags(args, options)
    waiting = list(args)
    while waiting:
        name, given, value = (word := waiting.pop(0)).partition("=")
        said = name[2:].replace("_", "-") if name.startswith("--") and name not in options else ""
        if (said not in RATES and said not in TOKEN_RATES and said not in SIZES) or not (given or waiting):
            argv.append(word)
            continue
        if said in SIZES and "model" in flags:
            argv.append(word)
            continue
        value = value if given else waiting.pop(0)
        if said in SIZES:
            argv += ["--model", value]
        elif "--rate" not in options:
            argv += [name, value]
        elif said in RATES:
            argv += ["--rate", f"{value}/{RATES[said]}"]
        else:
            argv += ["--rate", f"{_requests(said, value, flags):.9g}/{TOKEN_RATES[said]}"]
    asks_room = set(HOLDING) & {each[2:].partition("=")[0] for each in args if each.startswith("--")}
    if "--node" in options and set(flags) <= _NEUTRAL | {"seq-len"} and (
            asks_room or _compressed(flags.get("model", ""))):
        argv += ["--method", "inference"]
    return argv


def _compressed(model: str) -> bool:
    """Say whether the name of a model is of weights in a format that is run and not trained."""
    from planner.scenario.resolve import format_of

    return format_of(model) is not None


def _flags(args: Sequence[str], options: Mapping[str, click.Option]) -> dict[str, str]:
    """Return the flags that were given, by the planner's names, with the word behind each."""
    found = {}
    for at, word in enumerate(args):
        name, given, value = word.partition("=")
        if name.startswith("--"):
            said = name[2:].replace("_", "-")
            own = said if name in options else CALLED.get(said, said)
            found[own] = value if given else next(iter(args[at + 1:at + 2]), "")
    return found


def _requests(said: str, value: str, flags: Mapping[str, str]) -> float:
    """Return the requests whose prompts and answers are so many tokens."""
    try:
        lengths = [parse_count(flags[side], side) for side in ("input", "output")]
        return parse_count(value, said) / sum(lengths)
    except KeyError:
        raise click.UsageError(f"--{said} counts prompts and answers: say with --input and --output how many tokens a "
                               "request has, so that it is a rate of requests") from None
    except InputError as error:
        raise click.UsageError(f"--{said}: {error}") from None

"""Flags that people give with a value of another kind than the planner's: requests a day, tokens a month, a size."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import click

from planner.errors import InputError
from planner.scenario.phrased import Phrased, phrased
from planner.scenario.said import own_name
from planner.scenario.words import WORKS, says_no_more

HOLDING = ("context", "context-length", "context-window")
"""What asks for room for so many tokens, where nothing that is trained or served is named beside it."""
_NEUTRAL = frozenset(("model", "node", "on", "gpus", "json", "catalogs", "verbose", "quiet"))


def unsaid(text: str) -> None:
    """Tell nobody."""


def rephrased(args: Sequence[str], options: Mapping[str, click.Option], say: Callable[[str], None] = unsaid
              ) -> list[str]:
    """Return the arguments with such flags in the planner's terms; `say` is told what was assumed.

    Raises UsageError with what is missing.
    """
    argv: list[str] = []
    args = _without_kind(args)
    flags = given_flags(args, options)
    known = {option.removeprefix("--") for option in options}
    told = {name: meant for name, value in _as_typed(args).items() if name not in known and value and (
        meant := _meant(name, value, flags, known))}
    taken = {each for meant in told.values() for each in meant.takes}
    waiting = list(args)
    while waiting:
        name, given, _ = (word := waiting.pop(0)).partition("=")
        said = name[2:].replace("_", "-") if name.startswith("--") else ""
        meant = told.get(said) if name not in options else None
        if meant is None and said and (own_name(said, known) or said) in taken:
            del waiting[:0 if given else 1]  # is in another's value
            continue
        argv += [word] if meant is None else [f"--{meant.name}", meant.value]
        if meant is not None and meant.note:
            say(meant.note)
        if meant is not None and not given:
            waiting.pop(0)
    if "gpus-per-node" in flags:
        argv = _whole_nodes(argv, flags, options)
    asks_room = set(HOLDING) & {word[2:].partition("=")[0] for word in args if word.startswith("--")}
    if set(flags) <= _NEUTRAL | {"seq-len"} and ((asks_room and "--node" in options) or (
            "--method" in options and _compressed(flags.get("model", "")))):
        argv += ["--method", "inference"]
    return argv


def _without_kind(args: Sequence[str]) -> Sequence[str]:
    """Return the arguments without a kind of work that its method is beside: --task finetune --method lora."""
    typed = _as_typed(args)
    said = next((f"--{work.replace('_', '-')}" for work in WORKS if says_no_more(
        typed.get(work.replace("_", "-")), typed.get("method"))), "")
    at = next((at for at, word in enumerate(args) if said and word.partition("=")[0] == said), len(args))
    return [*args[:at], *args[at + 1 + (args[at:at + 1] == [said]):]]


def _meant(said: str, value: str, flags: Mapping[str, str], known: Collection[str]) -> Phrased | None:
    """Return what is meant by a flag which is none of the planner's. Raises UsageError for a number that is none."""
    from planner.cli.options import open_catalog

    try:
        return phrased(said, value, flags, known, open_catalog(()).recipes.requests)
    except (InputError, ValueError) as error:
        raise click.UsageError(str(error) if str(error).startswith("--") else f"--{said}: {error}") from None


def _whole_nodes(argv: Sequence[str], flags: Mapping[str, str], options: Mapping[str, click.Option]) -> list[str]:
    """Return the arguments of `--nodes 4 --gpus-per-node 8` with the GPUs of all nodes, as launchers count them."""
    each, known = flags["gpus-per-node"], {option.removeprefix("--") for option in options}
    made: list[str] = []
    waiting = list(argv)
    while waiting:
        name, given, value = (word := waiting.pop(0)).partition("=")
        own = own_name(name[2:], known) if name.startswith("--") else None
        said = own or name.removeprefix("--")
        if said not in ("gpus-per-node", "max-nodes", "on") or not (given or waiting):
            made.append(word)
            continue
        value = value if given else waiting.pop(0)
        if said == "on":
            made += ["--on", value if value[:1].isdigit() else f"{each}x{value}"]
        elif said == "max-nodes" and value.isdecimal() and each.isdecimal():
            made += ["--gpus", str(int(value) * int(each))]
    return made


def _compressed(model: str) -> bool:
    """Say whether the name of a model is of weights in a format that is run and not trained."""
    from planner.scenario.resolve import format_of

    return format_of(model) is not None


def _as_typed(args: Sequence[str]) -> dict[str, str]:
    """Return the flags that were given, with dashes, and the word behind each."""
    return {name[2:].replace("_", "-"): value if given else next(iter(args[at + 1:at + 2]), "")
            for at, word in enumerate(args) for name, given, value in [word.partition("=")] if name.startswith("--")}


def given_flags(args: Sequence[str], options: Collection[str]) -> dict[str, str]:
    """Return the flags that were given, by the planner's names, with the word behind each."""
    known = {option.removeprefix("--") for option in options}
    return {name if name in known else own_name(name, known) or name: value for name, value in _as_typed(args).items()}

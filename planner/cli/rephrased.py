"""Flags that people give with a value of another kind than the planner's: requests a day, tokens a month, a size."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import click

from planner.errors import InputError
from planner.scenario.flag_names import SIZES
from planner.scenario.said import duration_of, own_name, rate_of
from planner.units.reading import parse_count

HOLDING = ("context", "context-length", "context-window")
"""What asks for room for so many tokens, where nothing that is trained or served is named beside it."""
LATENCIES = ("ttft", "tpot", "e2e")
PACES = ("tps", "tokens-per-second", "tok-s")
"""Flags of how fast a user's answer comes, where somebody is there to read it."""
PEAKS = ("peak-factor", "peak-ratio", "peak-to-average", "peak-to-mean", "peak-multiplier", "burst-factor")
"""Flags of how many times the mean the busiest moment is."""
REPEATS = ("repeats", "num-repeats", "dataset-repeats", "image-repeats")
"""How often a pass takes each sample, as trainers of images have it."""
_PERCENTILE = re.compile(r"(?:^|-)(p\d{2}(?:\.\d)?)(?=-|$)", re.ASCII)
"""Part of a flag's name that says at which percentile a latency is meant: --p99-latency."""
_NEUTRAL = frozenset(("model", "node", "on", "gpus", "json", "catalogs", "verbose", "quiet"))


def rephrased(args: Sequence[str], options: Mapping[str, click.Option]) -> list[str]:
    """Return the arguments with such flags in the planner's terms. Raises UsageError with what is missing."""
    argv: list[str] = []
    flags = given_flags(args, options)
    waiting = list(args)
    repeated = set(REPEATS) & set(flags)
    while waiting:
        name, given, value = (word := waiting.pop(0)).partition("=")
        if repeated and own_name(name[2:], ("epochs",)):
            del waiting[:0 if given else 1]  # its product with the repeats stands for it
            continue
        said = name[2:].replace("_", "-") if name.startswith("--") and name not in options else ""
        value = value or next(iter(waiting), "")
        meant = list(_meant(said, value, flags, options)) if said and value else []
        argv += meant or [word]
        if meant and not given:
            waiting.pop(0)
    if "gpus-per-node" in flags:
        argv = _whole_nodes(argv, flags, options)
    asks_room = set(HOLDING) & {word[2:].partition("=")[0] for word in args if word.startswith("--")}
    if set(flags) <= _NEUTRAL | {"seq-len"} and ((asks_room and "--node" in options) or (
            "--method" in options and _compressed(flags.get("model", "")))):
        argv += ["--method", "inference"]
    return argv


def _meant(said: str, value: str, flags: Mapping[str, str], options: Mapping[str, click.Option]) -> Iterator[str]:
    """Yield the flag and the value that are meant by a flag which is none of the planner's; none where it is neither.
    """
    rate = rate_of(said) if "--rate" in options else None
    at = _PERCENTILE.search(said)
    if at is not None and (latency := own_name(said.replace(at[0], "").strip("-"), LATENCIES)):
        yield from (f"--{latency}", f"{value} at {at[1]}")
    elif (unit := duration_of(said)) and "--deadline" in options:
        yield from ("--deadline", f"{value} {unit}")
    elif own_name(said.removeprefix("min-"), PACES) and set(flags) & {"users", "concurrency", "rate"}:
        yield from ("--tpot", f"{value} tokens/s")
    elif said in PEAKS and "--headroom" in options:
        yield from ("--headroom", f"{100 * (_number(said, value.rstrip('xX')) - 1):.9g}%")
    elif said in REPEATS and "--epochs" in options:
        yield from ("--epochs", f"{_number(said, value) * _number('epochs', flags.get('epochs', '1')):.9g}")
    elif said in SIZES and "model" not in flags:
        yield from ("--model", value)
    elif rate is not None:
        tokens = rate[0] in ("token", "tokens")
        many = f"{_requests(said, value, flags):.9g}" if tokens else value
        plain = tokens or rate[0].startswith("request")
        yield from ("--rate", f"{many}/{rate[1]}" if plain else f"{many} {rate[0]}/{rate[1]}")


def _number(flag: str, text: str) -> float:
    """Return a plain number. Raises UsageError."""
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"--{flag}: expected a number, such as 3, got {text!r}") from None


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


def given_flags(args: Sequence[str], options: Collection[str]) -> dict[str, str]:
    """Return the flags that were given, by the planner's names, with the word behind each."""
    found = {}
    known = {option.removeprefix("--") for option in options}
    for at, word in enumerate(args):
        name, given, value = word.partition("=")
        if name.startswith("--"):
            said = name[2:].replace("_", "-")
            own = said if name in options else own_name(said, known) or said
            found[own] = value if given else next(iter(args[at + 1:at + 2]), "")
    return found


def _requests(said: str, value: str, flags: Mapping[str, str]) -> float:
    """Return the requests whose prompts and answers are so many tokens; lengths left open are the usual ones."""
    from planner.cli.options import open_catalog

    usual = open_catalog(()).recipes.requests
    lengths = {"input": usual.input, "output": usual.output}
    try:
        total = sum(parse_count(flags[side], side) if side in flags else length for side, length in lengths.items())
        return parse_count(value, said) / total
    except (InputError, ValueError) as error:
        raise click.UsageError(f"--{said}: {error}") from None

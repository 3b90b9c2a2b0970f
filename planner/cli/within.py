"""What bounds an answer and is asked about: passes and tokens within a time, a night, the longest of a length."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from planner.catalog.recipes import UsualRequests
from planner.cli.told import GROWING, WORK, Told
from planner.scenario.hardware_names import is_counted
from planner.units.reading import parse_count

_HOURS = 24


def got_through(flags: dict[str, list[str]], asks: Collection[str], told: Told) -> None:
    """Leave out the time within which tokens are trained on of which the number is asked: the speed tells how many."""
    if "tokens" in asks and not WORK.intersection(flags) - {"deadline"} and {"on", "own"} & set(flags) and (
            "deadline" in flags or "years" in flags):
        flags.setdefault("method", ["full" if "tune" in asks else "pretrain"])
        if "deadline" in flags and says_how_much(flags):
            return
        span = flags.pop("deadline", None) or flags.pop("years")
        unit = " years" if span[0].replace(".", "").isdigit() else ""
        told.assumed.append(f"what this answer says of tokens a second, times {span[0]}{unit}, is how many it gets "
                            "through, less what failures take")


def says_how_much(flags: Mapping[str, Sequence[str]]) -> bool:
    """Say whether flags say how much hardware there is: 64 H100, owned nodes."""
    return not {"own", "gpus", "max-gpus", "max-nodes"}.isdisjoint(flags) or any(map(is_counted, flags.get("on", ())))


def by_night(flags: dict[str, list[str]], told: Told) -> None:
    """Take the hours of a day in which a batch may run for its deadline; a service has them as they are."""
    if "day" not in flags or not {"documents", "samples", "tokens"} & set(flags) or set(GROWING) & set(flags):
        return
    said = flags.pop("day")[0]
    first, last = (int(hour.removesuffix("h")) for hour in said.split("-"))
    flags["deadline"] = [f"{(last - first) % _HOURS} h"]
    told.assumed.append(f"what is done from {first} to {last} o'clock is done in {flags['deadline'][0]}")


def passes(flags: dict[str, list[str]], asks: Collection[str], told: Told) -> None:
    """Leave out what bounds passes of which the number is asked: one is answered, and tells how many there are."""
    if "passes" not in asks or "epochs" in flags:
        return
    for flag, what in (("deadline", "time"), ("budget", "cost")):
        if bound := flags.pop(flag, []):
            told.assumed.append(f"one pass over the data is answered: {bound[0]} divided by its {what} is how many "
                                "epochs there are")
            if flag == "deadline" and {"on", "own"} & set(flags):
                flags["objective"] = ["time"]


def repeated(flags: dict[str, list[str]], told: Told) -> None:
    """Take how often an epoch has each sample, as trainers of images have it, for as many epochs."""
    if not (repeats := flags.pop("repeats", [])) or "samples" not in flags:
        return
    epochs = flags.get("epochs", ["1"])
    flags["epochs"] = [f"{parse_count(epochs[0], 'epochs') * parse_count(repeats[0], 'repeats')}"]
    told.assumed.append(f"{repeats[0]} repeats in each of {epochs[0]} epochs are {flags['epochs'][0]} passes over the "
                        "data")


def longest(flags: dict[str, list[str]], told: Told, usual: UsualRequests) -> None:
    """Put the longest sample as the sequence, and the longest prompt with its answer as the longest request."""
    longest = flags.pop("longest", [])
    if not longest:
        return
    if not set(GROWING) & flags.keys() and "input" not in flags:
        flags.setdefault("seq-len", longest)
        return
    output = parse_count(flags["output"][0].removesuffix(" tokens"), "output") if "output" in flags else usual.output
    most = parse_count(longest[0], "length") + output
    flags["max-model-len"] = [f"{most}"]
    told.assumed.append(f"prompts of up to {longest[0]} tokens and answers of {output:,} are --max-model-len {most}; "
                        "the mean is what is planned for")

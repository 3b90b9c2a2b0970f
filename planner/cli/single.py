"""What a question has one of, and a sentence may say two of: a run or a service, a deadline, a number of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.cli.completed import MOST, ONE_VALUE, OPTIMAL
from planner.cli.told import Told
from planner.errors import InputError
from planner.scenario.unmodeled import seeing


def one_kind(flags: Mapping[str, Sequence[str]]) -> None:
    """Raise InputError for a run and a service in one sentence, with the file that asks about both on one fleet."""
    run = next((flag for flag in ("tokens", "samples") if flag in flags), "")
    load = next((flag for flag in ("users", "rate", "concurrency") if flag in flags), "")
    models = flags.get("model", [])
    if run and load and models:
        raise InputError(
            "training and a service in one sentence: ask about each alone, or about both on one fleet by planner plan "
            f"FILE with jobs: [{{name: run, model: {models[0]}, {run}: {flags[run][0]}}}, {{name: service, model: "
            f"{models[-1]}, {load}: {flags[load][0]}}}]")


def once(flags: dict[str, list[str]], told: Told, *, many: int) -> None:
    """Take the last of two deadlines. Raises InputError for two of another number of which a question has one, where
    these are no two questions.
    """
    if len(ends := flags.get("deadline", [])) > 1 and len(ends) != len(flags.get("on", [])):
        told.assumed.append(f"of the deadlines {', '.join(ends)} the last is taken")
        flags["deadline"] = ends[-1:]
    closed = {name: why for name in flags.get("model", ()) if (why := seeing(name))}
    rest = [name for name in flags.get("model", ()) if name not in closed]
    if closed and not rest:
        raise InputError(next(iter(closed.values())))
    if closed:  # our own chatgpt with gpt-oss
        told.assumed += [f"{why.partition(';')[0]}: {', '.join(rest)} alone is planned for" for why in closed.values()]
        flags["model"] = rest
    several = [flag for flag in ONE_VALUE if len(flags.get(flag, ())) > 1 and OPTIMAL not in flags[flag]]
    for flag in several:
        values = flags[flag]
        if told.left_out is None or told.part or len(values) > MOST or (
                len(several) > 1 and len(values) != many):
            raise InputError(f"--{flag} is said twice: {' and '.join(map(repr, values))}; ask about each alone")

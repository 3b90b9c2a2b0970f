"""Hardware, or providers, of which each has its own price or deadline in a sentence: each is answered with its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.cli.read_from import places_of
from planner.cli.read_words import Sentence
from planner.cli.told import Told

OF_EACH = ("price", "deadline", "budget", "utilization")
"""Flags that have one value in a question, and may have one of each hardware in a sentence."""
OF_A_MODEL = (*OF_EACH[1:3], "tokens", "samples", "users", "rate", "concurrency", "method", "quantization", "documents")
"""Those that may have one of each model."""
_ALIKE = frozenset(("each", "both", "either", "all", "apiece"))
"""Words behind a value that is the same for all."""
_REACH = 3


def apart(sentence: Sentence, flags: Mapping[str, list[str]], told: Told
          ) -> Sequence[tuple[str, Mapping[str, list[str]]]]:
    """Return each hardware, model or provider that has values of its own, with its flags; none of other questions."""
    if told.part:
        return []
    for named, flags_of in (("on", OF_EACH), ("provider", OF_EACH), ("model", OF_A_MODEL)):
        names = flags.get(named, [])
        if len(names) < 2 or not all(map(places_of, names)):
            continue
        owned = {flag: _owners(names, flags[flag]) for flag in flags_of if flag in flags and (
            _alternate(names, flags[flag]) or (flag == "price" and len(flags[flag]) == 1 and not _alike(
                sentence, flags[flag][0])))}
        if not owned:
            continue
        rest = {flag: values for flag, values in flags.items() if flag not in owned}
        each = [(f"on {name}" if named == "on" else name, {**rest, named: [name], **{
            flag: [values[name]] for flag, values in owned.items() if name in values}}) for name in names]
        told.assumed += [f"{flag} {value} is of {name} alone" for flag, values in owned.items()
                         for name, value in values.items()]
        return each
    return []


def _place(value: str) -> int:
    return min(places_of(value), default=0)


def _alternate(names: Sequence[str], values: Sequence[str]) -> bool:
    """Say whether there are as many values as names, and each stands beside its own: 7B on 1T or 13B on 500B."""
    if len(values) != len(names) or not all(map(places_of, values)):
        return False
    said = sorted((min(places_of(each)), kind) for kind, those in enumerate((names, values)) for each in those)
    pairs = [{said[at][1], said[at + 1][1]} for at in range(0, len(said), 2)]
    return all(len(pair) > 1 for pair in pairs)


def _alike(sentence: Sentence, value: str) -> bool:
    """Say whether a value is said to be the same for all: at $2 each."""
    ends = max(places_of(value), default=0)
    return not _ALIKE.isdisjoint(sentence.words[ends:ends + _REACH])


def _owners(names: Sequence[str], values: Sequence[str]) -> Mapping[str, str]:
    """Return whose each value is: in the order in which they are said, or of one value that of the nearest name."""
    if len(values) == len(names):
        return dict(zip(sorted(names, key=_place), sorted(values, key=_place), strict=True))
    (value,) = values
    near = min(names, key=lambda name: min(
        (abs(here - there) for here in places_of(name) for there in places_of(value)), default=0))
    return {near: value}

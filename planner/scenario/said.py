"""Names of values as people make them up (`--total-tokens`, `gpu=`, `--images-per-second`), with the planner's own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date

from planner.errors import InputError
from planner.scenario.dates import days_until
from planner.scenario.flag_names import (
    CALLED,
    COUNTED,
    FILLERS,
    FOREIGN,
    LENGTHS,
    MEANS,
    OF_A_SAMPLE,
    OF_DATA,
    SHORT_RATES,
    SIDES,
)
from planner.scenario.flags import FLAGS, NAMES
from planner.units.reading import REQUEST_RATE, SECONDS, TOKENS, parse, parse_count

_LY = {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month"}
DEADLINE = FLAGS["deadline"]
EMBEDS = ("embed", "embedding", "embeddings")
"""Methods that run a model and have it write nothing."""
_TOKENS = 10**9
"""From which a data set is counted in tokens; none that a model is tuned on has so many samples."""
_COUNTS = 1024
"""Up to which a bare number is one of GPUs and no name of a card (4090)."""


_CACHED, _FOUND = frozenset(("prefix", "prefixes", "cache", "cached")), frozenset(("hit", "hits", "reuse", "cached"))
_OF_CACHE = _CACHED | _FOUND | {"prompt", "prompts", "kv", "rate", "ratio", "share", "fraction", "percent", "tokens"}
"""Words in the names of how much of prompts a cache has: --prefix-cache-hits, cached_prompt_share."""


def own_name(said: str, known: Collection[str]) -> str | None:
    """Return the one of the `known` names, with dashes, that somebody means by a name; none where it is none's."""
    name = said.replace("_", "-")
    if name in FOREIGN:
        return None
    rest = [word for word in name.split("-") if word not in FILLERS]
    # --gen-len, --doc-length and --response-tokens are of one side of a request
    side = next((side for side, words in SIDES.items() if rest[:1] and rest[0] in words and (
        len(rest) == 1 or set(rest[1:]) <= LENGTHS)), "")
    # --avg-tokens is a length where --total-tokens is all
    words = [word for word in name.split("-") if word not in FILLERS or word in MEANS or word in OF_A_SAMPLE]
    mean = "mean-length" if MEANS & set(words) and set(words) <= MEANS | OF_A_SAMPLE else ""
    prefix = "prefix-hits" if set(words) <= _OF_CACHE and set(words) & _CACHED and set(words) & _FOUND else ""
    # --dataset-tokens are tokens, and neither is --prompt-corpus a prompt nor --dataset-config a config
    plain = rest[1] if len(rest) == 2 and rest[0] in OF_DATA and rest[1] in COUNTED and not MEANS & set(words) else ""
    for each in (name, mean, prefix, "-".join(rest), side, plain):
        for spelling in (each, f"{each}s", each.removesuffix("s")):
            for own in (spelling, CALLED.get(spelling, "")) if spelling else ():
                if own and own in known:
                    return own
    return None


def duration_of(said: str) -> str:
    """Return the unit of a name that says how long something may take (max-days, hours); empty for another."""
    rest = [word for word in said.replace("_", "-").split("-") if word not in FILLERS]
    whole = len(rest) == 1 and rest[0].endswith("s") and len(rest[0]) > 1
    return rest[0] if whole and SECONDS.factor(rest[0]) and rest[0] not in NAMES else ""


def rate_of(said: str) -> tuple[str, str] | None:
    """Return what is counted and the time, of a name such as requests-per-day or daily-tokens; none of another."""
    name = said.replace("_", "-")
    if name in SHORT_RATES:
        return "requests", SHORT_RATES[name]
    words = [word for word in name.split("-") if word not in FILLERS]
    if len(words) == 3 and words[1] in ("per", "a", "an"):
        noun, time = words[0], words[2]
    elif len(words) == 2 and words[0] in _LY:
        noun, time = words[1], _LY[words[0]]
    else:
        return None
    counted = REQUEST_RATE.factor(f"{noun}/{time}") or (
        TOKENS.factor(noun) and SECONDS.factor(time) and (SECONDS.factor(time) or 0.0) > 1.0)
    return (noun, time) if counted else None


def in_their_places(values: Mapping[str, object]) -> dict[str, object]:
    """Return values by path with hardware that is given where GPUs are counted (gpus=8xh100), and a count that is given
    where hardware is named (gpu=8) or a file of samples (dataset=50k), or a rate where a trace is (requests=5/s), each
    in its place.
    """
    meant, gpus, on = dict(values), FLAGS["gpus"], FLAGS["on"]
    names = [part.strip() for part in text.split(",")] if isinstance(text := values.get(gpus), str) else text
    if isinstance(names, list | tuple) and on not in values and _are_hardware(names):
        meant[on] = list(names)
        del meant[gpus]
    # a count where a file is named: a data set's of billions is of tokens
    for file, count in ((FLAGS["dataset"], FLAGS["samples"]), (FLAGS["requests"], FLAGS["documents"])):
        if count not in values and isinstance(size := values.get(file), str) and _is_count(size):
            said = meant.pop(file)
            tokens = count == FLAGS["samples"] and parse_count(size, "tokens") >= _TOKENS
            meant.setdefault(FLAGS["tokens"] if tokens else count, said)
    if str(values.get(FLAGS["method"])).lower() in EMBEDS:
        meant.setdefault(FLAGS["output"], 0)  # what is embedded is read, and nothing is written
    if isinstance(load := meant.get(FLAGS["requests"]), str) and FLAGS["rate"] not in values and _is_rate(load):
        meant[FLAGS["rate"]] = meant.pop(FLAGS["requests"])
    named = values.get(on)
    one = named[0] if isinstance(named, list | tuple) and len(named) == 1 else named
    if gpus not in values and str(one).strip().isdecimal() and int(str(one)) <= _COUNTS:
        meant[gpus] = str(one).strip()
        del meant[on]
    return meant


def by_calendar(values: Mapping[str, object], today: date) -> dict[str, object]:
    """Return values by path with a deadline that is a date as the days until it."""
    said = values.get(DEADLINE)
    days = days_until(said, today) if isinstance(said, str) else None
    return dict(values) if days is None else {**values, DEADLINE: f"{days} d"}


def told_of_calendar(values: Mapping[str, object], today: date) -> list[str]:
    """Return what a deadline that is a date is taken for, in words; nothing of any other."""
    dated = by_calendar(values, today)
    return [] if dated == values else [f"{values[DEADLINE]} is {dated[DEADLINE]} from today"]


def _is_rate(text: str) -> bool:
    """Say whether text where a trace of requests is named says how many come in a time: 100 req/min."""
    try:
        return not text.strip().isdecimal() and parse(text, REQUEST_RATE, "rate", "20 requests/s") > 0
    except ValueError:
        return False


def _is_count(text: str) -> bool:
    """Say whether text where a file of samples is named says how many there are: 50k."""
    try:
        return parse_count(text, "samples") > 0
    except (InputError, ValueError):
        return False


def _are_hardware(names: Sequence[object]) -> bool:
    """Say whether what stands where GPUs are counted names some; beside names a number may be one of a card: 4090."""
    return any(isinstance(each, str) and _is_hardware(each) for each in names) and all(
        isinstance(each, str) and (_is_hardware(each) or (each.isdecimal() and int(each) > _COUNTS)) for each in names)


def _is_hardware(text: str) -> bool:
    """Say whether text where GPUs are counted names some: it has letters that count nothing, and digits behind them."""
    words = text.strip().lstrip("0123456789., ").lower()
    return words[:1].isalpha() and any(map(str.isdigit, words))

"""What a service is asked for: requests a second, how they arrive, shares, and the latency targets."""

from __future__ import annotations

import re
from itertools import dropwhile
from typing import Annotated, Literal, NamedTuple

from pydantic import BeforeValidator, Field, PlainSerializer, PlainValidator

from planner.units import DAY, SECONDS, exact, parse, trimmed
from planner.units.reading import LATENCY, PER_TOKEN, REQUEST_RATE, TOKEN_RATE, Units

LEAST_RATE, MOST_RATE = 1e-6, 1e9
"""Requests/s that a service lies within: one in twelve days is the least."""
USUAL_PERCENTILE = 95.0
_BARE = re.compile(r"[-+\d.,_eE]+", re.ASCII)
_PERCENT = re.compile(r"(\d+(?:\.\d*)?) ?(?:%|percent)", re.ASCII)
_PACE = re.compile(r"[-+\d.,_eE]+ ?t.*", re.IGNORECASE | re.ASCII)
"""Tokens a second: no unit of time begins with t."""
_CV = re.compile(r"\{?(?:cv ?[=:]? ?)?(\d+(?:\.\d*)?)\}?", re.ASCII)
_AT = re.compile(r"(?<![a-z0-9])(?:(mean|average|avg)|(median)|p(\d+(?:\.\d+)?))(?![a-z0-9])", re.IGNORECASE | re.ASCII)
_BETWEEN = {"at", "the", "@", "<", "<=", "=", ":", "of", "under", "below", "within", "most"}
"""What stands before a latency, and between it and its percentile."""


class Level(NamedTuple):
    """Seconds that a latency may take: at a percentile (50 to 99.9) or on average; where unsaid, `at` is None."""

    seconds: float
    at: float | Literal["mean"] | None = None

    @property
    def percentile(self) -> float | None:
        """The percentile that must hold, 95 where none is said; None is the mean."""
        if self.at == "mean":
            return None
        return USUAL_PERCENTILE if self.at is None else self.at

    def __str__(self) -> str:
        """Write the latency target as it is read."""
        text = exact(self.seconds, SECONDS, "s", "ms", "us")
        if self.at is None:
            return text
        return f"{text} at mean" if self.at == "mean" else f"{text} at p{self.at:.10g}"


def _level(value: object, units: Units = LATENCY) -> Level:
    """Return a latency, also of text that says tokens a second where `units` are of a token."""
    if isinstance(value, Level):
        return value
    text = trimmed(value, "latency") if isinstance(value, str) else value
    at = _AT.search(text) if isinstance(text, str) else None
    if at is not None and isinstance(text, str):
        words = f"{text[:at.start()]} {text[at.end():]}".translate(dict.fromkeys(map(ord, "(),"))).split()
        text = " ".join(word for word in words if word.lower() not in _BETWEEN)
    elif isinstance(text, str):
        text = " ".join(dropwhile(lambda word: word.lower() in _BETWEEN, text.split())) or text
    if units is PER_TOKEN and isinstance(text, str) and _PACE.fullmatch(text):
        seconds = 1 / parse(text, TOKEN_RATE, "pace", "25 tokens/s")
    else:
        seconds = parse(text, units, "latency", "2 s")
    if seconds > DAY:
        raise ValueError(f"{value!r}: a latency is at most a day")
    if at is None:
        return Level(seconds)
    percentile = 50.0 if at[2] else float(at[3] or 0)
    if not at[1] and not 50 <= percentile <= 99.9:
        raise ValueError(f"{value!r}: the percentile must be p50 to p99.9, or mean")
    return Level(seconds, "mean" if at[1] else percentile)


class Arrivals(NamedTuple):
    """Gaps between requests by their coefficient of variation: 1 is Poisson, more comes in bursts."""

    cv: float = 1.0


def _arrivals(value: object) -> Arrivals:
    if isinstance(value, Arrivals):
        return value
    if isinstance(value, str) and value == "poisson":
        return Arrivals()
    if isinstance(value, str) and (match := _CV.fullmatch(trimmed(value, "variation"))):
        value = {"cv": float(match.group(1))}
    cv = value.get("cv") if isinstance(value, dict) and set(value) == {"cv"} else value
    if not isinstance(cv, int | float) or isinstance(cv, bool):
        raise ValueError(f"expected poisson, or the variation of the gaps such as {{cv: 2}}, got {value!r}")
    if not 0 <= cv <= 20:
        raise ValueError(f"cv, the standard deviation of the gaps over their mean, is 0 to 20, got {cv}")
    return Arrivals(float(cv))


_OF_TOKENS = re.compile(r"\btok(?:en)?s?\b|\btps\b", re.IGNORECASE)


def _written(arrivals: Arrivals) -> str | dict[str, int | float]:
    cv = arrivals.cv
    return "poisson" if cv == 1 else {"cv": int(cv) if cv.is_integer() else cv}


def _rate(value: object) -> float:
    """Return requests/s; a number without a unit is of these."""
    if isinstance(value, str) and _OF_TOKENS.search(value):
        raise ValueError(f"{value!r} counts tokens, and a rate is of requests: divide by the tokens of a request, "
                         "its --input and --output together if prompts are counted too, and write for example "
                         "'4000 requests/hour'")
    rate = parse(value, REQUEST_RATE, "rate", "20 requests/s")
    if not LEAST_RATE <= rate <= MOST_RATE:
        raise ValueError(f"a rate is {LEAST_RATE:g} to {MOST_RATE:g} requests/s, got {value!r}")
    return rate


def _share(value: object) -> object:
    if not isinstance(value, str):
        return value
    match = _PERCENT.fullmatch(trimmed(value, "share"))
    if match is None and not _BARE.fullmatch(trimmed(value, "share")):
        raise ValueError(f"{value!r} is not a share: write for example '30%'")
    if match is None and "e" not in value.lower() and value.replace(".", "").isdigit() and float(value) > 1:
        raise ValueError(f"{value!r} is more than all of it: write '{value}%'")
    return float(match.group(1)) / 100 if match else value


def _percent(value: float) -> str | float:
    """Return a share as a percentage where that reads back to the same number."""
    text = f"{value * 100:.10g}"
    return f"{text}%" if "e" not in text and float(text) / 100 == value else value


def _percentile(value: object) -> float | Literal["mean"]:
    """Return a percentile from text such as p99, 99% or mean."""
    text = trimmed(value, "percentile").lower().removeprefix("p").removesuffix("%") if isinstance(value, str) else value
    found = _level(f"1 s at {'mean' if text in ('mean', 'average', 'avg') else f'p{text}'}")
    if found.at is None:
        raise ValueError(f"{value!r}: the percentile must be p50 to p99.9, or mean")
    return found.at


Percentile = Annotated[Annotated[float, Field(ge=50, le=99.9)] | Literal["mean"],
                       PlainValidator(_percentile, json_schema_input_type=str | float)]
"""Of requests that must meet a latency target: p99, or mean."""
Latency = Annotated[Level, PlainValidator(_level, json_schema_input_type=str), PlainSerializer(str, return_type=str)]
TokenLatency = Annotated[Level, PlainValidator(lambda v: _level(v, PER_TOKEN), json_schema_input_type=str),
                         PlainSerializer(str, return_type=str)]
"""A latency per token, also as a pace: 25 tokens/s."""
Gaps = Annotated[Arrivals, PlainValidator(_arrivals, json_schema_input_type=str | dict[str, float]),
                 PlainSerializer(_written)]
Rate = Annotated[float, PlainValidator(_rate, json_schema_input_type=str | float),
                 Field(ge=LEAST_RATE, le=MOST_RATE), PlainSerializer(
    lambda value: exact(value, REQUEST_RATE, "requests/s", "requests/min", "requests/h"), return_type=str)]
Share = Annotated[float, BeforeValidator(_share, json_schema_input_type=str | float), PlainSerializer(_percent)]
"""A share of one, as "30%" or 0.3."""
Confidence = Annotated[float, BeforeValidator(_share, json_schema_input_type=str | float)]
"""The same, written as a number."""

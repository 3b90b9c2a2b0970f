"""How long prompts and answers are: a fixed count of tokens, or a lognormal distribution of them."""

from __future__ import annotations

import math
import re
from statistics import NormalDist
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import PlainSerializer, PlainValidator

from planner.units import parse, parse_count
from planner.units.reading import TOKENS

MOST_TOKENS = 10**7
"""Longest prompt or answer; no model reads or writes more at once."""
WIDEST_CV = 10.0
WIDEST_RATIO = 1000.0
"""Of p95 to p50."""
_FORMS = "write 2000, {mean: 2000, cv: 0.8}, {mean: 2000, p95: 6000} or {p50: 1000, p95: 6000}"
_CALLED = {"average": "mean", "avg": "mean", "median": "p50", "std": "sd", "stddev": "sd", "stdev": "sd",
           "max": "p99.9", "maximum": "p99.9", "longest": "p99.9"}
"""The longest is taken for that of a thousand."""
_PERCENTILE = re.compile(r"p(\d{2}(?:\.\d)?)", re.ASCII)
_PLAIN = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_STANDARD = NormalDist()
_Z95 = _STANDARD.inv_cdf(0.95)


class Length(NamedTuple):
    """Tokens of a prompt or an answer, kept as it was said: by mean and cv, or by median (p50) and p95.

    With `by` "mean", `value` is the mean in tokens and `spread` the coefficient of variation, 0 for a fixed length;
    with "p50", `value` is the median and `spread` the 95th percentile, both in tokens.
    """

    by: Literal["mean", "p50"]
    value: float
    spread: float

    @property
    def sigma(self) -> float:
        """Standard deviation of the logarithm; 0 where every length is the same."""
        if self.by == "mean":
            return math.sqrt(math.log1p(self.spread**2))
        return math.log(self.spread / self.value) / _Z95

    @property
    def median(self) -> float:
        """Tokens that half of the lengths exceed."""
        return self.value if self.by == "p50" else self.value / math.sqrt(1 + self.spread**2)

    @property
    def mean(self) -> float:
        """Mean tokens."""
        return self.value if self.by == "mean" else self.value * math.exp(self.sigma**2 / 2)

    @property
    def cv(self) -> float:
        """Standard deviation over mean."""
        return self.spread if self.by == "mean" else math.sqrt(math.expm1(self.sigma**2))

    def below(self, tokens: float, order: int = 0) -> float:
        """Return the share of lengths up to `tokens`; with `order` 1 of all their tokens, with 2 of their squares."""
        if self.sigma == 0:
            return float(tokens >= self.median)
        return _STANDARD.cdf(math.log(tokens / self.median) / self.sigma - order * self.sigma) if tokens > 0 else 0.0

    def quantile(self, q: float) -> float:
        """Return the tokens below which a share `q` of the lengths lies, 0 < q < 1."""
        return self.median * math.exp(self.sigma * _STANDARD.inv_cdf(q))


def _length(value: object) -> Length:
    if isinstance(value, Length):
        return value
    if isinstance(value, str) and (said := _said(value)):
        value = said
    if isinstance(value, dict):
        return _distribution(value)
    if not isinstance(value, int | str):
        raise ValueError(f"{value!r} is not a length in tokens: {_FORMS}")
    return Length("mean", float(_bounded(parse_count(value, "length", "2000"))), 0.0)


def _said(text: str) -> dict[str, object]:
    """Return a distribution that is written on one line: mean 2000 cv 0.8, {mean: 2000, p95: 6000}, p50=1k,p95=6k."""
    words = re.split(r"[\s,:={}]+", text.strip(" {},"))
    named = len(words) % 2 == 0 and all(word[:1].isalpha() for word in words[::2])
    return {key: float(value) if _PLAIN.fullmatch(value) else value
            for key, value in zip(words[::2], words[1::2], strict=True)} if named and len(words) > 2 else {}


def _answer(value: object) -> Length:
    """Return the length of an answer; 0 is none at all, as of an embedding."""
    return Length("mean", 0.0, 0.0) if value in (0, "0") and value is not False else _length(value)


def _distribution(value: dict[Any, object]) -> Length:
    value = {_CALLED.get(str(key).lower(), str(key).lower()): each for key, each in value.items()}
    if set(value) == {"mean", "sd"}:
        value = {"mean": value["mean"], "cv": _number("sd", value["sd"]) / _tokens("mean", value["mean"])}
    at = next((key for key in value if key != "p50" and _PERCENTILE.fullmatch(key)), "p95")
    if set(value) in ({"mean", at}, {"p50", at}) and (at != "p95" or "mean" in value):
        known = "mean" if "mean" in value else "p50"
        first, high = _tokens(known, value[known]), _tokens(at, value[at])
        value = {"p50": (median := _median(known, first, at, high)), "p95": median * math.exp(
            _Z95 / _STANDARD.inv_cdf(float(at[1:]) / 100) * math.log(high / median))}
    if set(value) == {"mean", "cv"}:
        mean, cv = _tokens("mean", value["mean"]), _number("cv", value["cv"])
        if not 0 <= cv <= WIDEST_CV:
            raise ValueError(f"cv, the standard deviation over the mean, is 0 to {WIDEST_CV:g}, got {value['cv']!r}")
        return Length("mean", mean, cv)
    if set(value) == {"p50", "p95"}:
        median, high = _tokens("p50", value["p50"]), _tokens("p95", value["p95"])
        if not median <= high <= WIDEST_RATIO * median:
            raise ValueError(f"p95 is 1 to {WIDEST_RATIO:g} times p50, got p50 {value['p50']!r} and p95 "
                             f"{value['p95']!r}")
        return Length("p50", median, high)
    raise ValueError(f"a distribution of lengths has mean and cv, or p50 and p95, got {', '.join(map(str, value))}: "
                     f"{_FORMS}")


def _median(known: str, value: float, at: str, high: float) -> float:
    """Return the median of lengths of which the mean, or it itself, is known, and a percentile above it."""
    z = _STANDARD.inv_cdf(float(at[1:]) / 100)
    if not value <= high or z <= 0:
        raise ValueError(f"{at} is at least {known}, got {known} {value:g} and {at} {high:g}")
    if known == "p50":
        return value
    # of a lognormal distribution high / mean = exp(z s - s^2 / 2), the smaller s of the two
    room = z * z - 2 * math.log(high / value)
    if room < 0:
        raise ValueError(f"{at} of {high:g} tokens is too far above a mean of {value:g}: at most "
                         f"{value * math.exp(z * z / 2):,.0f}")
    sigma = z - math.sqrt(room)
    return value * math.exp(-sigma * sigma / 2)


def _tokens(key: str, value: object) -> float:
    return _bounded(parse(value, TOKENS, "length", "2000") if isinstance(value, str) else _number(key, value))


def _number(key: str, value: object) -> float:
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{key} must be a finite number, got {value!r}")
    return number


def _bounded(tokens: float) -> float:
    if not 1 <= tokens <= MOST_TOKENS:
        raise ValueError(f"a length is 1 to {MOST_TOKENS:,} tokens, got {tokens:g}")
    return tokens


def _plain(length: Length) -> int | float | dict[str, float | int]:
    """Return the length as scenarios write it."""
    value, spread = (int(x) if x.is_integer() else x for x in (length.value, length.spread))
    if length.by == "p50":
        return {"p50": value, "p95": spread}
    return value if isinstance(value, int) and not length.spread else {"mean": value, "cv": spread}


Lengths = Annotated[Length, PlainValidator(_length, json_schema_input_type=str | float | dict[str, Any]),
                    PlainSerializer(_plain)]
Answers = Annotated[Length, PlainValidator(_answer, json_schema_input_type=str | float | dict[str, Any]),
                    PlainSerializer(_plain)]
"""The same of answers, of which there may be none."""

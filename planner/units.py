"""Quantities: the unit is part of the value as people write it, base units inside.

Base units: bytes, bytes/second, FLOP/second, seconds, USD, USD/hour, watts, tokens, requests/second.
GB is 1e9 bytes and GiB is 2**30; `Gbit/s` is a link rate, divided by eight; `GB/s` a byte rate.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema
from pydantic_core import core_schema

_DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_WRITTEN = re.compile(r"([+-]?[\d.,_]+(?:[eE][+-]?\d+)?) ?(.*)", re.ASCII)
_NUMBER = re.compile(r"[+-]?(?:(?:\d{1,3}(?:,\d{3})+|\d[\d_]*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+", re.ASCII)

BYTES = {p + "B": f for p, f in (_DECIMAL | _BINARY).items()}
BYTE_RATE = {u + "/s": f for u, f in BYTES.items()} | {p + "bit/s": f / 8 for p, f in _DECIMAL.items()}
FLOP_RATE = {p + "FLOP/s": f for p, f in _DECIMAL.items()}
SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
USD = {p + "USD": f for p, f in _DECIMAL.items()}
USD_PER_HOUR = {"USD/h": 1.0}
USD_PER_KWH = {"USD/kWh": 1.0}
USD_PER_KW_MONTH = {"USD/kW-month": 1.0}
USD_PER_KW = {"USD/kW": 1.0}
KG_PER_KWH = {"kg/kWh": 1.0, "g/kWh": 1e-3}
WATTS = {p + "W": f for p, f in _DECIMAL.items()}
REQUEST_RATE = {"requests/s": 1.0, "requests/min": 1 / 60, "requests/h": 1 / 3600, "request/s": 1.0}
_TOKENS = ("", "token", "tokens", " tokens", " token")
TOKENS = {(p + s).strip(): f for p, f in (_DECIMAL | {"B": 1e9}).items() for s in _TOKENS}

GIB = 2.0**30
MAX_LENGTH = 100
"""Characters of the longest quantity that anyone writes; what is longer is refused before it is looked at."""
MAX_COUNT = 10**18
"""Above any count of tokens or sequences that makes sense, and within 64-bit integers."""
HOUR = 3600.0
DAY = 86400.0


def trimmed(text: str, what: str) -> str:
    """Return text with single spaces inside and none around. Raises ValueError where it is too long for a quantity.

    Every pattern of a quantity is matched against what this returns, so that none can run away.
    """
    if len(text) > MAX_LENGTH:
        raise ValueError(f"{_one(what)} is written in at most {MAX_LENGTH} characters, got {len(text):,}")
    return " ".join(text.split())


def _one(what: str) -> str:
    return f"{'an' if what[0] in 'aeio' else 'a'} {what}"


def parse(text: object, units: Mapping[str, float], what: str, example: str) -> float:
    """Return `text` ("141 GB", "9,841 USD") in base units, positive and finite.

    Raises ValueError saying what to write instead: a bare number has no unit, `Gb/s` and `80G` are refused.
    """
    if not isinstance(text, str):
        raise ValueError(f"{what} needs a unit, got {text!r}: write for example {example!r}")
    match = _WRITTEN.fullmatch(trimmed(text, what))
    if match is None or not _NUMBER.fullmatch(match.group(1)):
        commas = "a comma separates thousands as in 9,841; " if match and "," in match.group(1) else ""
        raise ValueError(f"{text!r} is not {_one(what)}: {commas}write for example {example!r}")
    number, unit = float(match.group(1).replace("_", "").replace(",", "")), match.group(2)
    if unit not in units:
        given = f"unknown unit {unit!r} in {text!r}" if unit else f"{text!r} has no unit"
        known = ", ".join(dict.fromkeys(u.strip() for u in units if u.strip()))
        raise ValueError(f"{given}: {_one(what)} is written like {example!r} (units: {known})")
    value = number * units[unit]
    if not math.isfinite(value) or value <= 0:
        raise ValueError(f"{text!r} is not {_one(what)}: it must be above zero and finite")
    return value


def parse_count(text: object, what: str = "count", example: str = "15 T") -> int:
    """Return a token count: an integer, or a number with k, M, G or B, or T ("15T", "8k" is 8,000)."""
    if isinstance(text, bool):
        raise ValueError(f"{what} must be a number like {example!r}, got {text!r}")
    # 10e9 is a count too where it is whole; nan and inf are none
    if isinstance(text, float) and text.is_integer():
        text = int(text)
    if isinstance(text, int):
        if not 0 < text <= MAX_COUNT:
            raise ValueError(f"{what} must be above zero and at most {MAX_COUNT:.0e}, got {text}")
        return text
    value = parse(text, TOKENS, what, example)
    if value > MAX_COUNT:
        raise ValueError(f"{what} must be at most {MAX_COUNT:.0e}, got {text!r}")
    if abs(value - round(value)) > 1e-6 * max(1.0, value):
        raise ValueError(f"{what} must be a whole number, got {text!r}")
    return round(value)


class Quantity:
    """The pydantic annotation of one dimension: parses text with a unit, keeps base units, prints text.

    `least` and `most`, written as users do, are what any value of it lies within.
    """

    def __init__(self, units: Mapping[str, float], what: str, example: str, *shown: str, least: str,
                 most: str) -> None:
        self.units, self.what, self.example, self.shown = units, what, example, shown
        self.range = f"{least} to {most}"
        self.least, self.most = (parse(bound, units, what, example) for bound in (least, most))

    def read(self, value: object) -> float:
        """Return a value in base units. Raises ValueError, outside the range too."""
        number = parse(value, self.units, self.what, self.example)
        if not self.least <= number <= self.most:
            raise ValueError(f"{value!r}: {_one(self.what)} is {self.range}")
        return number

    def __get_pydantic_core_schema__(self, source: object, handler: object) -> core_schema.CoreSchema:
        """Validate from text, serialize to text that parses back to the same number."""
        return core_schema.no_info_plain_validator_function(
            self.read,
            json_schema_input_schema=core_schema.str_schema(
                metadata={"pydantic_js_updates": {"examples": [self.example]}}),
            serialization=core_schema.plain_serializer_function_ser_schema(
                lambda value: exact(value, self.units, *self.shown), return_schema=core_schema.str_schema()))


def exact(value: float, units: Mapping[str, float], *order: str) -> str:
    """Write `value` so that it parses back exactly, in the first unit of `order` with a short number."""
    for unit in order:
        number = value / units[unit]
        text = f"{number:.10g}"
        if "e" not in text and number >= 1 and float(text) * units[unit] == value:
            return f"{text} {unit}"
    base = next(unit for unit in order if units[unit] == 1.0)
    return f"{value!r} {base}"


def at_least(value: float, units: Mapping[str, float], *order: str) -> str:
    """Write `value` rounded up to three digits, in the first unit of `order` that it reaches; reads back to no less."""
    unit = next((name for name in order if value >= units[name]), order[-1])
    number = value / units[unit]
    decimals = max(0, 2 - math.floor(math.log10(number)))
    count = math.ceil(round(number * 10**decimals, 6))
    while True:
        text = f"{count / 10**decimals:.{decimals}f}"
        text = f"{text.rstrip('0').rstrip('.') if decimals else text} {unit}"
        if parse(text, units, "quantity", text) >= value:
            return text
        count += 1


Bytes: TypeAlias = Annotated[float, Quantity(
    BYTES, "size", "141 GB", "TB", "GB", "GiB", "MiB", "B", least="0.01 B", most="1000 PB")]
ByteRate: TypeAlias = Annotated[float, Quantity(
    BYTE_RATE, "bandwidth", "450 GB/s", "TB/s", "GB/s", "MB/s", "B/s", least="1 kB/s", most="100 PB/s")]
FlopRate: TypeAlias = Annotated[float, Quantity(
    FLOP_RATE, "compute rate", "989 TFLOP/s", "TFLOP/s", "FLOP/s", least="1 MFLOP/s", most="1000 PFLOP/s")]
Seconds: TypeAlias = Annotated[float, Quantity(
    SECONDS, "duration", "60 d", "d", "h", "min", "s", "ms", "us", least="0.000001 us", most="36525 d")]
Usd: TypeAlias = Annotated[float, Quantity(
    USD, "amount of money", "12 MUSD", "MUSD", "kUSD", "USD", least="0.00001 USD", most="10 TUSD")]
UsdPerKwh: TypeAlias = Annotated[float, Quantity(
    USD_PER_KWH, "energy price", "0.09 USD/kWh", "USD/kWh", least="0.00001 USD/kWh", most="1000 USD/kWh")]
UsdPerKwMonth: TypeAlias = Annotated[float, Quantity(
    USD_PER_KW_MONTH, "colocation price", "150 USD/kW-month", "USD/kW-month", least="0.01 USD/kW-month",
    most="1,000,000 USD/kW-month")]
UsdPerKw: TypeAlias = Annotated[float, Quantity(
    USD_PER_KW, "price of power capacity", "5000 USD/kW", "USD/kW", least="0.01 USD/kW", most="10,000,000 USD/kW")]
KgPerKwh: TypeAlias = Annotated[float, Quantity(
    KG_PER_KWH, "grid intensity", "0.37 kg/kWh", "kg/kWh", least="0.001 g/kWh", most="100 kg/kWh")]
UsdPerHour: TypeAlias = Annotated[float, Quantity(
    USD_PER_HOUR, "price", "31.92 USD/h", "USD/h", least="0.00001 USD/h", most="10,000,000 USD/h")]
Watts: TypeAlias = Annotated[float, Quantity(
    WATTS, "power", "700 W", "MW", "kW", "W", least="0.001 W", most="10 TW")]


def _show_count(value: int) -> str | int:
    for suffix in ("T", "G", "M"):
        if value % int(_DECIMAL[suffix]) == 0:
            return f"{value // int(_DECIMAL[suffix])} {suffix}"
    return value


Tokens = Annotated[int, BeforeValidator(lambda v: parse_count(v, "token count", "15 T")), Field(ge=1, le=MAX_COUNT),
                   PlainSerializer(_show_count), WithJsonSchema({"type": ["string", "integer"]})]
def _plain(value: object) -> object:
    """Return text that is a whole number with thousands separators without them; anything else as it is."""
    return value.replace(",", "") if isinstance(value, str) and _GROUPED.fullmatch(value[:MAX_LENGTH]) else value


Whole = Annotated[int, BeforeValidator(_plain)]
"""A whole number of things, also as it is printed: "1,024"."""
Count = Annotated[int, BeforeValidator(lambda v: parse_count(v, "count", "2048")),
                  WithJsonSchema({"type": "integer", "minimum": 1})]


def show_bytes(value: float) -> str:
    """Write bytes for people, in GiB as the tools on the machine print them."""
    return f"{value / GIB:.1f} GiB" if value >= 0.05 * GIB else f"{value / 2**20:.1f} MiB"


def show_usd(value: float) -> str:
    """Write money for people: `12.3 MUSD`, `845,210 USD`, `3.10 USD`."""
    if value >= 1e7:
        return f"{value / 1e6:,.2f} MUSD"
    return f"{value:,.0f} USD" if value >= 1000 else f"{value:,.2f} USD"


def show_seconds(value: float) -> str:
    """Write a duration for people, with about three digits."""
    for unit in ("d", "h", "min", "s", "ms"):
        if value >= SECONDS[unit] * (2 if unit in ("d", "h") else 1):
            number = value / SECONDS[unit]
            return f"{number:.3g} {unit}" if number < 999.5 else f"{number:,.0f} {unit}"
    return f"{value * 1e6:.3g} us"


def show_within(value: float) -> str:
    """Write a duration as `show_seconds` does, up, so that it holds as a deadline: never less than `value` seconds."""
    unit = next((u for u in ("d", "h", "min", "s", "ms") if value >= SECONDS[u] * (2 if u in ("d", "h") else 1)), "us")
    number = Decimal(repr(value / SECONDS[unit]))
    return f"{round_up(value / SECONDS[unit], max(0, 2 - number.adjusted())).normalize():,f} {unit}"


def round_up(value: float, decimals: int) -> Decimal:
    """Return `value` as it is written, rounded up to so many decimals."""
    return Decimal(repr(value)).quantize(Decimal(1).scaleb(-decimals), ROUND_CEILING)


def show_kwh(value: float) -> str:
    """Write energy for people: `812.0 kWh`, `1,234.5 MWh`."""
    return f"{value / 1e3:,.1f} MWh" if value >= 1e4 else f"{value:,.1f} kWh"


def show_count(value: float) -> str:
    """Write a large count for people: 15 T, 405 G, 8.03 G."""
    for suffix in ("T", "G", "M"):
        if value >= 0.9995 * _DECIMAL[suffix]:
            return f"{value / _DECIMAL[suffix]:.3g} {suffix}"
    return f"{value:,.0f}"


def show_more(excess: float) -> str:
    """Write a relative difference: `+13.7%`, or `82x` where the whole is ten times as much or more."""
    return f"{excess:+.1%}" if excess < 9 else f"{1 + excess:,.0f}x"


def plural(count: int, noun: str) -> str:
    """Return `1 node`, `448 nodes`, `2 copies`."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y"):
        return f"{count:,} {noun[:-1]}ies"
    return f"{count:,} {noun}{'es' if noun.endswith('ch') else 's'}"

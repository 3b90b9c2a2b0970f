"""Quantities: the unit is part of the value as people write it, base units inside.

Base units: bytes, bytes/second, FLOP/second, seconds, USD, USD/hour, watts, tokens, requests/second. How text is read
is in `reading`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from typing import Annotated, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema
from pydantic_core import core_schema

from planner.units.reading import (
    BYTE_RATE,
    BYTES,
    DECIMAL,
    FLOP_RATE,
    GPUS,
    KG_PER_KWH,
    MAX_COUNT,
    MONEY,
    MONEY_PER_GPU_HOUR,
    MONEY_PER_KWH,
    NODES,
    SECONDS,
    USD,
    USD_PER_HOUR,
    USD_PER_KW,
    USD_PER_KW_MONTH,
    USD_PER_KWH,
    WATTS,
    parse,
    parse_count,
    trimmed,
    with_article,
)

__all__ = ["BYTES", "BYTE_RATE", "DAY", "FLOP_RATE", "GIB", "HOUR", "KG_PER_KWH", "MAX_COUNT", "SECONDS", "USD",
           "USD_PER_HOUR", "USD_PER_KW", "USD_PER_KWH", "USD_PER_KW_MONTH", "WATTS", "parse", "parse_count", "trimmed"]
"""What is read elsewhere and belongs to the units all the same."""

GIB = 2.0**30
HOUR = 3600.0
DAY = 86400.0
YEAR = 365 * DAY
FEW_DAYS = 9.99
"""Days that have two decimals."""
MONTH_DAYS = 30.0
"""Of a month, for which what does not end is paid."""


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
            raise ValueError(f"{value!r}: {with_article(self.what)} is {self.range}")
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
Money: TypeAlias = Annotated[float, Quantity(
    MONEY, "amount of money", "12 MUSD", "MUSD", "kUSD", "USD", least="0.00001 USD", most="10 TUSD")]
"""What a question says of money, in dollars whether it says so or not."""
MoneyPerGpuHour: TypeAlias = Annotated[float, Quantity(
    MONEY_PER_GPU_HOUR, "price of a GPU and hour", "2.20 USD/GPU-h", "USD/GPU-h", least="0.00001 USD/GPU-h",
    most="100,000 USD/GPU-h")]
"""What a question says of an hour of a GPU, in dollars whether it says so or not."""
UsdPerKwh: TypeAlias = Annotated[float, Quantity(
    USD_PER_KWH, "energy price", "0.09 USD/kWh", "USD/kWh", least="0.00001 USD/kWh", most="1000 USD/kWh")]
MoneyPerKwh: TypeAlias = Annotated[float, Quantity(
    MONEY_PER_KWH, "price of electricity", "0.12 USD/kWh", "USD/kWh", least="0.00001 USD/kWh", most="1000 USD/kWh")]
"""What a question says of electricity, in dollars whether it says so or not."""
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
        if value % int(DECIMAL[suffix]) == 0:
            return f"{value // int(DECIMAL[suffix])} {suffix}"
    return value


Tokens = Annotated[int, BeforeValidator(lambda v: parse_count(v, "token count", "15 T")), Field(ge=1, le=MAX_COUNT),
                   PlainSerializer(_show_count), WithJsonSchema({"type": ["string", "integer"]})]
Gpus = Annotated[int, BeforeValidator(lambda v: parse_count(v, "number of GPUs", "64", GPUS))]
"""A number of GPUs: 1,024, or "8 GPUs"."""
Nodes = Annotated[int, BeforeValidator(lambda v: parse_count(v, "number of nodes", "8", NODES))]
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


def show_price(value: float) -> str:
    """Write what one of many costs: `3.10 USD`, and of less than ten cents three digits, `0.000423 USD`."""
    return show_usd(value) if value >= 0.1 or not value else f"{Decimal(f'{value:.3g}'):f} USD"


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


def show_days(value: float) -> str:
    """Write a duration given in days, with three digits or more: `2.31 days`, `151.2 days`, hours below two; up, so
    that as a deadline it is kept.
    """
    return f"{round_up(value, 2 if value < FEW_DAYS else 1):,} days" if value >= 2 else show_within(value * DAY)


def round_up(value: float, decimals: int) -> Decimal:
    """Return `value` as it is written, rounded up to so many decimals."""
    return Decimal(repr(value)).quantize(Decimal(1).scaleb(-decimals), ROUND_CEILING)


def show_kwh(value: float) -> str:
    """Write energy for people: `812.0 kWh`, `1,234.5 MWh`."""
    return f"{value / 1e3:,.1f} MWh" if value >= 1e4 else f"{value:,.1f} kWh"


def show_count(value: float) -> str:
    """Write a large count for people: 15 T, 405 G, 8.03 G."""
    for suffix in ("T", "G", "M"):
        if value >= 0.9995 * DECIMAL[suffix]:
            return f"{value / DECIMAL[suffix]:.3g} {suffix}"
    return f"{value:,.0f}"


def show_more(excess: float) -> str:
    """Write a relative difference: `+13.7%`, or `82x` where the whole is ten times as much or more."""
    return f"{excess:+.1%}" if excess < 9 else f"{1 + excess:,.0f}x"


def plural(count: int, noun: str) -> str:
    """Return `1 node`, `448 nodes`, `2 copies`."""
    if count == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{count:,} {noun[:-1]}ies"
    return f"{count:,} {noun}{'es' if noun.endswith('ch') else 's'}"

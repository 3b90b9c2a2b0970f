"""Quantities: what is read, what is refused with what to write instead, and exact writing back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.units import (
    BYTE_RATE,
    BYTES,
    FLOP_RATE,
    SECONDS,
    USD,
    USD_PER_HOUR,
    WATTS,
    exact,
    parse,
    parse_count,
    show_bytes,
    show_count,
    show_price,
    show_seconds,
    show_usd,
)
from planner.units.reading import MONEY, MONEY_PER_HOUR, PER_TOKEN, REQUEST_RATE, TOKEN_RATE

UNITS = {"bytes": (BYTES, ("TB", "GB", "GiB", "MiB", "B")),
         "seconds": (SECONDS, ("d", "h", "min", "s", "ms", "us")),
         "USD": (USD, ("MUSD", "kUSD", "USD"))}


@pytest.mark.parametrize(("text", "units", "value"), [
    ("141 GB", BYTES, 141e9), ("141GB", BYTES, 141e9), (" 80 GiB ", BYTES, 80 * 2**30), ("0.5 B", BYTES, 0.5),
    ("450 GB/s", BYTE_RATE, 450e9), ("400 Gbit/s", BYTE_RATE, 50e9), ("1 GiB/s", BYTE_RATE, 2**30),
    ("989 TFLOP/s", FLOP_RATE, 989e12), ("60 d", SECONDS, 5_184_000.0), ("90min", SECONDS, 5400.0),
    ("12 MUSD", USD, 12e6), ("12_000 USD", USD, 12_000.0), ("2.49 USD/h", USD_PER_HOUR, 2.49),
    ("2 days", SECONDS, 172_800.0), ("2w", SECONDS, 14 * 86400.0), ("36 hours", SECONDS, 129_600.0),
    ("1 month", SECONDS, 30 * 86400.0), ("55.0 days", SECONDS, 55 * 86400.0), ("1h30m", SECONDS, 5400.0),
    ("1 day 12 hours", SECONDS, 129_600.0), ("a week", SECONDS, 7 * 86400.0), ("40 ms/token", PER_TOKEN, 0.04),
    ("$500", MONEY, 500.0), ("5k", MONEY, 5000.0), ("5 kUSD", MONEY, 5000.0), ("$1.5M", MONEY, 1.5e6),
    ("USD 500", MONEY, 500.0), ("500 dollars", MONEY, 500.0), ("18.60 MUSD", MONEY, 18.6e6), (500, MONEY, 500.0),
    ("US$ 2,000", MONEY, 2000.0), ("$1.5 million", USD, 1.5e6), ("12 M$", USD, 12e6), ("12M USD", USD, 12e6),
    ("$20/h", MONEY_PER_HOUR, 20.0), ("20 dollars per hour", MONEY_PER_HOUR, 20.0),
    ("7200 USD/month", MONEY_PER_HOUR, 10.0), ("300/min", REQUEST_RATE, 5.0), ("5 rps", REQUEST_RATE, 5.0),
    ("86.4k requests per day", REQUEST_RATE, 1.0), ("25 tok/s", TOKEN_RATE, 25.0), ("25 tps", TOKEN_RATE, 25.0),
    ("700 W", WATTS, 700.0), ("2 megawatts", WATTS, 2e6), ("2MW", WATTS, 2e6), ("1e3 kW", WATTS, 1e6),
    (".5 h", SECONDS, 1800.0),
])
def test_a_number_with_its_unit_is_read_into_base_units(text, units, value):
    assert parse(text, units, "quantity", "1 x") == value


@pytest.mark.parametrize(("text", "units", "complaint"), [
    (80, BYTES, "needs a unit"), (80.0, BYTES, "needs a unit"), (None, BYTES, "needs a unit"),
    (True, BYTES, "needs a unit"), ("80", BYTES, "has no unit"), ("80G", BYTES, "unknown unit 'G'"),
    ("80 gb", BYTES, "unknown unit 'gb'"), ("80 Gb", BYTES, "unknown unit 'Gb'"),
    ("400 Gb/s", BYTE_RATE, "unknown unit 'Gb/s'"), ("400 GB", BYTE_RATE, "unknown unit 'GB'"),
    ("3 dayz", SECONDS, "did you mean '3 day"), ("30m", SECONDS, "write '30 min' or '30 months'"),
    ("-3 d", SECONDS, "above zero"),
    ("0 d", SECONDS, "above zero"),
    ("nan d", SECONDS, "is not a"), ("inf d", SECONDS, "is not a"),
    ("1e999 d", SECONDS, "above zero and finite"),
    ("1e308 PB", BYTES, "above zero and finite"), ("", SECONDS, "is not a"), ("d", SECONDS, "is not a"),
    ("2.49 USD", USD_PER_HOUR, "has no unit"), ("12", USD, "has no unit"), ("12 k", USD, "unknown unit 'k'"),
    ("500 euros", MONEY, "prices are in USD"), ("00", MONEY, "a shell takes $1"), (".5M", MONEY, "a shell takes $1"),
    ("20 USD/h", MONEY, "of the whole job"), ("$500", MONEY_PER_HOUR, "write '500 USD/h' or '500 USD/month'"),
    ("2mW", WATTS, "write '2 MW' for megawatts"), ("50", PER_TOKEN, "write '50 ms' or '50 tokens/s'"),
])
def test_anything_else_is_refused_with_an_example(text, units, complaint):
    with pytest.raises(ValueError, match=r"write |did you mean|above zero|prices are|whole job") as caught:
        parse(text, units, "quantity", "7 x")
    assert complaint in str(caught.value)


@pytest.mark.parametrize(("text", "value"), [
    ("15T", 15 * 10**12), ("15 T", 15 * 10**12), ("15 Ttoken", 15 * 10**12), ("15 Ttokens", 15 * 10**12),
    ("15 T tokens", 15 * 10**12), ("8k", 8000), ("140B", 140 * 10**9), ("10 B tokens", 10**10),
    ("2048", 2048), (2048, 2048),
    ("10 billion", 10**10), ("10e9", 10**10), (10e9, 10**10), ("1.5 million tokens", 1_500_000), ("8Ki", 8192),
    ("a billion", 10**9), ("100m", 10**8), ("3 trillion tokens", 3 * 10**12), ("1.5 G", 1_500_000_000),
])
def test_counts_take_suffixes(text, value):
    assert parse_count(text) == value


@pytest.mark.parametrize("text", [0, -1, True, None, 2.5, "0", "-3T", "1.5", "15 X", "inf", "nan", "1e300 T",
                                  10**19])
def test_wrong_counts_are_refused(text):
    with pytest.raises(ValueError, match=r"count|unit"):
        parse_count(text)


@pytest.mark.parametrize("text", ["10 bilion", "15 X", "5x"])
def test_an_error_is_one_short_sentence(text):
    with pytest.raises(ValueError, match=r"write|did you mean") as caught:
        parse_count(text)
    assert len(str(caught.value)) < 90


@pytest.mark.parametrize("name", UNITS)
@given(value=st.floats(1e-9, 1e18, allow_nan=False))
def test_what_is_written_reads_back_to_the_same_number(name, value):
    units, order = UNITS[name]
    assert parse(exact(value, units, *order), units, name, "1") == value


@given(number=st.integers(1, 10_000), unit=st.sampled_from(["TB", "GB", "GiB", "MiB", "B"]))
def test_whole_numbers_stay_short(number, unit):
    assert len(exact(number * BYTES[unit], BYTES, *UNITS["bytes"][1])) < 20


@pytest.mark.parametrize(("shown", "text"), [
    (show_price(0.0000423), "0.0000423 USD"), (show_price(0.07441), "0.0744 USD"), (show_price(0.1234), "0.12 USD"),
    (show_bytes(80 * 2**30), "80.0 GiB"), (show_bytes(2**20), "1.0 MiB"), (show_usd(3.1), "3.10 USD"),
    (show_usd(845210), "845,210 USD"), (show_usd(12.34e6), "12.34 MUSD"), (show_seconds(60 * 86400), "60 d"),
    (show_seconds(1.5), "1.5 s"), (show_seconds(3e-6), "3 us"), (show_count(15e12), "15 T"),
    (show_count(12), "12"),
])
def test_figures_for_people(shown, text):
    assert shown == text

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
    show_seconds,
    show_usd,
)

UNITS = {"bytes": (BYTES, ("TB", "GB", "GiB", "MiB", "B")),
         "seconds": (SECONDS, ("d", "h", "min", "s", "ms", "us")),
         "USD": (USD, ("MUSD", "kUSD", "USD"))}


@pytest.mark.parametrize(("text", "units", "value"), [
    ("141 GB", BYTES, 141e9), ("141GB", BYTES, 141e9), (" 80 GiB ", BYTES, 80 * 2**30), ("0.5 B", BYTES, 0.5),
    ("450 GB/s", BYTE_RATE, 450e9), ("400 Gbit/s", BYTE_RATE, 50e9), ("1 GiB/s", BYTE_RATE, 2**30),
    ("989 TFLOP/s", FLOP_RATE, 989e12), ("60 d", SECONDS, 5_184_000.0), ("90min", SECONDS, 5400.0),
    ("12 MUSD", USD, 12e6), ("12_000 USD", USD, 12_000.0), ("2.49 USD/h", USD_PER_HOUR, 2.49),
    ("700 W", WATTS, 700.0), ("2MW", WATTS, 2e6), ("1e3 kW", WATTS, 1e6), (".5 h", SECONDS, 1800.0),
])
def test_a_number_with_its_unit_is_read_into_base_units(text, units, value):
    assert parse(text, units, "quantity", "1 x") == value


@pytest.mark.parametrize(("text", "units", "complaint"), [
    (80, BYTES, "needs a unit"), (80.0, BYTES, "needs a unit"), (None, BYTES, "needs a unit"),
    (True, BYTES, "needs a unit"), ("80", BYTES, "has no unit"), ("80G", BYTES, "unknown unit 'G'"),
    ("80 gb", BYTES, "unknown unit 'gb'"), ("80 Gb", BYTES, "unknown unit 'Gb'"),
    ("400 Gb/s", BYTE_RATE, "unknown unit 'Gb/s'"), ("400 GB", BYTE_RATE, "unknown unit 'GB'"),
    ("3 days", SECONDS, "unknown unit 'days'"), ("-3 d", SECONDS, "above zero"),
    ("0 d", SECONDS, "above zero"),
    ("nan d", SECONDS, "is not a"), ("inf d", SECONDS, "is not a"),
    ("1e999 d", SECONDS, "above zero and finite"),
    ("1e308 PB", BYTES, "above zero and finite"), ("", SECONDS, "is not a"), ("d", SECONDS, "is not a"),
    ("2.49 USD", USD_PER_HOUR, "unknown unit 'USD'"), ("12 M$", USD, "unknown unit 'M$'"),
])
def test_anything_else_is_refused_with_an_example(text, units, complaint):
    with pytest.raises(ValueError, match=r"write for example|is written like|above zero") as caught:
        parse(text, units, "quantity", "7 x")
    assert complaint in str(caught.value)


@pytest.mark.parametrize(("text", "value"), [
    ("15T", 15 * 10**12), ("15 T", 15 * 10**12), ("15 Ttoken", 15 * 10**12), ("15 Ttokens", 15 * 10**12),
    ("15 T tokens", 15 * 10**12), ("8k", 8000), ("140B", 140 * 10**9), ("10 B tokens", 10**10),
    ("2048", 2048), (2048, 2048), ("1.5 G", 1_500_000_000),
])
def test_counts_take_suffixes(text, value):
    assert parse_count(text) == value


@pytest.mark.parametrize("text", [0, -1, True, None, 2.5, "0", "-3T", "1.5", "15 X", "inf", "nan", "1e300 T",
                                  10**19])
def test_wrong_counts_are_refused(text):
    with pytest.raises(ValueError, match=r"count|unit"):
        parse_count(text)


@pytest.mark.parametrize("name", UNITS)
@given(value=st.floats(1e-9, 1e18, allow_nan=False))
def test_what_is_written_reads_back_to_the_same_number(name, value):
    units, order = UNITS[name]
    assert parse(exact(value, units, *order), units, name, "1") == value


@given(number=st.integers(1, 10_000), unit=st.sampled_from(["TB", "GB", "GiB", "MiB", "B"]))
def test_whole_numbers_stay_short(number, unit):
    assert len(exact(number * BYTES[unit], BYTES, *UNITS["bytes"][1])) < 20


@pytest.mark.parametrize(("shown", "text"), [
    (show_bytes(80 * 2**30), "80.0 GiB"), (show_bytes(2**20), "1.0 MiB"), (show_usd(3.1), "3.10 USD"),
    (show_usd(845210), "845,210 USD"), (show_usd(12.34e6), "12.34 MUSD"), (show_seconds(60 * 86400), "60 d"),
    (show_seconds(1.5), "1.5 s"), (show_seconds(3e-6), "3 us"), (show_count(15e12), "15 T"),
    (show_count(12), "12"),
])
def test_figures_for_people(shown, text):
    assert shown == text

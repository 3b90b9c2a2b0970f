"""Traces: both published formats read by content, what is wrong with a file, and synthetic requests."""

import time
from pathlib import Path

import numpy as np
import pytest

from planner.errors import InputError
from planner.simulate.reading import read_trace
from planner.simulate.trace import Lengths, synthetic

HEAD = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
ROW = "2023-11-16 18:15:46.6805900,374,44\n"
LINE = '{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 2353]}\n'


@pytest.fixture
def write(tmp_path):
    def written(text):
        path = tmp_path / "trace"
        path.write_bytes(text.encode())
        return path
    return written


def test_an_azure_trace_counts_seconds_from_its_first_request(write):
    trace = read_trace(write("﻿" + HEAD + ROW + "2023-11-16 18:15:50.9951691,396,109\n\n2023-11-17 00:00:00,1,2"))
    assert trace.arrival.tolist() == pytest.approx([0, 4.3145791, 20653.31941], abs=1e-9)
    assert trace.input.tolist() == [374, 396, 1]
    assert trace.output.tolist() == [44, 109, 2]
    assert trace.prefixes is None
    assert len(trace) == 3


def test_columns_may_stand_in_any_order_with_others_and_windows_line_ends(write):
    trace = read_trace(write("id,GeneratedTokens,TIMESTAMP,ContextTokens\r\n7,5,2024-05-10T00:00:00.25+00:00,9\r\n"
                             "8,6,2024-05-10 00:00:01Z,3\r\n"))
    assert (trace.arrival.tolist(), trace.input.tolist(), trace.output.tolist()) == ([0, 0.75], [9, 3], [5, 6])


@pytest.mark.parametrize("text", [
    "timestamp,prompt_tokens,completion_tokens\n2026-01-05 09:00:00,9,5\n2026-01-05 09:00:02.5,3,6\n",
    "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,9,5,14,API\n7.5,GPT-4,3,6,9,API\n",
    "arrival_time,input_tokens,output_tokens\n0,9,5\n2.5,3,6\n",
    '{"created": 1759312800.0, "id": "a", "usage": {"prompt_tokens": 9, "completion_tokens": 5}}\n'
    '{"created": 1759312802.5, "id": "b", "usage": {"prompt_tokens": 3, "completion_tokens": 6}}\n',
    '{"ts": 1759312800000, "input_tokens": 9, "output_tokens": 5}\n'
    '{"ts": 1759312802500, "input_tokens": 3, "output_tokens": 6}\n',
])
def test_columns_are_known_by_the_names_that_logs_have(write, text):
    trace = read_trace(write(text))
    assert (trace.arrival.tolist(), trace.input.tolist(), trace.output.tolist()) == ([0, 2.5], [9, 3], [5, 6])


def test_a_mooncake_trace_has_milliseconds_and_prefixes(write):
    trace = read_trace(write(LINE + LINE.replace("27482", "30000").replace("46, 47, 2353", "46")))
    assert trace.arrival.tolist() == pytest.approx([0, 2.518])
    assert trace.prefixes == ((46, 47, 2353), (46,))
    assert trace.prefix_block == 512
    assert trace.rate == pytest.approx(1 / 2.518)
    assert read_trace(write('{"timestamp": 0, "input_length": 1, "output_length": 1}')).prefixes is None


def test_thirty_thousand_lines_are_read_fast(write):
    path = write(HEAD + ROW * 30_000)
    before = time.process_time()
    assert len(read_trace(path)) == 30_000
    assert time.process_time() - before < 1.5  # 0.2 s on one idle core


@pytest.mark.parametrize(("text", "line", "complaint"), [
    ("", None, "the file is empty: expected CSV with columns TIMESTAMP, ContextTokens, GeneratedTokens (or time, "
     "prompt_tokens, completion_tokens), or JSON lines"),
    ("\n  \n", None, "the file is empty"),
    (HEAD, None, "no request below its header"),
    ("TIMESTAMP,Context,GeneratedTokens\n", 1, "no column 'ContextTokens' in 'TIMESTAMP,Context,GeneratedTokens'"),
    (HEAD + ROW + ROW.replace("374", "many"), 3, "column ContextTokens: 'many', expected a whole number of tokens, 1"),
    (HEAD + ROW.replace("44", "0"), 2, "column GeneratedTokens: '0', expected a whole number"),
    (HEAD + ROW.replace("44", "4.5"), 2, "column GeneratedTokens: '4.5', expected a whole number"),
    (HEAD + ROW.replace("44", "-4"), 2, "column GeneratedTokens: '-4'"),
    (HEAD + ROW + "\n" + ROW.replace("2023", "today"), 4, "column TIMESTAMP: 'today-11-16 18:15:46.6805900', expect"),
    (HEAD + ROW.replace("-11-", "-13-"), 2, "column TIMESTAMP: '2023-13-16 18:15:46.6805900', expected a moment like"),
    (HEAD + ROW.replace("2023", "1700") + ROW.replace("2023", "2200"), 2, "column TIMESTAMP: '1700-11-16"),
    (HEAD + ROW + ROW.replace("2023", "9999"), 3, "column TIMESTAMP: '9999-11-16 18:15:46.6805900', expected a moment"),
    (HEAD + ROW + ROW.replace("18:15:46", "18:15:45"), 3, "column TIMESTAMP: '2023-11-16 18:15:45.6805900', expected "
                                                          "requests in the order of arrival"),
    (HEAD + ROW + "2023-11-16 18:15:47,1\n", 3, "2 values in a row of 3 columns"),
    (LINE + "{", 2, "not JSON"),
    (LINE + "[1]", 2, "not a JSON object: [1]"),
    ('{"ts": 1, "input_tokens": 9, "output_tokens": 5}\n{"ts": 2, "input_tokens": 9, "output_tokens": 0}\n', 2,
     "column output_tokens: '0', expected a whole number of tokens"),
    ('{"ts": 1, "input_tokens": 9, "output_tokens": 5}\n{"ts": 2, "input_tokens": 9}\n', 2, "no 'output_tokens'"),
    (LINE + LINE.replace("timestamp", "time"), 2, "no 'timestamp': expected CSV with"),
    (LINE.replace("27482", '"now"'), 1, "column timestamp: 'now', expected milliseconds"),
    (LINE.replace("27482", "NaN"), 1, "column timestamp: nan, expected milliseconds"),
    (LINE.replace("6955", "0"), 1, "column input_length: 0, expected a whole number of tokens"),
    (LINE.replace("52", "true"), 1, "column output_length: True, expected a whole number of tokens"),
    (LINE.replace("[46, 47, 2353]", '["a"]'), 1, "column hash_ids: ['a'], expected a list of whole numbers"),
    (LINE + LINE.replace("27482", "27481"), 2, "column timestamp: 27481, expected requests in the order of arrival"),
])
def test_what_is_wrong_with_a_trace_is_said_where_it_is(write, text, line, complaint):
    path = write(text)
    with pytest.raises(InputError) as caught:
        read_trace(path)
    assert str(caught.value).startswith(f"{path}:{line}: " if line else f"{path}: ")
    assert complaint in str(caught.value)


def test_a_missing_file_is_an_input_error():
    with pytest.raises(InputError, match="cannot read"):
        read_trace(Path("nowhere.csv"))


def test_synthetic_requests_have_the_rate_the_spread_and_the_lengths_asked():
    lengths = Lengths(2000), Lengths(300, 0.5)
    poisson = synthetic(5, lengths, count=40_000, seed=3)
    assert poisson.rate == pytest.approx(5, rel=0.02)
    assert set(poisson.input) == {2000}
    assert poisson.output.mean() == pytest.approx(300, rel=0.02)
    assert poisson.output.std() / poisson.output.mean() == pytest.approx(0.5, rel=0.05)
    for cv in (1, 3):
        gaps = np.diff(synthetic(5, lengths, cv, count=40_000).arrival)
        assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.06)
    assert synthetic(5, lengths, 0, count=3).arrival.tolist() == pytest.approx([0.2, 0.4, 0.6])


def test_synthetic_requests_are_the_same_for_the_same_seed():
    ask = {"lengths": (Lengths(20, 1), Lengths(30, 2)), "cv": 2, "seconds": 50}
    one, same, other = (synthetic(5, **ask, seed=seed) for seed in (1, 1, 2))
    assert one.arrival.tolist() == same.arrival.tolist()
    assert one.output.tolist() == same.output.tolist()
    assert one.arrival.tolist() != other.arrival.tolist()
    assert 40 < one.seconds < 50
    assert one.input.min() >= 1


@pytest.mark.parametrize(("ask", "complaint"), [
    ({"rate": 0, "count": 1}, "a rate is above zero"), ({"rate": 1}, "either seconds or a count"),
    ({"rate": 1, "count": 1, "seconds": 1}, "either seconds or a count"), ({"rate": 1, "count": 0}, "above zero"),
    ({"rate": 1, "count": 5, "cv": -1}, "coefficient of variation"),
    ({"rate": 1e-9, "seconds": 1}, "no request arrives"),
])
def test_impossible_synthetic_requests_are_refused(ask, complaint):
    with pytest.raises(InputError, match=complaint):
        synthetic(**ask, lengths=(Lengths(10), Lengths(10)))


def test_impossible_lengths_are_refused():
    with pytest.raises(InputError, match="mean of 1 to"):
        synthetic(1, (Lengths(0.5), Lengths(10)), count=2)

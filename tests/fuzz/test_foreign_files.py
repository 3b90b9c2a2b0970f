"""Other people's files (prices, traces, plans, evidence, lines of a sweep): read, or refused in one line."""

from __future__ import annotations

import csv
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.mutation import garbled, mutated
from tests.fuzz.running import folder, fuzzing, run, told
from tests.fuzz.tables import Table, damaged, mutated_table, text_of
from tests.test_import_prices import AWS, HUNT, P5, aws

DATA = Path(__file__).parents[1] / "evidence"
SKYPILOT: Table = list(csv.reader([AWS, P5, aws("g6.48xlarge", "L4", 8.0, 24576, "13.35,"),
                                   aws("p4d.24xlarge", "A100", 8.0, 40960, "32.77,9.1")]))
GPUHUNT: Table = list(csv.reader([
    HUNT, "p5.48xlarge,us-east-1,55.04,192,2048,8,H100,80,False,0,nvidia,,x86,",
    "p5.48xlarge,us-east-1,17,192,2048,8,H100,80,True,0,nvidia,,x86,",
    "mi,eu,20,96,1024,8,MI300X,192,False,0,amd,,x86,"]))
AZURE: Table = [["TIMESTAMP", "ContextTokens", "GeneratedTokens"],
                *([f"2023-11-16 18:15:{second:02}.6805900", str(100 * second + 1), str(second + 5)]
                  for second in range(12))]
MOONCAKE = [{"timestamp": 500 * at, "input_length": 600 + at, "output_length": 9 + at, "hash_ids": [0, at]}
            for at in range(12)]
SERVICE = ("--model", "gpt2", "--rate", "3", "--input", "700", "--output", "20", "--on", "h100-sxm-1x", "--json")
TRAINING = ("--model", "gpt2", "--tokens", "1G", "--on", "h100-sxm-1x", "--max-gpus", "2", "--json")
SCENARIO = "scenario.yaml"
VARY = ("--vary", "limits.deadline=9d,8d", "--workers", "1")


@cache
def plan(*flags: str) -> dict[str, Any]:
    code, out = run("plan", *flags)
    assert code == 0
    found: dict[str, Any] = json.loads(out)
    return found


def evidence(name: str) -> Table:
    """The header and every 60th row of an evidence file."""
    with (DATA / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    return [rows[0], *rows[1::max(60, len(rows) // 6)]]


@pytest.mark.parametrize(("source", "name", "rows"), [("skypilot", "aws/vms.csv", SKYPILOT),
                                                      ("gpuhunt", "aws.csv", GPUHUNT)])
def test_price_files(source: str, name: str, rows: Table) -> None:
    @fuzzing(20)
    @given(mutated_table(rows).flatmap(damaged))
    def imported(raw: bytes) -> None:
        with folder() as place:
            path = place / "in" / name
            path.parent.mkdir(parents=True)
            path.write_bytes(raw)
            code, _, said = told("catalog", "import", source, path, "-o", place / "out", "-q")
            assert said.isprintable() or said.removesuffix("\n").isprintable(), said
            if code == 0:  # what is written is read
                assert run("catalog", "list", "prices", "--catalogs", place / "out")[0] == 0
            else:
                assert not (place / "out").exists()

    imported()


@fuzzing(40)
@given(st.one_of(mutated_table(AZURE), mutated(MOONCAKE).map(
    lambda data: "\n".join(map(json.dumps, data if isinstance(data, list) else [data])))).flatmap(damaged))
def test_traces(raw: bytes) -> None:
    with folder() as place:
        (place / "plan.json").write_text(json.dumps(plan(*SERVICE)))
        (place / "trace").write_bytes(raw)
        run("simulate", place / "plan.json", "--trace", place / "trace", "-q")


@pytest.mark.parametrize("flags", [SERVICE, TRAINING], ids=["service", "training"])
def test_plans(flags: tuple[str, ...]) -> None:
    @fuzzing(25)
    @given(mutated(plan(*flags)), st.booleans())
    def read(data: object, whole: bool) -> None:
        with folder() as place:
            (place / "plan.json").write_text(json.dumps(data))
            (place / "trace").write_text(text_of(AZURE))
            code, _ = run("report", place / "plan.json", "-o", place / "report.html")
            assert (place / "report.html").exists() == (code == 0)
            if flags is SERVICE:
                run("simulate", place / "plan.json", "--trace", place / "trace", *(() if whole else ("--json",)))

    read()


@fuzzing(20)
@given(st.sampled_from([SERVICE, TRAINING]).flatmap(
    lambda flags: garbled(json.dumps(plan(*flags), indent=2)).flatmap(damaged)))
def test_damaged_plans(raw: bytes) -> None:
    with folder() as place:
        (place / "plan.json").write_bytes(raw)
        run("report", place / "plan.json", "-o", place / "report.html", "-q")


@pytest.mark.parametrize("name", ["train_throughput", "train_memory", "serve_throughput", "serve_memory"])
def test_evidence(name: str) -> None:
    @fuzzing(12)
    @given(mutated_table(evidence(name)).flatmap(damaged), st.sampled_from(["-v", "-q", "--json"]))
    def validated(raw: bytes, mode: str) -> None:
        with folder() as place:
            (place / "runs.csv").write_bytes(raw)
            run("validate", place / "runs.csv", mode)

    validated()


@cache
def sweep() -> str:
    with folder() as place:
        asked(place)
        assert run("sweep", place / SCENARIO, *VARY, "-o", place / "out.jsonl", "-q")[0] == 0
        return (place / "out.jsonl").read_text()


@cache
def question() -> str:
    code, out = run("plan", *(flag for flag in TRAINING if flag != "--json"), "--show-scenario")
    assert code == 0
    return out


def asked(place: Path) -> None:
    (place / SCENARIO).write_text(question())


def lines(data: list[Any]) -> str:
    return "".join(json.dumps(line) + "\n" for line in data)


@fuzzing(10)
@given(st.deferred(lambda: mutated([json.loads(line) for line in sweep().splitlines()]).map(lines).flatmap(damaged)))
def test_lines_of_a_sweep_are_kept_or_left_alone(raw: bytes) -> None:
    with folder() as place:
        asked(place)
        (place / "out.jsonl").write_bytes(raw)
        code, _ = run("sweep", place / SCENARIO, *VARY, "-o", place / "out.jsonl", "-q")
        assert (place / "out.jsonl").read_bytes() == raw or code == 0

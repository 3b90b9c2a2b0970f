"""Any file as a scenario: a resolved question, or one line that says what is wrong."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from planner.scenario.paths import paths as scenario_paths
from planner.yaml_io import dump, read
from tests.fuzz.mutation import garbled, mutated, structures
from tests.fuzz.running import folder, fuzzing, run

SHIPPED = sorted((Path(__file__).parents[2] / "scenarios").glob("*.yaml"))
KEYS = sorted({part for path, _ in scenario_paths() for part in path.split(".")} | {"own", "site", "dgx-h100"})
TEXTS = [path.read_text(encoding="utf-8") for path in SHIPPED]
DATA = [read(path).data for path in SHIPPED]
SMALL = {"workload": {"model": "gpt2", "tokens": "1 M", "sequence_length": 1024, "global_batch": "16 sequences"},
         "hardware": {"candidates": ["h100-sxm-1x"]}, "sourcing": {"rent": {"terms": ["on-demand"]}},
         "limits": {"max_gpus": 2, "deadline": "9 d", "budget": "900 USD"}, "objective": "cost", "confidence": 0.9}


def asked(text: str) -> None:
    """Read `text` as a scenario file; what it resolves to reads back to the same."""
    with folder() as place:
        path = place / "scenario.yaml"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        code, out = run("plan", path, "--show-scenario")
        assert code in (0, 2)
        if code == 0:
            path.write_text(out, encoding="utf-8")
            assert run("plan", path, "--show-scenario") == (0, out)


@fuzzing(110)
@given(structures(KEYS))
def test_random_structures(data: object) -> None:
    asked(dump(data))


@fuzzing(180)
@given(st.sampled_from(DATA).flatmap(mutated))
def test_mutated_scenarios(data: object) -> None:
    asked(dump(data))


@fuzzing(150)
@given(st.sampled_from(TEXTS).flatmap(garbled))
def test_garbled_scenarios(text: str) -> None:
    asked(text)


@fuzzing(100)
@given(st.binary(max_size=60))
def test_random_bytes(raw: bytes) -> None:
    with folder() as place:
        (place / "scenario.yaml").write_bytes(raw)
        assert run("plan", place / "scenario.yaml", "--show-scenario")[0] == 2


@fuzzing(25)
@given(mutated(SMALL, most=2))
def test_mutated_small_questions_are_answered(data: object) -> None:
    with folder() as place:
        (place / "scenario.yaml").write_text(dump(data), encoding="utf-8")
        run("plan", place / "scenario.yaml", "--time-limit", "0.2", "--on", "h100-sxm-1x", "--max-gpus", "2")

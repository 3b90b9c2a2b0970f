"""Any file as a catalog entry: read, or refused in one line; what is read never breaks an estimate."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.yaml_io import dump, read
from tests.fuzz.mutation import garbled, mutated
from tests.fuzz.running import folder, fuzzing, run

CATALOGS = Path(__file__).parents[2] / "catalogs"
ENTRIES = {"gpus": ["h100-sxm", "mi300x"], "nodes": ["dgx-h100", "l40s-8x-pcie"],
           "models": ["llama-3.1-8b", "deepseek-v3", "gpt-oss-120b"], "prices": ["nebius", "lambda"],
           "fabrics": ["ib-ndr", "nvlink4-nvswitch"], "stacks": ["jax", "megatron-core"]}
SHORT = {"prices": {"offers": 3}, "fabrics": {"curves": 2}}
"""How many items of long lists are kept, so that mutations reach all parts."""


def entry(kind: str, name: str) -> dict[str, Any]:
    data: dict[str, Any] = read(CATALOGS / kind / f"{name}.yaml").data
    return {key: value[:SHORT[kind][key]] if key in SHORT.get(kind, {}) else value for key, value in data.items()}


def written(place: Path, kind: str, name: str, text: str) -> None:
    (place / kind).mkdir()
    (place / kind / f"{name}.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize(("kind", "name"), [(kind, names[0]) for kind, names in ENTRIES.items()])
def test_mutated_entries_are_read_or_refused(kind: str, name: str) -> None:
    @fuzzing(40)
    @given(mutated(entry(kind, name)))
    def shown(data: object) -> None:
        with folder() as place:
            written(place, kind, name, dump(data))
            assert run("catalog", "show", f"{kind}/{name}", "--catalogs", place)[0] in (0, 2)

    shown()


@fuzzing(40)
@given(st.sampled_from([(kind, name) for kind, names in ENTRIES.items() for name in names]).flatmap(
    lambda which: st.tuples(st.just(which), garbled((CATALOGS / which[0] / f"{which[1]}.yaml").read_text()))))
def test_garbled_entries_are_read_or_refused(drawn: tuple[tuple[str, str], str]) -> None:
    (kind, name), text = drawn
    with folder() as place:
        written(place, kind, name, text)
        assert run("catalog", "show", f"{kind}/{name}", "--catalogs", place)[0] in (0, 2)


@fuzzing(12)
@given(st.sampled_from([(kind, name) for kind, names in ENTRIES.items() for name in names]).flatmap(
    lambda which: st.tuples(st.just(which), mutated(entry(*which), most=1))))
def test_the_whole_catalog_is_checked_with_a_mutated_entry(drawn: tuple[tuple[str, str], object]) -> None:
    (kind, name), data = drawn
    with folder() as place:
        written(place, kind, name, dump(data))
        assert run("catalog", "check", "-q", "--catalogs", place)[0] in (0, 2)


@pytest.mark.parametrize(("kind", "name", "model"), [
    ("gpus", "h100-sxm", "llama-3.1-8b"), ("nodes", "dgx-h100", "llama-3.1-8b"),
    ("models", "llama-3.1-8b", "llama-3.1-8b"), ("models", "deepseek-v3", "deepseek-v3"),
    ("stacks", "megatron-core", "llama-3.1-8b"), ("fabrics", "nvlink4-nvswitch", "llama-3.1-8b")])
def test_an_estimate_with_a_mutated_entry(kind: str, name: str, model: str) -> None:
    @fuzzing(20)
    @given(mutated(entry(kind, name), most=2))
    def estimated(data: object) -> None:
        with folder() as place:
            written(place, kind, name, dump(data))
            code, _ = run("estimate", "-q", "--catalogs", place, "--model", model, "--node", "dgx-h100",
                          "--layout", "tp=2,dp=4", "--global-batch", "64", "--seq-len", "4096")
            assert code in (0, 2)

    estimated()

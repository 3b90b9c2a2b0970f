"""Warnings are notes of the answer: in its JSON, once on stderr, and with -q nowhere but there."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

ASKED = ("--model", "llama-3.1-8b", "--tokens", "1G", "--on", "dgx-h100,h100-pcie-1x", "--gpus", "8", "--terms",
         "reserved-1y")
LEFT_OUT = "h100-pcie-1x is left out: no offer has terms reserved-1y, and none is owned or bought"

OLD = r"the price of gcp a3-highgpu-8g .* is of 2025-03-17, over a year older than the newest here .*: ask for a quote"


def noted(said: str, notes: list[str]) -> bool:
    """Say whether what is left out is told, an old price at most beside it, and each once on a line of its own."""
    return (notes[0] == LEFT_OUT and all(re.fullmatch(OLD, note) for note in notes[1:])
            and said == "".join(f"warning: {note}\n" for note in notes))


@pytest.mark.parametrize("verb", [("plan",), ("explain", "--why-not", "gpu=h100-pcie")], ids=["plan", "explain"])
def test_notes_are_in_the_json_and_once_on_stderr(planner: Any, verb: tuple[str, ...]) -> None:
    ran = planner(*verb, *ASKED, "--json")
    assert ran.code == 0
    assert noted(ran.err, json.loads(ran.out)["notes"])


def test_quiet_silences_them(planner: Any) -> None:
    ran = planner("plan", *ASKED, "-q", "--json")
    assert ran.err == ""
    assert json.loads(ran.out)["notes"][0] == LEFT_OUT


def test_a_service_notes_what_is_left_out(planner: Any) -> None:
    ran = planner("plan", "--model", "llama-3.1-8b", "--rate", "1", "--input", "500", "--output", "100", "--on",
                  "dgx-h100,h100-pcie-1x", "--terms", "reserved-1y", "--json")
    assert ran.code == 0
    assert noted(ran.err, json.loads(ran.out)["notes"])


def test_bought_nodes_that_cannot_be_joined_are_noted_by_plan_and_by_row(planner: Any) -> None:
    alone = "rtx-4090-4x can be bought one at a time only: "
    ran = planner("plan", "4x4090-or-h100-qlora", "--on", "rtx-4090-4x", "--json")
    assert ran.err.startswith(f"warning: {alone}")
    assert [note.startswith(alone) for note in json.loads(ran.out)["notes"]] == [True]
    compared = planner("compare", "4x4090-or-h100-qlora", "--on", "rtx-4090-4x", "--json")
    assert compared.err == ran.err
    assert [row["note"] for row in json.loads(compared.out)["rows"] if "note" in row] == [ran.err[9:-1]]

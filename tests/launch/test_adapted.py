"""Adapters on modules by name: told in each stack's own words, and refused where the names are not known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import planner
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.launch.folder import write_all

CATALOG = Catalog()
ASKED: dict[str, Any] = {"method": "lora", "tokens": "10M", "on": "dgx-h100", "gpus": 8,
                         "lora_targets": "q_proj,v_proj"}


@pytest.mark.parametrize(("target", "said"), [
    ("accelerate", "lora_target_modules:\n- q_proj\n- v_proj"),
    ("deepspeed", "lora_target_modules:\n- q_proj\n- v_proj"),
    ("ms-swift", "target_modules:\n- q_proj\n- v_proj"), ("axolotl", "lora_target_modules:\n- q_proj\n- v_proj"),
    ("llama-factory", "lora_target: q_proj,v_proj")])
def test_modules_are_told_by_name(target: str, said: str, tmp_path: Path) -> None:
    found = planner.plan(model="llama-3.1-8b", launchable=target, **ASKED)
    write_all(found, CATALOG, tmp_path / "run")
    texts = "".join(path.read_text().replace('"', "").replace("  - ", "- ") for path in sorted(
        (tmp_path / "run").glob("*.yaml")))
    assert said in texts
    assert "all-linear" not in texts
    assert "lora_target_linear" not in texts


@pytest.mark.parametrize(("changed", "why"), [
    ({"model": "phi-4"}, "what the modules of phi-4 are called is not known"),
    ({"model": "llama-3.1-8b", "lora_targets": "attention,embeddings"}, "embeddings .they train whole"),
])
def test_what_has_no_known_name_is_refused(changed: dict[str, str], why: str, tmp_path: Path) -> None:
    found = planner.plan(**{**ASKED, **changed}, launchable="ms-swift")
    with pytest.raises(InputError, match=why):
        write_all(found, CATALOG, tmp_path / "run")

"""Figures of the world are in the catalog: numbers in code are mathematics, units, widths or knobs of a search."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from planner.errors import MissingFact
from planner.layouts.table import from_rows
from planner.physics.training.compute import layer_times
from planner.physics.training.question import question_of
from tests.search_cases import candidate, catalog

PLANNER = Path(__file__).parents[2] / "planner"
ROOMS = ("physics", "money", "simulate", "evidence")
FILES = [path for room in ROOMS for path in sorted((PLANNER / room).rglob("*.py"))]
PLAIN = {0, 1, 2, 3, 4, 0.5, 1.5, 100}
"""Counts, widths of 16 and 32 bits, halves, percent."""
UNITS = {12, 365, 3600, 8760.0, 1e3, 1e6, 1e9, 1e12}
"""Months of a year, days, hours and seconds, and powers of a thousand."""
GUARD = 1e-6
"""Numbers up to this keep a division from zero."""
STATISTICS = {"physics/serving/gamma.py", "physics/serving/pace.py", "physics/serving/points.py",
              "evidence/spread.py", "evidence/summary.py"}
"""Files of distributions, series and robust spreads alone."""
READERS = {"evidence/reading.py", "evidence/rows.py", "simulate/joblog.py", "simulate/reading.py"}
"""Files that bound what they read."""
KNOWN = {
    "physics/collectives.py": {"by_links", "_neighbor"},
    "physics/topology.py": {"CUBE_MESH", "MOST_KEYS", "_join"},
    "evidence/rl_lengths.py": {"_THOUSAND"},
    "physics/posttraining/drain.py": {"POINTS", "_GOLDEN", "_HALVINGS", "_center", "_weighted"},
    "physics/serving/crowding.py": {"STEEPEST"},
    "physics/serving/disaggregated.py": {"ROUNDS"},
    "physics/serving/formats.py": {"format_named"},
    "physics/serving/level.py": {"LOADS", "THREE", "ROOM", "Served", "at_rate"},
    "physics/serving/slots.py": {"JOINS"},
    "physics/serving/steady.py": {"ROUNDS"},
    "physics/training/question.py": {"quantile", "question_of"},
    "physics/training/whole.py": {"SHARES"},
    "money/rent.py": {"MOST_BOUGHT", "_owned"},
    "simulate/delayed.py": {"FIRST"},
    "simulate/outcome.py": {"PERCENTILES"},
    "simulate/remembered.py": {"LONGEST", "MOST"},
    "simulate/router.py": {"SLACK"},
    "simulate/trace.py": {"PREFIX_BLOCK", "MOST_TOKENS", "synthetic"},
    "evidence/degrees.py": {"MANY_SAMPLES"},
    "evidence/generation.py": {"CONFIDENCE"},
    "evidence/prediction.py": {"STATED"},
    "evidence/posttraining.py": {"_bounds"},
    "evidence/residuals.py": {"LEAST_ROWS"},
    "evidence/rl_runs.py": {"CONFIDENCE", "MOST_GPUS", "USUAL_RANK"},
    "evidence/run_logs.py": {"WARMING", "_MB"},
    "evidence/trainer_logs.py": {"_HALF", "_clock"},
    "evidence/serve_limits.py": {"GRID", "SCANT", "within"},
    "evidence/serve_run.py": {"_version", "_workers"},
    "evidence/serve_speed.py": {"DEGREES"},
    "evidence/deciding.py": {"FIRST"},
    "evidence/software.py": {"HELD_IN"},
    "evidence/shape.py": {"_agrees", "_from_columns", "_tied"},
    "evidence/whole_runs.py": {"WITHIN_95", "MICRO_BATCHES", "ROUNDED"},
}
"""Where a search, a guard, a rounding, a quantile or the shape of a graph has its own numbers: file -> names."""


def place(path: Path) -> str:
    return path.relative_to(PLANNER).as_posix()


def numbers(tree: ast.Module) -> Iterator[tuple[str, int, float]]:
    """Yield every number with the name it stands under at the top level of its module, and its line."""
    for top in tree.body:
        target = top.targets[0] if isinstance(top, ast.Assign) else top
        target = target.elts[0] if isinstance(target, ast.Tuple) else target
        name = getattr(target, "name", None) or getattr(target, "id", "")
        cached = {id(inner) for call in ast.walk(top) if isinstance(call, ast.Call)
                  and getattr(call.func, "id", "") == "lru_cache" for inner in ast.walk(call)}
        for node in ast.walk(top):
            if isinstance(node, ast.Constant) and type(node.value) in (int, float) and id(node) not in cached:
                yield name, node.lineno, node.value


@pytest.mark.parametrize("path", [path for path in FILES if place(path) not in STATISTICS | READERS], ids=place)
def test_no_figure_of_the_world_is_written_in_the_code(path: Path) -> None:
    found = {f"{name} (line {line}): {value}" for name, line, value in numbers(ast.parse(path.read_text()))
             if value not in PLAIN | UNITS and not 0 < value <= GUARD and name not in KNOWN.get(place(path), ())}
    assert not found, "a fact belongs in catalogs/, with its source"


def test_what_is_known_is_still_there() -> None:
    for where, names in KNOWN.items():
        held = {name for name, _, value in numbers(ast.parse((PLANNER / where).read_text())) if value not in PLAIN}
        assert names <= held, where


def test_a_missing_fp32_peak_is_an_error_where_it_decides_and_no_guess() -> None:
    """Unfused attention over heads of 100 keeps off the tensor cores; nothing else asks for the rate."""
    hardware = candidate("dgx-h100")
    peak = {precision: rate for precision, rate in hardware.gpu.peak.items() if precision != "fp32"}
    bare = replace(hardware, gpu=hardware.gpu.model_copy(update={"peak": peak}))
    stack = catalog().stack("megatron-core").model_copy(update={"fused_attention": False})
    question = question_of(catalog(), catalog().model("llama-3.1-8b"), (bare, hardware), stack, sequence_length=2048,
                           global_batch=8, precisions=("bf16",), method="pretrain", confidence=0.9)
    (kind, share), = question.shape.kinds
    odd = replace(question, shape=replace(question.shape, kinds=((replace(kind, query_dim=100), share),)))
    rows = [from_rows([{"candidate": at, "dp": 8}], 8) for at in (0, 1)]
    assert np.isfinite(layer_times(question, rows[0]).forward).all()
    assert np.isfinite(layer_times(odd, rows[1]).forward).all()
    with pytest.raises(MissingFact, match="fp32 peak rate"):
        layer_times(odd, rows[0])


def test_a_figure_has_the_nearest_source_that_is_stated() -> None:
    """Of itself, else of the field or entry it is in, else of the whole file."""
    formats = catalog().formats
    assert "hf_quant_config" in formats.provenance("weights.nvfp4-ffn.matrix").source
    assert "mamba_ssm_cache_dtype" in formats.provenance("cache_rules.state.mamba").source
    assert formats.provenance("weights.nf4.matrix").source == formats.source
    assert catalog().rates("hopper").provenance("gemm.fp8").kind == "measured"

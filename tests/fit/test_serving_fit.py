"""`planner calibrate` of serving rows: planted steps of an engine are found, and plans read the folder back."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.ask.calibrate import calibrate
from planner.catalog.load import Catalog
from planner.catalog.speed import Speeds
from planner.cli.main import main
from planner.evidence.compare import compare
from planner.evidence.reading import read_evidence
from planner.fit.knobs import engine_knobs, release_field
from planner.fit.rows import changed
from tests.fit.test_calibrate import RUNS, cluster

RELEASE = "0.17"
MEASURED = ("output_tok_s_per_gpu", "ttft_ms", "tpot_ms")
COLUMNS = ("id", "source", "engine", "engine_version", "gpu", "gpus", "model", "weight_precision", "kv_precision", "tp",
           "pp", "ep", "dp", "isl", "osl", "concurrency", *MEASURED, "notes", "suspect")
ASKED = [(model, tp, lengths, clients) for (model, tp), lengths, clients in product(
    (("llama-3.1-8b", 1), ("llama-3.1-8b", 2), ("llama-3.1-70b", 4), ("llama-3.1-70b", 8)),
    ((1024, 256), (4096, 512)), (4, 16, 64))]
"""Model, TP, prompt and output tokens, and clients of runs that one site may have made."""


def site(folder: Path, truth: Catalog) -> Path:
    """Write two dozen runs of vLLM on H100 as an engine with the speeds of `truth` would measure them."""
    path = folder / "serving.csv"
    rows = []
    for number, (model, tp, (isl, osl), clients) in enumerate(ASKED):
        values = (f"{'day' if number % 2 else 'night'}-{number}", "", "vLLM", f"{RELEASE}.0", "h100-sxm", tp, model,
                  "bf16", "bf16", tp, 1, 1, 1, isl, osl, clients, "1", "1", "1", "", "")
        rows.append(dict(zip(COLUMNS, map(str, values), strict=True)))
    _write(path, rows)
    figures = {(entry.id, entry.quantity): float(entry.predicted)
               for entry in compare(read_evidence(path), truth).served}
    _write(path, [row | {name: f"{figures[row['id'], name]:.5g}" for name in MEASURED} for row in rows])
    return path


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)


def release() -> str:
    """Return the key of the release that the rows run."""
    return Catalog().speeds("vllm").release(RELEASE, "hopper").key


def slower(**times: float) -> Catalog:
    """Return the catalog with some figures of that release some times as large."""
    held = Catalog().speeds("vllm").release(RELEASE, "hopper")
    return Catalog().changed({("speeds", "vllm"): {
        f"releases.{held.key}.{figure}": factor * getattr(held, figure) for figure, factor in times.items()}})


def errors(path: Path, *folders: Path) -> np.ndarray:
    return np.array([abs(entry.error) for entry in compare(read_evidence(path), Catalog(folders)).served])


@dataclass(frozen=True)
class Learnt:
    """A site, its runs, the folder that they were calibrated to, and what the command printed."""

    runs: Path
    folder: Path
    found: dict[str, Any]


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Learnt:
    """Calibrate to a site with half more time of gaps between kernels and of a request, a third more of the cache."""
    place = tmp_path_factory.mktemp("site")
    runs, mine = site(place, slower(layer=1.5, request=1.5, cache=1.33, products=1.2)), place / "mine"
    return Learnt(runs, mine, calibrate([runs], mine, (), "2026-11").as_json())


def test_a_slower_engine_is_learnt(learnt: Learnt) -> None:
    before, after, found = errors(learnt.runs), errors(learnt.runs, learnt.folder), learnt.found
    assert np.median(before) > 0.08
    assert np.median(after) < 0.35 * np.median(before)
    assert (found["schema"], found["rows"]) == ("planner.calibration/1", len(ASKED))
    assert found["sources"] == ["day", "night"]
    assert set(found["errors_by_quantity"]) == set(MEASURED)
    for each in (found["errors"], *found["errors_by_quantity"].values()):
        assert each["after"]["median_abs_error"] < each["before"]["median_abs_error"]
        assert each["left_out"]["median_abs_error"] < each["before"]["median_abs_error"]
    assert sorted(path.name for path in (learnt.folder / "calibration").iterdir()) == [
        "fitted.yaml", "output-residuals.yaml", "tpot-residuals.yaml", "ttft-residuals.yaml"]


def test_plans_read_the_folder(learnt: Learnt, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["plan", "--model", "llama-3.1-8b", "--rate", "8", "--input", "1000", "--output", "300", "--tpot", "60ms",
           "--quantization", "bf16", "--on", "dgx-h100", "--engine", "vllm", "--engine-version", RELEASE, "--json"]
    found = []
    for folders in ([], ["--catalogs", str(learnt.folder)]):
        assert main([*ask, *folders]) == 0
        found.append(json.loads(capsys.readouterr().out)["assignments"][0]["time"]["step_seconds"])
    assert found[0] != found[1]


def test_what_is_fitted_says_where_from(learnt: Learnt) -> None:
    catalog = Catalog([learnt.folder])
    fields = catalog.fitted[-1].values["speeds/vllm"]
    assert all(field.startswith(f"releases.{release()}.") for field in fields)
    speeds = catalog.speeds("vllm")
    at = [one.key for one in speeds.releases].index(release())
    for field, constant in fields.items():
        figure = field.rpartition(".")[2]
        fact = speeds.provenance(f"releases.{at}.{figure}")
        assert (fact.kind, "24 runs of serving.csv" in fact.source) == ("fitted", True)
        assert getattr(speeds.releases[at], figure) == constant.value
    others = [one for one in speeds.releases if one.key != release()]
    assert others == [one for one in Catalog().speeds("vllm").releases if one.key != release()]


def test_the_same_rows_give_the_same_bytes_over_what_they_gave_before(learnt: Learnt) -> None:
    files = {path: path.read_bytes() for path in (learnt.folder / "calibration").iterdir()}
    assert calibrate([learnt.runs], learnt.folder, (), "2026-11").as_json() == learnt.found
    assert files == {path: path.read_bytes() for path in (learnt.folder / "calibration").iterdir()}


def test_training_and_serving_rows_are_fitted_one_after_the_other(learnt: Learnt, tmp_path: Path) -> None:
    runs = cluster(tmp_path, Catalog().changed({("stacks", "megatron-core"): {"slowdown": 1.2}}))
    shares: list[float] = []
    found = calibrate([learnt.runs, runs], tmp_path / "mine", (), "2026-11", progress=shares.append).as_json()
    assert found["rows"] == len(RUNS) + len(ASKED)
    assert {"stacks/megatron-core", "speeds/vllm"} <= {c["entry"] for c in found["constants"] if c["fitted"]}
    assert set(found["errors_by_quantity"]) == {"step_time", *MEASURED}
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_every_knob_changes_its_own_figure_of_its_own_release() -> None:
    catalog = Catalog()
    releases = [(name, one) for name in catalog.names("speeds") for one in catalog.speeds(name).releases]
    for knob in engine_knobs(releases)[::5]:
        after = changed(catalog, [knob], np.array([knob.start + 0.5]))
        figure = knob.field.rpartition(".")[2]
        for engine, one in releases:
            (other,) = [release for release in after.speeds(engine).releases if release.key == one.key]
            named = engine == knob.entry and knob.field == f"{release_field(one)}.{figure}"
            assert other == (one.model_copy(update={figure: getattr(other, figure)}) if named else one)
            assert named == (one != other)


def test_releases_have_keys_of_their_own() -> None:
    for speeds in Catalog().all("speeds", Speeds):
        keys = [one.key for one in speeds.releases]
        assert len(set(keys)) == len(keys)

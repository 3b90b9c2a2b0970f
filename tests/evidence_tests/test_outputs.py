"""What nccl-tests and load tests write is evidence too."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.ask.calibrate import calibrate
from planner.ask.validate import validate_file
from planner.catalog.load import Catalog
from planner.cli.main import main
from planner.errors import InputError
from planner.evidence.rates import RateRow
from planner.evidence.reading import read_evidence
from planner.evidence.rows import ServeRow

OUTPUTS = Path(__file__).parent / "outputs"
TABLE = OUTPUTS / "all_reduce_a100_2_nodes.txt"
ONE_GPU = {"gpu": "h100-sxm", "gpus": "1", "tp": "1"}


def test_a_table_of_nccl_tests_says_ranks_nodes_and_gpu() -> None:
    evidence = read_evidence(TABLE)
    assert (evidence.kind, evidence.unread) == ("rates", ())
    rows = [row for row in evidence.rows if isinstance(row, RateRow)]
    assert len(rows) == 7
    last = rows[-1]
    assert (last.run.operation, last.run.gpus, last.run.gpus_per_node) == ("all_reduce", 16, 8)
    assert (last.run.bytes, last.measured.seconds) == (8589934592, pytest.approx(0.225083))


def test_a_network_is_learnt_from_a_table(tmp_path: Path) -> None:
    node = {"node": "dgx-a100"}
    before = validate_file(TABLE, Catalog(), node).summary["seconds"]
    found = calibrate([TABLE], tmp_path / "mine", [], "2026-11", stated=node)
    assert [path.name for path in found.files] == ["ib-hdr.yaml"]
    catalog = Catalog([tmp_path / "mine"])
    after = validate_file(TABLE, catalog, node).summary["seconds"]
    assert after.median_abs_error < 0.15 < before.median_abs_error  # type: ignore[union-attr]
    assert catalog.fabric("ib-hdr").efficiency < 0.6


@pytest.mark.parametrize(("title", "redop", "told"), [
    ("# Collective test starting: alltoall_perf\n", "none", "alltoall"), ("", "none", ""), ("", "sum", "all_reduce")])
def test_the_collective_is_that_of_the_title_or_follows(tmp_path: Path, title: str, redop: str, told: str) -> None:
    path = tmp_path / "log.txt"
    path.write_text(title + TABLE.read_text(encoding="utf-8").replace("   sum ", f"  {redop} "), encoding="utf-8")
    if not told:
        with pytest.raises(InputError, match="add --run operation=alltoall"):
            read_evidence(path)
        assert read_evidence(path, {"operation": "all_gather"}).rows
        return
    assert {row.run.operation for row in read_evidence(path).rows if isinstance(row, RateRow)} == {told}


def test_load_tests_say_lengths_load_and_latencies() -> None:
    (vllm,), (sglang,), (guide,) = (
        [row for row in read_evidence(OUTPUTS / name, {**ONE_GPU, **more}).rows if isinstance(row, ServeRow)]
        for name, more in (("vllm.json", {}), ("sglang.jsonl", {"model": "llama-3.1-8b"}), ("guidellm.json", {})))
    assert (vllm.run.engine, vllm.run.isl, vllm.run.osl, vllm.run.concurrency) == ("vllm", 997.44, 1000, 16)
    assert (vllm.measured.ttft_ms, vllm.measured.tpot_ms, vllm.measured.output_tok_s_total) == (60.77, 6.4, 2425.01)
    # 4.89 requests/s that each take 2.41 s
    assert (sglang.run.engine, sglang.run.concurrency) == ("sglang", pytest.approx(4.889 * 2.4095, rel=0.01))
    assert (guide.run.model, guide.run.concurrency, guide.measured.tpot_ms) == (
        "meta-llama/Llama-3.1-8B-Instruct", 10, 6.6)


@pytest.mark.parametrize("name", ["vllm.json", "guidellm.json"])
def test_validate_predicts_a_load_test(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(OUTPUTS / name), "--run", "gpu=h100-sxm,gpus=1", "--run", "tp=1,engine=vllm,"
                 "engine_version=0.11.0"]) == 0
    said = capsys.readouterr().out
    assert "ttft_ms" in said
    assert "tpot_ms" in said
    assert "skipped" not in said


@pytest.mark.parametrize(("run", "said"), [
    ([], "a load test does not say gpu or gpus: add --run"), (["--run", "gpu"], "expected COLUMN=VALUE"),
    (["--run", "gpuz=1"], "unknown column for --run 'gpuz'; did you mean gpu, gpus?")])
def test_what_is_missing_or_misspelled_is_said(run: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(OUTPUTS / "vllm.json"), *run]) == 2
    assert said in capsys.readouterr().err


def test_other_json_and_a_csv_with_run_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.json"
    for text, said in (("{}", "no load test in it"), ("{", "not JSON"), ("[1]", "no load test in it")):
        path.write_text(text, encoding="utf-8")
        assert main(["validate", str(path)]) == 2
        assert said in capsys.readouterr().err
    path.write_text("id,isl,osl,output_tok_s_per_gpu\n", encoding="utf-8")
    assert main(["validate", str(path), "--run", "tp=1"]) == 2
    assert "a CSV states its runs in columns" in capsys.readouterr().err

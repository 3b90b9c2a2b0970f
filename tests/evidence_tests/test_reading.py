"""A file that is not clean evidence is refused with file and line; a row that does not read is skipped, with why."""

import re

import pytest

from planner.errors import EXIT_INPUT, InputError
from planner.evidence.reading import read_evidence
from planner.evidence.rows import ServeMeasured, ServeRun, StatedRun, TrainMeasured, TrainRun
from tests.evidence_tests.csv_file import DATA, MEMORY, THROUGHPUT, catalog, validated, write


def refusal(path):
    with pytest.raises(InputError) as caught:
        read_evidence(path)
    assert caught.value.exit_code == EXIT_INPUT
    return str(caught.value)


@pytest.mark.parametrize(("name", "rows"), [("train_throughput", 1205), ("train_memory", 627), ("moe_training", 32),
                                            ("serve_throughput", 6055), ("serve_memory", 134)])
def test_the_kind_is_recognized_by_the_header(name, rows):
    evidence = read_evidence(DATA / f"{name}.csv")
    assert (evidence.kind, len(evidence.rows)) == (name, rows)


@pytest.mark.parametrize(("column", "value", "expected"), [
    ("gpus", "many", "expected a number, got 'many'"), ("gpus_per_node", "1e9", "expected a number from 1e-09 to 256"),
    ("offload_optimizer", "2", "expected a number from 1e-09 to 1,"),
    ("step_time_s", "-1", "expected a number above zero"),
    ("step_time_s", "nan", "expected a finite number"), ("seq_len", "inf", "expected a finite number"),
    ("tp", "2.5", "expected a whole number"), ("gpus", "0", "expected a number above zero"),
    ("suspect", "maybe", "expected yes or no"), ("id", "", "required, but empty")])
def test_a_wrong_value_skips_its_row_and_no_other(tmp_path, column, value, expected):
    wrong = {"offload_optimizer": "", **THROUGHPUT, "id": "wrong"} | {column: value}
    path = write(tmp_path / "runs.csv", {"offload_optimizer": "", **THROUGHPUT}, wrong)
    found = validated(path, catalog())
    assert [entry["id"] for entry in found["rows"]] == ["DGXC-1"]
    (skipped,) = found["skipped"]
    assert skipped["id"] == ("wrong" if column != "id" else "line 3")
    assert skipped["reason"].startswith(f"line 3: column {column}: ")
    assert expected in skipped["reason"]


def test_a_verdict_is_yes_or_no(tmp_path):
    ((_, reason),) = read_evidence(write(tmp_path / "m.csv", MEMORY | {"fits": "perhaps"})).unread
    assert reason == "line 2: column fits: expected yes or no, got 'perhaps'"


def test_the_line_is_where_the_row_begins(tmp_path):
    rows = [THROUGHPUT | {"notes": "two\nlines"}, THROUGHPUT | {"gpus": "x"}]
    ((_, reason),) = read_evidence(write(tmp_path / "runs.csv", *rows)).unread
    assert reason.startswith("line 4: column gpus")


def test_a_row_of_another_width_or_with_an_endless_cell_is_skipped(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(f"id,global_batch_seqs,tokens_per_s_per_gpu,notes\na,1\nb,8,1,{'9' * 20_000}\nc,8,1,\n")
    found = read_evidence(path)
    assert [row.id for row in found.rows] == ["c"]
    assert found.unread == (("a", "line 2: 2 cells where the header has 4"),
                            ("b", "line 3: column notes: a cell of 20,000 characters, more than 10,000"))


def test_a_measurement_is_no_column_of_a_run_and_every_column_has_its_unit():
    for run, measured in ((TrainRun, TrainMeasured), (ServeRun, ServeMeasured)):
        assert not run.model_fields.keys() & measured.model_fields.keys()
        for model in (run, measured):
            words = set(re.findall(r"\w+", f"{model.__doc__} {StatedRun.__doc__}"))
            assert model.model_fields.keys() <= words


@pytest.mark.parametrize(("content", "expected"), [
    (b"", "the file is empty"), (b"\n\n", "the file is empty"),
    (b"a,b\n1,2\n", "the header is not that of an evidence file"),
    (b"id,global_batch_seqs,tokens_per_s_per_gpu\n\xff,1,2\n", "not UTF-8"),
    (b"id,id,global_batch_seqs,tokens_per_s_per_gpu\n", "'id' occurs twice"),
    (b'id,global_batch_seqs,tokens_per_s_per_gpu\n"a,1,2\n', "CSV syntax")])
def test_what_is_no_evidence_file_is_refused(tmp_path, content, expected):
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    message = refusal(path)
    assert expected in message
    assert str(path) in message


def test_an_absent_file_and_a_folder_are_refused(tmp_path):
    assert "cannot read" in refusal(tmp_path / "absent.csv")
    assert "cannot read" in refusal(tmp_path)


def test_unknown_columns_blank_lines_and_a_byte_order_mark_are_accepted(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"\xef\xbb\xbfid,global_batch_seqs,tokens_per_s_per_gpu,mood\na,8,,fine\n\n")
    (row,) = read_evidence(path).rows
    assert (row.id, row.run.global_batch_seqs, row.measured.tokens_per_s_per_gpu) == ("a", 8, None)


def test_a_column_that_is_not_compared_may_hold_text(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("id,isl,osl,output_tok_s_per_gpu,interactivity_tok_s_user\na,1,2,3,20-22\n")
    assert len(read_evidence(path).rows) == 1

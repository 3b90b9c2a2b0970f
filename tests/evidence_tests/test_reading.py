"""What is no evidence file is refused with file and line; a row that cannot be read is kept with line and column."""

import pytest

from planner.errors import EXIT_INPUT, InputError
from planner.evidence.reading import read_evidence
from tests.evidence_tests.csv_file import DATA, MEMORY, THROUGHPUT, write


def refusal(path):
    with pytest.raises(InputError) as caught:
        read_evidence(path)
    assert caught.value.exit_code == EXIT_INPUT
    return str(caught.value)


@pytest.mark.parametrize(("name", "rows"), [("train_throughput", 992), ("train_memory", 502),
                                            ("serve_throughput", 5814), ("serve_memory", 134)])
def test_the_kind_is_recognized_by_the_header(name, rows):
    evidence = read_evidence(DATA / f"{name}.csv")
    assert (evidence.kind, len(evidence.rows)) == (name, rows)


@pytest.mark.parametrize(("column", "value", "expected"), [
    ("gpus", "many", "expected a number, got 'many'"), ("step_time_s", "-1", "expected a number above zero"),
    ("step_time_s", "nan", "expected a finite number"), ("seq_len", "inf", "expected a finite number"),
    ("tp", "2.5", "expected a whole number"), ("gpus", "0", "expected a number above zero"),
    ("suspect", "maybe", "expected yes or no"), ("gpus_per_node", "1e9", "expected a number from 1e-09 to 256"),
    ("mfu", "1e-30", "expected a number from 1e-09"), ("id", "", "required, but empty")])
def test_a_wrong_value_is_a_problem_of_its_row_with_line_and_column(tmp_path, column, value, expected):
    path = write(tmp_path / "runs.csv", THROUGHPUT, THROUGHPUT | {column: value})
    good, bad = read_evidence(path).rows
    assert good.problem is None
    assert bad.problem.startswith(f"line 3: column {column}: ")
    assert expected in bad.problem


def test_a_verdict_is_yes_or_no(tmp_path):
    (row,) = read_evidence(write(tmp_path / "m.csv", MEMORY | {"fits": "perhaps"})).rows
    assert "column fits: expected yes or no" in row.problem


def test_the_line_is_where_the_row_begins(tmp_path):
    rows = [THROUGHPUT | {"notes": "two\nlines"}, THROUGHPUT | {"gpus": "x"}]
    assert read_evidence(write(tmp_path / "runs.csv", *rows)).rows[1].problem.startswith("line 4: column gpus")


def test_a_row_of_another_width_or_with_an_endless_cell_is_a_problem_of_its_own(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(f"id,global_batch_seqs,tokens_per_s_per_gpu,notes\na,1\nb,8,1,{'9' * 20_000}\nc,8,1,\n")
    assert [row.problem and row.problem.split(": ", maxsplit=1)[1] for row in read_evidence(path).rows] == [
        "2 cells where the header has 4", "column notes: a cell of 20,000 characters, more than 10,000", None]


@pytest.mark.parametrize(("content", "expected"), [
    (b"", "the file is empty"), (b"\n\n", "the file is empty"), (b"a,b\n1,2\n", "the header is of no evidence file"),
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

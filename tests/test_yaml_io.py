"""The one YAML: what is plain data, what is refused, and errors that name file, line and key."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from planner.errors import InputError
from planner.text_io import MAX_BYTES
from planner.yaml_io import MAX_VALUES, Frozen, dump, parse, read, validate


class Inner(Frozen):
    count: int = Field(gt=0)
    names: tuple[str, ...] = ()


class Outer(Frozen):
    name: str
    inner: Inner | None = None
    many: tuple[Inner, ...] = ()
    flag: bool = False


@pytest.mark.parametrize(("text", "value"), [
    ("a: no", "no"), ("a: yes", "yes"), ("a: 1:30", "1:30"), ("a: 2024-05-01", "2024-05-01"),
    ("a: 0x10", "0x10"),
    ("a: 012", 12), ("a: 1_000", "1_000"), ("a: 1.5e3", 1500.0), ("a: .5", 0.5), ("a: .inf", ".inf"),
    ("a: ~", None),
    ("a:", None), ("a: true", True), ("a: 'true'", "true"), ('a: "12"', "12"), ("a: |\n  x\n", "x\n"),
    ("a: [1, {b: 2}]", [1, {"b": 2}]), ("\ufeffa: 1".encode(), 1), (b"a: 1\r\nb: 2\r\n", 1),
    ("---\na: 1\n...\n", 1), ("# only\na: 1 # this", 1),
])
def test_plain_scalars(text, value):
    assert parse(text, "x").data["a"] == value


def test_lines_are_kept_for_every_path():
    document = parse("name: x\ninner:\n  count: 3\nmany:\n  - count: 1\n  - count: 2\n", "x")
    assert [document.line(path) for path in [(), ("inner",), ("inner", "count"),
    ("many", 1, "count")]] == [1, 2, 3, 6]
    assert document.line(("inner", "absent")) == 2


@pytest.mark.parametrize(("text", "line", "complaint"), [
    ("a: 1\na: 2", 2, "duplicate key 'a'"), ("a: &x 1", 1, "anchors"), ("a: *x", 1, "anchors"),
    ("a: !!python/object:os.system x", 1, "tag"), ("a: 1\n---\nb: 2", 2, "more than one document"),
    ("[a]: 1", 1, "a key must be text"), ("true: 1", 1, "a key must be text"), (": 1", 1, "YAML syntax"),
    ("a: 1\n\tb: 2", 2, "YAML syntax"), ("a: [1,\nb: 2", 2, "YAML syntax"), ("a: b: c", 1, "YAML syntax"),
    ("a: 'x", 1, "YAML syntax"), ("x\n" + "a: " + "[" * 3000, 2, "YAML syntax"),
    ("a: " + "[" * 3000, 1, "deeper"),
    ("a: " + "{b: " * 3000, 1, "deeper"), ("a: 1\nb: \x00", 2, "unacceptable character"),
    (b"a: 1\n\xff\xfe", 2, "UTF-8"),
    ("", None, "empty"), ("# nothing\n", None, "empty"), ("---\n", None, "empty"), ("null", None, "empty"),
])
def test_what_is_no_clean_document_is_refused_with_its_line(text, line, complaint):
    with pytest.raises(InputError) as caught:
        parse(text, "f.yaml")
    assert (caught.value.file, caught.value.line) == ("f.yaml", line)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_are_bounded(tmp_path):
    large, many = tmp_path / "large.yaml", tmp_path / "many.yaml"
    large.write_text("a: " + "x" * MAX_BYTES)
    many.write_text("- 1\n" * (MAX_VALUES + 1))
    with pytest.raises(InputError, match="larger than 4 MiB"):
        read(large)
    with pytest.raises(InputError, match=r"many.yaml:100000: more than 100,000 values"):
        read(many)
    with pytest.raises(InputError, match="larger than"):
        read(tmp_path / os.path.relpath("/dev/zero", tmp_path))


def test_what_is_no_file_is_named(tmp_path):
    for path in (tmp_path, tmp_path / "absent.yaml", tmp_path / "a\0b"):
        with pytest.raises(InputError, match="cannot read") as caught:
            read(path)
        assert caught.value.file == str(path)


@pytest.mark.parametrize(("text", "line", "message"), [
    ("inner: {count: 1}", 1, "name: required, but missing"),
    ("name: x\ninner:\n  count: 0", 3, "inner.count: expected greater than 0, got 0"),
    ("name: x\ninner:\n  count: many", 3, "inner.count: expected a whole number, got 'many'"),
    ("name: x\ninner:\n  count: 1.5", 3, "inner.count: expected a whole number, got 1.5"),
    ("name: x\ninner:\n  count: true", 3, "inner.count: true or false is not a value here"),
    ("name: x\ninner:\n  cuont: 1", 3, "inner: unknown key 'cuont'; did you mean count?"),
    ("name: x\ninner: 3", 2, "inner: expected keys and values below it, got 3"),
    ("name: x\nmany:\n - count: 1\n - {}", 4, "many.1.count: required, but missing"),
    ("name: x\ninner:\n  count: 1\n  names: a", 4, "inner.names: expected a list, got 'a'"),
    ("name:\n", 1, "name: expected text, got nothing"), ("name: [x]", 1, "name: expected text, got ['x']"),
    ("- a", 1, "expected keys and values at the top level, got ['a']"),
    ("name: x\nflag: 7", 2, "flag: expected true or false, got 7"),
    (f"name: x\n? {'k' * 9000}\n: 1", 2, "unknown key"),
])
def test_validation_names_line_key_value_and_what_was_expected(text, line, message):
    with pytest.raises(InputError) as caught:
        validate(parse(text, "f.yaml"), Outer)
    assert str(caught.value).startswith(f"f.yaml:{line}: {message}")
    assert len(str(caught.value)) < 600


def test_a_label_stands_for_file_and_key():
    document = parse("name: x\ninner: {count: 0}", "f.yaml")
    document.labels[("inner", "count")] = "--count"
    with pytest.raises(InputError, match=r"^--count: expected greater than 0, got 0$"):
        validate(document, Outer)


def test_dump_reads_back():
    data = {"b": [1, "no", None], "a": {"x": "1:30", "y": 1.5, "t": True}}
    assert parse(dump(data), "x").data == data
    assert list(parse(dump(data), "x").data) == ["b", "a"]


@given(st.text(max_size=30) | st.sampled_from(["1e5", "0o7", "1_000", "1:30", "~", "null", "+1", ".5", "9" * 50]))
def test_text_that_is_written_is_read_back_as_that_text(text):
    assert parse(dump({"text": text, "list": [text]}), "").data == {"text": text, "list": [text]}

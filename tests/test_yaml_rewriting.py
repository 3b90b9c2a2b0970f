"""A text that says something else keeps its comments, and what stays as it was written."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.yaml_io import dump, parse
from planner.yaml_io.rewriting import rewritten

WRITTEN = """# the whole
workload:   # what runs
  kind: training
  model: llama-3.1-8b   # the small one
  tokens: 1 T
# rented
hardware: {candidates: [h100, a100]}  # both
jobs:
  # first the base
  - name: base
    after: []
  - name: tune   # then that
    samples: 50000
limits:
  deadline: 30 d
  # more to come
"""


def changed(change):
    data = copy.deepcopy(parse(WRITTEN, "").data)
    change(data)
    made = rewritten(WRITTEN, data)
    assert parse(made, "").data == data
    return made


@pytest.mark.parametrize(("change", "was", "now"), [
    (lambda data: data["workload"].update(model="gpt2"), "llama-3.1-8b ", "gpt2 "),
    (lambda data: data["workload"].update(tokens="2 T", seq_len=8192), "tokens: 1 T\n",
     "tokens: 2 T\n  seq_len: 8192\n"),
    (lambda data: data["workload"].pop("tokens"), "  tokens: 1 T\n", ""),
    (lambda data: data["hardware"].update(terms=["spot"]), "a100]}", "a100], terms: [spot]}"),
    (lambda data: data["jobs"].append({"name": "chat", "rate": 5}), "50000\n", "50000\n  - name: chat\n    rate: 5\n"),
    (lambda data: data["jobs"].pop(0), "  - name: base\n    after: []\n", ""),
    (lambda data: data["jobs"][1].update(name="tuned", samples=7), "tune   # then that\n    samples: 50000",
     "tuned   # then that\n    samples: 7"),
    (lambda data: data.update(objective="time"), "  # more to come\n", "  # more to come\nobjective: time\n"),
    (lambda data: data.pop("limits"), "limits:\n  deadline: 30 d\n", "")])
def test_one_change_changes_its_place_alone(change, was, now):
    assert WRITTEN.count(was) == 1
    assert changed(change) == WRITTEN.replace(was, now)


def test_what_is_the_same_as_text_stays_as_it_was_written():
    data = parse(WRITTEN, "").data
    data["jobs"][1]["samples"] = "50000"
    assert rewritten(WRITTEN, data) == WRITTEN


@pytest.mark.parametrize("text", ["a: 1\nb: 2\n", "", "# no more\n", "a: [1\n", "- 1  # a list\n",
                                  "other: 1  # of mine\n"])
def test_what_has_no_comments_or_nothing_in_common_is_written_anew(text):
    data = {"workload": {"model": "gpt2"}}
    assert rewritten(text, data) == dump(data)


NAMES = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.recursive(st.none() | st.booleans() | st.integers(-9, 99) | st.sampled_from(
    ["x", "y: z", "1e5", "# no", "a, b", "", "two\nlines", "'", "30 d"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=12)
FILES = st.dictionaries(NAMES, VALUES, min_size=1, max_size=4)


@given(FILES, FILES)
def test_whatever_changes_the_text_says_what_it_should(old, new):
    text = "".join(f"{line}\n# of line {at}\n" if not line.startswith(" ") else f"{line}\n"
                   for at, line in enumerate(dump(old).splitlines()))

    def told(data):
        if isinstance(data, dict):
            return {key: told(value) for key, value in data.items()}
        return [told(value) for value in data] if isinstance(data, list) else str(data)

    assert told(parse(rewritten(text, new), "").data) == told(new)

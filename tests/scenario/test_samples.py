"""Samples and epochs instead of tokens, and files of them: what is read, what follows, what is refused."""

import json
import sys
from types import SimpleNamespace

import pytest

import planner
from planner.catalog.load import Catalog
from planner.errors import InputError
from planner.scenario.load import load_any

CATALOG = Catalog()
WORK = {"workload.model": "llama-3.1-8b", "workload.method": "lora", "hardware.candidates": "8xh100"}


def asked(**values):
    scenario, defaults = load_any(None, WORK | {f"workload.{name}": value for name, value in values.items()}, CATALOG)
    return scenario.workload, {one.name: one for one in defaults}


@pytest.fixture
def file(tmp_path):
    def written(*rows):
        path = tmp_path / "samples.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        return str(path)

    return written


def test_samples_without_a_longest_length_are_packed():
    work, said = asked(epochs="3", samples="50k", mean_length="600")
    assert (work.tokens, work.mean_length, work.samples) == (90_000_000, None, None)
    assert said["packing"].value == "packed"
    assert "3 epochs of 50,000 samples" in said["tokens"].why


def test_tokens_are_passed_over_several_times():
    work, said = asked(tokens="20M", epochs="3")
    assert (work.tokens, work.epochs) == (60_000_000, None)
    assert said["tokens"].why == "3 passes over 20 M"


def test_samples_are_padded_to_a_length_that_is_known_unless_packed():
    work, said = asked(epochs="3 epochs", samples="50k samples", mean_length="600", sequence_length="2048")
    assert (work.tokens, work.mean_length, work.sequence_length) == (90_000_000, 600, 2048)
    assert said["packing"].value == "padded to the longest of a micro-batch, at most 2,048 tokens"
    packed, said = asked(samples=50_000, mean_length=600, sequence_length=2048, packing=True)
    assert (packed.tokens, packed.mean_length) == (30_000_000, None)
    assert "packing" not in said


def test_the_longest_sample_decides_memory_and_the_mean_time():
    """A collator pads to the longest of a micro-batch, and one sample alone to nothing: at a mean of 600 it takes
    as long under a cap of 1,024 as of 4,096, and four together longer than where none is longer than the mean.
    """
    job = {"model": "llama-3.1-8b", "method": "lora", "samples": "50k", "mean_length": 600, "stack": "trl"}

    def of(cap, each):
        return planner.estimate(**job, seq_len=cap, node="h100-sxm-1x", layout={"mbs": each, "recompute": "full"})

    assert of(4096, 1).time.step_seconds == of(1024, 1).time.step_seconds
    assert of(4096, 1).memory.peak_bytes > of(1024, 1).memory.peak_bytes
    assert of(4096, 4).time.step_seconds > 1.2 * of(600, 4).time.step_seconds
    assert of(4096, 1).time.steps == -(-50_000 // 128)


@pytest.mark.parametrize(("rows", "mean", "longest"), [
    ([{"num_tokens": 100}, {"num_tokens": 300}], 200, 300),
    ([{"input_ids": [1] * 10}, {"input_ids": [1] * 30}], 20, 30),
    ([{"text": "x" * 394}, {"text": "x" * 1182}], 200, 300),
    ([{"messages": [{"role": "user", "content": "x" * 197}, {"role": "assistant", "content": "x" * 196}]}], 100, 100),
])
def test_a_dataset_sets_mean_and_longest_length(file, rows, mean, longest):
    work, said = asked(dataset=file(*rows), epochs=2)
    assert (work.mean_length, work.sequence_length, work.tokens) == (mean, longest, 2 * mean * len(rows))
    assert ("characters per token" in said["tokens"].why) == ("text" in rows[0] or "messages" in rows[0])
    cut, _ = asked(dataset=file(*rows), sequence_length=longest - 5, packing=True)
    assert cut.sequence_length == longest - 5
    assert cut.tokens < mean * len(rows)


@pytest.mark.parametrize(("values", "message"), [
    ({"epochs": 3}, "epochs applies to tokens or samples or dataset"),
    ({"samples": "5", "tokens": "1 G"}, "tokens and samples are given"), ({"dataset": "no.jsonl"}, "no such file"),
    ({"samples": 5, "mean_length": 9, "tokenizer": "gpt2"}, "tokenizer applies to dataset"),
])
def test_what_does_not_go_together_is_refused(values, message):
    with pytest.raises(InputError, match=message):
        asked(**values)


def test_a_file_that_is_no_dataset_is_refused_by_line(file, tmp_path):
    with pytest.raises(InputError, match="no column of tokens"):
        asked(dataset=file({"foo": 1}))
    path = tmp_path / "bad.jsonl"
    path.write_text('{"text": "a"}\n[1]\n')
    with pytest.raises(InputError, match=r"bad\.jsonl:2: expected a JSON object"):
        asked(dataset=str(path))
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n")
    with pytest.raises(InputError, match="no samples"):
        asked(dataset=str(empty))


class ParquetFile:
    """Stands in for pyarrow's: a JSON list of rows in two batches."""

    def __init__(self, path):
        try:
            self.rows = json.loads(path.read_text())
        except ValueError:
            raise ValueError("Parquet magic bytes not found in footer\nmore") from None

    def iter_batches(self):
        for rows in (self.rows[:1], self.rows[1:]):
            yield SimpleNamespace(to_pylist=lambda rows=rows: rows)


def words(name):
    if name != "my/tokenizer":
        raise Exception("no such repository\nmore")
    return SimpleNamespace(encode=lambda text: SimpleNamespace(ids=text.split()))


def test_parquet_and_tokenizers_are_read_with_their_libraries(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", SimpleNamespace(parquet=None))
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", SimpleNamespace(ParquetFile=ParquetFile))
    monkeypatch.setitem(sys.modules, "tokenizers", SimpleNamespace(Tokenizer=SimpleNamespace(from_pretrained=words)))
    path = tmp_path / "samples.parquet"
    path.write_text(json.dumps([{"text": "a b c d"}, {"text": "a b"}]))
    work, said = asked(dataset=str(path), tokenizer="my/tokenizer")
    assert (work.mean_length, work.sequence_length, work.tokens) == (3, 4, 6)
    assert "tokenizer my/tokenizer" in said["tokens"].why
    with pytest.raises(InputError, match=r"cannot load 'other': no such repository$"):
        asked(dataset=str(path), tokenizer="other")
    path.write_text("PAR0")
    with pytest.raises(InputError, match=r"not Parquet: Parquet magic bytes not found in footer$"):
        asked(dataset=str(path))


def test_without_the_libraries_it_says_what_to_install(tmp_path, monkeypatch, file):
    for name in ("pyarrow", "pyarrow.parquet", "tokenizers"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=r"pip install 'planner\[datasets\]'"):
        asked(dataset=file({"text": "a"}), tokenizer="gpt2")
    path = tmp_path / "samples.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"pyarrow: pip install 'planner\[datasets\]'"):
        asked(dataset=str(path))


def test_samples_by_no_method_tune_all_weights():
    work = {name: value for name, value in WORK.items() if name != "workload.method"}
    tuned, defaults = load_any(None, {**work, "workload.samples": "10k"}, CATALOG)
    assert tuned.workload.method == "full"
    assert tuned.workload.global_batch.sequences < 1000
    assert any((one.name, one.value) == ("method", "full") for one in defaults)
    trained, _ = load_any(None, {**work, "workload.tokens": "1G"}, CATALOG)
    assert trained.workload.method == "pretrain"


@pytest.mark.parametrize(("mean", "length"), [(600, 4096), (4096, 4096), (8000, 8192), (20_000, 20_480)])
def test_a_sequence_of_tuning_holds_the_mean_sample(mean, length):
    work, said = asked(samples=5000, mean_length=mean)
    assert work.sequence_length == length
    assert (f"samples of {mean:,} tokens" in said["sequence_length"].why) == (length > 4096)

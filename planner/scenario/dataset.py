"""Samples counted: how many, how many tokens each, from a JSONL or Parquet file of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from planner.catalog.recipes import Recipes
from planner.errors import InputError
from planner.scenario.default import Default, Defaults
from planner.scenario.files import existing_file
from planner.scenario.model_notes import LENGTH
from planner.scenario.workload import Training
from planner.text_io import io_error
from planner.units import show_count
from planner.yaml_io import Document

COUNTS = ("num_tokens", "n_tokens", "token_count", "tokens_count", "tokens", "token_length", "length", "input_length",
          "seq_len", "len")
"""Columns that hold a sample's tokens, as a number."""
IDS = ("input_ids", "token_ids", "tokens")
"""Columns that hold the tokens themselves."""
TEXTS = ("text", "content", "messages", "conversations", "conversation", "prompt", "instruction", "input", "question",
         "context", "system", "chosen", "completion", "response", "output", "answer")
"""Columns of text, of which a sample may have several, one after the other."""
PAIR = ("chosen", "rejected")
"""Columns of a pair's answers."""
Tokenize = Callable[[str], int]


def in_tokens(work: Training, recipes: Recipes, document: Document, at: tuple[str | int, ...] = ("workload",), *,
              beside: float = 0.0, usual_length: int | None = None) -> tuple[Training, Defaults]:
    """Return a job that says its tokens, and where they are from; one asked for by tokens or by neither as it is.

    `at` is where the document has it; `beside` tokens of each sample are images or sound, in sequences of the usual
    length of the model where none is stated.

    Samples whose longest is known, of the file or as stated, are padded to the longest of their micro-batch, unless
    they are to be packed; where none is known they are packed. Raises InputError.
    """
    longest: int | None
    if work.dataset is not None:
        path = existing_file(work.dataset, document, (*at, "dataset"))
        read = read_samples(path, work.tokenizer, recipes.text.characters_per_token,
                            pairs=recipes.sequences(work.preference) > 1)
        most = None if work.sequence_length is None else max(1, work.sequence_length - round(beside))
        lengths = [length + round(beside) for length in read.cut(most)]
        count, longest, total, how = len(lengths), max(lengths), sum(lengths), read.how
    elif work.samples is not None:
        longer = recipes.preference.longer if recipes.sequences(work.preference) > 1 else 1.0
        usual = recipes.preference.usual if work.preference else recipes.tuning
        # of unknown lengths none is longer than a sequence: what that takes is the most it can be
        mean = work.mean_length or work.sequence_length or usual_length or usual.sequence_length
        count, longest = work.samples, work.sequence_length
        total = round(count * (longer * mean + round(beside) if work.mean_length else mean))
        how = f"of {mean:,} tokens" + ("" if work.mean_length else ", which are at most: mean_length says less")
    else:
        return _passed(work)
    epochs = work.epochs or 1.0
    how += f" and {beside:,.0f} beside" if beside else ""
    if work.preference:
        cap = recipes.preference.usual.sequence_length
        if longest is None and (work.mean_length or 0) > cap:
            raise document.error((*at, "mean_length"), f"{work.mean_length:,} is more than the {cap:,} tokens that "
                                 "the longest answer usually has: give sequence_length, to which answers are cut")
        return _preferred(work, recipes, count, max(1, round(total / count)), longest, how)
    packed = longest is None if work.packing is None else work.packing
    mean = max(1, round(total / count))
    tokens = round(epochs * (total if packed else count * mean))
    said = [Default(name="tokens", value=show_count(tokens),
                    why=f"{epochs:g} {'epoch' if epochs == 1 else 'epochs'} of {count:,} samples, {how}")]
    if work.packing is None:
        limit = "" if longest is None else f", at most {longest:,} tokens"
        said.append(Default(name="packing",
                            value="packed" if packed else f"padded to the longest of a micro-batch{limit}",
                            why="no longest sample is known" if packed else "packing fills sequences with samples"))
    said += _unknown_length(work, mean)
    update: dict[str, object] = dict.fromkeys(("epochs", "samples", "dataset", "tokenizer", "packing"))
    update |= {"tokens": tokens, "mean_length": None if packed else mean}
    if beside and packed and work.samples_per_sequence is None and (length := work.sequence_length or usual_length):
        update["samples_per_sequence"] = max(1.0, length / mean)
    if work.dataset is not None and not packed:
        update["sequence_length"] = longest
    return work.model_copy(update=update), said


def _passed(work: Training) -> tuple[Training, Defaults]:
    """Return a job on tokens that are passed over several times with those of all passes."""
    # a reference that runs once beforehand needs the passes
    if work.tokens is None or work.epochs is None or work.reference == "precomputed":
        return work, []
    tokens = round(work.tokens * work.epochs)
    passes = "pass" if work.epochs == 1 else "passes"
    return (work.model_copy(update={"tokens": tokens, "epochs": None}),
            [Default(name="tokens", value=show_count(tokens),
                     why=f"{work.epochs:g} {passes} over {show_count(work.tokens)}")])


def _unknown_length(work: Training, mean: int) -> Defaults:
    """Return what to say of samples whose length nobody gave."""
    if work.samples is None or work.mean_length is not None:
        return []
    noun = "answer" if work.preference else "sample"
    return [Default(name=LENGTH, value=f"{mean} tokens", why=f"every {noun} is counted with {mean:,} tokens, the most "
                    "that a sequence holds: --mean-length says how long they are, and time and cost fall with it")]


def _preferred(work: Training, recipes: Recipes, count: int, mean: int, longest: int | None, how: str
               ) -> tuple[Training, Defaults]:
    """Return a job on preferences in tokens: `count` samples, of which each answer is padded to `mean` on average."""
    epochs, each = work.epochs or 1.0, recipes.sequences(work.preference)
    mean = min(mean, longest or recipes.preference.usual.sequence_length)
    tokens = round(epochs * count * each * mean)
    noun = "pairs of two answers" if each > 1 else "samples"
    padded = f", {mean:,} with the padding to the longer of a pair" if each > 1 and not (
        work.samples and work.mean_length is None) else ""
    said = [Default(name="tokens", value=show_count(tokens),
                    why=f"{epochs:g} {'epoch' if epochs == 1 else 'epochs'} of {count:,} {noun}, {how}{padded}")]
    said += _unknown_length(work, mean)
    # the reference runs once, however many there are
    kept = work.epochs if work.reference == "precomputed" else None
    return work.model_copy(update={
        "epochs": kept, "samples": None, "dataset": None, "tokenizer": None, "packing": None, "tokens": tokens,
        "mean_length": mean, **({"sequence_length": longest} if work.dataset is not None else {})}), said


@dataclass(frozen=True, slots=True)
class Samples:
    """Tokens of every sample, in order, and where they are from."""

    lengths: Sequence[int]
    how: str

    def cut(self, most: int | None) -> list[int]:
        """Return the tokens of each, of at most so many."""
        return [min(length, most) if most else length for length in self.lengths]


def read_samples(path: Path, tokenizer: str | None, characters_per_token: float, *, pairs: bool = False) -> Samples:
    """Return the samples of a file, of pairs the length of the longer answer with its prompt.

    Raises InputError where it is none, or its samples have no tokens and no text.

    Without a count of tokens and without a tokenizer, text is taken to have so many characters per token.
    """
    rows = _parquet(path) if path.suffix.lower() in (".parquet", ".pq") else _json_lines(path)
    count: Tokenize = (lambda text: round(len(text) / characters_per_token)) if tokenizer is None else (
        _tokenizer(tokenizer))
    said = f"tokenizer {tokenizer}" if tokenizer else f"{characters_per_token:g} characters per token"
    lengths, how = [], ""
    for at, row in enumerate(rows, 1):
        column, tokens = _longer(row, count) if pairs else _tokens(row, count, counted=tokenizer is None)
        if tokens is None:
            if pairs:
                raise InputError(f"sample {at} is no pair: expected text in {' and '.join(PAIR)} beside a prompt",
                                 file=str(path))
            there = ", ".join(map(str, list(row)[:6])) or "it is empty"
            raise InputError(f"sample {at} has no column of tokens ({', '.join(COUNTS[:3])}, ..., input_ids) and none "
                             f"of text (text, messages, ...): {there}", file=str(path))
        if tokens >= 1:
            lengths.append(tokens)
        how = how or (f"column {column}" if column in (*COUNTS, *IDS) else f"text in {column}, {said}")
    if not lengths:
        raise InputError("the file has no samples", file=str(path))
    return Samples(lengths, how)


def _tokens(row: Mapping[str, Any], count: Tokenize, *, counted: bool) -> tuple[str, int | None]:
    """Return the tokens of a sample, and the columns that say so; a count that is there is taken where no tokenizer is
    named.
    """
    for name in COUNTS if counted else ():
        if isinstance(value := row.get(name), int | float) and not isinstance(value, bool) and value >= 0:
            return name, int(value)
    for name in IDS:
        if isinstance(value := row.get(name), list) and all(isinstance(token, int) for token in value[:8]):
            return name, len(value)
    texts = {name: text for name in TEXTS if (text := _text(row.get(name)))}
    return " and ".join(texts), count("\n".join(texts.values())) if texts else None


def _longer(row: Mapping[str, Any], count: Tokenize) -> tuple[str, int | None]:
    """Return the tokens of the longer answer of a pair with its prompt, and the columns; none where it is no pair."""
    if all(isinstance(row.get(f"{name}_input_ids"), list) for name in PAIR):
        return "chosen_input_ids", max(len(row[f"{name}_input_ids"]) for name in PAIR)
    if not all(_text(row.get(name)) for name in PAIR):
        return "", None
    prompt = [text for name in TEXTS if name not in PAIR and (text := _text(row.get(name)))]
    # a list of several messages begins with the prompt
    whole = ["\n".join([*(() if isinstance(row[name], list) and len(row[name]) > 1 else prompt), _text(row[name])])
             for name in PAIR]
    return " and ".join(PAIR), max(map(count, whole))


def _text(value: object) -> str:
    """Return the text of a column: as it is, or of a list of messages one after the other."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return _text(value.get("content", value.get("value", "")))
    return "\n".join(filter(None, map(_text, value))) if isinstance(value, list) else ""


def _json_lines(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _object(line, path, number)
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text: a dataset is JSON lines or Parquet", file=str(path)) from None
    except OSError as error:
        raise io_error(error, path) from None


def _object(line: str, path: Path, number: int) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        raise InputError("expected a JSON object on each line, such as {\"text\": \"...\"}", file=str(path),
                         line=number)
    return row


def _parquet(path: Path) -> Iterator[Mapping[str, Any]]:
    parquet = _library("pyarrow.parquet", "a Parquet file needs pyarrow: pip install 'planner[datasets]', or give the "
                       "samples as JSON lines")
    try:
        file = parquet.ParquetFile(path)
        for batch in file.iter_batches():
            yield from batch.to_pylist()
    except OSError as error:
        raise io_error(error, path) from None
    except ValueError as error:  # what pyarrow raises of a file that is no Parquet
        raise InputError(f"not Parquet: {str(error).splitlines()[0]}", file=str(path)) from None


def _tokenizer(name: str) -> Tokenize:
    """Return what counts the tokens of text: a tokenizer.json, or a tokenizer on the Hugging Face Hub."""
    library = _library("tokenizers", "tokenizer: counting needs the tokenizers library: "
                       "pip install 'planner[datasets]', or give a column of token counts")
    try:
        loaded = library.Tokenizer.from_file(name) if Path(name).is_file() else library.Tokenizer.from_pretrained(name)
    except Exception as error:  # the library raises bare Exceptions
        raise InputError(f"tokenizer: cannot load {name!r}: {str(error).splitlines()[0]}") from None
    return lambda text: len(loaded.encode(text).ids)


def _library(name: str, missing: str) -> Any:  # noqa: ANN401 - an optional library
    try:
        return import_module(name)
    except ImportError:
        raise InputError(missing) from None
